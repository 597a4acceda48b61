//! Whatever is observed, in any combination of facts: there is a plan, and it breaks no rule of `check.rs`.

use proptest::prelude::*;

use super::adopted::{legacy, owned};
use super::*;
use crate::api::keys::{DATABASE_NODE_LABEL, OUT_OF_SERVICE_TAINT};
use crate::api::node::Fence;
use crate::cloud::InstanceHealth;
use crate::controller::memory::issued_requests::IssuedRequest;
use crate::controller::memory::sends::Sent;
use crate::controller::node::status::status as status_of;
use crate::controller::pass::acted::Acted;
use crate::controller::tests::facts::{Fact, apply_all, before, fact, sent, until, worlds};

fn creation(observed: &mut Observed) -> &mut NodeCreation {
    status(observed).creation.get_or_insert_with(|| launch(1))
}

fn refuse(observed: &mut Observed, code: &str, when: Timestamp) {
    creation(observed).attempt.refused = refused(code, when).attempt.refused;
}

fn shown(observed: &mut Observed, state: InstanceState) {
    for instance in &mut observed.instances.instances {
        instance.state = state;
    }
}

fn second(observed: &mut Observed, change: impl FnOnce(&mut Instance)) {
    let mut second = instance_of_attempt(2, "i-2", InstanceState::Running);
    change(&mut second);
    observed.instances.instances.retain(|instance| instance.id != second.id);
    observed.instances.instances.push(second);
}

fn core(observed: &mut Observed, change: impl FnOnce(&mut CoreNode)) {
    change(observed.core_node.get_or_insert_with(core_node));
}

fn fence(observed: &mut Observed, started_at: Timestamp) {
    let (started_at, cause) = (Time(started_at), "InstanceLost".to_owned());
    let since = started_at.clone();
    status(observed).fence = Some(Fence { started_at, cause, since, message: "it is lost".to_owned() });
}

fn ec2_facts() -> Vec<Fact<Observed>> {
    vec![
        fact("no sync", |it, _| it.instances.swept_at = None),
        fact("an old sync", |it, now| it.instances.swept_at = Some(before(now, 1000))),
        fact("no look-up by token", |it, _| it.instances.token_looked_up_at = None),
        fact("the operator has just begun to lead", |it, now| it.leading_since = before(now, 1)),
        fact("proven absent", |it, now| {
            let run = Some(EmptyRun { first: before(now, 1500), last: before(now, 2) });
            it.instances.empty = EmptyRuns { by_tag: run, by_token: run };
        }),
        fact("starting", |it, _| shown(it, InstanceState::Pending)),
        fact("stopping", |it, _| shown(it, InstanceState::Stopping)),
        fact("stopped", |it, _| shown(it, InstanceState::Stopped)),
        fact("shutting down", |it, _| shown(it, InstanceState::ShuttingDown)),
        fact("terminated", |it, _| shown(it, InstanceState::Terminated)),
        fact("unknown", |it, _| shown(it, InstanceState::Unknown)),
        fact("ended without capacity", |it, _| {
            shown(it, InstanceState::Terminated);
            for instance in &mut it.instances.instances {
                instance.state_reason = Some("Server.InsufficientInstanceCapacity".to_owned());
            }
        }),
        fact("not listed", |it, _| it.instances.instances.clear()),
        fact("found by attempt", |it, _| {
            it.instances.instances = vec![instance("i-1", InstanceState::Running)];
        }),
        fact("a second of ours", |it, _| second(it, |_| {})),
        fact("a second of another", |it, _| second(it, |it| it.token = None)),
        fact("a second with data", |it, _| second(it, |it| it.volumes.push(VolumeId("vol-2".to_owned())))),
        fact("a data volume", |it, _| {
            for instance in &mut it.instances.instances {
                instance.volumes.push(VolumeId("vol-data".to_owned()));
            }
        }),
        fact("impaired", |it, now| {
            it.instances.unhealthy =
                vec![InstanceHealth { id: id("i-1"), impaired: true, events: Vec::new() }];
            status(it).impaired_since = Some(Time(before(now, 200)));
        }),
        fact("the quota gate is closed", |it, now| it.offerings.quotas = reached(until(now))),
        fact("no capacity in a zone", |it, now| {
            let offering = ("r7i.large".to_owned(), "us-east-1a".to_owned());
            it.offerings.unavailable.insert(offering, until(now));
        }),
        fact("no capacity anywhere", |it, now| {
            for name in ["r7i.large", "r6i.large"] {
                for zone in ["us-east-1a", "us-east-1b", "us-east-1c"] {
                    it.offerings.unavailable.insert((name.to_owned(), zone.to_owned()), until(now));
                }
            }
        }),
    ]
}

