//! The rate limits on virtual time: what a bucket gives, when, and to whom.

mod fairness;

use super::*;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_800_000_000_000 + millis).unwrap()
}

fn caller(priority: Priority) -> Caller<'static> {
    Caller { namespace: "team-a", object: "one", priority }
}

fn taken(limits: &Limits, call: Call, priority: Priority, now: Timestamp) -> usize {
    (0..1000).take_while(|_| limits.try_take(call, &caller(priority), now).is_ok()).count()
}

#[test]
fn a_bucket_holds_the_published_burst_times_the_share() {
    let rows = [
        (Call::RunInstances, 5),
        (Call::TerminateInstances, 100),
        (Call::DescribeInstances, 100),
        (Call::GetConsoleOutput, 50),
        (Call::CreateVolume, 100),
        (Call::ModifyVolume, 50),
    ];
    for (call, burst) in rows {
        assert_eq!(taken(&Limits::new(1.0, 1.0), call, Priority::Repair, at(0)), burst, "{call:?}");
        assert_eq!(
            taken(&Limits::new(0.5, 1.0), call, Priority::Repair, at(0)),
            burst / 2,
            "{call:?} at half"
        );
    }
}

#[test]
fn an_empty_bucket_returns_when_to_try_again_and_then_gives() {
    let limits = Limits::new(0.5, 1.0);
    taken(&limits, Call::RunInstances, Priority::Repair, at(0));
    let wait = limits.try_take(Call::RunInstances, &caller(Priority::Repair), at(0)).unwrap_err();
    assert!(wait.until > at(0) && wait.until <= at(1002), "{wait:?}");
    assert!(limits.try_take(Call::RunInstances, &caller(Priority::Repair), wait.until).is_ok());
}

#[test]
fn a_thousand_launches_take_no_less_than_ec2_allows() {
    let limits = Limits::new(1.0, 1.0);
    let mut now = at(0);
    for _ in 0..1000 {
        while let Err(wait) = limits.try_take(Call::RunInstances, &caller(Priority::Repair), now) {
            now = wait.until;
        }
    }
    let seconds = now.duration_since(at(0)).as_secs_f64();
    assert!((497.5..499.5).contains(&seconds), "{seconds}");
}

#[test]
fn creations_leave_a_reserve_to_deletions_in_the_same_bucket() {
    let limits = Limits::new(1.0, 1.0);
    assert_eq!(taken(&limits, Call::CreateVolume, Priority::Create, at(0)), 80);
    assert_eq!(taken(&limits, Call::DeleteVolume, Priority::Repair, at(0)), 20);
}

#[test]
fn even_the_smallest_share_lets_a_creation_go() {
    let limits = Limits::new(0.01, 1.0);
    assert_eq!(taken(&limits, Call::RunInstances, Priority::Create, at(0)), 1);
}

#[test]
fn a_throttle_empties_the_bucket_halves_its_refill_and_wears_off_in_a_minute() {
    let limits = Limits::new(1.0, 1.0);
    limits.throttled(Call::ModifyVolume, at(0));
    let wait = limits.try_take(Call::ModifyVolume, &caller(Priority::Repair), at(0)).unwrap_err();
    // 5 a second, halved: one token takes 0.4 s.
    assert!((at(399)..at(403)).contains(&wait.until), "{wait:?}");
    limits.try_take(Call::ModifyVolume, &caller(Priority::Repair), at(61_000)).unwrap();
    taken(&limits, Call::ModifyVolume, Priority::Repair, at(61_000));
    let wait = limits.try_take(Call::ModifyVolume, &caller(Priority::Repair), at(61_000)).unwrap_err();
    assert!((at(61_199)..at(61_203)).contains(&wait.until), "{wait:?}");
}

#[test]
fn throttle_upon_throttle_never_stops_a_bucket_for_good() {
    let limits = Limits::new(1.0, 1.0);
    for _ in 0..100 {
        limits.throttled(Call::RunInstances, at(0));
    }
    let wait = limits.try_take(Call::RunInstances, &caller(Priority::Repair), at(0)).unwrap_err();
    assert!(wait.until <= at(8_100), "{wait:?}");
}

#[test]
fn a_throttle_of_one_call_leaves_the_other_buckets_alone() {
    let limits = Limits::new(1.0, 1.0);
    limits.throttled(Call::RunInstances, at(0));
    assert!(limits.try_take(Call::TerminateInstances, &caller(Priority::Repair), at(0)).is_ok());
}

#[test]
fn a_faster_clock_refills_faster() {
    let limits = Limits::new(1.0, 20.0);
    taken(&limits, Call::RunInstances, Priority::Repair, at(0));
    assert_eq!(taken(&limits, Call::RunInstances, Priority::Repair, at(51)), 2);
}

#[test]
fn a_clock_that_is_set_back_gives_nothing() {
    let limits = Limits::new(1.0, 1.0);
    taken(&limits, Call::RunInstances, Priority::Repair, at(0));
    assert!(limits.try_take(Call::RunInstances, &caller(Priority::Repair), at(-60_000)).is_err());
}

#[test]
fn a_spare_request_is_taken_only_from_a_full_bucket_that_no_call_waits_for() {
    let limits = Limits::new(0.5, 1.0);
    let call = Call::RunInstances;
    limits.try_take_spare(call, at(0)).unwrap();
    // A repair goes at once, and a creation half a second later.
    let wait = limits.try_take(call, &caller(Priority::Create), at(0)).unwrap_err();
    assert!((at(500)..at(503)).contains(&wait.until), "{wait:?}");
    limits.try_take(call, &caller(Priority::Repair), at(0)).unwrap();

    let full = limits.try_take_spare(call, at(0)).unwrap_err().until;
    assert!((at(2_000)..at(2_003)).contains(&full), "{full}");
    // The creation still waits for its turn, in a bucket that is full.
    limits.try_take(call, &caller(Priority::Create), at(1)).unwrap_err();
    assert!(limits.try_take_spare(call, full).is_err());
    limits.try_take(call, &caller(Priority::Create), full).unwrap();
    limits.try_take_spare(call, at(10_000)).unwrap();
}
