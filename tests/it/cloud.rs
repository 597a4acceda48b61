//! The contract of `Cloud`, on both ways to the same EC2 model, and what only the wire can show: what is sent, how often, and what
//! becomes of answers that are lost or cut.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ec2sim::{Effect, Fate, Outside, Sight, Visibility};
use freehold::api::keys;
use freehold::api::{ClientToken, InstanceId, VolumeId};
use freehold::cloud::identity::{self, Kind};
use freehold::cloud::inventory::{Awaited, Interest, Inventory};
use freehold::cloud::limits::Limits;
use freehold::cloud::{
    Class, CloudError, InstanceHealth, InstanceQuery, InstanceState, ModificationState, ModifyVolumeRequest, SnapshotState, VolumeQuery,
    VolumeState,
};
use freehold::settings::Timing;
use futures::StreamExt;
use pretty_assertions::assert_eq;
use tokio_util::sync::CancellationToken;

use crate::world::{CLUSTER, Face, OPERATOR, World, create_volume, lagging, launch, token};

const BOTH: [Face; 2] = [Face::Wire, Face::Model];

fn of_cluster() -> InstanceQuery {
    InstanceQuery::Tags(identity::cluster_tags(CLUSTER))
}

fn error(code: &str) -> Effect {
    Effect::Error { code: code.into(), message: "said the test".into() }
}

#[tokio::test]
async fn a_launch_is_one_run_instances_with_its_token_and_every_tag_and_no_create_tags() {
    for face in BOTH {
        let world = World::new(face).await;
        let request = launch("node-1");
        let launched = world.cloud.run_instance(&request).await.unwrap();
        assert_eq!(launched.state, InstanceState::Pending);
        assert_eq!((launched.token.as_ref(), launched.zone.as_str()), (Some(&request.token), "us-east-1a"));
        assert_eq!(launched.tags, request.tags);

        world.advance(10);
        let seen = world.cloud.describe_instances(&of_cluster()).await.unwrap();
        assert_eq!(seen.len(), 1, "{face:?}");
        assert_eq!((&seen[0].id, seen[0].state), (&launched.id, InstanceState::Running));
        assert_eq!(seen[0].volumes.len(), 1);
        assert_eq!(seen[0].root_volume.as_ref(), seen[0].volumes.first());

        assert_eq!(world.mutations(), BTreeMap::from([("RunInstances".to_owned(), 1)]));
        let sent = &world.calls("RunInstances")[0];
        assert_eq!((sent.caller.as_str(), sent.token.as_deref()), (OPERATOR, Some(request.token.0.as_str())));
        assert_eq!(sent.tags, request.tags);

        let truth = &world.simulator.instances()[0];
        assert_eq!(truth.user_data.as_deref(), Some(request.user_data.as_str()));
        assert_eq!((truth.metadata.http_tokens.as_str(), truth.metadata.hop_limit), ("required", 1));
        assert_eq!(truth.metadata.instance_metadata_tags, "disabled");
        assert!(truth.attachments[0].delete_on_termination);
        let root = &world.simulator.volumes()[0];
        assert!(root.encrypted);
        assert_eq!((root.shape.size, root.shape.volume_type.as_str()), (20, "gp3"));
        assert_eq!(root.tags, request.tags);
        assert_eq!(identity::owner_uid(Kind::Volume, &root.tags), None);
    }
}

