//! A database on another machine because somebody wants it there, paused and resumed on the way, and killed at every step of it.

use ec2sim::{Effect, Fault, InstanceState};
use freehold::api::{Database, Node};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::house::{House, OPERATOR, Options, run};
use crate::kit::objects::Told as _;
use crate::kit::tap::{Which, at_each_point};
use crate::kit::wait::{each, seen, until};

/// The effects of a planned replacement, in their order.
const MOVE: [(&str, Which); 7] = [
    ("recorded", Which { method: "PATCH", path: "/databases/", body: &["\"replacement\":{"] }),
    ("second-node", Which { method: "POST", path: "/nodes", body: &["orders"] }),
    ("announced", Which { method: "PATCH", path: "/databases/", body: &["\"Moved\""] }),
    ("unlabelled", Which { method: "PATCH", path: "/api/v1/nodes/", body: &["/database\":null"] }),
    ("labelled", Which { method: "PATCH", path: "/api/v1/nodes/", body: &["/database\":\""] }),
    ("pod-ended", Which { method: "DELETE", path: "/pods/orders-0", body: &[] }),
    ("left", Which { method: "DELETE", path: "/nodes/orders", body: &[] }),
];

/// No capacity for this type, for the operator.
fn no_capacity(instance_type: &str) -> Fault {
    let effect = Effect::CapacityOut { instance_type: Some(instance_type.to_owned()), zone: None };
    Fault { action: None, caller: Some(OPERATOR.to_owned()), ..Fault::always(effect) }
}

/// Makes the database `orders` and waits until it runs; its machine and its disk.
async fn running(house: &House) -> (String, String) {
    house.create("orders", &json!({})).await;
    house.ready("orders").await;
    (house.live_instances().remove(0).id, house.data_volumes().remove(0).id)
}

/// Waits until the database runs on another machine of this type with the same disk, and the old machine is over.
async fn moved(house: &House, from: &str, disk: &str, to: &str) -> Database {
    until("the database on another machine", || async {
        let live = house.live_instances();
        let holder = house.data_volumes().remove(0).attachment.map(|held| held.instance_id);
        let is_moved = live.len() == 1 && live[0].id != from && live[0].instance_type == to && holder.as_ref() == Some(&live[0].id);
        seen(is_moved.then_some(()), || format!("{:?} {holder:?}", live.iter().map(|it| (&it.id, &it.instance_type)).collect::<Vec<_>>()))
    })
    .await;
    let database = house.ready("orders").await;
    assert_eq!(house.data_volumes().into_iter().map(|volume| volume.id).collect::<Vec<_>>(), [disk]);
    until("the old machine being over, and the record of the replacement with it", || async {
        let status = house.api::<Database>().get("orders").await.map_err(|error| error.to_string())?.status.unwrap();
        let nodes = house.list::<Node>().await.len();
        let state = house.ec2().instance(from).map(|view| view.state);
        let is_over = status.replacement.is_none() && nodes == 1 && state == Some(InstanceState::Terminated);
        seen(is_over.then_some(()), || format!("{nodes} Nodes, {state:?}, {:?}", status.replacement))
    })
    .await;
    database
}

async fn pod_uid(house: &House) -> Option<String> {
    house.api::<Pod>().get_opt("orders-0").await.unwrap().and_then(|pod| pod.uid())
}

#[test]
fn a_type_that_leaves_the_list_is_replaced_and_the_old_machine_serves_until_the_new_one_is_proven() {
    run(async {
        let house = House::start_with("type-change", Options::with([("offering-pause", 7200)])).await;
        let (machine, disk) = running(&house).await;
        let pod = pod_uid(&house).await;
        house.ec2().add_fault(no_capacity("m7i.large"));
        house.edit("orders", &json!({"instanceTypes": ["m7i.large", "c7i.large"]})).await;
        // The first type has no capacity: the next one is taken.
        let database = moved(&house, &machine, &disk, "c7i.large").await;
        assert_ne!(pod_uid(&house).await, pod);
        let status = database.status.unwrap();
        let last = status.history.last().unwrap();
        assert!(last.cause.contains("its type r7i.large is no longer in spec.instanceTypes"), "{:?}", status.history);
        assert_eq!(status.instance_type.as_deref(), Some("c7i.large"));
        let launched = house.calls_since(0).into_iter().filter(|entry| entry.action == "RunInstances").count();
        assert_eq!((house.ec2().instances().len(), launched), (2, 3), "one refusal, two machines");
        house.close().await;
    });
}

