//! Machines that are lost, each in its own way: what is told, what is asked of EC2 and in which order, and the database afterwards.

use std::time::Duration;

use ec2sim::{Effect, Fate, Fault, InstanceState, Outside};
use freehold::api::keys::DATABASE_NODE_LABEL;
use freehold::api::{Database, Node};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Node as CoreNode, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::house::{House, OPERATOR, Options, run};
use crate::kit::objects::Told as _;
use crate::kit::wait::{each, seen, until};

/// A taint of Kubernetes' for machines that are stopped for certain.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// A grace of five seconds of the wall clock, and stages of a fence of twenty, so that a busy host does not go past one.
fn repairing() -> Options {
    Options::with([("loss-grace", 300), ("fence-step", 1200)])
}

/// What a house has while one database runs in it.
struct Running {
    node: Node,
    core_node: String,
    instance: String,
    volume: String,
}

/// Makes the database `name` and waits until it runs.
async fn running(house: &House, name: &str) -> Running {
    house.create(name, &json!({})).await;
    house.ready(name).await;
    let database = house.api::<Database>().get(name).await.unwrap();
    let node = house.api::<Node>().get(&database.status.unwrap().node_name.unwrap()).await.unwrap();
    let status = node.status.clone().unwrap();
    let instance = status.instance_id.unwrap().0;
    let volume = attached_to(house, &instance).remove(0);
    Running { core_node: status.core_node_name.unwrap(), instance, volume, node }
}

/// Makes this many databases and waits until they run; their names.
async fn several(house: &House, count: usize) -> Vec<String> {
    let names: Vec<String> = (1..=count).map(|number| format!("db-{number}")).collect();
    for name in &names {
        house.create(name, &json!({})).await;
    }
    for name in &names {
        house.ready(name).await;
    }
    names
}

/// The data volumes at this machine.
fn attached_to(house: &House, instance: &str) -> Vec<String> {
    let is_there = |volume: &ec2sim::VolumeView| volume.attachment.as_ref().is_some_and(|held| held.instance_id == instance);
    house.data_volumes().into_iter().filter(is_there).map(|volume| volume.id).collect()
}

/// No machine can be launched until the fault is cleared: what is told meanwhile stays.
fn no_machine(house: &House) -> String {
    let effect = Effect::CapacityOut { instance_type: None, zone: None };
    house.ec2().add_fault(Fault { action: Some("RunInstances".to_owned()), ..Fault::always(effect) })
}

/// Something happens to a machine behind our backs.
fn happens(house: &House, what: Outside, instance: &str) {
    house.ec2().outside(&what.to(instance)).unwrap();
}

/// Waits until this very Node's condition has this status and reason; gives its message.
async fn told(house: &House, node: &Node, kind: &str, status: &str, reason: &str) -> String {
    until(&format!("Node {} having {kind}={status} for {reason}", node.name_any()), || async {
        let now = house.api::<Node>().get_opt(&node.name_any()).await.map_err(|error| error.to_string())?;
        let Some(now) = now else { return Err("it is gone".to_owned()) };
        let condition = now.condition(kind);
        let is_so = condition.0 == status && condition.1 == reason;
        seen(is_so.then(|| condition.2.clone()), || format!("{:?}", now.conditions()))
    })
    .await
}

/// Holds a Node after our finalizer is gone, so that what was told of it can be read. The operator writes finalizers, too: of two at
/// once one is refused, and looks again.
async fn hold(house: &House, node: &Node, on: bool) {
    let nodes = house.api::<Node>();
    until("the finalizers as the test wants them", || async {
        let Some(now) = nodes.get_opt(&node.name_any()).await.map_err(|error| error.to_string())? else { return Ok(()) };
        let mut finalizers: Vec<String> = now.finalizers().to_vec();
        finalizers.retain(|finalizer| finalizer != "test.freehold.dev/hold");
        if on {
            finalizers.push("test.freehold.dev/hold".to_owned());
        }
        let patch = json!({"metadata": {"resourceVersion": now.resource_version(), "finalizers": finalizers}});
        let patched = nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| error.to_string())
    })
    .await;
}

