//! The condition types and reasons of every kind: an enum each, documented, and never used for another
//! meaning.

use strum::{EnumIter, EnumMessage, EnumString, IntoStaticStr};

/// A condition's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumIter, EnumMessage, IntoStaticStr)]
pub enum ConditionType {
    /// Every kind but Backup: this generation is as specified. Computed from the others.
    Ready,
    /// Every kind: nothing will change until a person or the backend does something.
    Stalled,
    /// Database: clients can use it now: its engine answers, of whichever generation, and its Service is
    /// there.
    Available,
    /// Database: the machine is there.
    NodeReady,
    /// Database: the volume is there.
    VolumeReady,
    /// Database: the engine answers.
    EngineReady,
    /// Database, while there is one: a volume was retained under this name, and is not adopted.
    RetainedVolumeFound,
    /// Database, while it is so: its NodeClass does not permit what the spec requests. A database that was
    /// created goes on as it was decided before.
    NotPermitted,
    /// Database, while it is so: it was deleted, and goes on running since spec.deletionProtection is true.
    DeletionProtected,
    /// Database, while it is so: its ConfigMap or StatefulSet was changed outside Freehold and is not
    /// restored yet, or its pod was started from what was changed.
    Altered,
    /// Database that was adopted, while its pod is there: the next pod will be made from another template
    /// than the one that runs; the message names the fields that differ. False once they are the same.
    RestartPending,
    /// Database, while spec.access.passwordGeneration is set: the password of that generation is in force.
    PasswordRotated,
    /// Database with PostgreSQL, while spec.tls is set: the engine shows the certificate of the Secret, and
    /// that does not expire soon.
    CertificateLoaded,
    /// Database with PostgreSQL, while spec.walArchive is set: the engine archives its write-ahead log.
    WalArchived,
    /// Node and Volume, while it is so: no Database owns it any more, since its Database was deleted with
    /// the propagation policy Orphan.
    Orphaned,
    /// Node: EC2 shows the instance running.
    Launched,
    /// Node: its kubelet has registered.
    Registered,
    /// Node: the Kubernetes node is Ready, lists the EBS driver, has the label and the taint of a database's
    /// machine, and carries our finalizer.
    Initialized,
    /// Node: the NodeClass has changed since this machine was created.
    Drifted,
    /// Node: this machine is declared lost, and another takes its place. Stays true until the Node is gone.
    Lost,
    /// Node, while it is lost or terminated without being drained: EC2 shows the instance stopped or
    /// terminated, so nothing on it can write any more.
    Fenced,
    /// Node, while it is so: EC2 shows an instance with the tags of this Node that no attempt of it launched.
    /// It is left alone, and nothing waits for it.
    ForeignInstance,
    /// Node, while deleting: no pod of a database is left on it.
    Drained,
    /// Node, while deleting: no volume is attached to it any more.
    VolumeDetached,
    /// Node, while deleting: EC2 shows the instance terminated.
    InstanceTerminated,
    /// NodeClass: the image is there and its disks are those of the class.
    ImageReady,
    /// NodeClass: the subnets and security groups are there, and belong together.
    NetworkReady,
    /// NodeClass: every pattern names an instance type that runs the image.
    InstanceTypesReady,
    /// NodeClass: the StorageClass is there, and its volumes can grow.
    StorageClassReady,
    /// NodeClass: EC2 accepts a launch of the class, as far as a dry run says, and ended no machine of it
    /// during its launch.
    LaunchAccepted,
    /// NodeClass: no mistake was found in the user data, as far as it can be read.
    UserDataReady,
    /// Volume: the EBS volume exists.
    Created,
    /// Volume: its PersistentVolume and claim are bound to each other.
    Bound,
    /// Volume: size, type, IOPS and throughput are as specified, in EC2 and in the claim.
    Modified,
    /// Backup: the snapshot is complete, and can be restored. This is final.
    Complete,
    /// Backup: there will be no backup; the message says why. This is final.
    Failed,
    /// Backup, while it is so: EC2 does not list the snapshot of a complete backup any more.
    SnapshotMissing,
    /// Backup, once it was verified: it was restored, the engine served it, and the check of it found nothing
    /// wrong.
    Verified,
}

