//! Those who act in a cluster beside the operator, in virtual time: the machines and their kubelets, the
//! controllers of Kubernetes, and the EBS CSI driver.
//!
//! ```text
//!   EC2 model ──► machines ──► node_lifecycle
//!       ▲             │
//!     driver ◄── storage ◄── workloads (StatefulSets, scheduler) ──► kubelet
//!                                    garbage
//! ```
//!
//! Each looks at all objects and does what is due: a player that was left out of one look (a slow controller)
//! does the same at the next one.

mod driver;
mod due;
mod garbage;
mod hand;
mod kubelet;
mod machines;
mod names;
mod namespaces;
mod node_lifecycle;
mod provisioner;
mod seen;
mod storage;
mod workloads;

use std::sync::Arc;
use std::time::Duration;

use ec2sim::{AttachmentState, InstanceState, Simulator, VolumeState};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use self::due::Due;
pub use self::hand::Hand;
use self::kubelet::Kubelets;
use self::machines::Machines;
use self::node_lifecycle::NodeLifecycle;
use self::seen::Seen;
use self::storage::AttachDetach;
use crate::server::Server;

/// What a test does to the machines. Copies are the same.
#[derive(Clone, Debug, Default)]
pub struct Controls(Arc<Mutex<Wishes>>);

#[derive(Debug, Default)]
struct Wishes {
    silent: Vec<(String, bool)>,
}

impl Controls {
    /// The kubelet of this instance hangs, or its network is cut; or no longer.
    pub fn silence(&self, instance: &str, is_silent: bool) {
        self.0.lock().silent.push((instance.to_owned(), is_silent));
    }
}

/// The players.
pub struct Cluster {
    server: Server,
    ec2: Simulator,
    rng: ChaCha8Rng,
    controls: Controls,
    machines: Machines,
    lifecycle: NodeLifecycle,
    attach_detach: AttachDetach,
    kubelets: Kubelets,
    violations: Violations,
    /// What the garbage collector looked at last.
    collected: Option<u64>,
}

/// What must never happen on a machine, with its moment: a volume that is taken from under its engine.
pub type Violations = Arc<Mutex<Vec<(Timestamp, String)>>>;

impl Cluster {
    /// The players of this cluster; `seed` decides how long boots, starts and ends take, and how slow each
    /// player is.
    pub fn new(server: Server, ec2: Simulator, seed: u64) -> Self {
        Self {
            server,
            ec2,
            rng: ChaCha8Rng::seed_from_u64(seed),
            controls: Controls::default(),
            machines: Machines::default(),
            lifecycle: NodeLifecycle::default(),
            attach_detach: AttachDetach::default(),
            kubelets: Kubelets::default(),
            violations: Violations::default(),
            collected: None,
        }
    }

    /// What must never happen and did.
    pub fn violations(&self) -> Violations {
        Arc::clone(&self.violations)
    }

    /// What a test can do to the machines.
    pub fn controls(&self) -> Controls {
        self.controls.clone()
    }

    /// Acts for ever: after each write, when something is due, and when EC2 may have changed.
    pub async fn run(mut self) {
        let mut changes = self.server.signal();
        loop {
            let revision = *changes.borrow_and_update();
            let due = self.step(revision);
            let wait = due.0.map_or(Duration::from_secs(30), |due| {
                Duration::try_from(due.duration_since(self.server.now())).unwrap_or_default()
            });
            let _ = tokio::time::timeout(wait, changes.changed()).await;
            // Controllers take a moment to see what changed, and collect what comes together.
            let pause = self.rng.random_range(10..200);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    /// One look of everybody after this write. When something is due next.
    fn step(&mut self, revision: u64) -> Due {
        let mut due = Due::default();
        let wishes = std::mem::take(&mut *self.controls.0.lock());
        for (instance, is_silent) in wishes.silent {
            if is_silent {
                self.machines.silent.insert(instance);
            } else {
                self.machines.silent.remove(&instance);
            }
        }
        let instances = self.ec2.instances();
        let seen = Seen::of(&self.server);
        if is_changing(&instances, &self.ec2) {
            due.soon(seen.now);
        }
        let rng = &mut self.rng;
        let boot = || SignedDuration::from_secs(rng.random_range(15..60));
        self.machines.step(&self.server, &self.ec2, &seen, &instances, boot, &mut due);
        self.lifecycle.step(&self.server, &seen, &instances, &mut due);
        workloads::stateful_sets(&self.server, &seen);
        storage::bind(&self.server, &seen);
        workloads::schedule(&self.server, &seen);
        provisioner::provision(&self.server, &self.ec2, &seen, &mut due);
        self.attach_detach.step(&self.server, &seen, &mut due);
        let detached = driver::attach(&self.server, &self.ec2, &seen, &instances, &mut due);
        for (volume, instance) in detached {
            if let Some(pod) = self.kubelets.user(&volume, &instance) {
                let what = format!("{volume} is detached from {instance} while {pod} runs there");
                self.violations.lock().push((seen.now, what));
            }
        }
        driver::resize(&self.server, &self.ec2, &seen, &mut due);
        let pause = || SignedDuration::from_secs(rng.random_range(1..15));
        self.kubelets.forget(&instances, &self.machines);
        self.kubelets.step(&self.server, &seen, &self.machines, pause, &mut due);
        // It waits for nothing but writes. Its own are a reason to look again.
        if self.collected.replace(revision) != Some(revision) {
            garbage::collect(&self.server);
            namespaces::empty(&self.server);
        }
        due
    }
}

/// Whether EC2 is about to change something by itself.
fn is_changing(instances: &[ec2sim::InstanceView], ec2: &Simulator) -> bool {
    let settled = [InstanceState::Running, InstanceState::Stopped, InstanceState::Terminated];
    let is_settled = |volume: &ec2sim::VolumeView| {
        let is_held = volume.attachment.as_ref().is_none_or(|it| it.state == AttachmentState::Attached);
        [VolumeState::Available, VolumeState::InUse].contains(&volume.state) && is_held
    };
    instances.iter().any(|it| !settled.contains(&it.state)) || !ec2.is_true_of_all_volumes(is_settled)
}