/// Waits until the pod `orders-0` is another one than this and ready: the Database's condition may still speak of the one before.
async fn other_pod(house: &House, old: &Pod) -> Pod {
    until("another pod that is ready", || async {
        let pod = house.api::<Pod>().get_opt("orders-0").await.map_err(|error| error.to_string())?;
        let is_ready = |pod: &Pod| {
            let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.any(|it| it.type_ == "Ready" && it.status == "True")
        };
        seen(pod.filter(|pod| pod.uid() != old.uid() && is_ready(pod)), || "it is not there".to_owned())
    })
    .await
}

/// The end of each story of a loss: another machine serves with the same volume, the old one is over, and its Kubernetes node is gone.
async fn serves_elsewhere(house: &House, name: &str, old: &Running) {
    hold(house, &old.node, false).await;
    until("another machine serving", || async {
        let live = house.live_instances();
        let is_other = live.len() == 1 && live[0].id != old.instance && attached_to(house, &live[0].id) == [old.volume.clone()];
        seen(is_other.then_some(()), || format!("{:?}", live.iter().map(|it| (&it.id, it.state)).collect::<Vec<_>>()))
    })
    .await;
    house.ready(name).await;
    until("the lost Node and its Kubernetes node being gone", || async {
        let node = house.api::<Node>().get_opt(&old.node.name_any()).await.map_err(|error| error.to_string())?;
        let core_node = Api::<CoreNode>::all(house.client.clone()).get_opt(&old.core_node).await.map_err(|error| error.to_string())?;
        let node = node.filter(|node| node.uid() == old.node.uid());
        // EC2 gives its address, and so its name, to another machine.
        let is_old =
            |it: &CoreNode| it.spec.as_ref().and_then(|spec| spec.provider_id.as_ref()).is_some_and(|id| id.ends_with(&old.instance));
        let core_node = core_node.filter(is_old).map(|it| it.name_any());
        let node = node.map(|it| it.name_any());
        seen((node.is_none() && core_node.is_none()).then_some(()), || format!("{node:?} {core_node:?}"))
    })
    .await;
    assert_eq!(house.data_volumes().len(), 1, "no second volume");
    assert_eq!(house.ec2().instance(&old.instance).map(|view| view.state), Some(InstanceState::Terminated));
}

/// The place in the house's tap of the first write with this in its path and body, and of the last call to EC2 before it.
fn wrote(house: &House, method: &str, path: &str, body: &str) -> Option<u64> {
    let seen = house.tap.seen();
    let found = seen.iter().find(|seen| seen.method == method && seen.path.contains(path) && seen.body.contains(body) && seen.status < 300);
    found.map(|seen| seen.journal)
}

#[test]
fn a_machine_that_ends_or_falls_ill_is_given_up_and_its_database_serves_elsewhere_with_the_same_volume() {
    let cases = [
        ("lost-terminated", (Outside::Terminate, "InstanceTerminated", false)),
        ("lost-stopped", (Outside::Stop, "InstanceStopped", false)),
        ("lost-impaired", (Outside::Impair, "InstanceImpaired", true)),
    ];
    let cases = cases.map(|(name, case)| (name.to_owned(), case)).to_vec();
    run(each(cases, |name, (what, reason, is_fenced)| async move {
        let house = House::start_with(&name, repairing()).await;
        let old = running(&house, "orders").await;
        hold(&house, &old.node, true).await;
        happens(&house, what, &old.instance);
        let message = told(&house, &old.node, "Lost", "True", reason).await;
        assert!(message.contains(&old.instance) && message.contains("since"), "{message}");
        let message = told(&house, &old.node, "Fenced", "True", "AsExpected").await;
        assert!(message.contains("nothing on it can write any more"), "{message}");
        serves_elsewhere(&house, "orders", &old).await;

        let stops = house.calls_since(0).into_iter().filter(|entry| entry.action == "StopInstances").collect::<Vec<_>>();
        assert_eq!(!stops.is_empty(), is_fenced, "{stops:?}");
        let given_up = wrote(&house, "PATCH", "/nodes/", "\"fence\"").unwrap();
        assert!(stops.iter().all(|stop| stop.seq > given_up), "the decision is written down before EC2 is asked");
        let tainted = wrote(&house, "PATCH", &format!("/nodes/{}", old.core_node), OUT_OF_SERVICE).unwrap();
        assert!(stops.iter().all(|stop| stop.seq <= tainted), "and the taint follows the proof");
        assert!(wrote(&house, "DELETE", "/pods/orders-0", "\"gracePeriodSeconds\":0").unwrap() >= tainted);
        house.close().await;
    }));
}

