//! Whole lives of databases in one process and in virtual time; one seed decides all that may differ.

mod addresses;
mod archived;
mod backups;
pub mod blow;
mod campaign;
mod certified;
mod chaos;
mod configured;
mod copies;
mod cost;
mod disks;
mod engines;
mod flushed;
mod full;
mod grown;
pub mod house;
mod killed;
mod led;
mod left;
pub mod lies;
mod lies_of_ec2;
pub mod life;
mod looks;
mod named;
mod operators;
mod orphans;
mod panics;
mod person;
mod record;
mod reloaded;
mod replaced;
mod rotated;
mod schedules;
mod story;
mod tally;
mod tenants;
mod unrecorded;
mod upgraded;
mod users;
mod verified;
mod wiped;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use strum::IntoEnumIterator as _;

use blow::{Blow, Strike};
use house::Failure;
use killed::{Course, Meanwhile};
use lies::Lies;
use life::Plan;

/// How many seeds each test run tries. Those after them are a campaign's.
const SEEDS: u64 = 20;

#[test]
fn a_database_lives_in_a_world_as_one_would_wish_it() {
    judge(lives(0..4, |_| Lies::none()));
}

/// `FREEHOLD_SEEDS=7..8` lives one life again, with its story.
#[test]
fn a_database_lives_whatever_lies() {
    judge(lives(seeds().unwrap_or(0..SEEDS), Lies::of));
}

/// `FREEHOLD_SEEDS=0..100000` and `FREEHOLD_CAMPAIGN=folder`: docs/testing.md has the whole command.
#[test]
#[ignore = "takes hours"]
fn a_database_lives_through_a_campaign() {
    let folder = std::env::var_os("FREEHOLD_CAMPAIGN").map(PathBuf::from);
    let folder = folder.expect("FREEHOLD_CAMPAIGN names the folder of its notes");
    let failed = campaign::run(&folder, &seeds().expect("FREEHOLD_SEEDS names its seeds"));
    assert!(failed.is_empty(), "{} lives failed: {failed:?}", failed.len());
}

/// `FREEHOLD_SEEDS=7..8` lives one of them again, by its place.
#[test]
fn a_database_lives_through_each_call_lie_and_crash_that_has_a_name() {
    judge(each(&chosen(named::NAMED), named::live));
}

#[test]
fn a_database_leaves_a_machine_in_good_time_and_pauses_where_one_after_the_other_is_lost() {
    judge(each(&chosen(left::LEFT), named::live));
}

#[test]
fn a_machine_that_has_the_host_name_of_a_lost_one_takes_its_place() {
    judge(each(&[(0, 0), (600, 600)], addresses::reused));
}

fn chosen(all: &[named::Named]) -> Vec<(u64, named::Named)> {
    let range = seeds().unwrap_or(0..all.len() as u64);
    (0..).zip(all.iter().copied()).filter(|(number, _)| range.contains(number)).collect()
}

#[test]
fn a_database_is_backed_up_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE, 20, backups::backed_up);
}

#[test]
fn a_schedule_backs_up_each_time_once_and_keeps_what_it_says_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE_OF_HOURS, 20, schedules::scheduled);
}

#[test]
fn a_restored_database_serves_while_ec2_reads_its_volume_and_says_how_far_that_is() {
    judge(each(&[(1, 1), (2, 2)], backups::restored));
}

#[test]
fn a_backup_is_verified_and_nothing_is_left_of_it_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE_OF_HOURS, 60, verified::verified);
}

#[test]
fn a_password_is_rotated_in_an_engine_that_serves_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE, 5, rotated::while_it_serves);
}

#[test]
fn a_password_is_rotated_by_one_restart_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE, 5, rotated::by_a_restart);
}

#[test]
fn postgresql_takes_settings_while_it_runs_and_rejects_wrong_ones_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE_OF_HOURS, 20, reloaded::changed);
}

#[test]
fn postgresql_loads_a_renewed_certificate_while_it_serves_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE_OF_HOURS, 5, certified::renewed);
}

#[test]
fn data_that_is_replaced_in_place_is_kept_and_comes_back_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE_OF_HOURS, 20, replaced::and_back);
}

#[test]
fn a_volume_that_fills_up_grows_once_for_each_need_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE_OF_HOURS, 5, grown::by_itself);
}

#[test]
fn backups_come_to_an_end_whatever_lies() {
    let seeds: Vec<(u64, u64)> = seeds().unwrap_or(0..12).map(|seed| (seed, seed)).collect();
    judge(each(&seeds, backups::backed_up_whatever_lies));
}

#[test]
fn a_retained_volume_without_its_record_is_found_by_its_tags() {
    let cuts: Vec<(u64, unrecorded::CutOff)> = (1..).zip(unrecorded::CutOff::iter()).collect();
    judge(each(&cuts, unrecorded::found_again));
}

#[test]
fn a_burst_of_creations_in_one_namespace_holds_up_neither_a_repair_nor_a_creation_in_another() {
    judge(each(&[(1, ())], |()| tenants::burst()));
}

