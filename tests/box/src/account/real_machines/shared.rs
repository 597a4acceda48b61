//! What the tasks of the machines share: which machines run, and how each one ends.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ec2sim::Simulator;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::base::error_chain::chain;
use crate::machines::disks;
use crate::machines::machine::{Machine, SiteResources};

/// The machines of a site, and what they follow.
pub struct Shared {
    pub resources: Arc<SiteResources>,
    pub simulator: Simulator,
    pub folder: PathBuf,
    pub boot: Duration,
    pub volumes: disks::Disks,
    pub running: Mutex<HashMap<String, Arc<Machine>>>,
    pub slots: Mutex<HashMap<String, u8>>,
    pub leaders: watch::Sender<BTreeMap<String, u32>>,
    pub stop: CancellationToken,
}

impl Shared {
    pub fn machine(&self, instance: &str) -> Option<Arc<Machine>> {
        lock(&self.running).get(instance).cloned()
    }

    pub async fn cut_power(&self, instance: &str) -> bool {
        let Some(machine) = self.machine(instance) else { return false };
        let (volumes, id) = (self.volumes.clone(), instance.to_owned());
        let cut = move || {
            if let Err(error) = volumes.cut_power(&id) {
                tracing::error!(
                    instance = id,
                    error = chain(&error),
                    "the disks of a machine could not be cut off with it"
                );
            }
        };
        machine.cut_power(cut).await;
        self.is_gone(&machine);
        true
    }

    pub async fn shut_down(&self, instance: &str, grace: Duration) {
        let Some(machine) = self.machine(instance) else { return };
        machine.shut_down(grace).await;
        self.is_gone(&machine);
    }

    pub fn runs(&self, machine: Machine) {
        let (id, pid) = (machine.spec().instance.clone(), machine.pid());
        lock(&self.running).insert(id.clone(), Arc::new(machine));
        self.leaders.send_modify(|leaders| {
            leaders.insert(id, pid);
        });
    }

    pub fn is_gone(&self, machine: &Machine) {
        let id = &machine.spec().instance;
        lock(&self.running).remove(id);
        self.leaders.send_modify(|leaders| {
            leaders.remove(id);
        });
    }

    /// The lowest pod network that no machine has.
    pub fn slot(&self, instance: &str) -> u8 {
        let mut slots = lock(&self.slots);
        let taken: HashSet<u8> = slots.values().copied().collect();
        let free = (0..u8::MAX).find(|slot| !taken.contains(slot)).unwrap_or(u8::MAX);
        *slots.entry(instance.to_owned()).or_insert(free)
    }

    pub fn free_slot(&self, instance: &str) {
        lock(&self.slots).remove(instance);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
