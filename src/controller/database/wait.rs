//! What a Database waits for, as data. Pure.
//!
//! The reasons for its conditions are in `wait_reason`, the sentences in `messages`.

use jiff::Timestamp;

use super::cause::{
    AdoptionRefusal, ClassRefusal, InvalidSpec, LostReason, NoRoom, ReplaceCause, RestartCause, SecretFault,
};
pub use super::child_state::ChildState;
use super::claim_fault::ClaimFault;
pub use super::idle::Idle;
use super::legacy_refusal::LegacyRefusal;
use super::object_name::ObjectName;
use super::pod::{Attaching, EngineWait};
pub use super::reload_wait::ReloadWait;
pub use super::restart_step::RestartStep;
pub use super::restore_wait::RestoreWait;
pub use super::rotation_wait::{RotationRefusal, RotationWait};
use super::tls_wait::TlsWait;
use super::unreleasable::Unreleasable;
pub use super::upgrade_wait::UpgradeWait;
use crate::api::{DeletionPolicy, VolumeId};
use crate::controller::blocker::Blocker;

/// What a Database, or one of its parts, waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum DatabaseWait {
    /// The finalizer is being added.
    AddingFinalizer,
    /// The spec cannot be carried out.
    InvalidSpec(InvalidSpec),
    /// The NodeClass does not permit what the spec requests.
    NotPermitted(ClassRefusal),
    /// Objects of derived names are not owned by this Database.
    NameConflict {
        /// Each with its kind.
        objects: Vec<ObjectName>,
        /// Their namespace.
        namespace: String,
    },
    /// The Secret of the credentials cannot be used.
    CredentialsUnusable {
        /// The Secret.
        secret: String,
        /// Why.
        fault: SecretFault,
    },
    /// The retained volume that the spec names cannot be adopted.
    AdoptionRefused(AdoptionRefusal),
    /// The data of a backup is not there yet.
    Restore(RestoreWait),
    /// The database that the spec names cannot be adopted.
    NotAdoptable(LegacyRefusal),
    /// The StatefulSet is being adopted.
    AdoptingStatefulSet(String),
    /// The StatefulSet and the other objects are being released.
    Releasing {
        /// The StatefulSet.
        set: String,
        /// It becomes what it was before it was adopted.
        as_found: bool,
    },
    /// The Volume releases what it has.
    ReleasingVolume(String),
    /// The Database was deleted to be released, and goes on until it can be.
    NotReleasable(Unreleasable),
    /// No pod is started with this claim of an adopted database.
    ClaimUnusable(String, ClaimFault),
    /// The StatefulSet of an adopted database was deleted, and the API server rejects it with this answer.
    NotRecreatable(String, String),
    /// The Volume that had the retained EBS volume before still exists.
    FormerVolumeExists(VolumeId),
    /// A retained EBS volume is being adopted.
    Adopting {
        /// The EBS volume.
        volume_id: VolumeId,
        /// The PersistentVolume that is its retention record.
        record: String,
    },
    /// A volume is retained under this name, and the spec does not say what this Database is.
    DataRetained {
        /// The EBS volume that was retained last.
        volume_id: VolumeId,
        /// The PersistentVolume that is its retention record.
        record: String,
        /// How many others are.
        older: usize,
    },
    /// The Volume of the data is gone, or is being deleted.
    VolumeLost {
        /// The Volume.
        volume: String,
        /// The Volume is being deleted; otherwise it is gone.
        is_being_deleted: bool,
    },
    /// The first Node, or the next one, is being created.
    CreatingNode(String),
    /// A Node that can never serve this Database is being deleted.
    NodeUnusable {
        /// The Node.
        node: String,
        /// Why it cannot serve.
        cause: ReplaceCause,
    },
    /// The machine is not initialized.
    NodeNotInitialized(String),
    /// The machine's Kubernetes node is gone.
    KubernetesNodeGone {
        /// Our Node.
        node: String,
    },
    /// The zone is not chosen before an instance runs.
    ZoneNotChosen,
    /// The Volume is being created.
    CreatingVolume {
        /// The Volume.
        volume: String,
        /// Its zone.
        zone: String,
    },
    /// The Volume's claim and PersistentVolume are not bound.
    VolumeNotBound(String),
    /// The spec of a Node or Volume is being updated.
    UpdatingChild(ObjectName),
    /// A Node or Volume is not ready, by its own conditions.
    Child {
        /// The Node or Volume.
        object: ObjectName,
        /// What its conditions say.
        state: ChildState,
    },
    /// The engine has not let the user of the application in, or the user has another role.
    ApplicationUser {
        /// Its DatabaseUser.
        user: String,
        /// What the DatabaseUser says of itself; `None` where it is another owner's.
        state: Option<ChildState>,
    },
    /// The machine is being replaced.
    Replacing {
        /// The Node to replace.
        node: String,
        /// Why.
        cause: ReplaceCause,
        /// How far the replacement is.
        step: ReplaceStep,
    },
    /// The pod moves to another machine.
    MovingPod(RestartCause),
    /// The pod is replaced for a changed spec.
    RestartPending {
        /// The pod.
        pod: String,
        /// How far that is.
        step: RestartStep,
    },
    /// The pod was started from what was changed outside Freehold, and is to be replaced.
    PodAltered {
        /// The pod.
        pod: String,
        /// How far that is.
        step: RestartStep,
    },
    /// The StatefulSet is being applied: Kubernetes will create the pod.
    StartingEngine,
    /// The volume is not attached to the pod's machine.
    Attaching(Attaching),
    /// The engine does not accept connections.
    Engine(EngineWait),
    /// The engine runs as it did before the spec requested what did not start: since when, and why.
    WentBack(Timestamp, String),
    /// The image that the spec requests could not be started, and the database went back to the engine that
    /// it served as: when, and the kubelet's words.
    EngineWentBack(Timestamp, String),
    /// The engine does not accept connections, and its image cannot go back by itself.
    NotGoingBack {
        /// The image that was started.
        started: String,
        /// The image before.
        before: String,
        /// What the engine waits for.
        wait: EngineWait,
    },
    /// The administrator's password is not the one that the spec asks for.
    Rotation(RotationWait),
    /// The certificate of the spec is not in force.
    Tls(TlsWait),
    /// The engine changes behind a backup.
    Upgrade(UpgradeWait),
    /// The settings of the spec are not in force, and nothing is restarted for them.
    Reload(ReloadWait),
    /// The engine runs with the inputs of an older generation.
    EngineOutdated,
    /// The engine's machine is lost.
    EngineMachineLost(LostReason),
    /// There is no pod.
    NoEngine(Idle),
    /// There is no Node.
    NoMachine(Idle),
    /// The machine is lost.
    MachineLost {
        /// The reason of the Node's condition Lost, for display.
        reason: LostReason,
        /// The message of that condition.
        message: Option<String>,
    },
    /// There is no Volume.
    NoVolume,
    /// The engine writes what it has in memory to its volume before it is stopped.
    Flushing {
        /// Its pod.
        pod: String,
        /// What is awaited of the stop.
        stop: Box<Self>,
    },
    /// The engine has not stopped.
    StoppingEngine(Blocker),
    /// A Node is being deleted.
    DeletingNode {
        /// The Node.
        node: String,
        /// The message of its condition Ready.
        message: Option<String>,
    },
    /// The Database is paused: nothing is left to do.
    Paused,
    /// The Database's Volume is being deleted.
    DeletingVolume {
        /// The Volume.
        volume: String,
        /// What becomes of the data.
        policy: DeletionPolicy,
        /// The message of its condition Ready.
        message: Option<String>,
    },
    /// The name of the Secret that is to retain the credentials is taken.
    RetainedSecretConflict(String),
    /// Everything is deleted.
    ResourcesDeleted,
    /// The finalizers of other controllers are still there.
    OtherFinalizers,
    /// The API server rejected an object.
    ChildRefused {
        /// What the API server answered.
        answer: String,
    },
    /// A step failed and will be retried.
    StepFailed {
        /// The error with its causes.
        error: String,
    },
}

