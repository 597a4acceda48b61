//! A machine that serves and must be left in good time: an event is scheduled, or it was cordoned.

use std::time::Duration;

use pretty_assertions::assert_eq;

use super::loss::after;
use super::*;
use crate::api::keys::DATABASE_NODE_LABEL;
use crate::api::node::ReplacementCause;
use crate::cloud::{InstanceHealth, ScheduledEvent};
use crate::controller::node::status::changes;

/// The settled machine, with a database on it.
fn serving() -> Observed {
    let mut observed = settled();
    let labels = observed.core_node.as_mut().unwrap().metadata.labels.get_or_insert_default();
    labels.insert(DATABASE_NODE_LABEL.to_owned(), "uid".to_owned());
    observed
}

fn cordon(mut observed: Observed) -> Observed {
    observed.core_node.as_mut().unwrap().spec.as_mut().unwrap().unschedulable = Some(true);
    observed
}

/// EC2 has scheduled these for the instance.
fn scheduled(mut observed: Observed, events: &[(&str, i64)]) -> Observed {
    let event =
        |(code, time): &(&str, i64)| ScheduledEvent { code: (*code).to_owned(), not_before: Some(at(*time)) };
    let events = events.iter().map(event).collect();
    observed.instances.unhealthy = vec![InstanceHealth { id: id("i-1"), impaired: false, events }];
    observed
}

fn not_ready(mut observed: Observed) -> Observed {
    let labels = observed.core_node.as_ref().unwrap().metadata.labels.clone();
    let spec = observed.core_node.as_ref().unwrap().spec.clone();
    let mut core_node = core_node_with(&[FINALIZER], &ready("Unknown", at(0)));
    (core_node.metadata.labels, core_node.spec) = (labels, spec);
    observed.core_node = Some(core_node);
    observed
}

fn needed(observed: &Observed) -> Option<ReplacementCause> {
    after(observed, 10).replacement_needed.map(|needed| needed.cause)
}

const RETIREMENT: [(&str, i64); 1] = [("instance-retirement", 86_400)];

#[test]
#[expect(clippy::large_stack_arrays, reason = "a table of worlds")]
fn a_cordoned_machine_with_a_database_and_one_with_an_event_are_to_be_left() {
    let cordoned = Some(ReplacementCause::Cordoned);
    let event = Some(ReplacementCause::EventScheduled);
    for (name, observed, reason, expected) in [
        ("cordoned", cordon(serving()), Reason::Cordoned, cordoned),
        ("and its kubelet restarts", not_ready(cordon(serving())), Reason::Cordoned, cordoned),
        ("retired", scheduled(serving(), &RETIREMENT), Reason::EventScheduled, event),
        ("both", cordon(scheduled(serving(), &RETIREMENT)), Reason::EventScheduled, event),
        ("cordoned before its database came", cordon(settled()), Reason::Cordoned, None),
    ] {
        let plan = plan(&observed, now());
        assert_eq!(plan.waiting.as_ref().map(NodeWait::reason), Some(reason), "{name}");
        assert!(plan.actions.is_empty(), "{name}");
        assert_eq!(needed(&observed), expected, "{name}");
    }
    let mut adopted = cordon(serving());
    adopted.node.spec.instance_id = Some(id("i-1"));
    assert_eq!(needed(&adopted), None, "an adopted machine may have been cordoned to keep others off it");
    assert_eq!(needed(&scheduled(settled(), &RETIREMENT)), None, "no database is interrupted");
    let mut of_another = scheduled(serving(), &RETIREMENT);
    of_another.instances.unhealthy[0].id = id("i-9");
    assert_eq!(needed(&of_another), None);
    assert_eq!(needed(&serving()), None, "uncordoned, or the event is over");
    let ours = deleting(cordon(serving()));
    assert_eq!(needed(&ours), None, "Freehold cordons what it releases");
}

#[test]
fn the_event_that_comes_first_is_named_with_its_time_and_reported_once() {
    let observed = scheduled(serving(), &[("system-reboot", 9000), ("instance-stop", 8000)]);
    let status = after(&observed, 10);
    let message = status.replacement_needed.clone().unwrap().message;
    let expected = format!("EC2 has scheduled instance-stop for instance i-1, not before {}", at(8000));
    assert!(message.starts_with(&expected), "{message}");
    let before = after(&serving(), 9);
    let events: Vec<&str> = changes(&before, &status).iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(events, ["ReplacementNeeded"]);
    assert!(changes(&status, &status).is_empty());
}

#[test]
fn what_ec2_announced_stands_while_it_does_not_answer() {
    let mut observed = scheduled(serving(), &RETIREMENT);
    let recorded = after(&observed, 10).replacement_needed;
    status(&mut observed).replacement_needed.clone_from(&recorded);
    observed.instances.unhealthy.clear();
    observed.instances.is_health_known = false;
    assert_eq!(after(&observed, 10).replacement_needed, recorded);
    assert_eq!(
        plan(&observed, at(10)).requeue,
        Some(Duration::from_secs(60)),
        "its first answer is no change"
    );
    observed.instances.is_health_known = true;
    assert_eq!(needed(&observed), None, "completed, or canceled");
}

#[test]
fn as_many_are_left_at_once_as_are_repaired() {
    for world in [cordon(serving()), scheduled(serving(), &RETIREMENT)] {
        let mut many = world.clone();
        many.fleet.replaced = 5;
        let postponed = plan(&many, now());
        assert_eq!(postponed.waiting.as_ref().map(NodeWait::reason), Some(Reason::RepairPostponed));
        assert_eq!(postponed.requeue, Some(Duration::from_secs(60)));
        assert_eq!(needed(&many), None);
        status(&mut many).replacement_needed = after(&world, 10).replacement_needed;
        assert!(needed(&many).is_some(), "what was requested stays so");
    }
}