#[test]
fn a_machine_whose_kubelet_stays_silent_while_it_runs_is_fenced_first() {
    run(async {
        let house = House::start_with("lost-silent", repairing()).await;
        let old = running(&house, "orders").await;
        hold(&house, &old.node, true).await;
        // It hangs, and EC2 does not say so: all that the operator hears of it is that it runs.
        let error = Effect::Error { code: "InternalError".to_owned(), message: "no status today".to_owned() };
        let fault = Fault { action: Some("DescribeInstanceStatus".to_owned()), caller: Some(OPERATOR.to_owned()), ..Fault::always(error) };
        house.ec2().add_fault(fault);
        happens(&house, Outside::Impair, &old.instance);
        let message = told(&house, &old.node, "Lost", "True", "NodeNotReady").await;
        assert!(message.contains(&old.core_node), "{message}");
        told(&house, &old.node, "Fenced", "True", "AsExpected").await;
        assert!(house.mutations().contains_key("StopInstances"));
        serves_elsewhere(&house, "orders", &old).await;
        house.close().await;
    });
}

#[test]
fn a_machine_that_is_well_again_within_the_grace_stays() {
    run(async {
        let house = House::start("lost-not").await;
        let old = running(&house, "orders").await;
        happens(&house, Outside::Impair, &old.instance);
        let message = told(&house, &old.node, "Lost", "False", "InstanceImpaired").await;
        assert!(message.contains("declared lost at"), "{message}");
        happens(&house, Outside::Recover, &old.instance);
        told(&house, &old.node, "Lost", "False", "Progressing").await;
        house.ready("orders").await;
        assert_eq!(house.live_instances().remove(0).id, old.instance);
        assert!(!house.mutations().contains_key("StopInstances"));
        house.close().await;
    });
}

#[test]
fn a_kubernetes_node_that_is_gone_under_a_running_machine_means_that_the_machine_is_lost_and_fenced() {
    run(async {
        let house = House::start_with("lost-node-gone", repairing()).await;
        let old = running(&house, "orders").await;
        hold(&house, &old.node, true).await;
        let core_nodes = Api::<CoreNode>::all(house.client.clone());
        // In this order: the operator gives its finalizer back to a Node that is not being deleted.
        core_nodes.delete(&old.core_node, &DeleteParams::default()).await.unwrap();
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        core_nodes.patch(&old.core_node, &PatchParams::default(), &free).await.unwrap();
        let message = told(&house, &old.node, "Lost", "True", "NodeGone").await;
        assert!(message.contains(&old.core_node), "{message}");
        told(&house, &old.node, "Fenced", "True", "AsExpected").await;
        assert!(house.mutations().contains_key("StopInstances"));
        // The volume follows when Kubernetes lets it go, after six minutes of its own.
        house.close().await;
    });
}

#[test]
fn a_node_of_ours_that_is_deleted_by_hand_is_not_emptied_before_its_database_has_moved() {
    run(async {
        let house = House::start("lost-by-hand").await;
        let old = running(&house, "orders").await;
        let fault = no_machine(&house);
        house.api::<Node>().delete(&old.node.name_any(), &DeleteParams::default()).await.unwrap();
        let message = told(&house, &old.node, "Ready", "False", "Deleting").await;
        assert!(message.contains(&old.core_node), "{message}");
        let core_node = Api::<CoreNode>::all(house.client.clone()).get(&old.core_node).await.unwrap();
        let is_cordoned = core_node.spec.and_then(|spec| spec.unschedulable).unwrap_or_default();
        assert!(!is_cordoned, "its pod must be able to come back until the move");
        house.ec2().clear_fault(&fault);
        serves_elsewhere(&house, "orders", &old).await;
        let cordoned = wrote(&house, "PATCH", &format!("/nodes/{}", old.core_node), "\"unschedulable\":true");
        let unlabelled = wrote(&house, "PATCH", &format!("/nodes/{}", old.core_node), &format!("\"{DATABASE_NODE_LABEL}\":null"));
        assert!(unlabelled.is_some() && unlabelled <= cordoned, "{unlabelled:?} {cordoned:?}");
        house.close().await;
    });
}

