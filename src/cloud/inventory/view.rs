//! The plain values that the inventory returns and takes.

use jiff::Timestamp;

use crate::api::{ClientToken, InstanceId, VolumeId};
use crate::cloud::absence::EmptyRun;
use crate::cloud::identity::Kind;
use crate::cloud::{EbsVolume, Instance, InstanceHealth, Modification, Snapshot};

/// What EC2 shows of one `Node`'s instances.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceView {
    /// Every instance with the owner's tag or the awaited token, in the order of their ids; terminated ones
    /// as long as EC2 shows them (about an hour).
    pub instances: Vec<Instance>,
    /// When the last full sync started, or a later read of the instance that the Node names; `None`: there
    /// was none yet, so an empty list proves nothing.
    pub swept_at: Option<Timestamp>,
    /// When the last complete look-up of the awaited token started.
    pub token_looked_up_at: Option<Timestamp>,
    /// The unhealthy ones among these instances, as EC2 reports them; none when EC2 has not answered for
    /// [`Timing::trust`](crate::settings::Timing::trust).
    pub unhealthy: Vec<InstanceHealth>,
    /// Whether EC2 has answered for that within this time, so that what is not in the answer is known.
    pub is_health_known: bool,
    /// The empty look-ups since the last possible send.
    pub empty: EmptyRuns,
}

impl InstanceView {
    /// The instance of this id, if EC2 shows it.
    pub fn by_id(&self, id: &InstanceId) -> Option<&Instance> {
        self.instances.iter().find(|instance| instance.id == *id)
    }
}

/// What EC2 shows of one `Volume`'s EBS volumes.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeView {
    /// Every volume with the owner's tag, in the order of their ids.
    pub volumes: Vec<EbsVolume>,
    /// The newest modification, if a pass awaits one.
    pub modification: Option<Modification>,
    /// Whether EC2 has answered since that pass; until then, the absence of a modification proves nothing.
    pub modification_is_known: bool,
    /// How far its initialization is, if a pass awaits the end of that and EC2 has said it.
    pub initialization: Option<InitializationView>,
    /// When the last full sync started; `None`: there was none yet, so an empty list proves nothing.
    pub swept_at: Option<Timestamp>,
    /// The empty look-ups by tag since the last possible send.
    pub empty: Option<EmptyRun>,
}

/// How far EC2 has read a volume from its snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitializationView {
    /// Per cent: 100 when it has ended.
    pub progress: i32,
    /// When it ends, as EC2 estimated it when it was asked.
    pub expected_end: Option<Timestamp>,
}

/// An EBS volume by its tags: whose it is or was, and how large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaggedVolume {
    /// The UID of the `Volume`.
    pub volume_uid: String,
    /// The namespace of its Database.
    pub namespace: String,
    /// GiB.
    pub size: i32,
}

/// What EC2 shows of one `Volume`'s final snapshots.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotView {
    /// Every final snapshot with the owner's tag, in the order of their ids.
    pub snapshots: Vec<Snapshot>,
    /// When the last full sync started; `None`: there was none yet, so an empty list proves nothing.
    pub swept_at: Option<Timestamp>,
    /// The empty look-ups by tag since the last possible send.
    pub empty: Option<EmptyRun>,
}

/// The empty look-ups of one owner, for [`crate::cloud::absence::prove`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmptyRuns {
    /// Full syncs, which list by tag.
    pub by_tag: Option<EmptyRun>,
    /// Look-ups by token.
    pub by_token: Option<EmptyRun>,
}

/// What a pass awaits of an owner's resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Nothing: changes are seen at the idle interval.
    Settled,
    /// Something: changes are seen within seconds.
    Pending(Awaited),
    /// Something that takes up to hours, or has no end: changes are seen within a minute.
    Slow(Awaited),
}

/// What is awaited, besides changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Awaited {
    /// The token of the attempt: instances are looked up by it, too (EC2's tags may lag behind the instance).
    pub token: Option<ClientToken>,
    /// The latest moment at which the creating call can have been sent: empty look-ups that start later count
    /// towards a proof of absence. Give the same value in every pass, or the proof starts anew each time.
    pub last_possible_send: Option<Timestamp>,
    /// The volume whose modification is awaited.
    pub modifying: Option<VolumeId>,
}

impl Interest {
    /// Changes, and nothing else.
    #[cfg(test)]
    pub fn changes() -> Self {
        Self::Pending(Awaited::default())
    }
}

/// The view of this owner's resources changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wake {
    /// Of which kind the resources are.
    pub kind: Kind,
    /// The owner's UID.
    pub uid: String,
}

/// How the syncs of a kind went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncStats {
    /// When the last complete sync started.
    pub last_complete: Option<Timestamp>,
    /// Why the last sync failed; `None` when it was complete.
    pub last_error: Option<String>,
    /// The last complete sync shows so few of the resources that statuses name that it proves no absence.
    pub is_suspect: bool,
}