#[tokio::test]
async fn both_ways_send_the_same_requests() {
    let mut sent = Vec::new();
    for face in BOTH {
        let world = World::new(face).await;
        let instance = world.cloud.run_instance(&launch("node-1")).await.unwrap();
        let volume = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
        world.advance(10);
        let request =
            ModifyVolumeRequest { id: volume.id.clone(), size: 200, volume_type: "gp3".into(), iops: Some(6000), throughput: Some(500) };
        world.cloud.modify_volume(&request).await.unwrap();
        world.cloud.create_snapshot(&volume.id, &identity::owner_tags(CLUSTER, Kind::Snapshot, "volume-1")).await.unwrap();
        world.cloud.tag_volume(&volume.id, &identity::owner_tags(CLUSTER, Kind::Volume, "volume-2")).await.unwrap();
        world.cloud.describe_instances(&InstanceQuery::Ids(vec![instance.id.clone()])).await.unwrap();
        world.cloud.terminate_instances(&[instance.id]).await.unwrap();
        world.cloud.delete_volume(&volume.id).await.unwrap();
        sent.push(world.simulator.journal().into_iter().map(|entry| (entry.action, entry.parameters)).collect::<Vec<_>>());
    }
    assert_eq!(sent[0], sent[1]);
}

#[tokio::test]
async fn tags_that_are_put_on_later_take_the_place_of_those_of_their_keys_and_the_others_stay() {
    for face in BOTH {
        let world = World::new(face).await;
        let volume = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
        let anew = identity::owner_tags(CLUSTER, Kind::Volume, "volume-2");
        for _ in 0..2 {
            world.cloud.tag_volume(&volume.id, &anew).await.unwrap();
        }
        let wanted: BTreeMap<_, _> = volume.tags.iter().chain(&anew).map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(world.simulator.volumes()[0].tags, wanted, "{face:?}");
        let of_former = VolumeQuery::Tags(identity::owner_tags(CLUSTER, Kind::Volume, "volume-1"));
        assert_eq!(world.cloud.describe_volumes(&of_former).await.unwrap().len(), 0);
        let unknown = VolumeId("vol-00000000000000000".into());
        assert_eq!(world.cloud.tag_volume(&unknown, &anew).await.unwrap_err().class, Class::NotFound);
    }
}

#[tokio::test]
async fn the_same_launch_again_is_the_same_instance() {
    for face in BOTH {
        let world = World::new(face).await;
        let first = world.cloud.run_instance(&launch("node-1")).await.unwrap();
        let second = world.cloud.run_instance(&launch("node-1")).await.unwrap();
        assert_eq!(first.id, second.id);
        assert_eq!(world.simulator.instances().len(), 1);
    }
}

#[tokio::test]
async fn another_request_with_a_used_token_or_the_token_of_a_dead_instance_is_a_token_error() {
    for face in BOTH {
        let world = World::new(face).await;
        let request = launch("node-1");
        let launched = world.cloud.run_instance(&request).await.unwrap();
        let other = freehold::cloud::LaunchRequest { instance_type: "r6i.large".into(), ..request.clone() };
        assert_eq!(world.cloud.run_instance(&other).await.unwrap_err().class, Class::Token);
        world.cloud.terminate_instances(&[launched.id]).await.unwrap();
        world.advance(60);
        assert_eq!(world.cloud.run_instance(&request).await.unwrap_err().class, Class::Token);
    }
}

#[tokio::test]
async fn instances_are_found_by_tag_by_token_and_by_id() {
    for face in BOTH {
        let world = World::new(face).await;
        let one = world.cloud.run_instance(&launch("node-1")).await.unwrap();
        let two = world.cloud.run_instance(&launch("node-2")).await.unwrap();
        let found = async |query: InstanceQuery| -> BTreeSet<InstanceId> {
            world.cloud.describe_instances(&query).await.unwrap().into_iter().map(|instance| instance.id).collect()
        };
        let only = |ids: &[&InstanceId]| -> BTreeSet<InstanceId> { ids.iter().map(|id| (*id).clone()).collect() };
        assert_eq!(found(of_cluster()).await, only(&[&one.id, &two.id]));
        assert_eq!(found(InstanceQuery::Tags(identity::owner_tags(CLUSTER, Kind::Node, "node-1"))).await, only(&[&one.id]));
        assert_eq!(found(InstanceQuery::Tags(identity::cluster_tags("another"))).await, only(&[]));
        let tokens = vec![token(Kind::Node, "node-2"), ClientToken("unknown".into())];
        assert_eq!(found(InstanceQuery::Tokens(tokens)).await, only(&[&two.id]));
        assert_eq!(found(InstanceQuery::Tokens(vec![])).await, only(&[]), "no token is asked for: none is found");
        assert_eq!(found(InstanceQuery::Ids(vec![one.id.clone()])).await, only(&[&one.id]));
        assert_eq!(found(InstanceQuery::Ids(vec![])).await, only(&[]));
        let unknown = InstanceQuery::Ids(vec![one.id, InstanceId("i-00000000000000000".into())]);
        assert_eq!(world.cloud.describe_instances(&unknown).await.unwrap_err().class, Class::NotFound);
    }
}

