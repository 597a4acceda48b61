//! One pass: what EC2 shows of volumes, attachments and snapshots becomes files, devices and names.

use std::collections::{BTreeMap, BTreeSet};

use ec2sim::{AttachmentState, InstanceState, InstanceView, Simulator, SnapshotView, VolumeView};
use k8s_openapi::jiff::Timestamp;

use super::device::{Device, unlink};
use super::error::Error;
use super::pool::Pool;
use super::violation::Violation;
use crate::base::error_chain::chain;

/// The machines that run: the process that holds each one's namespaces, by instance id. After a reboot it is
/// another process.
pub type Leaders = BTreeMap<String, u32>;

/// What EC2 shows.
#[derive(Debug)]
pub(super) struct Ec2View {
    instances: BTreeMap<String, InstanceView>,
    volumes: Vec<VolumeView>,
    snapshots: Vec<SnapshotView>,
}

impl Ec2View {
    pub(super) fn of(simulator: &Simulator) -> Self {
        // Snapshots first: the volume of a snapshot that is seen is seen too.
        let snapshots = simulator.snapshots();
        let volumes = simulator.volumes();
        let instances = simulator.instances().into_iter().map(|view| (view.id.clone(), view)).collect();
        Self { instances, volumes, snapshots }
    }

    /// A machine's root volume is a folder of this host, not a device.
    fn is_root(&self, volume: &VolumeView) -> bool {
        let Some(attachment) = &volume.attachment else { return false };
        self.instances
            .get(&attachment.instance_id)
            .is_some_and(|instance| instance.root_device == attachment.device)
    }

    /// Whether the instance can still write: an order to end is no proof that it has ended.
    fn lives(&self, instance: &str) -> bool {
        self.instances.get(instance).is_some_and(|view| match view.state {
            InstanceState::Pending
            | InstanceState::Running
            | InstanceState::ShuttingDown
            | InstanceState::Stopping => true,
            InstanceState::Terminated | InstanceState::Stopped => false,
        })
    }
}

/// A volume at a machine.
#[derive(Debug)]
struct Held {
    instance: String,
    device: Device,
    /// The GiB that the device has.
    size: u32,
    /// The process in whose machine it has its name.
    named: Option<u32>,
}

/// What is remembered of the volumes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) pool: Pool,
    pub(super) violations: Vec<Violation>,
    held: BTreeMap<String, Held>,
    /// The volumes and snapshots that EC2 has shown: only the files of these are removed when it shows them
    /// no more. A folder whose account was lost loses nothing.
    known: BTreeSet<String>,
    /// Whether no pass was made yet.
    is_new: bool,
}

