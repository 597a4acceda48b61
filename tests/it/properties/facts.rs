//! What several rules ask of a record: objects at a moment, whose a resource is, what a call made.

use std::collections::BTreeMap;

use ec2sim::{Fate, InstanceState, JournalEntry, Phase, Transition};
use freehold::api::keys::{FINALIZER, NODE_UID_TAG, VOLUME_UID_TAG};
use freehold_rig::Change;
use jiff::Timestamp;
use serde_json::Value;

use super::record::Record;

/// The kinds.
pub const DATABASES: &str = "databases.freehold.dev";
pub const USERS: &str = "databaseusers.freehold.dev";
pub const NODES: &str = "nodes.freehold.dev";
pub const VOLUMES: &str = "volumes.freehold.dev";
pub const BACKUPS: &str = "backups.freehold.dev";

/// The changes of the objects of some kinds, by their UIDs.
pub struct Histories<'a>(BTreeMap<&'a str, Vec<&'a Change>>);

impl<'a> Histories<'a> {
    /// Of these kinds.
    pub fn of(record: &'a Record, resources: &[&str]) -> Self {
        let mut all: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
        for change in record.changes.iter().filter(|it| resources.contains(&it.resource.as_str())) {
            if let Some(uid) = uid(change) {
                all.entry(uid).or_default().push(change);
            }
        }
        Self(all)
    }

    /// The object of this UID at a moment; none before its creation and after its end.
    pub fn at(&self, uid: &str, at: Timestamp) -> Option<&'a Value> {
        let changes = self.0.get(uid)?;
        let last = changes[..changes.partition_point(|it| it.at <= at)].last()?;
        last.new.as_deref()
    }

    /// Every object as it was at a moment.
    pub fn all_at(&self, at: Timestamp) -> impl Iterator<Item = &'a Value> {
        self.0.keys().filter_map(move |uid| self.at(uid, at))
    }

    /// The object of this UID as it was last seen, whether it is there or not.
    pub fn last(&self, uid: &str) -> Option<&'a Value> {
        let last = self.0.get(uid)?.last()?;
        last.new.as_deref().or(last.old.as_deref())
    }
}

/// The UID of what changed.
pub fn uid(change: &Change) -> Option<&str> {
    change.new.as_deref().or(change.old.as_deref())?["metadata"]["uid"].as_str()
}

/// Whether an object's deletion was asked for.
pub fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Whether an object has the operator's finalizer.
pub fn has_finalizer(object: &Value) -> bool {
    let all = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    all.into_iter().any(|it| it == FINALIZER)
}

/// The EBS volume of a PersistentVolume: of the EBS CSI driver, or of Kubernetes' own plugin.
pub fn ebs_volume(record: &Value) -> Option<&str> {
    let of_plugin = record["spec"]["awsElasticBlockStore"]["volumeID"].as_str();
    record["spec"]["csi"]["volumeHandle"].as_str().or_else(|| of_plugin?.rsplit('/').next())
}

/// Whether a client of the API server is the operator, in any of its starts.
pub fn is_operator(caller: &str) -> bool {
    caller.starts_with("operator")
}

/// The UID of the controller of an object.
pub fn owner(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|it| it["controller"] == true)?["uid"].as_str()
}

impl Record {
    /// The operator's calls to EC2 that are no dry run.
    pub fn own_calls(&self) -> impl Iterator<Item = &JournalEntry> {
        self.calls.iter().filter(|it| it.caller == self.operator && !it.dry_run)
    }

    /// Those that create, as they were carried out or sent; those that were carried out late among them.
    pub fn creations(&self) -> impl Iterator<Item = &JournalEntry> {
        self.own_calls().filter(|it| ["RunInstances", "CreateVolume"].contains(&it.action.as_str()))
    }

    /// When the operator took its finalizer off objects of this kind, with the objects before that.
    pub fn releases(&self, resource: &str) -> impl Iterator<Item = (Timestamp, &Value)> {
        let is_of = move |it: &&Change| it.resource == resource && is_operator(&it.caller);
        self.changes.iter().filter(is_of).filter_map(|change| {
            let (old, new) = (change.old.as_deref()?, change.new.as_deref());
            (has_finalizer(old) && !new.is_some_and(has_finalizer)).then_some((change.at, old))
        })
    }

    /// The last change of a resource by then.
    pub fn phase(&self, id: &str, at: Timestamp) -> Option<&Transition> {
        self.transitions.iter().rfind(|it| it.id == id && it.at <= at)
    }
}

/// The UID of the Node or the Volume that a creating call names.
pub fn named(entry: &JournalEntry) -> Option<&str> {
    entry.tags.get(NODE_UID_TAG).or_else(|| entry.tags.get(VOLUME_UID_TAG)).map(String::as_str)
}

/// What a creating call made: the disks of a machine go with it.
pub fn made(entry: &JournalEntry) -> impl Iterator<Item = &str> {
    let prefix = if entry.action == "RunInstances" { "i-" } else { "vol-" };
    let is_done = matches!(entry.fate, Fate::Committed | Fate::Lost);
    entry.resources.iter().map(String::as_str).filter(move |id| is_done && id.starts_with(prefix))
}

/// Whether an instance in this state may write.
pub fn is_live(state: InstanceState) -> bool {
    match state {
        InstanceState::Pending
        | InstanceState::Running
        | InstanceState::Stopping
        | InstanceState::Stopped => true,
        InstanceState::ShuttingDown | InstanceState::Terminated => false,
    }
}

/// The instance's state after a change; none for another resource, or one that is gone.
pub fn instance(change: &Transition) -> Option<InstanceState> {
    match change.after {
        Some(Phase::Instance(state)) => Some(state),
        Some(Phase::Volume(..) | Phase::Snapshot(_)) | None => None,
    }
}
