//! What must be seen in each step, in words and as a question to the world; and the telling of it.

use std::time::{Duration, Instant};

use kube::ResourceExt;

use super::Failure;
use super::report::Step;
use super::world::{Eyes, World};

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(150);

/// A question to the world: the sentence to tell once it is true.
type Seen = Box<dyn Fn(&World) -> Option<String> + Send + Sync>;

/// Something that must come true: the sentence to tell once it is.
pub struct Milestone {
    what: &'static str,
    seen: Seen,
}

fn milestone(what: &'static str, seen: impl Fn(&World) -> Option<String> + Send + Sync + 'static) -> Milestone {
    Milestone { what, seen: Box::new(seen) }
}

/// A database comes to life.
pub fn creation() -> Vec<Milestone> {
    vec![
        milestone("instance launched", |world| {
            let instance = world.running_instance()?;
            Some(format!("instance launched: {} ({} in {}) runs", instance.id, instance.instance_type, instance.zone))
        }),
        milestone("node joined", |world| {
            let node = world.ready_core_node()?;
            Some(format!("node joined: Kubernetes node {} is Ready", node.name_any()))
        }),
        milestone("volume made", |world| {
            let volume = world.ebs_volume()?;
            let encrypted = if volume.encrypted { ", encrypted" } else { return None };
            Some(format!(
                "volume made: {} ({} GiB {}{encrypted}) in {}",
                volume.id, volume.shape.size, volume.shape.volume_type, volume.zone
            ))
        }),
        milestone("volume bound", |world| {
            let claim = world.bound_claim()?;
            let record = claim.spec.as_ref()?.volume_name.clone()?;
            Some(format!("volume bound: claim {} and PersistentVolume {record}", claim.name_any()))
        }),
        milestone("StatefulSet running", |world| {
            let pod = world.serving_pod()?;
            let node = pod.spec.as_ref()?.node_name.clone()?;
            Some(format!("StatefulSet running: pod {} on {node}, its volume attached there", pod.name_any()))
        }),
        milestone("Ready", |world| world.is_ready().then(|| ready(world))),
    ]
}

/// The disk grows under the running database.
pub fn growth(pod_uid: Option<String>) -> Vec<Milestone> {
    vec![
        milestone("EBS volume changed", |world| {
            let volume = world.ebs_volume()?;
            let shape = &volume.shape;
            (shape.size == 200 && shape.iops == Some(6000) && shape.throughput == Some(250)).then(|| {
                format!("volume changed: EC2 shows 200 GiB, 6000 IOPS, 250 MiB/s after {} modification", volume.modifications.len())
            })
        }),
        milestone("claim grown", |world| {
            let claim = world.bound_claim()?;
            let capacity = claim.status.as_ref()?.capacity.as_ref()?.get("storage")?;
            (capacity.0 == "200Gi").then(|| format!("claim grown: {} has {}", claim.name_any(), capacity.0))
        }),
        milestone("Ready, and no restart", move |world| {
            let same_pod = pod_uid.is_some() && world.pod_uid() == pod_uid;
            (world.is_ready() && same_pod).then(|| format!("{}, and the pod was not restarted", ready(world)))
        }),
    ]
}

/// The database goes; its data stays.
pub fn deletion(before: &World) -> Vec<Milestone> {
    let instance = before.running_instance().map(|instance| instance.id.clone()).unwrap_or_default();
    let volume = before.ebs_volume().map(|volume| volume.id.clone()).unwrap_or_default();
    let kept = volume.clone();
    vec![
        milestone("StatefulSet stopped", |world| world.pods.is_empty().then(|| "StatefulSet stopped: the pod has ended".to_owned())),
        milestone("instance terminated", move |world| {
            let is_gone = world.ec2.instances.iter().all(|it| it.id != instance || it.state == ec2sim::InstanceState::Terminated);
            is_gone.then(|| format!("instance terminated: {instance}"))
        }),
        milestone("objects gone", |world| {
            let is_gone = world.databases.is_empty() && world.nodes.is_empty() && world.volumes.is_empty();
            is_gone.then(|| "gone: Database, Node, Volume and their children".to_owned())
        }),
        milestone("volume kept, and nothing else", move |world| {
            world
                .only_the_volume_is_kept(&kept)
                .then(|| format!("kept: {volume}, its PersistentVolume (Released) and the credentials' Secret"))
        }),
    ]
}

fn ready(world: &World) -> String {
    let endpoint = world.database().and_then(|database| database.status.as_ref()).and_then(|status| status.endpoint.as_ref());
    let ports = endpoint.map(|endpoint| endpoint.ports.iter().map(|(name, port)| format!("{name} {port}")).collect::<Vec<_>>().join(", "));
    format!("Ready: {} ({})", endpoint.map(|endpoint| endpoint.host.clone()).unwrap_or_default(), ports.unwrap_or_default())
}

/// Tells one step as it happens.
pub struct Teller<'a> {
    eyes: &'a Eyes,
    started: Instant,
    journal_before: u64,
}

impl<'a> Teller<'a> {
    /// The step begins now.
    pub async fn begin(eyes: &'a Eyes) -> Result<Self, Failure> {
        let journal_before = eyes.journal_end().await?;
        Ok(Self { eyes, started: Instant::now(), journal_before })
    }

    /// Prints a line for each milestone as it comes true; an error names those that did not within the limit.
    pub async fn tell(self, name: &str, milestones: &[Milestone], limit: Duration) -> Result<Step, Failure> {
        let mut open: Vec<&Milestone> = milestones.iter().collect();
        loop {
            let world = self.eyes.look().await?;
            let elapsed = self.started.elapsed();
            open.retain(|milestone| match (milestone.seen)(&world) {
                Some(sentence) => {
                    println!("  {:6.1} s  {sentence}", elapsed.as_secs_f64());
                    false
                }
                None => true,
            });
            if open.is_empty() {
                return Ok(Step::new(name, elapsed, self.eyes.calls_since(self.journal_before).await?));
            }
            if elapsed > limit {
                let missing: Vec<&str> = open.iter().map(|milestone| milestone.what).collect();
                return Err(format!("not seen within {} s: {}\n{}", limit.as_secs(), missing.join(", "), world.words()).into());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
