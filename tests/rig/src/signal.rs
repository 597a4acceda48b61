//! Who is woken by what: each watch by the writes of its own kind, and the players by all that they look at.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::watch::{Receiver, Sender};

/// What is written at a steady pace and tells the players nothing that they do not look for by themselves.
const HEARTBEATS: [&str; 2] = ["leases.coordination.k8s.io", "events.events.k8s.io"];

/// What the watches of a kind are told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signal {
    /// Watches of an older epoch have been cut off.
    pub epoch: u64,
    /// The watches say nothing.
    pub is_silent: bool,
    /// What was written up to here was forgotten during a silence: a watch that has not sent it ends.
    pub forgotten: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Signals {
    kinds: Mutex<BTreeMap<String, Sender<Signal>>>,
    /// The last write's resourceVersion, for the players.
    players: Sender<u64>,
}

impl Signals {
    /// What tells the watches of a kind (`plural` or `plural.group`).
    pub fn of(&self, resource: &str) -> Receiver<Signal> {
        self.kinds.lock().entry(resource.to_owned()).or_default().subscribe()
    }

    /// What tells the players.
    pub fn of_players(&self) -> Receiver<u64> {
        self.players.subscribe()
    }

    /// Something of this kind was written.
    pub fn written(&self, resource: &str, revision: u64) {
        self.change(resource, |_| ());
        if !HEARTBEATS.contains(&resource) {
            self.players.send_replace(revision);
        }
    }

    /// Every watch is cut off.
    pub fn cut_off(&self) {
        for sender in self.kinds.lock().values() {
            sender.send_modify(|it| it.epoch += 1);
        }
    }

    /// The watches of a kind fall silent, or no longer are.
    pub fn silence(&self, resource: &str, is_silent: bool) {
        self.change(resource, |it| it.is_silent = is_silent);
    }

    /// What was written up to here is forgotten: only a watch that is silent has not sent it.
    pub fn forget(&self, revision: u64) {
        for sender in self.kinds.lock().values() {
            sender.send_if_modified(|it| {
                if it.is_silent {
                    it.forgotten = revision;
                }
                it.is_silent
            });
        }
    }

    /// Tells the watches of a kind; a kind that is watched later begins as it is left here.
    fn change(&self, resource: &str, change: impl FnOnce(&mut Signal)) {
        let mut kinds = self.kinds.lock();
        match kinds.get(resource) {
            Some(sender) => sender.send_modify(change),
            None => kinds.entry(resource.to_owned()).or_default().send_modify(change),
        }
    }
}