#[test]
fn a_kubernetes_node_that_is_being_deleted_under_a_machine_that_is_well_leads_to_a_planned_replacement() {
    run(async {
        let house = House::start("lost-core-node").await;
        let old = running(&house, "orders").await;
        let fault = no_machine(&house);
        Api::<CoreNode>::all(house.client.clone()).delete(&old.core_node, &DeleteParams::default()).await.unwrap();
        let message = told(&house, &old.node, "Ready", "False", "KubernetesNodeDeleted").await;
        assert!(message.contains(&old.core_node), "{message}");
        house.ec2().clear_fault(&fault);
        serves_elsewhere(&house, "orders", &old).await;
        assert!(!house.mutations().contains_key("StopInstances"), "in good order: nothing is fenced");
        house.close().await;
    });
}

#[test]
fn a_stateful_set_or_a_claim_that_is_deleted_by_hand_comes_back_on_the_same_machine_and_disk() {
    run(async {
        let house = House::start("lost-children").await;
        let old = running(&house, "orders").await;
        let set = house.list::<StatefulSet>().await.remove(0);
        let first = house.list::<Pod>().await.remove(0);
        house.api::<StatefulSet>().delete(&set.name_any(), &DeleteParams::background()).await.unwrap();
        until("another StatefulSet", || async {
            let now = house.api::<StatefulSet>().get_opt(&set.name_any()).await.map_err(|error| error.to_string())?;
            seen(now.filter(|now| now.uid() != set.uid()).map(|_| ()), || "it is not there".to_owned())
        })
        .await;
        let pod = other_pod(&house, &first).await;
        house.ready("orders").await;

        let claim = house.list::<PersistentVolumeClaim>().await.remove(0);
        house.api::<PersistentVolumeClaim>().delete(&claim.name_any(), &DeleteParams::default()).await.unwrap();
        house.api::<Pod>().delete(&pod.name_any(), &DeleteParams::default()).await.unwrap();
        until("another claim", || async {
            let now = house.api::<PersistentVolumeClaim>().get_opt(&claim.name_any()).await.map_err(|error| error.to_string())?;
            seen(now.filter(|now| now.uid() != claim.uid()).map(|_| ()), || "it is not there".to_owned())
        })
        .await;
        other_pod(&house, &pod).await;
        house.ready("orders").await;
        assert_eq!((house.live_instances().remove(0).id, attached_to(&house, &old.instance)), (old.instance, vec![old.volume]));
        assert_eq!((house.ec2().instances().len(), house.data_volumes().len()), (1, 1));
        house.close().await;
    });
}

