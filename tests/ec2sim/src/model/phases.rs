//! The states that all resources are in, as they are noted after each change, and as they were.

use std::time::Duration;

use super::transitions::{Phase, Transition};
use super::{Model, State};
use crate::{Truth, view::Tags};

impl Model {
    /// Every change of a resource's state in this run, in order.
    pub fn transitions(&self) -> Vec<Transition> {
        self.transitions.all().to_vec()
    }

    /// Notes what has changed since the last note.
    pub(super) fn note_transitions(&mut self) {
        let state = &self.state;
        if !self.transitions.has_seen(state.version) {
            let is_there = |id: &str| {
                state.instances.contains_key(id)
                    || state.volumes.contains_key(id)
                    || state.snapshots.contains_key(id)
            };
            self.transitions.note(state.version, state.now, phases(state), is_there);
            self.past.keep(state.now, state);
        }
    }

    /// An answer to a read as it would have been so long ago.
    pub(super) fn as_it_was<T>(&mut self, age: Duration, answer: impl FnOnce(&mut Self) -> T) -> T {
        let then = self.state.now - age;
        let past = self.past.at(then).filter(|_| self.holds(Truth::EventualConsistency));
        let Some(past) = past else { return answer(self) };
        let present = std::mem::replace(&mut self.state, State { now: then, ..past });
        let answer = answer(self);
        self.state = present;
        answer
    }
}

fn phases(state: &State) -> impl Iterator<Item = (&str, Phase, &Tags)> {
    let instances = state.instances.values().map(|held| {
        let view = &held.view;
        (view.id.as_str(), Phase::Instance(view.state), &view.tags)
    });
    let volumes = state.volumes.values().map(|held| {
        let view = &held.view;
        let holder = view.attachment.as_ref().map(|it| (it.instance_id.clone(), it.state));
        (view.id.as_str(), Phase::Volume(view.state, holder), &view.tags)
    });
    let snapshots = state.snapshots.values().map(|held| {
        let view = &held.view;
        (view.id.as_str(), Phase::Snapshot(view.state), &view.tags)
    });
    instances.chain(volumes).chain(snapshots)
}