#[tokio::test]
async fn a_terminated_instance_is_shown_as_terminated() {
    for face in BOTH {
        let world = World::new(face).await;
        let launched = world.cloud.run_instance(&launch("node-1")).await.unwrap();
        world.advance(10);
        world.cloud.terminate_instances(std::slice::from_ref(&launched.id)).await.unwrap();
        let states = [InstanceState::ShuttingDown, InstanceState::Terminated];
        for state in states {
            let seen = world.cloud.describe_instances(&of_cluster()).await.unwrap();
            assert_eq!(seen.iter().map(|instance| instance.state).collect::<Vec<_>>(), [state]);
            world.advance(60);
        }
    }
}

#[tokio::test]
async fn a_launch_that_dies_says_why_with_ec2s_code() {
    for face in BOTH {
        let world = World::new(face).await;
        world.fault("RunInstances", Effect::LaunchDies { code: "Server.InsufficientInstanceCapacity".into() });
        world.cloud.run_instance(&launch("node-1")).await.unwrap();
        world.advance(60);
        let seen = world.cloud.describe_instances(&of_cluster()).await.unwrap();
        let reason = seen[0].state_reason.clone().unwrap();
        assert_eq!(seen[0].state, InstanceState::Terminated);
        assert_eq!(freehold::cloud::error::launch_failure(&reason), Some(Class::Capacity), "{reason}");
    }
}

#[tokio::test]
async fn every_refusal_of_a_launch_has_its_class_and_is_sent_once() {
    let rows = [
        ("InternalError", Class::InDoubt),
        ("Unavailable", Class::InDoubt),
        ("SomethingNew", Class::InDoubt),
        ("RequestLimitExceeded", Class::Throttled),
        ("InsufficientInstanceCapacity", Class::Capacity),
        ("InsufficientFreeAddressesInSubnet", Class::Capacity),
        ("Unsupported", Class::Capacity),
        ("VcpuLimitExceeded", Class::Quota),
        ("UnauthorizedOperation", Class::Forbidden),
        ("AuthFailure", Class::Forbidden),
        ("InvalidAMIID.NotFound", Class::Invalid),
        ("InvalidSubnetID.NotFound", Class::Invalid),
        ("IdempotentParameterMismatch", Class::Token),
        ("IncorrectInstanceState", Class::State),
    ];
    for face in BOTH {
        for (code, class) in rows {
            let world = World::new(face).await;
            world.fault("RunInstances", error(code));
            let refusal = world.cloud.run_instance(&launch("node-1")).await.unwrap_err();
            assert_eq!((refusal.class, refusal.code.as_deref(), refusal.action), (class, Some(code), "RunInstances"), "{face:?}");
            assert!(refusal.message.contains("said the test"), "{refusal:?}");
            assert_eq!(world.calls("RunInstances").len(), 1, "{face:?} {code}: one attempt on the wire");
        }
    }
}

