//! Calls that fail: how a refusal is classed, what is in doubt, and what is sent again.

use std::collections::BTreeMap;

use ec2sim::Effect;
use freehold::api::InstanceId;
use freehold::cloud::identity::Kind;
use freehold::cloud::{Class, CloudError, InstanceQuery, ModifyVolumeRequest};
use pretty_assertions::assert_eq;

use super::{BOTH, error, of_cluster};
use crate::world::{Face, World, create_volume, launch, token};

#[tokio::test]
async fn every_refusal_of_a_launch_has_its_class_and_is_sent_once() {
    let rows = [
        ("InternalError", Class::InDoubt),
        ("Unavailable", Class::InDoubt),
        ("SomethingNew", Class::Refused),
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
            assert_eq!(
                (refusal.class, refusal.code.as_deref(), refusal.action),
                (class, Some(code), "RunInstances"),
                "{face:?}"
            );
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
            (
                freehold::cloud::LaunchRequest {
                    image_id: "ami-0ffffffffffffffff".into(),
                    ..request.clone()
                },
                Class::Invalid,
            ),
            (
                freehold::cloud::LaunchRequest {
                    subnet_id: "subnet-0ffffffffffffffff".into(),
                    ..request.clone()
                },
                Class::Invalid,
            ),
            (
                freehold::cloud::LaunchRequest {
                    security_group_ids: vec!["sg-0ffffffffffffffff".into()],
                    ..request.clone()
                },
                Class::Invalid,
            ),
            (
                freehold::cloud::LaunchRequest { instance_type: "r99.huge".into(), ..request.clone() },
                Class::Invalid,
            ),
            (
                freehold::cloud::LaunchRequest {
                    instance_profile: Some("just-made".into()),
                    ..request.clone()
                },
                Class::NotYetUsable,
            ),
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
            assert_eq!(
                (lost.class, lost.is_definite_refusal()),
                (Class::InDoubt, false),
                "{face:?} {effect:?} {lost}"
            );
            let lost = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap_err();
            assert_eq!(lost.class, Class::InDoubt, "{face:?} {effect:?} {lost}");
            assert_eq!(
                (world.calls("RunInstances").len(), world.calls("CreateVolume").len()),
                (1, 1),
                "{face:?} {effect:?}"
            );

            let instance = world.cloud.run_instance(&launch("node-1")).await.unwrap();
            let volume = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
            let truth = world.simulator.instances();
            assert_eq!(
                truth.iter().map(|truth| truth.id.as_str()).collect::<Vec<_>>(),
                [instance.id.0.as_str()]
            );
            let data: Vec<_> = world
                .simulator
                .volumes()
                .into_iter()
                .filter(|volume| volume.client_token.is_some())
                .map(|volume| volume.id)
                .collect();
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
        let request = ModifyVolumeRequest {
            id: volume.id.clone(),
            size: 200,
            volume_type: "gp3".into(),
            iops: None,
            throughput: None,
        };
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
