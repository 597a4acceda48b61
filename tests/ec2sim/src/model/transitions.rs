//! Keeps every change of a resource's state with its moment, for rules about the way that led to an end.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Model;
use crate::{AttachmentState, InstanceState, SnapshotState, VolumeState, view::Tags};

/// The state of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// An instance.
    Instance(InstanceState),
    /// A volume, and the instance that has it.
    Volume(VolumeState, Option<(String, AttachmentState)>),
    /// A snapshot.
    Snapshot(SnapshotState),
}

/// One change of a resource's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// When.
    pub at: Timestamp,
    /// The resource.
    pub id: String,
    /// Its state before; none for a new one.
    pub before: Option<Phase>,
    /// Its state after; none for one that is gone.
    pub after: Option<Phase>,
    /// Its tags; of one that is gone, none.
    pub tags: Tags,
}

/// The changes so far, and the states after the last one.
#[derive(Debug, Default)]
pub(super) struct Transitions {
    all: Vec<Transition>,
    last: BTreeMap<String, Phase>,
    version: u64,
}

impl Model {
    /// Every change of a resource's state in this run, in order.
    pub fn transitions(&self) -> Vec<Transition> {
        self.transitions.all.clone()
    }

    /// Notes what has changed since the last note.
    pub(super) fn note_transitions(&mut self) {
        if self.transitions.version == self.state.version {
            return;
        }
        self.transitions.version = self.state.version;
        let phases = self.phases();
        let before = std::mem::take(&mut self.transitions.last);
        for (id, (phase, tags)) in &phases {
            let old = before.get(id);
            if old != Some(phase) {
                self.add(id, old.cloned(), Some(phase.clone()), tags.clone());
            }
        }
        for (id, old) in before.iter().filter(|(id, _)| !phases.contains_key(*id)) {
            self.add(id, Some(old.clone()), None, Tags::new());
        }
        self.transitions.last = phases.into_iter().map(|(id, (phase, _))| (id, phase)).collect();
    }

    fn add(&mut self, id: &str, before: Option<Phase>, after: Option<Phase>, tags: Tags) {
        let at = self.state.now;
        self.transitions.all.push(Transition { at, id: id.to_owned(), before, after, tags });
    }

    fn phases(&self) -> BTreeMap<String, (Phase, Tags)> {
        let instances = self.state.instances.values().map(|held| {
            let view = &held.view;
            (view.id.clone(), (Phase::Instance(view.state), view.tags.clone()))
        });
        let volumes = self.state.volumes.values().map(|held| {
            let view = &held.view;
            let holder = view.attachment.as_ref().map(|it| (it.instance_id.clone(), it.state));
            (view.id.clone(), (Phase::Volume(view.state, holder), view.tags.clone()))
        });
        let snapshots = self.state.snapshots.values().map(|held| {
            let view = &held.view;
            (view.id.clone(), (Phase::Snapshot(view.state), view.tags.clone()))
        });
        instances.chain(volumes).chain(snapshots).collect()
    }
}
