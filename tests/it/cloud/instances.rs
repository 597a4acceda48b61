//! Instances: launched once, found, and seen as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ec2sim::{Effect, Outside, Visibility};
use freehold::api::{ClientToken, InstanceId};
use freehold::cloud::identity::{self, Kind};
use freehold::cloud::inventory::{Awaited, Interest, Inventory};
use freehold::cloud::limits::Limits;
use freehold::cloud::{Class, Disk, InstanceHealth, InstanceQuery, InstanceState, ScheduledEvent};
use freehold::settings::Timing;
use futures::StreamExt;
use pretty_assertions::assert_eq;
use tokio_util::sync::CancellationToken;

use super::{BOTH, of_cluster};
use crate::world::{CLUSTER, Face, OPERATOR, World, lagging, launch, token};

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
async fn a_dry_run_launches_nothing_and_is_refused_as_the_launch_would_be() {
    for face in BOTH {
        let world = World::new(face).await;
        world.cloud.check_launch(&launch("node-1")).await.unwrap();
        let mut no_profile = launch("node-1");
        no_profile.instance_profile = Some("nobody".into());
        let refused = world.cloud.check_launch(&no_profile).await.unwrap_err();
        assert_eq!(refused.class, Class::NotYetUsable, "{face:?}: {refused}");
        world.fault("RunInstances", Effect::DropBefore);
        let lost = world.cloud.check_launch(&launch("node-1")).await.unwrap_err();
        assert_eq!(lost.class, Class::InDoubt, "{face:?}: {lost}");
        let sent = world.calls("RunInstances");
        assert!(sent.iter().all(|entry| entry.dry_run) && sent.len() == 3, "{face:?}: {sent:?}");
        assert!(world.simulator.instances().is_empty(), "{face:?}");
    }
}

#[tokio::test]
async fn every_disk_of_a_launch_is_encrypted_tagged_and_deleted_with_the_machine() {
    for face in BOTH {
        let world = World::new(face).await;
        let mut request = launch("node-1");
        request.kms_key_id = world.simulator.world().kms_keys.first().cloned();
        request.disks.push(Disk { device: "/dev/xvdb".into(), size: 50, volume_type: "gp3".into() });
        let launched = world.cloud.run_instance(&request).await.unwrap();
        world.advance(10);
        assert!(world.simulator.instances()[0].attachments.iter().all(|disk| disk.delete_on_termination));
        let disks = world.simulator.volumes();
        let sizes: Vec<i64> = disks.iter().map(|disk| i64::from(disk.shape.size)).collect();
        assert_eq!(sizes, [20, 50], "{face:?}");
        assert!(disks.iter().all(|disk| disk.encrypted && disk.tags == request.tags), "{disks:?}");
        world.cloud.terminate_instances(&[launched.id]).await.unwrap();
        world.advance(120);
        assert!(world.simulator.volumes().is_empty(), "{face:?}");
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
            world
                .cloud
                .describe_instances(&query)
                .await
                .unwrap()
                .into_iter()
                .map(|instance| instance.id)
                .collect()
        };
        let only =
            |ids: &[&InstanceId]| -> BTreeSet<InstanceId> { ids.iter().map(|id| (*id).clone()).collect() };
        assert_eq!(found(of_cluster()).await, only(&[&one.id, &two.id]));
        assert_eq!(
            found(InstanceQuery::Tags(identity::owner_tags(CLUSTER, Kind::Node, "node-1"))).await,
            only(&[&one.id])
        );
        assert_eq!(found(InstanceQuery::Tags(identity::cluster_tags("another"))).await, only(&[]));
        let tokens = vec![token(Kind::Node, "node-2"), ClientToken("unknown".into())];
        assert_eq!(found(InstanceQuery::Tokens(tokens)).await, only(&[&two.id]));
        assert_eq!(
            found(InstanceQuery::Tokens(vec![])).await,
            only(&[]),
            "no token is asked for: none is found"
        );
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
        world
            .fault("RunInstances", Effect::LaunchDies { code: "Server.InsufficientInstanceCapacity".into() });
        world.cloud.run_instance(&launch("node-1")).await.unwrap();
        world.advance(60);
        let seen = world.cloud.describe_instances(&of_cluster()).await.unwrap();
        let reason = seen[0].state_reason.clone().unwrap();
        assert_eq!(seen[0].state, InstanceState::Terminated);
        assert_eq!(freehold::cloud::error::launch_failure(&reason), Some(Class::Capacity), "{reason}");
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
        let not_before = world.simulator.now() + Duration::from_secs(86_400);
        let event = Outside::Schedule { code: "instance-retirement".into(), not_before };
        world.simulator.outside(&event.to(&ids[1].0)).unwrap();
        let unhealthy: BTreeMap<InstanceId, InstanceHealth> = world
            .cloud
            .describe_unhealthy_instances()
            .await
            .unwrap()
            .into_iter()
            .map(|health| (health.id.clone(), health))
            .collect();
        let not_before = jiff::Timestamp::from_second(not_before.as_second()).ok();
        let retirement = ScheduledEvent { code: "instance-retirement".into(), not_before };
        let expected = [
            InstanceHealth { id: ids[0].clone(), impaired: true, events: Vec::new() },
            InstanceHealth { id: ids[1].clone(), impaired: false, events: vec![retirement] },
        ];
        assert_eq!(unhealthy, expected.into_iter().map(|health| (health.id.clone(), health)).collect());
        assert_eq!(world.calls("DescribeInstanceStatus").len(), 6, "three calls each time");
        let named = world.cloud.describe_health(&ids).await.unwrap();
        assert_eq!(
            named.into_iter().map(|health| (health.id.clone(), health)).collect::<BTreeMap<_, _>>(),
            unhealthy
        );
        assert_eq!(world.calls("DescribeInstanceStatus").len(), 7);
        assert!(world.cloud.describe_health(&[InstanceId("i-0123456789abcdef0".into())]).await.is_err());
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
        world
            .simulator
            .outside(&Outside::Console("kubelet: cannot join ✗".into()).to(&launched.id.0))
            .unwrap();
        let console = world.cloud.console_output(&launched.id).await.unwrap();
        assert!(console.contains("kubelet: cannot join ✗"), "{console:?}");
    }
}

#[tokio::test]
async fn over_the_wire_the_inventory_sees_an_instance_by_its_token_while_its_tags_lag() {
    let lag = Duration::from_secs(120);
    let options = lagging(Visibility { tags: lag, ..Visibility::default() });
    let world = World::with(Face::Wire, options).await;
    let timing = Timing { pending_sync_interval: Duration::from_millis(20), ..Timing::default() };
    let inventory = Inventory::new(
        Arc::clone(&world.cloud),
        Arc::new(Limits::new(1.0, 1.0)),
        Arc::new(freehold::clock::SystemClock),
        timing,
        CLUSTER,
    );
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