#[tokio::test]
async fn what_ec2_itself_refuses_has_its_class() {
    for face in BOTH {
        let world = World::new(face).await;
        let request = launch("node-1");
        let refused = [
            (freehold::cloud::LaunchRequest { image_id: "ami-0ffffffffffffffff".into(), ..request.clone() }, Class::Invalid),
            (freehold::cloud::LaunchRequest { subnet_id: "subnet-0ffffffffffffffff".into(), ..request.clone() }, Class::Invalid),
            (freehold::cloud::LaunchRequest { security_group_ids: vec!["sg-0ffffffffffffffff".into()], ..request.clone() }, Class::Invalid),
            (freehold::cloud::LaunchRequest { instance_type: "r99.huge".into(), ..request.clone() }, Class::Invalid),
            (freehold::cloud::LaunchRequest { instance_profile: Some("just-made".into()), ..request.clone() }, Class::NotYetUsable),
        ];
        for (request, class) in refused {
            let refusal = world.cloud.run_instance(&request).await.unwrap_err();
            assert_eq!(refusal.class, class, "{face:?} {refusal}");
        }
        let mut volume = create_volume("volume-1");
        volume.volume_type = "gp9".into();
        assert_eq!(world.cloud.create_volume(&volume).await.unwrap_err().class, Class::Invalid);
        assert_eq!(world.simulator.instances().len() + world.simulator.volumes().len(), 0);
    }
}

#[tokio::test]
async fn a_lost_answer_is_in_doubt_and_the_same_call_again_settles_it() {
    for face in BOTH {
        for effect in [Effect::DropBefore, Effect::ApplyThenDrop, Effect::TruncatedXml] {
            let world = World::new(face).await;
            world.fault_once("RunInstances", effect.clone());
            world.fault_once("CreateVolume", effect.clone());
            let lost = world.cloud.run_instance(&launch("node-1")).await.unwrap_err();
            assert_eq!((lost.class, lost.is_definite_refusal()), (Class::InDoubt, false), "{face:?} {effect:?} {lost}");
            let lost = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap_err();
            assert_eq!(lost.class, Class::InDoubt, "{face:?} {effect:?} {lost}");
            assert_eq!((world.calls("RunInstances").len(), world.calls("CreateVolume").len()), (1, 1), "{face:?} {effect:?}");

            let instance = world.cloud.run_instance(&launch("node-1")).await.unwrap();
            let volume = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
            let truth = world.simulator.instances();
            assert_eq!(truth.iter().map(|truth| truth.id.as_str()).collect::<Vec<_>>(), [instance.id.0.as_str()]);
            let data: Vec<_> =
                world.simulator.volumes().into_iter().filter(|volume| volume.client_token.is_some()).map(|volume| volume.id).collect();
            assert_eq!(data, [volume.id.0]);
        }
    }
}

