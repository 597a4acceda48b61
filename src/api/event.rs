//! The reasons of events: what happened to an object. An enum, documented, and never used for another
//! meaning.

use strum::{EnumIter, EnumMessage, IntoStaticStr};

/// What happened: the `reason` of a Kubernetes event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumIter, EnumMessage, IntoStaticStr)]
pub enum EventReason {
    /// Backup: it is complete.
    BackupCompleted,
    /// BackupSchedule: a Backup that its retention does not keep is deleted with its snapshot.
    BackupExpired,
    /// Backup: there will be none; the note says why.
    BackupFailed,
    /// Backup: EC2 refused the snapshot; the note has its message.
    BackupRefused,
    /// BackupSchedule: a time has come, and its Backup is created.
    BackupScheduled,
    /// BackupSchedule: a time has come, and no Backup is created; the note says why.
    BackupSkipped,
    /// Backup: EC2 has started the snapshot.
    BackupStarted,
    /// Backup: it was restored and checked, and nothing wrong was found.
    BackupVerified,
    /// Database: the engine shows another certificate, of the same Secret, from now on.
    CertificateLoaded,
    /// Database: its ConfigMap was changed outside Freehold, and is restored; the running pod stays.
    ConfigMapAltered,
    /// Database: the engine took the settings of spec.config while it ran.
    ConfigReloaded,
    /// Node: its Kubernetes node takes no more pods, since its machine is being released.
    Cordoned,
    /// Volume: EC2 refused to create the EBS volume; the note has its message.
    CreationRefused,
    /// Database: the credentials are retained with the data.
    CredentialsRetained,
    /// Database: the credentials that were retained with the data were adopted.
    CredentialsAdopted,
    /// Database: all its resources are deleted but what its deletion policy retains.
    DatabaseReleased,
    /// Database: it was deleted, and goes on running since spec.deletionProtection is true.
    DeletionProtected,
    /// Database: the engine does not start or does not stay up; the note says what Kubernetes reports.
    EngineFailing,
    /// Database: the engine ended by itself, and Kubernetes started it again; the note says how it ended.
    EngineRestarted,
    /// Database: the engine is being stopped.
    EngineStopping,
    /// Node: EC2 has neither stopped nor terminated a lost machine; nothing moves.
    FenceFailed,
    /// Volume: EC2 refused the final snapshot; the volume is retained.
    FinalSnapshotRefused,
    /// Volume: the final snapshot was requested.
    FinalSnapshotStarted,
    /// Node: a pod that is not the database's was deleted from its machine; the note names it.
    ForeignPodEvicted,
    /// Database: the NodeClass says otherwise where images are pulled from; the next start of a pod follows.
    ImageSourceChanged,
    /// Node: an instance that ran before was adopted.
    InstanceAdopted,
    /// Node: EC2 launched an instance.
    InstanceLaunched,
    /// Node: an instance that was found by token and tags is this Node's.
    InstanceRecorded,
    /// Node: EC2 was requested to stop a lost machine; the note says whether by force.
    InstanceStopping,
    /// Node: EC2 was requested to terminate an instance; the note says why.
    InstanceTerminating,
    /// Node: its Kubernetes node lacked the label or the taint that the user data must set, or was adopted;
    /// Freehold added them.
    KubernetesNodeNotDedicated,
    /// Node: EC2 refused a launch; the note has its message.
    LaunchRefused,
    /// Lease in kube-system: an operator leads from now on; the note names it.
    LeaderElection,
    /// Node: EC2 shows a lost machine stopped or terminated; nothing on it can write any more.
    MachineFenced,
    /// Database: it is paused, and its machine is gone.
    MachineReleased,
    /// Node: the machine is declared lost, and another takes its place; the note says why.
    MachineLost,
    /// Node: the machine looks lost, and its grace period runs; the note says until when.
    MachineSuspected,
    /// Volume: EC2 refused a modification; the note has its message.
    ModificationRefused,
    /// Database: it moves to another machine; the note says from where, to where and why.
    Moved,
    /// Database: a Node was created, which launches a machine.
    NodeCreated,
    /// Database: a Node is deleted; the note says why.
    NodeDeleted,
    /// NodeClass: everything that it names is there and fits.
    NodeClassReady,
    /// NodeClass: something that it names is not there or does not fit; the note says what.
    NodeClassFaulty,
    /// Node: the machine is ready for the database again.
    NodeReady,
    /// Node: the machine is gone; or its adopted instance goes on running without Freehold.
    NodeReleased,
    /// Database: its NodeClass does not permit any more what the database goes on with; the note says what.
    NotPermitted,
    /// Database: it was ready and is not any more; the note has the reason.
    NotReady,
    /// Node and Volume: no Database owns it any more; the note says how to release it.
    Orphaned,
    /// Node: a fenced machine's Kubernetes node was tainted, so that Kubernetes detaches its volume at once.
    OutOfService,
    /// Database and DatabaseUser: another password is in force, and in the Secret.
    PasswordRotated,
    /// Database: `spec.running` became false.
    Paused,
    /// Database: the pod was deleted outside Freehold, and Kubernetes created another.
    PodReplaced,
    /// Database: this generation runs and answers.
    Ready,
    /// Node: the repair of a lost machine is postponed: too many repairs at once, an old EC2 inventory, a
    /// zone that looks down, or no machine's kubelet that reports.
    RepairPostponed,
    /// Node: its machine still serves, and the database must move to another one; the note says why.
    ReplacementNeeded,
    /// Database: a Node was created to take another's place; the note says why.
    ReplacementStarted,
    /// Database: Freehold replaces the pod; the note says why.
    Restarted,
    /// Database: it begins, or is to go on, with the data of a backup; the note names the snapshot.
    RestoreDecided,
    /// Database: the engine serves with the data of a backup that was restored in place.
    RestoredInPlace,
    /// Database: `spec.running` became true again.
    Resumed,
    /// Database: a volume of a former Database of this name is retained.
    RetainedVolumeFound,
    /// Database: a retention record is reserved for this Database, which adopts the volume.
    RetainedVolumeReserved,
    /// Backup: the snapshot is being deleted according to its policy.
    SnapshotDeleted,
    /// Backup: EC2 does not list the snapshot of a complete backup any more.
    SnapshotMissing,
    /// Database: nothing changes until a person does something; the note says what.
    Stalled,
    /// Database: a StatefulSet that ran before was adopted; its pod goes on running.
    StatefulSetAdopted,
    /// Database: its StatefulSet was changed outside Freehold, and is restored; the running pod stays.
    StatefulSetAltered,
    /// Database: the StatefulSet, which was gone, was created again.
    StatefulSetCreated,
    /// Database: its adopted StatefulSet is what it was before; its pod goes on running.
    StatefulSetReleased,
    /// Database: much of its file system is used, and the volume grows no further by itself; the note says
    /// what permits no more.
    StorageLimitReached,
    /// Database: how much of its file system is used is not known, and the volume does not grow by itself;
    /// the note says why.
    StorageUsageUnknown,
    /// Database: the StatefulSet has a new template; the pod is replaced next.
    TemplateChanged,
    /// Database: EC2 lists an instance or an EBS volume with its tags that no object claims; the note names
    /// it.
    UnclaimedResource,
    /// Database: the engine is stopped for a backup before it changes; the note says from what to what.
    UpgradeBegun,
    /// Database: the changed engine accepts connections.
    Upgraded,
    /// Backup: it could not be restored in time, or the check of it found something; the note says what.
    VerificationFailed,
    /// DatabaseUser: the user has other rights in the engine; the note says which.
    UserChanged,
    /// DatabaseUser: the user was created in the engine.
    UserCreated,
    /// DatabaseUser: it was deleted, and the user was dropped; what the user owned stays.
    UserDropped,
    /// Volume: an EBS volume was adopted: a retained one, or one that a database used before.
    VolumeAdopted,
    /// Database: its Volume follows the spec; the note says in what.
    VolumeChanged,
    /// Database and Volume: the volume was requested, and created.
    VolumeCreated,
    /// Database and Volume: the volume is being deleted according to its policy, and was deleted.
    VolumeDeleted,
    /// Volume: EC2 was requested to change size, type, IOPS or throughput.
    VolumeModifying,
    /// Volume: it was changed, and is as specified and bound again.
    VolumeReady,
    /// Volume: an EBS volume that was found by its tags is this Volume's.
    VolumeRecorded,
    /// Volume: it was deleted or retained according to its policy, or released as it was found.
    VolumeReleased,
    /// Database: it did not start as its spec requests, or not with the data of a backup, and goes back to
    /// what it ran as or with before; the note says why.
    WentBack,
}

impl EventReason {
    /// The name in an event's `reason`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
