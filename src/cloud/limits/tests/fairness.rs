//! Who is given a launch when many wait: no namespace waits for the many calls of another one, and a repair
//! for none. Counted in launches.

use super::*;

/// A call that is made once, by an object that comes again when it was told to.
struct Launch {
    namespace: &'static str,
    object: String,
    priority: Priority,
    arrives: Timestamp,
}

fn launch(namespace: &'static str, number: usize, priority: Priority, second: i64) -> Launch {
    Launch { namespace, object: format!("{namespace}/{number}"), priority, arrives: at(second * 1000) }
}

fn launches(namespace: &'static str, count: usize, priority: Priority, second: i64) -> Vec<Launch> {
    (0..count).map(|number| launch(namespace, number, priority, second)).collect()
}

/// Makes these calls; each with its time, in the order in which they were allowed.
fn run(limits: &Limits, launches: Vec<Launch>) -> Vec<(Launch, Timestamp)> {
    let mut waiting: Vec<(Timestamp, Launch)> =
        launches.into_iter().map(|launch| (launch.arrives, launch)).collect();
    let mut made = Vec::new();
    while let Some(next) = (0..waiting.len()).min_by_key(|index| waiting[*index].0) {
        let (now, Launch { namespace, object, priority, .. }) = &waiting[next];
        let now = *now;
        let caller = Caller { namespace, object, priority: *priority };
        match limits.try_take(Call::RunInstances, &caller, now) {
            Ok(()) => made.push((waiting.remove(next).1, now)),
            Err(wait) => {
                let seconds = wait.until.duration_since(now).as_secs_f64();
                assert!(seconds > 0.0 && seconds <= 30.0, "{seconds}");
                waiting[next].0 = wait.until;
            }
        }
    }
    made
}

/// How many other launches were made between the arrival of this one and its own.
fn made_before(made: &[(Launch, Timestamp)], object: &str) -> usize {
    let own = made.iter().position(|(launch, _)| launch.object == object).unwrap();
    made[..own].iter().filter(|(_, when)| *when > made[own].0.arrives).count()
}

#[test]
fn hundreds_of_creations_in_one_namespace_delay_anothers_first_by_one_launch_and_a_repair_not_at_all() {
    let limits = Limits::new(0.5, 1.0);
    let mut calls = launches("noisy", 300, Priority::Create, 0);
    calls.push(launch("quiet", 0, Priority::Create, 20));
    calls.push(launch("broken", 0, Priority::Repair, 40));
    calls.push(launch("resumed", 0, Priority::Existing, 60));
    let made = run(&limits, calls);
    assert!(made_before(&made, "quiet/0") <= 1, "{}", made_before(&made, "quiet/0"));
    assert_eq!(made_before(&made, "broken/0"), 0);
    assert!(made_before(&made, "resumed/0") <= 1, "{}", made_before(&made, "resumed/0"));
    let (_, last) = made.last().unwrap();
    let seconds = last.duration_since(at(0)).as_secs_f64();
    assert!((300.0..306.0).contains(&seconds), "one a second, and none is wasted: {seconds}");
}

#[test]
fn the_calls_of_one_namespace_are_made_in_the_order_in_which_they_came() {
    let made = run(&Limits::new(0.5, 1.0), launches("noisy", 100, Priority::Create, 0));
    let order: Vec<&str> = made.iter().map(|(launch, _)| launch.object.as_str()).collect();
    let expected: Vec<String> = (0..100).map(|number| format!("noisy/{number}")).collect();
    assert_eq!(order, expected);
}

#[test]
fn namespaces_that_all_wait_take_turns() {
    let namespaces = ["a", "b", "c", "d", "e"];
    let calls =
        namespaces.into_iter().flat_map(|name| launches(name, 40, Priority::Create, 0)).collect::<Vec<_>>();
    let made = run(&Limits::new(0.5, 1.0), calls);
    for name in namespaces {
        let times = made[..100].iter().filter(|(launch, _)| launch.namespace == name).count();
        assert!((18..=22).contains(&times), "{name} {times}");
    }
}