/// How far the replacement of a machine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplaceStep {
    /// The Node of an earlier replacement is not gone.
    AfterFormer(String),
    /// There is no volume yet, so the Node is deleted first.
    DeletedFirst,
    /// Machines of this database were replaced one soon after the other: the next replacement pauses.
    Recurring {
        /// Until then.
        until: Timestamp,
        /// How many before this one.
        before: i32,
        /// A person must find out what ends them.
        is_stalled: bool,
    },
    /// The successor is being created.
    Creating(String),
    /// The successor cannot serve either, and is being deleted.
    SuccessorUnfit {
        /// The successor.
        to: String,
        /// Why it cannot serve.
        why: ReplaceCause,
    },
    /// The successor is not ready.
    AwaitingSuccessor {
        /// The successor.
        to: String,
        /// The engine may run on the Node to replace until then.
        serves_on: bool,
        /// What the successor waits for.
        wait: Box<DatabaseWait>,
    },
    /// The successor is ready, and too small for the pod, which serves.
    NoRoom {
        /// The successor.
        to: String,
        /// What it has too little of.
        lacking: NoRoom,
    },
    /// The engine has not answered on the Node to replace, and the database moves back to this one.
    MovingBack(String),
    /// The successor is ready, and the lost machine is not fenced.
    Unfenced {
        /// The successor.
        to: String,
        /// What keeps the database from moving.
        blocker: Blocker,
    },
}