fn attempt_facts() -> Vec<Fact<Observed>> {
    vec![
        fact("no attempt", |it, _| status(it).creation = None),
        fact("no id", |it, _| status(it).instance_id = None),
        fact("another id", |it, _| status(it).instance_id = Some(id("i-9"))),
        fact("no status", |it, _| it.node.status = None),
        fact("sent just now", |it, now| it.sent = Some(sent(now, 1))),
        fact("sent a while ago", |it, now| it.sent = Some(sent(now, 8))),
        fact("throttled", |it, now| it.sent = Some(Sent { in_doubt: false, ..sent(now, 1) })),
        fact("refused after doubt", |it, now| {
            it.sent = Some(Sent { refused_after_doubt: true, ..sent(now, 8) });
        }),
        fact("refused: capacity", |it, now| refuse(it, "InsufficientInstanceCapacity", before(now, 3))),
        fact("refused: forbidden", |it, now| refuse(it, "UnauthorizedOperation", before(now, 3))),
        fact("refused: invalid", |it, now| refuse(it, "InvalidAMIID.NotFound", before(now, 3))),
        fact("refused long ago", |it, now| refuse(it, "UnauthorizedOperation", before(now, 3000))),
        fact("never joined", |it, _| creation(it).never_joined = 3),
        fact("of another zone", |it, _| it.node.spec.zone = Some("us-east-1c".to_owned())),
        fact("of a zone without subnet", |it, _| it.node.spec.zone = Some("us-east-1f".to_owned())),
        fact("of another type", |it, _| it.node.spec.instance_types = vec!["m7i.large".to_owned()]),
        fact("termination requested", |it, now| request(it, before(now, 1), None)),
        fact("termination requested long ago", |it, now| request(it, before(now, 60), None)),
        fact("termination refused", |it, now| request(it, before(now, 1), Some(&refusal(until(now))))),
        fact("stop requested", |it, now| {
            it.issued_stop = Some(IssuedRequest { at: before(now, 1), call_blocked: None });
        }),
        fact("no class", |it, _| it.class = None),
        fact("another user data", |it, _| {
            if let Some(class) = &mut it.class {
                class.spec.user_data = "new".into();
            }
        }),
        fact("no allowed type", |it, _| {
            if let Some(class) = &mut it.class {
                class.spec.instance_types = vec!["x2.*".to_owned()];
            }
        }),
    ]
}

fn adoption_facts() -> Vec<Fact<Observed>> {
    vec![
        fact("named by the spec", |it, _| it.node.spec.instance_id = Some(id("i-1"))),
        fact("to be released", |it, _| it.node.spec.release = it.node.spec.instance_id.is_some()),
        fact("shown by its id", |it, _| it.shown_by_id = Some(vec![legacy(InstanceState::Running)])),
        fact("shown by its id, stopped", |it, _| it.shown_by_id = Some(vec![legacy(InstanceState::Stopped)])),
        fact("shown by its id, ours", |it, _| it.shown_by_id = Some(vec![owned(InstanceState::Running)])),
        fact("shown by its id, not allowed", |it, _| {
            it.shown_by_id = Some(vec![instance_of_attempt(2, "i-1", InstanceState::Running)]);
            it.shown_by_id.iter_mut().flatten().for_each(|it| it.tags.clear());
        }),
        fact("unknown by its id", |it, _| it.shown_by_id = Some(Vec::new())),
        fact("tagged just now", |it, now| it.issued_tags = Some(requested(before(now, 1)))),
        fact("tagged a while ago", |it, now| it.issued_tags = Some(requested(before(now, 60)))),
        fact("untagged just now", |it, now| it.issued_untags = Some(requested(before(now, 1)))),
        fact("untagging refused", |it, now| {
            let call_blocked = Some(refusal(until(now)));
            it.issued_untags = Some(IssuedRequest { at: before(now, 1), call_blocked });
        }),
    ]
}

fn requested(at: Timestamp) -> IssuedRequest {
    IssuedRequest { at, call_blocked: None }
}

fn request(observed: &mut Observed, at: Timestamp, call_blocked: Option<&CallBlocked>) {
    for name in ["i-1", "i-2"] {
        observed
            .issued_terminations
            .insert(id(name), IssuedRequest { at, call_blocked: call_blocked.cloned() });
    }
}

fn refusal(until: Timestamp) -> CallBlocked {
    answered(Call::TerminateInstances, "UnauthorizedOperation", Some(until))
}