#[test]
fn a_namespace_that_pauses_and_resumes_its_databases_does_not_keep_another_from_its_first() {
    let mut calls = launches("noisy", 100, Priority::Existing, 0);
    calls.push(launch("quiet", 0, Priority::Create, 10));
    let made = run(&Limits::new(0.5, 1.0), calls);
    assert!(made_before(&made, "quiet/0") <= 1, "{}", made_before(&made, "quiet/0"));
}

#[test]
fn what_an_existing_database_needs_comes_before_the_new_ones_of_its_namespace() {
    let mut calls = launches("noisy", 100, Priority::Create, 0);
    calls.push(Launch { object: "existing".to_owned(), ..launch("noisy", 0, Priority::Existing, 10) });
    let made = run(&Limits::new(0.5, 1.0), calls);
    assert!(made_before(&made, "existing") <= 1, "{}", made_before(&made, "existing"));
}

#[test]
fn many_repairs_of_one_namespace_delay_anothers_by_one_launch() {
    let mut calls = launches("noisy", 50, Priority::Repair, 0);
    calls.push(launch("quiet", 0, Priority::Repair, 5));
    let made = run(&Limits::new(0.5, 1.0), calls);
    assert!(made_before(&made, "quiet/0") <= 1, "{}", made_before(&made, "quiet/0"));
}

#[test]
fn one_that_does_not_come_again_loses_its_place_and_one_that_is_gone_at_once() {
    let waits = |limits: &Limits, namespace: &str, object: &str, now: Timestamp| {
        let caller = Caller { namespace, object, priority: Priority::Create };
        limits.try_take(Call::RunInstances, &caller, now).err().map(|wait| wait.until)
    };
    let full = || {
        let limits = Limits::new(0.5, 1.0);
        taken(&limits, Call::RunInstances, Priority::Repair, at(0));
        limits.forget(caller(Priority::Repair).object);
        let told = waits(&limits, "noisy", "never again", at(0)).unwrap();
        (limits, told)
    };
    let (limits, told) = full();
    let mut now = at(0);
    while let Some(until) = waits(&limits, "quiet", "one", now) {
        now = until;
    }
    assert!(now > told && now.duration_since(told) < SignedDuration::from_secs(8), "{now} after {told}");
    let (limits, told) = full();
    limits.forget("never again");
    assert_eq!(waits(&limits, "quiet", "one", told), None);
}

#[test]
fn no_place_is_kept_for_the_hour_by_which_a_clock_is_set_back() {
    let limits = Limits::new(0.5, 1.0);
    taken(&limits, Call::RunInstances, Priority::Create, at(0));
    let hour = 3_600_000;
    let waiting = Caller { namespace: "noisy", object: "never again", priority: Priority::Create };
    assert!(limits.try_take(Call::RunInstances, &waiting, at(0)).is_err());
    let mut now = at(-hour);
    let caller = Caller { namespace: "quiet", object: "one", priority: Priority::Create };
    while let Err(wait) = limits.try_take(Call::RunInstances, &caller, now) {
        now = wait.until;
    }
    assert!(now < at(-hour + 8000), "{now}");
}

#[test]
fn a_namespace_that_asks_for_nothing_any_more_is_forgotten() {
    let limits = Limits::new(1.0, 1.0);
    let take = |namespace: &str, second: i64| {
        let caller = Caller { namespace, object: namespace, priority: Priority::Create };
        limits.try_take(Call::CreateVolume, &caller, at(second * 1000)).is_ok()
    };
    for number in 0..500 {
        take(&format!("team-{number}"), 0);
    }
    take("last", 1000);
    let remembered: usize = limits.buckets.lock().iter().map(|bucket| bucket.turns.namespaces()).sum();
    assert_eq!(remembered, 1);
}
