//! What must be observed in each step: a name, a condition on the world, and the line to print.

use ec2sim::VolumeState;
use freehold::api::database::{HistoryEntry, Occurrence};
use kube::ResourceExt;

use super::parts::{ATTACHED, BOUND, JOINED, LAUNCHED, MOUNTED, REGISTERED};
use super::world::{World, restarts};
use crate::account::node_kind::NodeKind;

/// A condition on the world: the line to print once it is true.
pub type Seen = Box<dyn Fn(&World) -> Option<String> + Send + Sync>;

/// Something that must become true, and the line to print once it is.
pub struct Milestone {
    /// Its name.
    pub what: &'static str,
    /// Whether it is true.
    pub seen: Seen,
}

/// A milestone of this name.
pub fn milestone(
    what: &'static str,
    seen: impl Fn(&World) -> Option<String> + Send + Sync + 'static,
) -> Milestone {
    Milestone { what, seen: Box::new(seen) }
}

/// A database comes to life. Pods on virtual machines run in name only: there is less to see of them.
pub fn creation(nodes: NodeKind) -> Vec<Milestone> {
    let runs = milestone("instance running", |world| {
        let instance = world.running_instance()?;
        Some(format!("instance running: {} ({} in {})", instance.id, instance.instance_type, instance.zone))
    });
    let joined = milestone(JOINED, |world| {
        let node = world.ready_core_node()?;
        Some(format!("node joined: Kubernetes node {} is Ready", node.name_any()))
    });
    let made = milestone("volume created", |world| {
        let volume = world.ebs_volume()?;
        let encrypted = if volume.encrypted { ", encrypted" } else { return None };
        Some(format!(
            "volume created: {} ({} GiB {}{encrypted}) in {}",
            volume.id, volume.shape.size, volume.shape.volume_type, volume.zone
        ))
    });
    let bound = milestone(BOUND, |world| {
        let claim = world.bound_claim()?;
        let record = claim.spec.as_ref()?.volume_name.clone()?;
        Some(format!("volume bound: claim {} and PersistentVolume {record}", claim.name_any()))
    });
    let serving = milestone("StatefulSet running", |world| {
        let pod = world.serving_pod()?;
        let node = pod.spec.as_ref()?.node_name.clone()?;
        Some(format!("StatefulSet running: pod {} on {node}, its volume attached there", pod.name_any()))
    });
    let ready = milestone("Ready", |world| world.is_ready().then(|| ready(world)));
    match nodes {
        NodeKind::Virtual => vec![runs, joined, made, bound, serving, ready],
        NodeKind::Real => {
            let [launched, registered, attached, mounted] = on_the_way();
            vec![launched, runs, registered, joined, made, bound, attached, mounted, serving, ready]
        }
    }
}

/// What a real machine shows beside that.
fn on_the_way() -> [Milestone; 4] {
    [
        milestone(LAUNCHED, |world| Some(format!("RunInstances: {}", world.instance()?.id))),
        milestone(REGISTERED, |world| {
            Some(format!("machine booted: its kubelet registered {}", world.core_node()?.name_any()))
        }),
        milestone(ATTACHED, |world| {
            let attachment = world.attached()?;
            Some(format!(
                "volume attached by {}: VolumeAttachment {}",
                attachment.spec.attacher,
                attachment.name_any()
            ))
        }),
        milestone(MOUNTED, |world| {
            let pod = world.pod_with("PodReadyToStartContainers")?;
            Some(format!("volume mounted: the sandbox of pod {} exists", pod.name_any()))
        }),
    ]
}

/// The Database's status.history records what happened, with its cause.
fn in_history(before: &World, what: Occurrence) -> Milestone {
    let entries = |world: &World| -> Vec<HistoryEntry> {
        world
            .database()
            .and_then(|database| database.status.as_ref())
            .map(|status| status.history.clone())
            .unwrap_or_default()
    };
    let old = entries(before);
    milestone("entry in status.history", move |world| {
        let entry = entries(world).into_iter().find(|entry| entry.what == what && !old.contains(entry))?;
        Some(format!("status.history: {}: {}", entry.what.event()?.as_str(), entry.cause))
    })
}

/// While there are two Nodes the Database's status names both.
fn both_named() -> Milestone {
    milestone("status.replacement", |world| {
        let replacement = world.database()?.status.as_ref()?.replacement.as_ref()?;
        let both = [&replacement.from, &replacement.to]
            .map(|name| world.nodes.iter().any(|node| node.name_any() == *name));
        (both == [true, true]).then(|| {
            format!("status.replacement: {} by {}: {}", replacement.from, replacement.to, replacement.cause)
        })
    })
}

/// Another machine takes the place of the one in use, which serves until then.
pub fn type_change(before: &World) -> Vec<Milestone> {
    let (pod, instance) = (before.pod_uid(), id_of(before));
    let serves = move |world: &World| world.pod_uid().is_some() && world.pod_uid() == pod;
    let mut milestones = vec![milestone("another machine launched", {
        let (instance, serves) = (instance.clone(), serves.clone());
        move |world| {
            let other = world.other_instance(&instance)?;
            let meanwhile = if serves(world) {
                format!(", while the database serves on {instance}")
            } else {
                String::new()
            };
            Some(format!("RunInstances: {} ({} in {}){meanwhile}", other.id, other.instance_type, other.zone))
        }
    })];
    milestones.push(both_named());
    milestones.extend(successor(before));
    milestones
}