fn cluster_facts() -> Vec<Fact<Observed>> {
    vec![
        fact("no finalizer", |it, _| it.node.metadata.finalizers = None),
        fact("deleted just now", |it, now| it.node.metadata.deletion_timestamp = Some(Time(before(now, 5)))),
        fact("deleted long ago", |it, now| {
            it.node.metadata.deletion_timestamp = Some(Time(before(now, 5000)));
        }),
        fact("has joined", |it, _| joined(it)),
        fact("never initialized", |it, _| {
            let is_other = |it: &Condition| it.type_ != ConditionType::Initialized.as_str();
            status(it).conditions.retain(is_other);
        }),
        fact("Launched is false", |it, now| {
            launched_is(it, false, Reason::NeverJoined, before(now, 40));
        }),
        fact("lost just now", |it, now| fence(it, before(now, 5))),
        fact("lost a while ago", |it, now| fence(it, before(now, 200))),
        fact("lost long ago", |it, now| fence(it, before(now, 5000))),
        fact("no Kubernetes node", |it, _| it.core_node = None),
        fact("a Kubernetes node", |it, _| core(it, |_| {})),
        fact("not Ready just now", |it, now| {
            core(it, |it| it.status = core_node_with(&[], &ready("Unknown", before(now, 5))).status);
        }),
        fact("not Ready long since", |it, now| {
            core(it, |it| it.status = core_node_with(&[], &ready("False", before(now, 500))).status);
            status(it).not_ready_since = Some(Time(before(now, 500)));
        }),
        fact("without a condition", |it, _| core(it, |it| it.status = None)),
        fact("a Kubernetes node that is deleted", |it, now| {
            core(it, |it| it.metadata.deletion_timestamp = Some(Time(before(now, 3))));
        }),
        fact("a Kubernetes node that was deleted", |it, now| {
            core(it, |it| it.metadata.deletion_timestamp = Some(Time(before(now, 50))));
        }),
        fact("a Kubernetes node that is not held", |it, _| core(it, |it| it.metadata.finalizers = None)),
        fact("cordoned", |it, _| core(it, |it| it.spec.get_or_insert_default().unschedulable = Some(true))),
        fact("labelled", |it, _| {
            let label = (DATABASE_NODE_LABEL.to_owned(), "uid".to_owned());
            core(it, |it| it.metadata.labels = Some(BTreeMap::from([label])));
        }),
        fact("tainted", |it, _| {
            let taints = json!([{"key": OUT_OF_SERVICE_TAINT, "effect": "NoExecute"}]);
            let taints = serde_json::from_value(taints).unwrap();
            core(it, |it| it.spec.get_or_insert_default().taints = taints);
        }),
        fact("the second's Kubernetes node is labelled", |it, _| {
            let mut other = core_node();
            other.spec.get_or_insert_default().provider_id = Some("aws:///us-east-1a/i-2".to_owned());
            other.metadata.labels =
                Some(BTreeMap::from([(DATABASE_NODE_LABEL.to_owned(), "uid".to_owned())]));
            it.other_core_nodes.push(other);
        }),
        fact("no driver", |it, _| it.driver_registered = false),
        fact("a pod", |it, _| it.pods.push(pod("orders-0", false))),
        fact("a pod that ends", |it, _| it.pods.push(pod("orders-0", true))),
        fact("a foreign pod", |it, _| it.pods.push(foreign_pod("stray", 31_536_000))),
        fact("a foreign pod that ends", |it, now| {
            let mut pod = foreign_pod("stray", 31_536_000);
            pod.metadata.deletion_timestamp = Some(Time(until(now)));
            it.pods.push(pod);
        }),
        fact("an attachment", |it, _| it.attachments.push("csi-1".to_owned())),
        fact("many repairs", |it, _| it.fleet.repairs = 10),
        fact("the zone looks down", |it, _| it.fleet.zone_looks_down = true),
        fact("not every Node is listed", |it, _| it.fleet.unlisted = 1),
        fact("the zone is refused", |it, _| it.fleet.zone_refused = true),
    ]
}

fn bases() -> Vec<Fact<Observed>> {
    vec![
        fact("a new Node", |_, _| {}),
        fact("an attempt", |it, _| *it = attempted()),
        fact("an instance", |it, _| *it = launched(InstanceState::Running)),
        fact("a settled machine", |it, _| *it = settled()),
        fact("an instance to adopt", |it, _| {
            it.node.spec.instance_id = Some(id("i-1"));
            it.shown_by_id = Some(vec![legacy(InstanceState::Running)]);
        }),
        fact("an adopted machine", |it, _| {
            *it = settled();
            status(it).creation = None;
            it.node.spec.instance_id = Some(id("i-1"));
            it.instances.instances = vec![owned(InstanceState::Running)];
        }),
    ]
}

fn facts() -> Vec<Fact<Observed>> {
    [ec2_facts(), attempt_facts(), adoption_facts(), cluster_facts()].concat()
}

proptest! {
    /// `plan` itself checks what it returns; and there is a status for it.
    #[test]
    fn no_combination_of_facts_leads_to_a_plan_that_breaks_a_rule(
        (base, facts, seconds) in worlds(bases(), facts(), 8, vec![10, 70, 400, 2000, 30_000])
    ) {
        let now = at(seconds);
        let mut observed = world();
        base.apply(&mut observed, now);
        observed.instances.swept_at = Some(before(now, 2));
        observed.instances.token_looked_up_at = Some(before(now, 2));
        apply_all(&facts, &mut observed, now);
        let plan = plan(&observed, now);
        prop_assert!(plan.waiting.as_ref().is_none_or(|waiting| !waiting.message().is_empty()));
        status_of(&observed, &plan, &Acted::new(observed.node.clone()), now);
    }
}