impl ConditionType {
    /// The name in a condition's `type`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why a condition is as it is: for programs; the message is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(EnumIter, EnumMessage, EnumString, IntoStaticStr)]
pub enum Reason {
    /// The condition is true, and everything is as specified.
    AsExpected,
    /// An earlier step is awaited.
    Pending,
    /// The object is being deleted.
    Deleting,
    /// The object was deleted, and spec.deletionProtection keeps it until it is false.
    DeletionProtected,
    /// The database is paused (`spec.running: false`).
    Paused,
    /// The BackupSchedule is suspended (`spec.suspend: true`).
    Suspended,
    /// The spec contradicts itself or requests something impossible.
    InvalidSpec,
    /// An object of a derived name is a foreign object (Freehold does not own it): it is neither adopted nor
    /// deleted.
    NameConflict,
    /// The NodeClass does not exist.
    NodeClassNotFound,
    /// The NodeClass does not fit the request: no subnet in the zone, or the type is not allowed.
    NodeClassMismatch,
    /// The NodeClass names something that is not there or does not fit, so no machine of it is launched; its
    /// own conditions say what.
    NodeClassNotReady,
    /// The image is not there, is not available, or has other disks than the NodeClass says.
    ImageUnusable,
    /// A subnet is not there, or is in another zone or VPC than the NodeClass says.
    SubnetUnusable,
    /// Every address of a subnet is in use.
    NoFreeAddresses,
    /// A security group is not there, or is in another VPC than the subnets.
    SecurityGroupUnusable,
    /// A pattern matches no instance type, or one that does not run the image.
    InstanceTypeUnusable,
    /// The StorageClass is not there, is not the EBS CSI driver's, or its volumes cannot grow.
    StorageClassUnusable,
    /// EC2 does not know the instance profile of the NodeClass.
    InstanceProfileUnusable,
    /// EC2 ended a machine of the NodeClass during its launch, most often since the KMS key may not be used.
    KmsKeyUnusable,
    /// The user data of the NodeClass has a mistake, or is not of the form that the image reads.
    UserDataUnusable,
    /// The NodeClass is being deleted, and Databases still use it.
    InUse,
    /// The NodeClass does not permit what the spec requests; the message says what, and what is permitted.
    NotPermitted,
    /// No Database owns the Node or Volume any more; the message says how to release it.
    Orphaned,
    /// The first full EC2 inventory sync is awaited.
    AwaitingInventory,
    /// EC2 has no capacity for any allowed type and zone at the moment; the request is repeated.
    InsufficientCapacity,
    /// A quota of the AWS account is reached; the request is repeated.
    QuotaExceeded,
    /// EC2 refuses for lack of permission; the request is repeated.
    Forbidden,
    /// EC2 refuses the request as invalid: the spec or the NodeClass must change.
    InvalidRequest,
    /// EC2 throttled a call, or the operator's own rate limit is reached.
    Throttled,
    /// A creating call is unconfirmed: its result is looked up, or the call is repeated with the same token.
    InDoubt,
    /// EC2 was requested to launch the instance, and the result is awaited.
    Launching,
    /// The machine's kubelet is awaited.
    AwaitingRegistration,
    /// The Kubernetes node is not Ready yet, or the EBS driver has not registered on it, or it lacks the
    /// label or the taint of a database's machine.
    AwaitingInitialization,
    /// Machines run but never join the cluster.
    NeverJoined,
    /// The machine is declared lost, or about to be; the condition Lost says why.
    InstanceLost,
    /// EC2 shows the instance terminated or about to be, or it is proven gone.
    InstanceTerminated,
    /// EC2 shows the instance stopped or about to be.
    InstanceStopped,
    /// EC2's system or instance check fails.
    InstanceImpaired,
    /// The instance runs, and its Kubernetes node is gone.
    NodeGone,
    /// The Kubernetes node of a healthy machine was deleted outside Freehold: that cannot be undone, so
    /// another machine takes its place.
    KubernetesNodeDeleted,
    /// EC2 has scheduled an event that interrupts a healthy machine, such as its retirement: another machine
    /// takes its place before that.
    EventScheduled,
    /// The Kubernetes node of a healthy machine was cordoned outside Freehold: another machine takes its
    /// place, unless it is uncordoned before the database has moved.
    Cordoned,
    /// The machine is being stopped from outside of it; the message names the stage.
    Fencing,
    /// Stop, forced stop and termination were requested, and EC2 still does not show the instance stopped or
    /// terminated: nothing moves before it does.
    FenceFailed,
    /// The machine would be declared lost, but too many repairs are underway, the EC2 inventory is old, its
    /// zone looks down, or no machine's kubelet reports; or it serves and is to be replaced, and so are too
    /// many others.
    RepairPostponed,
    /// The Node was deleted while a database runs on it: its move to another machine is awaited.
    AwaitingMove,
    /// The Kubernetes node is not Ready.
    NodeNotReady,
    /// More than one instance carries this Node's identity.
    DuplicateInstance,
    /// Nothing differs from the NodeClass; or the pod of an adopted database is of the newest template.
    UpToDate,
    /// The NodeClass has changed since the machine was created.
    NodeClassChanged,
    /// Pods are still on the machine.
    AwaitingDrain,
    /// A volume is still attached to the machine.
    AwaitingDetach,
    /// EC2 has not shown the instance terminated yet.
    AwaitingTermination,
    /// The EBS volume is being created.
    Creating,
    /// The PersistentVolume and its claim are not bound to each other yet.
    AwaitingBinding,
    /// EBS is modifying the volume.
    Modifying,
    /// The file system is not grown yet.
    AwaitingFileSystem,
    /// EC2's limit of modifications for this volume is reached; the message names the next allowed time.
    ModificationBudget,
    /// EC2 refused the modification.
    ModificationRefused,
    /// Kubernetes does not expand the claim: it names no StorageClass, or one that does not permit it.
    ClaimNotExpandable,
    /// The EBS volume that held data is gone. It is never replaced by an empty one.
    VolumeLost,
    /// A snapshot is awaited.
    AwaitingSnapshot,
    /// The Database of the Backup or BackupSchedule does not exist.
    AwaitingDatabase,
    /// Another Backup of the same Database goes first.
    AwaitingBackup,
    /// The engine's checkpoint is awaited, or its release; the message says what hinders it.
    AwaitingCheckpoint,
    /// The newest Backup of the BackupSchedule failed.
    BackupFailed,
    /// The Backup could not be restored in time, or the check of what was restored found something; the
    /// message says what.
    VerificationFailed,
    /// EC2 could not complete the snapshot.
    SnapshotFailed,
    /// The engine did not hold its checkpoint until the snapshot had started, so the snapshot is not used.
    CheckpointLost,
    /// EC2 does not list the snapshot any more: it was deleted outside Freehold.
    SnapshotMissing,
    /// EC2 has not shown the volume deleted yet.
    AwaitingVolumeDeletion,
    /// The machine is awaited.
    AwaitingNode,
    /// The volume is awaited.
    AwaitingVolume,
    /// The pod is not scheduled or not started yet.
    AwaitingPod,
    /// The volume is not attached to the machine of the pod yet; the message says since when, and what the
    /// driver reports.
    AwaitingAttach,
    /// The engine's container does not start or does not stay up; the message says what Kubernetes reports.
    EngineFailing,
    /// The engine does not answer its probe yet.
    EngineStarting,
    /// The credentials' Secret cannot be read or is damaged: nothing is started without it.
    CredentialsUnreadable,
    /// A changed spec awaits the restart of the pod.
    RestartPending,
    /// The pod of an adopted database goes on as it is, and changes when it is started the next time; nothing
    /// restarts for it.
    AtNextStart,
    /// The image of spec.engine could not be started, an adopted database did not start as its spec
    /// requests, or the data of a backup was not served in time: the database went back to what it served
    /// as or with, and that is not tried again until the spec changes.
    WentBack,
    /// The ConfigMap or the StatefulSet was changed outside Freehold and is not restored yet, or the pod was
    /// started from what was changed; the message says which, and what follows.
    Altered,
    /// The database is being moved to another machine; the message says from where, to where and why.
    Moving,
    /// The StatefulSet is being stopped.
    AwaitingStop,
    /// The API server refused a child object; the message says why.
    ChildRefused,
    /// The password of the administrator is being rotated; the message says how far that is.
    Rotating,
    /// The password of the administrator cannot be rotated; the message says why.
    RotationRefused,
    /// The Secret with the certificate is missing or cannot be used; the message says why.
    CertificateUnusable,
    /// The engine is to load a renewed certificate, as soon as its machine's kubelet has updated the files.
    CertificateLoading,
    /// The engine does not load the renewed certificate, and goes on with the one that it has; its log says
    /// why.
    CertificateRefused,
    /// The certificate expires soon, and there is no renewed one in the Secret.
    CertificateExpiring,
    /// The certificate has expired: clients that check it refuse the connection.
    CertificateExpired,
    /// It is not known whether the engine archives its write-ahead log: it has archived none yet, does not
    /// serve, or does not answer the operator.
    WalArchiveUnknown,
    /// The engine cannot archive its write-ahead log, and keeps it on its volume; its log says why.
    WalArchiveFailing,
    /// The image of the engine has no program that archives its write-ahead log.
    WalArchiveProgramMissing,
    /// The user of a DatabaseUser cannot be created in the engine, or is another client's there; the message
    /// says why.
    UserRefused,
    /// The engine is to take the settings of spec.config while it runs; the message says how far that is.
    ConfigReloading,
    /// The engine rejects settings of spec.config, and goes on with those in force; the message says which
    /// and why.
    ConfigRejected,
    /// A retained volume, or an instance that ran before, is being adopted.
    Adopting,
    /// The retained volume, or the instance, cannot be adopted; the message says why.
    AdoptionRefused,
    /// The data of a backup is awaited, or is about to replace the data that is there.
    Restoring,
    /// The backup cannot be restored in this Database; the message says why.
    RestoreRefused,
    /// A volume was retained under the name of this Database, and is not adopted. Nothing is created before
    /// the spec says whether the Database uses it or begins with an empty one.
    RetainedVolumeFound,
    /// Nothing is blocked.
    Progressing,
}

impl Reason {
    /// The reason of this name, as a condition holds it.
    pub fn named(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// The name in a condition's `reason`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator;

    use super::*;

    #[test]
    fn every_reason_is_found_by_its_own_name() {
        for reason in Reason::iter() {
            assert_eq!(Reason::named(reason.as_str()), Some(reason));
        }
        assert_eq!(Reason::named("NoSuchReason"), None);
    }
}