#[test]
fn what_lost_its_objects_by_force_is_listed_with_what_it_holds() {
    judge(each(&[(1, ())], |()| orphans::listed()));
}

#[test]
fn what_a_first_look_decides_is_what_a_live_look_decides() {
    let seeds: Vec<(u64, u64)> = seeds().unwrap_or(0..8).map(|seed| (seed, seed)).collect();
    judge(each(&seeds, looks::agree));
}

/// With `--nocapture` it prints what each request is, for one database.
#[test]
fn a_database_that_is_created_among_others_costs_few_requests() {
    judge(each(&[(1, ())], |()| cost::created()));
}

/// With `--nocapture` it prints what each request is, for one database.
#[test]
fn a_database_that_is_deleted_among_others_costs_few_requests() {
    judge(each(&[(1, ())], |()| cost::deleted()));
}

/// With `--nocapture` it prints what each request is, for all of them.
#[test]
fn an_operator_that_starts_anew_reads_no_object_of_databases_that_have_not_changed() {
    judge(each(&[(1, ())], |()| cost::restarted()));
}

/// `FREEHOLD_SEEDS=7..8` lives one of them again, by its place.
#[test]
fn a_status_of_which_a_part_is_lost_never_leads_to_a_second_machine_or_volume() {
    let range = seeds().unwrap_or(0..u64::MAX);
    let cases: Vec<(u64, wiped::Wiped)> =
        (0..).zip(wiped::all()).filter(|it| range.contains(&it.0)).collect();
    judge(each(&sampled(cases), wiped::Wiped::live));
}

/// The seeds that are asked for.
fn seeds() -> Option<Range<u64>> {
    let named = std::env::var("FREEHOLD_SEEDS").ok()?;
    let (first, end) = named.split_once("..")?;
    Some(first.parse().ok()?..end.parse().ok()?)
}

/// What becomes of an operator, and for how many seconds: as long as a restart takes, a minute, or until
/// another one leads.
const BLOWS: [(Blow, u64); 8] = [
    (Blow::Before, 1),
    (Blow::Lost, 1),
    (Blow::After, 1),
    (Blow::Lost, 60),
    (Blow::Lost, 200),
    (Blow::Unanswered, 0),
    (Blow::Stopped, 200),
    (Blow::CutOff, 200),
];

#[test]
fn two_operators_of_which_one_is_struck_at_any_write_go_on_as_if_nothing_had_been() {
    for course in Course::iter() {
        let writes = counted(move || course.live(None));
        assert!(writes > 60, "{writes} writes are no whole life");
        judge(each(&sampled(at_each(writes, &BLOWS)), |(number, (blow, seconds))| async move {
            course.live(Some(Strike { number, blow, away: Duration::from_secs(seconds) })).await;
        }));
    }
}

#[test]
fn whatever_becomes_of_the_operator_that_leads_the_other_one_follows_within_seconds() {
    let cases: Vec<(u64, (&str, Blow))> = (0..).zip(led::cases()).collect();
    judge(each(&cases, led::live));
}

#[test]
fn of_two_databases_that_adopt_one_retained_volume_the_one_that_is_deleted_takes_nothing_along() {
    judge(each(&[(1, ())], |()| killed::two_adopters()));
}

#[test]
fn what_is_done_while_no_operator_runs_is_reached_after_a_kill_at_any_write_of_a_creation() {
    let meanwhile: Vec<Meanwhile> = Meanwhile::iter().collect();
    let writes = counted(killed::creation);
    assert!(writes > 20, "{writes} writes are no creation");
    judge(each(&at_each(writes, &meanwhile), |(number, meanwhile)| killed::interrupted(number, meanwhile)));
}

#[test]
fn a_database_that_is_deleted_while_it_adopts_leaves_the_volume_retained_once() {
    let (first, last) = (counted(killed::retention) + 1, counted(killed::adoption));
    assert!(last - first > 20, "{first} to {last} is no adoption");
    let cases: Vec<(u64, usize)> = (first..=last).map(|number| (number as u64, number)).collect();
    judge(each(&sampled(cases), killed::left_in_adoption));
}

#[test]
fn a_database_of_the_name_of_one_that_just_ended_has_credentials_of_its_own() {
    judge(each(&[(1, ())], |()| copies::recreated()));
}

#[test]
fn a_pod_that_loses_our_label_before_its_engine_answers_is_seen_all_the_same() {
    judge(each(&[(1, ())], |()| copies::unlabelled_pod()));
}

/// One of so many of these cases is lived in a usual run.
const SAMPLE: u64 = 3;

/// The same of those that last for many hours. It has no divisor in common with the number of ways.
const SAMPLE_OF_HOURS: u64 = 11;

/// All of these cases with `FREEHOLD_SEEDS` set, else a sample: each costs seconds of a processor.
fn sampled<C>(cases: Vec<(u64, C)>) -> Vec<(u64, C)> {
    one_of(SAMPLE, cases)
}