#[tokio::test]
async fn a_send_that_arrives_after_its_time_out_is_found_by_its_token() {
    for face in BOTH {
        let world = World::new(face).await;
        world.fault_once("RunInstances", Effect::ApplyLate { seconds: 800.0 });
        assert_eq!(world.cloud.run_instance(&launch("node-1")).await.unwrap_err().class, Class::InDoubt);
        let by_token = InstanceQuery::Tokens(vec![token(Kind::Node, "node-1")]);
        world.advance(799);
        assert_eq!(world.cloud.describe_instances(&by_token).await.unwrap().len(), 0);
        world.advance(2);
        assert_eq!(world.cloud.describe_instances(&by_token).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_repeated_safely_goes_out_once_whatever_happens_to_it() {
    let effects = [Effect::DropBefore, Effect::Throttle, error("InternalError"), error("Unavailable")];
    for effect in effects {
        let world = World::new(Face::Wire).await;
        let volume = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
        world.advance(10);
        for action in ["ModifyVolume", "CreateSnapshot", "DeleteVolume", "TerminateInstances"] {
            world.fault(action, effect.clone());
        }
        let request = ModifyVolumeRequest { id: volume.id.clone(), size: 200, volume_type: "gp3".into(), iops: None, throughput: None };
        let failures: [CloudError; 4] = [
            world.cloud.modify_volume(&request).await.unwrap_err(),
            world.cloud.create_snapshot(&volume.id, &BTreeMap::new()).await.unwrap_err(),
            world.cloud.delete_volume(&volume.id).await.unwrap_err(),
            world.cloud.terminate_instances(&[InstanceId("i-00000000000000000".into())]).await.unwrap_err(),
        ];
        for failure in failures {
            assert!(matches!(failure.class, Class::InDoubt | Class::Throttled), "{failure:?}");
            assert_eq!(world.calls(failure.action).len(), 1, "{effect:?} {}", failure.action);
        }
    }
}

#[tokio::test]
async fn a_read_is_repeated_when_it_fails_in_passing() {
    let world = World::new(Face::Wire).await;
    world.cloud.run_instance(&launch("node-1")).await.unwrap();
    for effect in [error("InternalError"), Effect::DropBefore] {
        let before = world.calls("DescribeInstances").len();
        world.fault_once("DescribeInstances", effect.clone());
        assert_eq!(world.cloud.describe_instances(&of_cluster()).await.unwrap().len(), 1, "{effect:?}");
        assert_eq!(world.calls("DescribeInstances").len(), before + 2, "{effect:?}");
    }
}

#[tokio::test]
async fn a_list_whose_answers_are_cut_is_an_error_and_never_a_shorter_list() {
    let world = World::new(Face::Wire).await;
    for n in 0..20 {
        world.cloud.run_instance(&launch(&format!("node-{n}"))).await.unwrap();
        world.cloud.create_volume(&create_volume(&format!("volume-{n}"))).await.unwrap();
    }
    for action in ["DescribeInstances", "DescribeVolumes", "DescribeInstanceStatus", "DescribeSnapshots"] {
        world.fault(action, Effect::TruncatedXml);
    }
    let failures = [
        world.cloud.describe_instances(&of_cluster()).await.map(|list| list.len()),
        world.cloud.describe_volumes(&VolumeQuery::Tags(identity::cluster_tags(CLUSTER))).await.map(|list| list.len()),
        world.cloud.describe_unhealthy_instances().await.map(|list| list.len()),
        world.cloud.describe_snapshots(&identity::cluster_tags(CLUSTER)).await.map(|list| list.len()),
    ];
    for failure in failures {
        let failure = failure.unwrap_err();
        assert_eq!((failure.class, failure.code.as_deref()), (Class::InDoubt, None), "{failure}");
    }
}

#[tokio::test]
async fn a_list_goes_on_after_an_empty_page() {
    for face in BOTH {
        let world = World::new(face).await;
        world.cloud.run_instance(&launch("node-1")).await.unwrap();
        world.fault_once("DescribeInstances", Effect::EmptyPage);
        assert_eq!(world.cloud.describe_instances(&of_cluster()).await.unwrap().len(), 1);
        assert_eq!(world.calls("DescribeInstances").len(), 2);
    }
}

#[tokio::test]
async fn a_list_has_every_page() {
    let world = World::new(Face::Wire).await;
    // As another tool of the same cluster would: quicker than 1,001 launches over the wire.
    let tag = [("TagSpecification.1.Tag.1.Key", keys::CLUSTER_ID_TAG), ("TagSpecification.1.Tag.1.Value", CLUSTER)];
    let place = [("ImageId", "ami-0000000000000000a"), ("InstanceType", "r7i.large"), ("MinCount", "1"), ("MaxCount", "1")];
    for n in 0..1001 {
        let instance = [[("Action", "RunInstances"), ("TagSpecification.1.ResourceType", "instance")].as_slice(), &tag, &place].concat();
        world.simulator.call("another", &instance).unwrap();
        if n <= 500 {
            let volume = [
                ("Action", "CreateVolume"),
                ("AvailabilityZone", "us-east-1a"),
                ("Size", "1"),
                ("TagSpecification.1.ResourceType", "volume"),
            ];
            world.simulator.call("another", &[volume.as_slice(), &tag].concat()).unwrap();
        }
    }
    let ids: BTreeSet<_> = world.cloud.describe_instances(&of_cluster()).await.unwrap().into_iter().map(|instance| instance.id).collect();
    assert_eq!((ids.len(), world.calls("DescribeInstances").len()), (1001, 2));
    let volumes = world.cloud.describe_volumes(&VolumeQuery::Tags(identity::cluster_tags(CLUSTER))).await.unwrap();
    let ids: BTreeSet<_> = volumes.into_iter().map(|volume| volume.id).collect();
    assert_eq!(ids.len(), 501);
    assert!(world.calls("DescribeVolumes").len() > 1, "EC2 answers with 500 volumes at most");

    // The second page fails: no list at all.
    world.simulator.add_fault(ec2sim::Fault {
        id: String::new(),
        action: Some("DescribeInstances".into()),
        caller: None,
        resource: None,
        tag: None,
        nth: Some(2),
        count: Some(100),
        probability: None,
        effect: error("InternalError"),
    });
    assert_eq!(world.cloud.describe_instances(&of_cluster()).await.unwrap_err().class, Class::InDoubt);
}

#[tokio::test]
async fn while_a_zone_is_disrupted_only_ids_of_other_zones_are_answered() {
    for face in BOTH {
        let world = World::new(face).await;
        let healthy = world.cloud.run_instance(&launch("node-1")).await.unwrap();
        let other = freehold::cloud::LaunchRequest { subnet_id: "subnet-0b000000000000000".into(), ..launch("node-2") };
        let disrupted = world.cloud.run_instance(&other).await.unwrap();
        world.fault("DescribeInstances", Effect::ZoneDown { zone: disrupted.zone.clone() });
        let failure = world.cloud.describe_instances(&of_cluster()).await.unwrap_err();
        assert!(failure.class == Class::InDoubt && failure.code.is_some(), "{failure}");
        assert!(world.cloud.describe_instances(&InstanceQuery::Ids(vec![disrupted.id])).await.is_err());
        let seen = world.cloud.describe_instances(&InstanceQuery::Ids(vec![healthy.id.clone()])).await.unwrap();
        assert_eq!(seen[0].id, healthy.id);
    }
}

#[tokio::test]
async fn an_impaired_instance_and_one_with_an_event_are_unhealthy_until_they_recover() {
    for face in BOTH {
        let world = World::new(face).await;
        let ids: Vec<InstanceId> = {
            let mut ids = Vec::new();
            for n in 0..3 {
                ids.push(world.cloud.run_instance(&launch(&format!("node-{n}"))).await.unwrap().id);
            }
            ids
        };
        world.advance(10);
        assert_eq!(world.cloud.describe_unhealthy_instances().await.unwrap(), []);
        world.simulator.outside(&Outside::Impair.to(&ids[0].0)).unwrap();
        let event =
            Outside::Schedule { code: "instance-retirement".into(), not_before: world.simulator.now() + Duration::from_secs(86_400) };
        world.simulator.outside(&event.to(&ids[1].0)).unwrap();
        let unhealthy: BTreeMap<InstanceId, InstanceHealth> =
            world.cloud.describe_unhealthy_instances().await.unwrap().into_iter().map(|health| (health.id.clone(), health)).collect();
        let expected = [InstanceHealth { id: ids[0].clone(), impaired: true }, InstanceHealth { id: ids[1].clone(), impaired: false }];
        assert_eq!(unhealthy, expected.into_iter().map(|health| (health.id.clone(), health)).collect());
        assert_eq!(world.calls("DescribeInstanceStatus").len(), 6, "three calls each time");
        world.simulator.outside(&Outside::Recover.to(&ids[0].0)).unwrap();
        assert_eq!(world.cloud.describe_unhealthy_instances().await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_console_is_read_as_text() {
    for face in BOTH {
        let world = World::new(face).await;
        let launched = world.cloud.run_instance(&launch("node-1")).await.unwrap();
        world.advance(10);
        world.simulator.outside(&Outside::Console("kubelet: cannot join ✗".into()).to(&launched.id.0)).unwrap();
        let console = world.cloud.console_output(&launched.id).await.unwrap();
        assert!(console.contains("kubelet: cannot join ✗"), "{console:?}");
    }
}

#[tokio::test]
async fn a_volume_is_made_once_grown_once_and_deleted() {
    for face in BOTH {
        let world = World::new(face).await;
        let request = create_volume("volume-1");
        let made = world.cloud.create_volume(&request).await.unwrap();
        assert_eq!(made.state, VolumeState::Creating);
        assert_eq!(world.cloud.create_volume(&request).await.unwrap().id, made.id);
        world.advance(10);
        let by_owner = VolumeQuery::Tags(identity::owner_tags(CLUSTER, Kind::Volume, "volume-1"));
        let seen = world.cloud.describe_volumes(&by_owner).await.unwrap();
        assert_eq!(seen.len(), 1);
        assert_eq!((&seen[0].id, seen[0].state, seen[0].zone.as_str()), (&made.id, VolumeState::Available, "us-east-1a"));
        assert_eq!((seen[0].size, seen[0].iops, seen[0].throughput), (100, Some(3000), Some(125)));
        assert_eq!(seen[0].tags, request.tags);
        assert!(world.simulator.volumes()[0].encrypted);

        assert_eq!(world.cloud.describe_modifications(std::slice::from_ref(&made.id)).await.unwrap(), [], "never modified is no error");
        let grow =
            ModifyVolumeRequest { id: made.id.clone(), size: 200, volume_type: "gp3".into(), iops: Some(6000), throughput: Some(500) };
        world.cloud.modify_volume(&grow).await.unwrap();
        assert_eq!(world.cloud.modify_volume(&grow).await.unwrap_err().class, Class::State, "the former one is not completed");
        let modification = async || {
            let ids = [made.id.clone(), VolumeId("vol-00000000000000000".into())];
            world.cloud.describe_modifications(&ids).await.unwrap().into_iter().map(|m| m.state).collect::<Vec<_>>()
        };
        assert_eq!(modification().await, [ModificationState::Modifying]);
        world.advance(10);
        assert_eq!(modification().await, [ModificationState::Completed]);
        let ids = VolumeQuery::Ids(vec![made.id.clone(), VolumeId("vol-00000000000000000".into())]);
        let seen = world.cloud.describe_volumes(&ids).await.unwrap();
        assert_eq!(
            seen.iter().map(|volume| (volume.size, volume.iops, volume.throughput)).collect::<Vec<_>>(),
            [(200, Some(6000), Some(500))]
        );

        world.cloud.delete_volume(&made.id).await.unwrap();
        world.advance(10);
        assert_eq!(world.cloud.describe_volumes(&by_owner).await.unwrap(), []);
        assert_eq!(world.cloud.delete_volume(&made.id).await.unwrap_err().class, Class::NotFound);
    }
}

#[tokio::test]
async fn the_fifth_modification_of_a_day_is_refused_as_over_budget() {
    for face in BOTH {
        let world = World::new(face).await;
        let made = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
        world.advance(10);
        for size in [110, 120, 130, 140] {
            let request = ModifyVolumeRequest { id: made.id.clone(), size, volume_type: "gp3".into(), iops: None, throughput: None };
            world.cloud.modify_volume(&request).await.unwrap();
            world.advance(60);
        }
        let request = ModifyVolumeRequest { id: made.id.clone(), size: 150, volume_type: "gp3".into(), iops: None, throughput: None };
        assert_eq!(world.cloud.modify_volume(&request).await.unwrap_err().class, Class::ModificationBudget);
    }
}

#[tokio::test]
async fn an_attached_volume_is_in_use_and_cannot_be_deleted() {
    for face in BOTH {
        let world = World::new(face).await;
        let instance = world.cloud.run_instance(&launch("node-1")).await.unwrap();
        let made = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
        world.advance(10);
        let attach = [("Action", "AttachVolume"), ("VolumeId", &made.id.0), ("InstanceId", &instance.id.0), ("Device", "/dev/xvdba")];
        world.simulator.call("csi", &attach).unwrap();
        world.advance(10);
        let seen = world.cloud.describe_volumes(&VolumeQuery::Ids(vec![made.id.clone()])).await.unwrap();
        assert_eq!(seen[0].state, VolumeState::InUse);
        assert_eq!(world.cloud.delete_volume(&made.id).await.unwrap_err().class, Class::State);
        let seen = world.cloud.describe_instances(&of_cluster()).await.unwrap();
        assert!(seen[0].volumes.contains(&made.id));
        assert_ne!(seen[0].root_volume.as_ref(), Some(&made.id));
    }
}

#[tokio::test]
async fn a_snapshot_is_found_by_its_tags_and_completes() {
    for face in BOTH {
        let world = World::new(face).await;
        let made = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
        world.advance(10);
        let tags = identity::owner_tags(CLUSTER, Kind::Snapshot, "volume-1");
        let taken = world.cloud.create_snapshot(&made.id, &tags).await.unwrap();
        assert_eq!((&taken.volume, taken.state), (&made.id, SnapshotState::Pending));
        world.advance(60);
        let seen = world.cloud.describe_snapshots(&tags).await.unwrap();
        assert_eq!(seen.len(), 1);
        assert_eq!((&seen[0].id, seen[0].state, &seen[0].tags), (&taken.id, SnapshotState::Completed, &tags));
        let other = identity::owner_tags(CLUSTER, Kind::Snapshot, "volume-2");
        assert_eq!(world.cloud.describe_snapshots(&other).await.unwrap(), []);
    }
}

#[tokio::test]
async fn over_the_wire_the_inventory_sees_an_instance_by_its_token_while_its_tags_lag() {
    let lag = Duration::from_secs(120);
    let options = lagging(Visibility { tags: lag, ..Visibility::default() });
    let world = World::with(Face::Wire, options).await;
    let timing = Timing { sweep_pending: Duration::from_millis(20), ..Timing::default() };
    let inventory =
        Inventory::new(Arc::clone(&world.cloud), Arc::new(Limits::new(1.0, 1.0)), Arc::new(freehold::clock::SystemClock), timing, CLUSTER);
    let mut wakes = inventory.wakes();
    let launched = world.cloud.run_instance(&launch("node-1")).await.unwrap();
    let awaited = Awaited { token: Some(token(Kind::Node, "node-1")), ..Awaited::default() };
    inventory.set_interest(Kind::Node, "node-1", Interest::Pending(awaited));
    let stop = CancellationToken::new();
    let running = tokio::spawn(Arc::clone(&inventory).run(stop.clone()));
    let seen = async {
        loop {
            let wake = wakes.next().await.unwrap();
            let view = inventory.instances_of(&wake.uid);
            if !view.instances.is_empty() {
                return view;
            }
        }
    };
    let view = tokio::time::timeout(Duration::from_secs(60), seen).await.unwrap();
    assert_eq!(view.instances.iter().map(|instance| &instance.id).collect::<Vec<_>>(), [&launched.id]);
    assert_eq!(view.instances[0].tags, BTreeMap::new(), "EC2 does not show the tags yet");
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_new_instance_that_lists_do_not_show_yet_is_no_error() {
    for face in BOTH {
        let world = World::new(face).await;
        world.fault("RunInstances", Effect::Invisible { sight: Sight::All, seconds: 60.0 });
        let launched = world.cloud.run_instance(&launch("node-1")).await.unwrap();
        assert_eq!(world.cloud.describe_instances(&of_cluster()).await.unwrap(), []);
        let by_id = world.cloud.describe_instances(&InstanceQuery::Ids(vec![launched.id.clone()])).await;
        assert_eq!(by_id.unwrap_err().class, Class::NotFound);
        assert_eq!(world.cloud.terminate_instances(std::slice::from_ref(&launched.id)).await.unwrap_err().class, Class::NotFound);
        world.advance(61);
        assert_eq!(world.cloud.describe_instances(&of_cluster()).await.unwrap().len(), 1);
        assert!(world.calls("RunInstances").iter().all(|entry| entry.fate == Fate::Committed));
    }
}