/// The database's instance has ended outside Freehold: it is noticed, and another takes its place.
pub fn loss(before: &World) -> Vec<Milestone> {
    let instance = id_of(before);
    let mut milestones = vec![
        milestone("loss noticed", |world| {
            let (reason, message) = world.unready()?;
            Some(format!("loss noticed: Ready=False, {reason}: {message}"))
        }),
        milestone("another machine launched", move |world| {
            let other = world.other_instance(&instance)?;
            Some(format!("RunInstances: {} ({} in {})", other.id, other.instance_type, other.zone))
        }),
        both_named(),
    ];
    milestones.extend(successor(before));
    milestones
}

/// The database serves on another machine, with its volume, and the machine of before is gone.
fn successor(before: &World) -> [Milestone; 4] {
    let (pod, instance, volume) =
        (before.pod_uid(), id_of(before), before.ebs_volume().map(|volume| volume.id.clone()));
    let has_moved = {
        let instance = instance.clone();
        move |world: &World| {
            let serving = world.serving_pod().filter(|serving| serving.uid() != pod)?;
            let now = world.running_instance().filter(|now| now.id != instance)?;
            let same = world.ebs_volume().map(|volume| &volume.id) == volume.as_ref();
            same.then(|| {
                format!(
                    "pod {} serves on {}, with the same volume attached there",
                    serving.name_any(),
                    now.id
                )
            })
        }
    };
    let moved = has_moved.clone();
    let gone = instance.clone();
    [
        milestone("database on the other machine", move |world| {
            Some(format!("moved: {}", has_moved(world)?))
        }),
        in_history(before, Occurrence::Moved),
        milestone("former machine gone", move |world| {
            let is_left = world.nodes.len() == 1 && world.other_instance(&gone).is_some();
            (is_left && world.is_terminated(&gone)).then(|| {
                format!(
                    "former machine gone: {gone} is \
                terminated, and one Node remains"
                )
            })
        }),
        milestone("Ready", move |world| (moved(world).is_some() && world.is_ready()).then(|| ready(world))),
    ]
}

fn id_of(world: &World) -> String {
    world.running_instance().map(|instance| instance.id.clone()).unwrap_or_default()
}

/// The machine is released; the volume is retained.
pub fn pause(before: &World) -> Vec<Milestone> {
    let (instance, volume) =
        (id_of(before), before.ebs_volume().map(|volume| volume.id.clone()).unwrap_or_default());
    vec![
        milestone("engine stopped", |world| {
            world.pods.is_empty().then(|| "engine stopped: the pod has ended".to_owned())
        }),
        milestone("instance terminated", move |world| {
            (world.nodes.is_empty() && world.is_terminated(&instance)).then(|| {
                format!(
                    "instance terminated: \
                {instance}"
                )
            })
        }),
        in_history(before, Occurrence::Paused),
        milestone("paused", move |world| {
            let (reason, message) = world.unready().filter(|(reason, _)| *reason == "Paused")?;
            let kept = world
                .ebs_volume()
                .filter(|kept| kept.id == volume && kept.state == VolumeState::Available)?;
            Some(format!("Ready=False, {reason}: {message}; {} is retained", kept.id))
        }),
    ]
}

/// EC2 has launched a machine for a database that has none, and no object records its id yet.
pub fn unrecorded_launch(before: &World) -> Vec<Milestone> {
    let known: Vec<String> = before.ec2.instances.iter().map(|instance| instance.id.clone()).collect();
    vec![milestone("an instance in EC2", move |world| {
        let launched = world.ec2.instances.iter().find(|instance| !known.contains(&instance.id))?;
        world.instance().is_none().then(|| {
            format!(
                "RunInstances: EC2 launched {}, and its response is \
            delayed",
                launched.id
            )
        })
    })]
}

/// The database is back on a machine, with its volume; `before` is when it had none.
pub fn resumption(before: &World) -> Vec<Milestone> {
    let volume = before.ebs_volume().map(|volume| volume.id.clone());
    let known: Vec<String> = before.ec2.instances.iter().map(|instance| instance.id.clone()).collect();
    vec![
        in_history(before, Occurrence::Resumed),
        milestone("instance known", move |world| {
            let launched: Vec<&str> = world
                .ec2
                .instances
                .iter()
                .map(|instance| instance.id.as_str())
                .filter(|id| !known.iter().any(|it| it == id))
                .collect();
            let ours = world.instance()?;
            (launched == [ours.id.as_str()])
                .then(|| format!("instance adopted: {}; no other was launched", ours.id))
        }),
        milestone(JOINED, |world| {
            Some(format!("node joined: Kubernetes node {} is Ready", world.ready_core_node()?.name_any()))
        }),
        milestone("StatefulSet running", move |world| {
            let pod = world.serving_pod()?;
            let same = world.ebs_volume().map(|volume| &volume.id) == volume.as_ref();
            same.then(|| format!("StatefulSet running: pod {}, with the same volume", pod.name_any()))
        }),
        milestone("Ready", |world| world.is_ready().then(|| ready(world))),
    ]
}

