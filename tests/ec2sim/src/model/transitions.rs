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

    /// Notes what has changed since the last note: each resource with its state and tags, and whether one is
    /// still there.
    pub(super) fn note<'a>(
        &mut self,
        version: u64,
        at: Timestamp,
        phases: impl Iterator<Item = (&'a str, Phase, &'a Tags)>,
        is_there: impl Fn(&str) -> bool,
    ) {
        self.version = version;
        for (id, phase, tags) in phases {
            let old = self.last.get(id);
            if old != Some(&phase) {
                let (before, after) = (old.cloned(), Some(phase.clone()));
                self.all.push(Transition { at, id: id.to_owned(), before, after, tags: tags.clone() });
                self.last.insert(id.to_owned(), phase);
            }
        }
        let all = &mut self.all;
        self.last.retain(|id, old| {
            let stays = is_there(id);
            if !stays {
                let (id, before) = (id.clone(), Some(old.clone()));
                all.push(Transition { at, id, before, after: None, tags: Tags::new() });
            }
            stays
        });
    }
}