/// All of these cases with `FREEHOLD_SEEDS` set, else one of so many; of those that last for many hours each
/// seed is one of so many, too.
fn one_of<C>(sample: u64, mut cases: Vec<(u64, C)>) -> Vec<(u64, C)> {
    let seeds = seeds().map_or(0..1, |seeds| if sample == SAMPLE_OF_HOURS { seeds } else { 0..sample });
    cases.retain(|(number, _)| seeds.clone().any(|seed| seed % sample == number % sample));
    cases
}

/// Lives a life with an operator that is struck at one of so many writes and calls of its part that is looked
/// at. `live` gives how many there were before that part and at its end; there are more than `least`.
fn struck_in_a_part<F>(sample: u64, least: usize, live: impl Fn(Option<Strike>) -> F + Sync)
where
    F: Future<Output = (usize, usize)>,
{
    let counts = Mutex::new((0, 0));
    let lived = house::run(|| async { *counts.lock() = live(None).await });
    assert!(lived.is_ok(), "without a blow: {}", lived.unwrap_err().why);
    let (before, after) = counts.into_inner();
    assert!(after - before > least, "{before} to {after} are too few");
    let mut cases = at_each(after, &BLOWS);
    cases.retain(|(_, (write, _))| *write > before);
    judge(each(&one_of(sample, cases), |(number, (blow, seconds))| {
        let strike = Strike { number, blow, away: Duration::from_secs(seconds) };
        let lived = live(Some(strike));
        async move {
            lived.await;
        }
    }));
}

/// The number of writes of a life in which nothing goes wrong.
fn counted<F: Future<Output = usize>>(life: impl FnOnce() -> F + Send) -> usize {
    let writes = Mutex::new(0);
    let lived = house::run(|| async { *writes.lock() = life().await });
    assert!(lived.is_ok(), "without a kill: {}", lived.unwrap_err().why);
    writes.into_inner()
}

/// The cases of blows at these writes, from 1: all ways at each with `FREEHOLD_SEEDS` set, else one, in turn.
fn at_each<W: Copy>(writes: usize, ways: &[W]) -> Vec<(u64, (usize, W))> {
    let is_whole = std::env::var("FREEHOLD_SEEDS").is_ok();
    let all = (0..writes).flat_map(|write| (0..ways.len()).map(move |way| (write, way)));
    all.filter(|(write, way)| is_whole || *way == write % ways.len())
        .zip(0..)
        .map(|((write, way), number)| (number, (write + 1, ways[way])))
        .collect()
}

/// Lives the life of each seed. Those that failed, of which the first is made as small as it fails.
fn lives(seeds: Range<u64>, lies: fn(u64) -> Lies) -> Vec<(u64, Failure)> {
    let seeds: Vec<(u64, u64)> = seeds.map(|seed| (seed, seed)).collect();
    let mut failed = each(&seeds, move |seed| life::live(Plan::of(seed, lies(seed))));
    if let Some((seed, failure)) = failed.first_mut() {
        *failure = smallest(Plan::of(*seed, lies(*seed)), std::mem::take(failure));
    }
    failed
}

/// How often a life that fails is tried with one thing less.
const TRIES: usize = 60;

/// Leaves out of a life that fails what it fails without.
fn smallest(mut plan: Plan, mut failure: Failure) -> Failure {
    let mut tries = 0;
    loop {
        let smaller = plan.smaller().into_iter().take(TRIES - tries).find_map(|smaller| {
            tries += 1;
            let failed = house::run(|| life::live(smaller.clone())).err();
            failed.map(|failure| (smaller, failure))
        });
        match smaller {
            Some(smaller) => (plan, failure) = smaller,
            None => return failure,
        }
    }
}

/// Lives a life for each case, on every processor. Those that failed, by the numbers of the cases.
fn each<C, F>(cases: &[(u64, C)], life: impl Fn(C) -> F + Sync) -> Vec<(u64, Failure)>
where
    C: Copy + Sync,
    F: Future<Output = ()>,
{
    let next = AtomicUsize::new(0);
    let live_on = || {
        let mut failed = Vec::new();
        while let Some((number, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(failure) = house::run(|| life(*case)) {
                failed.push((*number, failure));
            }
        }
        failed
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let all: Vec<_> = (0..processors).map(|_| scope.spawn(live_on)).collect();
        all.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// Fails with the seeds, and with the shortest story.
fn judge(mut failed: Vec<(u64, Failure)>) {
    failed.sort_by_key(|(_, failure)| failure.story.len());
    let Some((seed, failure)) = failed.first() else { return };
    let all: Vec<String> = failed.iter().map(|(seed, it)| format!("seed {seed}: {}", it.why)).collect();
    let all = all.join("\n");
    panic!(
        "{}\n{} seeds failed, the shortest story is that of seed {seed}:\n{all}",
        failure.story,
        failed.len()
    );
}
