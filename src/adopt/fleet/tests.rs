//! What is said of many databases.

use jiff::Timestamp;
use pretty_assertions::assert_eq;

use super::entry::{Entry, refuse_shared};
use super::{State, outcome, report};
use crate::adopt::error::AdoptError;
use crate::adopt::found::Found;
use crate::adopt::outcome::Outcome;
use crate::adopt::preflight::check;
use crate::adopt::tests::{questdb, running, wanted};
use crate::adopt::wanted::Wanted;
use crate::command::target::Target;

fn named(name: &str) -> Wanted {
    let stateful_set = Target { namespace: "team-a".to_owned(), name: name.to_owned() };
    Wanted { stateful_set, ..wanted() }
}

/// One of each state but adopted.
fn entries() -> Vec<Entry> {
    let (found, wanted) = (running(&questdb()), named("orders"));
    let adoptable = Entry::new(&found, &wanted, &check(&found, &wanted));
    let mut blocked = found.clone();
    blocked.node_class = None;
    blocked.instance.as_mut().unwrap().state = crate::cloud::InstanceState::Stopped;
    let blocked = Entry::new(&blocked, &named("ledger"), &check(&blocked, &named("ledger")));
    let missing = AdoptError::NoStatefulSet { namespace: "team-a".to_owned(), name: "missing".to_owned() };
    let limit = std::time::Duration::from_secs(600);
    let late = AdoptError::NotReady { name: "late".to_owned(), limit };
    let failed = Entry::new(&found, &named("late"), &[]).failed(&late, "VolumeNotReady: still searching");
    vec![adoptable, blocked, Entry::unread(&named("missing"), &missing), failed]
}

#[test]
fn each_of_many_has_a_row_and_what_stands_before_it_has_a_way_out() {
    let entries = entries();
    let expected = "\
STATEFULSET     ENGINE         VOLUME                         INSTANCE                      RESULT
team-a/orders   questdb 8.2.0  vol-0123456789abcdef0 200 GiB  i-0123456789abcdef0 r5.large  adoptable
team-a/ledger   questdb 8.2.0  vol-0123456789abcdef0 200 GiB  i-0123456789abcdef0 r5.large  BLOCKED: \
NodeClass default: it is not there, or the cluster has no Freehold: the next machine is launched as it says \
(and 1 more)
team-a/missing  -              -                              -                             UNKNOWN: \
namespace team-a has no StatefulSet missing
team-a/late     questdb 8.2.0  vol-0123456789abcdef0 200 GiB  i-0123456789abcdef0 r5.large  FAILED: \
Database late is not Ready after 600 s; the operator goes on, and the same command waits again; Ready is \
VolumeNotReady: still searching
";
    assert_eq!(report::table(&entries), expected);
    assert_eq!(report::sum(&entries), "4 databases: 1 adoptable, 1 blocked, 1 failed, 1 unknown");
    let problems = report::problems(&entries);
    assert!(problems.contains("    -> start the database first"), "{problems}");
    assert!(problems.contains("kubectl describe database late --namespace team-a"), "{problems}");
}

#[test]
fn the_exit_says_what_is_left() {
    let all = entries();
    let [adoptable, blocked, unknown, failed] = all.as_slice() else { panic!("{all:?}") };
    let adopted = Entry { state: State::AlreadyAdopted, ..adoptable.clone() };
    let of = |entries: &[&Entry], write: bool| {
        outcome(&entries.iter().map(|it| (*it).clone()).collect::<Vec<_>>(), write)
    };
    assert_eq!(of(&[adoptable, &adopted], false), Outcome::Adoptable);
    assert_eq!(of(&[&adopted], true), Outcome::Adoptable);
    assert_eq!(of(&[adoptable, &adopted], true), Outcome::Failed, "it was not begun");
    assert_eq!(of(&[adoptable, blocked], false), Outcome::Blocked);
    assert_eq!(of(&[blocked, unknown], false), Outcome::Failed);
    assert_eq!(of(&[&adopted, failed], true), Outcome::Failed);
}

#[test]
fn the_report_has_each_database_for_programs_and_for_people() {
    let entries = entries();
    let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let json: serde_json::Value = serde_json::from_str(&report::json(&entries, now).unwrap()).unwrap();
    assert_eq!(json["counts"]["blocked"], 1);
    assert_eq!(json["databases"][0]["volumeID"], "vol-0123456789abcdef0");
    assert_eq!(json["databases"][0]["podUIDBefore"], "pod-uid");
    assert_eq!(json["databases"][0]["tag"], "freehold.dev/adopt=cluster-1/team-a/orders");
    let markdown = report::markdown(&entries, now);
    assert!(markdown.contains("1 unknown, at 2026-01-02T03:04:05Z."), "{markdown}");
    assert_eq!(markdown.lines().filter(|line| line.starts_with("| team-a/")).count(), 4);
}

#[test]
fn one_that_an_earlier_run_adopted_is_recognised_by_the_cluster_alone() {
    let mut found = running(&questdb());
    let mut database = crate::adopt::render::database(&found, &wanted()).unwrap();
    database.metadata.generation = Some(1);
    let owner = serde_json::json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
        "name": "orders", "uid": "uid", "controller": true});
    found.stateful_set.metadata.owner_references = Some(vec![serde_json::from_value(owner).unwrap()]);
    found.database = Some(database.clone());
    let state = |found: &Found| Entry::new(found, &wanted(), &[]).state;
    assert_eq!(state(&found), State::Adoptable, "it was not Ready yet");
    let status = serde_json::json!({"firstReadyAt": "2026-01-02T03:04:05Z"});
    database.status = Some(serde_json::from_value(status).unwrap());
    found.database = Some(database);
    assert_eq!(state(&found), State::AlreadyAdopted, "whether or not it is Ready now");
}

#[test]
fn of_two_databases_on_one_instance_the_second_is_refused() {
    let row = |name: &str, instance: &str, state: State| {
        let wanted = named(name);
        let entry = Entry::new(&running(&questdb()), &wanted, &[]);
        Entry { state, instance_id: Some(instance.to_owned()), ..entry }
    };
    let judged = |rows: &mut [Entry]| {
        refuse_shared(&mut rows.iter_mut().collect::<Vec<_>>());
        rows.iter().map(|row| (row.state, row.result())).collect::<Vec<_>>()
    };
    let refused = |holder: &str| {
        let message = format!(
            "BLOCKED: Instance i-1: StatefulSet team-a/{holder} runs on it, too, and comes first; a machine is \
            one Database's alone"
        );
        (State::Blocked, message)
    };
    let adoptable = (State::Adoptable, "adoptable".to_owned());
    let mut rows = [
        row("orders", "i-1", State::Adoptable),
        row("ledger", "i-2", State::Adoptable),
        row("events", "i-1", State::Adoptable),
    ];
    assert_eq!(judged(&mut rows), [adoptable.clone(), adoptable.clone(), refused("orders")]);
    let mut rows = [row("orders", "i-1", State::Adoptable), row("events", "i-1", State::AlreadyAdopted)];
    let already = (State::AlreadyAdopted, "already adopted".to_owned());
    assert_eq!(judged(&mut rows), [refused("events"), already]);
    // What is blocked by something else holds nothing.
    let mut rows = [row("orders", "i-1", State::Blocked), row("events", "i-1", State::Adoptable)];
    assert_eq!(judged(&mut rows)[1], adoptable);
}
