//! Every change of a resource's state with its moment, for rules about the way that led to an end.

use std::collections::BTreeMap;

use jiff::Timestamp;

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

impl Transitions {
    /// The changes so far.
    pub(super) fn all(&self) -> &[Transition] {
        &self.all
    }

    /// Whether the states of this version have been noted.
    pub(super) fn has_seen(&self, version: u64) -> bool {
        self.version == version
    }

    /// Notes what has changed since the last note.
    pub(super) fn note(&mut self, version: u64, at: Timestamp, phases: BTreeMap<String, (Phase, Tags)>) {
        self.version = version;
        let before = std::mem::take(&mut self.last);
        for (id, (phase, tags)) in &phases {
            let old = before.get(id);
            if old != Some(phase) {
                let (id, tags) = (id.clone(), tags.clone());
                self.all.push(Transition { at, id, before: old.cloned(), after: Some(phase.clone()), tags });
            }
        }
        for (id, old) in before.into_iter().filter(|(id, _)| !phases.contains_key(id)) {
            self.all.push(Transition { at, id, before: Some(old), after: None, tags: Tags::new() });
        }
        self.last = phases.into_iter().map(|(id, (phase, _))| (id, phase)).collect();
    }
}