#[test]
fn nothing_moves_while_ec2_does_not_show_a_machine_stopped_whatever_is_done() {
    run(async {
        let house = House::start_with("lost-unfenced", repairing()).await;
        let old = running(&house, "orders").await;
        hold(&house, &old.node, true).await;
        let refuse = |action: &str| Fault {
            action: Some(action.to_owned()),
            caller: Some(OPERATOR.to_owned()),
            resource: Some(old.instance.clone()),
            ..Fault::always(Effect::Error { code: "OperationNotPermitted".to_owned(), message: "it is protected".to_owned() })
        };
        let faults = ["StopInstances", "TerminateInstances"].map(|action| house.ec2().add_fault(refuse(action)));
        happens(&house, Outside::Impair, &old.instance);
        told(&house, &old.node, "Fenced", "False", "Fencing").await;
        let message = told(&house, &old.node, "Fenced", "False", "FenceFailed").await;
        assert!(message.contains("the volume is not moved"), "{message}");

        house.api::<Pod>().delete("orders-0", &DeleteParams::default().grace_period(0)).await.unwrap();
        let (failed, until_then) = (house.mark(), house.ec2().now() + Duration::from_mins(10));
        let asks = |since: u64| {
            let is_ask = |entry: &ec2sim::JournalEntry| ["StopInstances", "TerminateInstances"].contains(&entry.action.as_str());
            house.calls_since(since).into_iter().filter(is_ask).collect::<Vec<_>>()
        };
        // Force-deleted, the pod may be gone for a moment before the next one wants its volume: then the living kubelet lets it go, and
        // takes it again. What may not be is a word of the volume at another machine.
        let disk = house.list::<PersistentVolumeClaim>().await.remove(0).spec.unwrap().volume_name.unwrap();
        let attachments = Api::<VolumeAttachment>::all(house.client.clone());
        until("ten minutes in which nothing moves, and EC2 is asked three times more", || async {
            let held = attachments.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let is_of_volume = |it: &&VolumeAttachment| it.spec.source.persistent_volume_name.as_ref() == Some(&disk);
            for attachment in held.items.iter().filter(is_of_volume) {
                assert_eq!(attachment.spec.node_name, old.core_node, "the volume is asked for elsewhere");
            }
            let holder = house.data_volumes().remove(0).attachment.map(|held| held.instance_id);
            assert!(holder.is_none_or(|holder| holder == old.instance), "the volume is elsewhere");
            let core_node = Api::<CoreNode>::all(house.client.clone()).get(&old.core_node).await.unwrap();
            assert!(core_node.labels().contains_key(DATABASE_NODE_LABEL), "the label stays");
            assert!(core_node.spec.unwrap().taints.iter().flatten().all(|taint| taint.key != OUT_OF_SERVICE), "not out of service");
            let is_held = attached_to(&house, &old.instance) == [old.volume.clone()];
            let (now, asked) = (house.ec2().now(), asks(failed).len());
            seen((is_held && now >= until_then && asked >= 3).then_some(()), || format!("{now}, held: {is_held}, asked: {asked}"))
        })
        .await;
        for pair in asks(failed).windows(2) {
            assert_ne!(pair[0].action, pair[1].action, "by turns");
            assert!(pair[1].time.duration_since(pair[0].time).as_secs() > 19 * 60, "calmly: {pair:?}");
        }
        let asked: Vec<(String, Option<String>)> =
            asks(0).into_iter().map(|entry| (entry.action, entry.parameters.get("Force").cloned())).collect();
        let first = |action: &str, force: Option<&str>| {
            asked.iter().position(|(it, by)| it == action && (force.is_none() || by.as_deref() == force))
        };
        let (stop, force, end) =
            (first("StopInstances", Some("false")), first("StopInstances", Some("true")), first("TerminateInstances", None));
        assert!(stop.is_some() && stop < force && force < end, "{asked:?}");
        assert!(asked.len() < 40, "calmly: {asked:?}");

        for fault in faults {
            house.ec2().clear_fault(&fault);
        }
        told(&house, &old.node, "Fenced", "True", "AsExpected").await;
        serves_elsewhere(&house, "orders", &old).await;
        house.close().await;
    });
}

#[test]
fn a_stop_that_hangs_is_forced() {
    run(async {
        let house = House::start_with("lost-hung", repairing()).await;
        let old = running(&house, "orders").await;
        house.ec2().add_fault(Fault { action: Some("StopInstances".to_owned()), ..Fault::always(Effect::Hangs) });
        happens(&house, Outside::Impair, &old.instance);
        serves_elsewhere(&house, "orders", &old).await;
        let forced = |entry: &ec2sim::JournalEntry| {
            entry.action == "StopInstances" && entry.fate == Fate::Committed && entry.parameters.get("Force").is_some_and(|it| it == "true")
        };
        assert!(house.calls_since(0).iter().any(forced));
        house.close().await;
    });
}