impl State {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, violations: Vec::new(), held: BTreeMap::new(), known: BTreeSet::new(), is_new: true }
    }

    /// Does what is to be done; what fails is tried again in the next pass.
    pub(super) fn follow(&mut self, ec2: &Ec2View, machines: &Leaders) {
        for snapshot in &ec2.snapshots {
            self.report(&snapshot.id, |state| state.take(snapshot));
        }
        self.is_new = false;
        for volume in &ec2.volumes {
            self.report(&volume.id, |state| state.follow_volume(volume, ec2, machines));
        }
        let shown = ec2
            .volumes
            .iter()
            .map(|volume| &volume.id)
            .chain(ec2.snapshots.iter().map(|snapshot| &snapshot.id));
        let shown: BTreeSet<&String> = shown.collect();
        let gone: Vec<String> = self.known.iter().filter(|id| !shown.contains(id)).cloned().collect();
        for id in gone {
            self.report(&id, |state| state.remove(&id, ec2));
        }
    }

    fn report(&mut self, id: &str, work: impl FnOnce(&mut Self) -> Result<(), Error>) {
        if let Err(error) = work(self) {
            tracing::error!(
                id,
                error = chain(&error),
                "a volume or snapshot does not follow EC2; it is tried again"
            );
        }
    }

    /// The copy is made when the snapshot is first seen, milliseconds after `CreateSnapshot`. One that was
    /// there before this box has its file from then, or none: what the volume holds now are not its bytes.
    fn take(&mut self, snapshot: &SnapshotView) -> Result<(), Error> {
        if self.known.contains(&snapshot.id) {
            return Ok(());
        }
        if !self.is_new && !self.pool.has(&snapshot.id) && self.pool.has(&snapshot.volume_id) {
            self.pool.copy(&snapshot.volume_id, &snapshot.id)?;
        }
        self.known.insert(snapshot.id.clone());
        Ok(())
    }

    fn follow_volume(&mut self, volume: &VolumeView, ec2: &Ec2View, machines: &Leaders) -> Result<(), Error> {
        let id = &volume.id;
        if !self.pool.has(id) {
            if ec2.is_root(volume) {
                return Ok(());
            }
            self.pool.create(id, volume.shape.size, volume.snapshot_id.as_deref())?;
        }
        self.known.insert(id.clone());
        let at =
            volume.attachment.as_ref().map(|attachment| (attachment.instance_id.as_str(), attachment.state));
        if let Some(held) = self.held.get(id)
            && at.is_none_or(|(instance, _)| instance != held.instance)
        {
            self.release(id, ec2)?;
        }
        // EC2 shows a new size when it can be used, not when it was asked for.
        let size = volume.shape.size;
        self.pool.grow(id, size)?;
        if let Some(held) = self.held.get_mut(id)
            && held.size < size
        {
            held.device.grow()?;
            held.size = size;
        }
        let Some((instance, state)) = at else { return Ok(()) };
        if !self.held.contains_key(id) {
            let device = Device::of(&self.pool.file(id))?;
            self.held.insert(id.clone(), Held { instance: instance.to_owned(), device, size, named: None });
        }
        let leader = machines.get(instance).copied();
        if let Some(held) = self.held.get_mut(id)
            && state == AttachmentState::Attached
            && held.named != leader
        {
            if let Some(leader) = leader {
                held.device.link(leader, id)?;
            }
            held.named = leader;
        }
        Ok(())
    }

    /// Takes a volume from its machine, whether it still uses it or not.
    fn release(&mut self, id: &str, ec2: &Ec2View) -> Result<(), Error> {
        let Some(held) = self.held.get(id) else { return Ok(()) };
        if let Some(leader) = held.named {
            unlink(leader, id);
        }
        let places = held.device.mounted_at();
        if places.is_empty() {
            held.device.detach()?;
            // No other device may get the file before the last byte is in it.
            if !held.device.is_free_soon() {
                held.device.cut()?;
            }
        } else {
            held.device.cut()?;
            held.device.detach()?;
            if ec2.lives(&held.instance) {
                let violation = Violation {
                    at: Timestamp::now(),
                    volume: id.to_owned(),
                    instance: held.instance.clone(),
                    places,
                };
                tracing::error!(%violation, "a volume was taken from a machine that used it");
                self.violations.push(violation);
            }
        }
        self.held.remove(id);
        Ok(())
    }

    fn remove(&mut self, id: &str, ec2: &Ec2View) -> Result<(), Error> {
        self.release(id, ec2)?;
        if self.pool.has(id) {
            self.pool.remove(id)?;
        }
        self.known.remove(id);
        Ok(())
    }

    pub(super) fn cut_power(&mut self, instance: &str) -> Result<(), Error> {
        let ids: Vec<String> = self
            .held
            .iter()
            .filter(|(_, held)| held.instance == instance)
            .map(|(id, _)| id.clone())
            .collect();
        let devices: Vec<Device> =
            ids.iter().filter_map(|id| self.held.remove(id)).map(|held| held.device).collect();
        // Each of them, also when one fails.
        let cut: Vec<Result<(), Error>> = devices.iter().map(Device::cut).collect();
        cut.into_iter().chain(devices.iter().map(Device::detach)).collect()
    }
}