/// The disk grows under the running database.
pub fn growth(before: &World) -> Vec<Milestone> {
    let same_pod = is_same_pod(before);
    vec![
        milestone("EBS volume changed", |world| {
            let volume = world.ebs_volume()?;
            let shape = &volume.shape;
            (shape.size == 200 && shape.iops == Some(6000) && shape.throughput == Some(250)).then(|| {
                format!(
                    "volume changed: EC2 shows 200 GiB, 6000 IOPS, 250 MiB/s after {} modification",
                    volume.modifications.len()
                )
            })
        }),
        milestone("claim grown", |world| {
            let claim = world.bound_claim()?;
            let capacity = claim.status.as_ref()?.capacity.as_ref()?.get("storage")?;
            (capacity.0 == "200Gi").then(|| format!("claim grown: {} has {}", claim.name_any(), capacity.0))
        }),
        milestone("Ready, and no restart", move |world| {
            (world.is_ready() && same_pod(world))
                .then(|| format!("{}, and the pod was not restarted", ready(world)))
        }),
    ]
}

/// Nothing happens to the database while its operator is away and when it comes back.
pub fn nothing(before: &World) -> Vec<Milestone> {
    let same_pod = is_same_pod(before);
    vec![milestone("Ready, and no restart", move |world| {
        (world.is_ready() && same_pod(world))
            .then(|| format!("{}, and the pod was not restarted", ready(world)))
    })]
}

/// The engine's process has ended and is started again in its pod.
pub fn restart(before: &World) -> Vec<Milestone> {
    let pod = before.pod_uid();
    let count = before.serving_pod().map_or(0, restarts);
    let has_restarted = move |world: &World| {
        let serving = world.serving_pod()?;
        (serving.uid() == pod && restarts(serving) > count).then(|| serving.name_any())
    };
    let again = has_restarted.clone();
    vec![
        milestone("container restarted", move |world| {
            Some(format!("container restarted by the kubelet: pod {} is Ready again", has_restarted(world)?))
        }),
        in_history(before, Occurrence::EngineRestarted),
        milestone("Ready", move |world| (again(world).is_some() && world.is_ready()).then(|| ready(world))),
    ]
}

/// The pod is gone, and another one took its place and its disk.
pub fn replacement(before: &World) -> Vec<Milestone> {
    let pod = before.pod_uid();
    let is_new = move |world: &World| {
        world.serving_pod().filter(|serving| serving.uid() != pod).map(ResourceExt::name_any)
    };
    let still = is_new.clone();
    vec![
        milestone("pod replaced", move |world| {
            Some(format!("pod replaced: a new {} serves, on the same volume", is_new(world)?))
        }),
        in_history(before, Occurrence::PodReplaced),
        milestone("Ready", move |world| (still(world).is_some() && world.is_ready()).then(|| ready(world))),
    ]
}

/// Whether the pod is the one of before, with no restart since.
fn is_same_pod(before: &World) -> impl Fn(&World) -> bool + Send + Sync + 'static {
    let identity = |world: &World| world.serving_pod().map(|pod| (pod.uid(), restarts(pod)));
    let was = identity(before);
    move |world| was.is_some() && identity(world) == was
}

/// The database goes; its data stays.
pub fn deletion(before: &World) -> Vec<Milestone> {
    let (instance, volume) =
        (id_of(before), before.ebs_volume().map(|volume| volume.id.clone()).unwrap_or_default());
    let kept = volume.clone();
    vec![
        milestone("StatefulSet stopped", |world| {
            world.pods.is_empty().then(|| "StatefulSet stopped: the pod has ended".to_owned())
        }),
        milestone("instance terminated", move |world| {
            world.is_terminated(&instance).then(|| format!("instance terminated: {instance}"))
        }),
        milestone("objects gone", |world| {
            let is_gone = world.databases.is_empty() && world.nodes.is_empty() && world.volumes.is_empty();
            is_gone.then(|| "deleted: Database, Node, Volume and their children".to_owned())
        }),
        milestone("volume retained, and nothing else", move |world| {
            world.only_the_volume_is_kept(&kept).then(|| {
                format!(
                    "retained: {volume}, its PersistentVolume (Released) and the credentials' \
                    Secret"
                )
            })
        }),
    ]
}

/// The line of a Database that is Ready: where it serves.
pub fn ready(world: &World) -> String {
    let endpoint = world
        .database()
        .and_then(|database| database.status.as_ref())
        .and_then(|status| status.endpoint.as_ref());
    let ports = endpoint.map(|endpoint| {
        endpoint.ports.iter().map(|(name, port)| format!("{name} {port}")).collect::<Vec<_>>().join(", ")
    });
    format!(
        "Ready: {} ({})",
        endpoint.map(|endpoint| endpoint.host.clone()).unwrap_or_default(),
        ports.unwrap_or_default()
    )
}