#[test]
fn of_seven_machines_lost_at_once_five_are_repaired_and_then_the_others() {
    run(async {
        let house = House::start("lost-seven").await;
        let names = several(&house, 7).await;
        // Held, so that no repair ends.
        let nodes: Vec<Node> = house.list().await;
        for node in &nodes {
            hold(&house, node, true).await;
        }
        for instance in house.live_instances() {
            happens(&house, Outside::Terminate, &instance.id);
        }
        let given_up = async || {
            let nodes: Vec<Node> = house.list().await;
            nodes.iter().filter(|node| node.status.as_ref().is_some_and(|status| status.fence.is_some())).count()
        };
        until("two repairs being held back", || async {
            let all: Vec<Node> = house.list().await;
            let held: Vec<String> = all
                .iter()
                .map(|node| node.condition("Lost"))
                .filter(|lost| lost.1 == "RepairHeldBack" && lost.2.contains("5 databases are already being repaired (limit 5)"))
                .map(|lost| lost.2)
                .collect();
            assert!(given_up().await <= 5);
            seen((held.len() == 2 && given_up().await == 5).then_some(()), || format!("{held:?}"))
        })
        .await;
        for node in &nodes {
            hold(&house, node, false).await;
        }
        for name in &names {
            until(&format!("{name} serving on another machine"), || async {
                let database = house.api::<Database>().get(name).await.map_err(|error| error.to_string())?;
                let is_new = database
                    .status
                    .as_ref()
                    .and_then(|status| status.node_name.as_ref())
                    .is_some_and(|now| nodes.iter().all(|node| node.name_any() != *now));
                seen((is_new && database.condition("Ready").0 == "True").then_some(()), || format!("{:?}", database.condition("Ready")))
            })
            .await;
        }
        assert_eq!(house.data_volumes().len(), 7);
        house.close().await;
    });
}

#[test]
fn machines_of_a_zone_that_looks_down_are_left_alone_and_serve_again_when_it_is_back() {
    run(async {
        // They come back one by one, within the grace of twenty seconds of the wall clock that follows.
        let house = House::start_with("lost-zone", Options::with([("loss-grace", 1200)])).await;
        let names = several(&house, 4).await;
        let before: Vec<String> = house.live_instances().into_iter().map(|instance| instance.id).collect();
        for instance in &before {
            happens(&house, Outside::Impair, instance);
        }
        until("every repair being held back", || async {
            let nodes: Vec<Node> = house.list().await;
            let held = nodes.iter().map(|node| node.condition("Lost")).filter(|lost| lost.1 == "RepairHeldBack" && lost.2.contains("zone"));
            let count = held.count();
            seen((count == 4).then_some(()), || format!("{:?}", nodes.iter().map(|node| node.condition("Lost")).collect::<Vec<_>>()))
        })
        .await;
        for instance in &before {
            happens(&house, Outside::Recover, instance);
        }
        for name in &names {
            house.ready(name).await;
        }
        let after: Vec<String> = house.live_instances().into_iter().map(|instance| instance.id).collect();
        assert_eq!((before, house.mutations().get("StopInstances")), (after, None));
        house.close().await;
    });
}

#[test]
fn a_late_kubelet_has_ec2_asked_about_its_machine_long_before_a_sweep() {
    run(async {
        // The box' kubelets renew every 1.5 s; sweeps come every ten minutes of the wall clock.
        let options = Options::with([("lease-look", 1), ("lease-late", 15), ("sweep-instances", 36000)]);
        let house = House::start_with("lost-late", options).await;
        let old = running(&house, "orders").await;
        hold(&house, &old.node, true).await;
        let by_id = |house: &House| {
            let reads = house.calls_since(0).into_iter().filter(|entry| entry.action == "DescribeInstances");
            reads.filter(|entry| entry.parameters.values().any(|value| value == "instance-id")).count()
        };
        // None on a calm host; on a busy one a kubelet may be late without harm. What is asked at rest `fleet.rs` counts.
        let before = by_id(&house);
        happens(&house, Outside::Terminate, &old.instance);
        told(&house, &old.node, "Fenced", "True", "AsExpected").await;
        assert!(by_id(&house) > before, "EC2 was asked about it, and no sweep was due");
        serves_elsewhere(&house, "orders", &old).await;
        house.close().await;
    });
}