#[test]
fn without_capacity_the_old_machine_serves_on_and_the_condition_names_each_refusal_until_the_edit_is_taken_back() {
    run(async {
        let house = House::start_with("type-nowhere", Options::with([("offering-pause", 7200)])).await;
        let (machine, disk) = running(&house).await;
        let pod = pod_uid(&house).await;
        house.ec2().add_fault(no_capacity("m7i.large"));
        house.ec2().add_fault(no_capacity("c7i.large"));
        house.edit("orders", &json!({"instanceTypes": ["m7i.large", "c7i.large"]})).await;
        let zone = house.data_volumes().remove(0).zone;
        until("the condition naming every refusal and the time of the next try", || async {
            let message = house.api::<Database>().get("orders").await.map_err(|error| error.to_string())?.condition("Ready").2;
            let parts =
                ["which serves until then", &format!("m7i.large in {zone}"), &format!("c7i.large in {zone}"), "is requested again at 2"];
            seen(parts.iter().all(|part| message.contains(part)).then_some(()), || message.clone())
        })
        .await;
        let database = house.api::<Database>().get("orders").await.unwrap();
        assert_eq!((database.condition("EngineReady").0, database.condition("NodeReady").0), ("True".to_owned(), "True".to_owned()));
        let replacement = database.status.unwrap().replacement.unwrap();
        assert_eq!((replacement.from.ends_with("-1"), replacement.to.ends_with("-2")), (true, true), "{replacement:?}");

        house.edit("orders", &json!({"instanceTypes": ["r7i.large"]})).await;
        house.ready("orders").await;
        until("one Node again", || async { seen((house.list::<Node>().await.len() == 1).then_some(()), || "two".to_owned()) }).await;
        assert_eq!(house.live_instances().into_iter().map(|it| it.id).collect::<Vec<_>>(), [machine], "the old machine stays");
        assert_eq!((pod_uid(&house).await, house.data_volumes().remove(0).id), (pod, disk), "and nothing was restarted");
        house.close().await;
    });
}

#[test]
fn a_kill_at_any_step_of_a_move_ends_with_one_machine_the_same_disk_and_one_move() {
    let cases = at_each_point("move", &MOVE);
    run(each(cases, |name, (which, point)| async move {
        let mut house = House::start_with(&name, Options { tapped_ec2: true, ..Options::default() }).await;
        let (machine, disk) = running(&house).await;
        let reached = house.tap.stop_at(which, point);
        house.edit("orders", &json!({"instanceTypes": ["m7i.large"]})).await;
        house.kill_at(which, reached).await;
        house.start_operator();
        moved(&house, &machine, &disk, "m7i.large").await;
        assert_eq!(house.ec2().instances().len(), 2, "one machine and one in its place");
        house.close().await;
    }));
}

#[test]
fn a_pause_is_reached_from_every_phase_and_the_disk_is_the_same_after_it() {
    let phases = ["launching", "replacing", "lost", "node-deleted"];
    let cases = phases.map(|phase| (format!("pause-{phase}"), phase)).to_vec();
    run(each(cases, |name, phase| async move {
        let house = House::start(&name).await;
        let mut disk = None;
        if phase == "launching" {
            let fault = house.ec2().add_fault(Fault {
                caller: Some(OPERATOR.to_owned()),
                ..Fault::always(Effect::CapacityOut { instance_type: None, zone: None })
            });
            house.create("orders", &json!({})).await;
            house.told("orders", "Ready", "False", "InsufficientCapacity").await;
            house.edit("orders", &json!({"running": false})).await;
            house.told("orders", "Ready", "False", "Paused").await;
            house.ec2().clear_fault(&fault);
        } else {
            let (machine, id) = running(&house).await;
            disk = Some(id);
            match phase {
                "replacing" => {
                    house.ec2().add_fault(no_capacity("m7i.large"));
                    house.edit("orders", &json!({"instanceTypes": ["m7i.large"]})).await;
                    house.told("orders", "Ready", "False", "InsufficientCapacity").await;
                    house.ec2().clear_faults();
                }
                "lost" => house.ec2().outside(&ec2sim::Outside::Terminate.to(&machine)).unwrap(),
                _ => {
                    let node = house.list::<Node>().await.remove(0).name_any();
                    house.api::<Node>().delete(&node, &kube::api::DeleteParams::default()).await.unwrap();
                }
            }
            house.edit("orders", &json!({"running": false})).await;
            house.told("orders", "Ready", "False", "Paused").await;
        }
        assert_eq!((house.live_instances().len(), house.list::<Node>().await.len()), (0, 0));
        house.edit("orders", &json!({"running": true})).await;
        house.ready("orders").await;
        let disks: Vec<String> = house.data_volumes().into_iter().map(|volume| volume.id).collect();
        assert_eq!((house.live_instances().len(), disks.len()), (1, 1));
        assert!(disk.is_none_or(|disk| disks == [disk]), "the volume keeps its identity");
        house.close().await;
    }));
}
