//! The states that all resources are in, as they are noted after each change.

use std::collections::BTreeMap;

use super::Model;
use super::transitions::{Phase, Transition};
use crate::view::Tags;

impl Model {
    /// Every change of a resource's state in this run, in order.
    pub fn transitions(&self) -> Vec<Transition> {
        self.transitions.all().to_vec()
    }

    /// Notes what has changed since the last note.
    pub(super) fn note_transitions(&mut self) {
        if !self.transitions.has_seen(self.state.version) {
            let phases = self.phases();
            self.transitions.note(self.state.version, self.state.now, phases);
        }
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
