//! The reasons of events: what an operator of databases is told as it happens. An enum, documented, and never used for another meaning.

use strum::{EnumIter, EnumMessage, IntoStaticStr};

/// What happened: the `reason` of a Kubernetes event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumIter, EnumMessage, IntoStaticStr)]
pub enum EventReason {
    /// Node: its Kubernetes node takes no more pods, since it is being given back.
    Cordoned,
    /// Volume: EC2 refused to make the EBS volume; the note has its words.
    CreationRefused,
    /// Database: the Secret with generated credentials was made.
    CredentialsCreated,
    /// Database: the credentials are kept with the data.
    CredentialsKept,
    /// Database: the credentials that were kept with the data were taken over.
    CredentialsTakenOver,
    /// Database: all of it is gone but what its deletion policy keeps.
    DatabaseReleased,
    /// Database: the engine does not start or does not stay up; the note says what Kubernetes says.
    EngineFailing,
    /// Database: the engine ended by itself, and Kubernetes started it again; the note says how it ended.
    EngineRestarted,
    /// Database: the engine is being stopped.
    EngineStopping,
    /// Node: EC2 has neither stopped nor terminated a lost machine; nothing moves.
    FenceFailed,
    /// Volume: EC2 refused the final snapshot; the volume is kept.
    FinalSnapshotRefused,
    /// Volume: the final snapshot was asked for.
    FinalSnapshotStarted,
    /// Node: EC2 launched an instance.
    InstanceLaunched,
    /// Node: an instance that was found by token and tags is this Node's.
    InstanceRecorded,
    /// Node: EC2 was asked to stop a lost machine; the note says whether by force.
    InstanceStopping,
    /// Node: EC2 was asked to terminate an instance; the note says why.
    InstanceTerminating,
    /// Node: EC2 refused a launch; the note has its words.
    LaunchRefused,
    /// Node: EC2 shows a lost machine stopped or terminated; nothing on it can write any more.
    MachineFenced,
    /// Database: it is paused, and its machine is gone.
    MachineGivenBack,
    /// Node: the machine is given up, and another takes its place; the note says why.
    MachineLost,
    /// Node: the machine looks lost and has a grace; the note says until when.
    MachineSuspected,
    /// Volume: EC2 refused a change; the note has its words.
    ModificationRefused,
    /// Database: it moves to another machine; the note says from where, to where and why.
    Moved,
    /// Database: a machine was asked for.
    NodeCreated,
    /// Database: a Node is taken down; the note says why.
    NodeDeleted,
    /// Node: the machine is ready for the database.
    NodeReady,
    /// Node: the machine is gone.
    NodeReleased,
    /// Database: it was ready and is not any more; the note has the reason.
    NotReady,
    /// Node: a fenced machine's Kubernetes node was tainted, so that Kubernetes lets go of its volume at once.
    OutOfService,
    /// Database: `spec.running` became false.
    Paused,
    /// Database: somebody else deleted the pod, and Kubernetes made another.
    PodReplaced,
    /// Database: this generation runs and answers.
    Ready,
    /// Node: a lost machine is not given up yet: too many repairs at once, old knowledge, or a zone that looks down.
    RepairHeldBack,
    /// Database: a machine was asked for to take another's place; the note says why.
    ReplacementStarted,
    /// Database: Freehold replaces the pod; the note says why.
    Restarted,
    /// Database: `spec.running` became true again.
    Resumed,
    /// Database: a volume of a former Database of this name is kept.
    RetainedVolumeFound,
    /// Database: the record of a kept volume is held for this Database, which takes it over.
    RetainedVolumeHeld,
    /// Database: nothing changes until a person does something; the note says what.
    Stalled,
    /// Database: the StatefulSet was made.
    StatefulSetCreated,
    /// Database: the StatefulSet has a new template; the pod is replaced next.
    TemplateChanged,
    /// Volume: a kept EBS volume was taken over.
    VolumeAdopted,
    /// Database: its Volume follows the spec; the note says in what.
    VolumeChanged,
    /// Database and Volume: the volume was asked for, and made.
    VolumeCreated,
    /// Database and Volume: the volume is taken down as its policy says, and deleted.
    VolumeDeleted,
    /// Volume: EC2 was asked to change size, type, IOPS or throughput.
    VolumeModifying,
    /// Volume: it is as wanted and bound.
    VolumeReady,
    /// Volume: an EBS volume that was found by its tags is this Volume's.
    VolumeRecorded,
    /// Volume: it is over as its policy says.
    VolumeReleased,
    /// Database: its zone was decided, by where its first machine was launched.
    ZoneChosen,
}

impl EventReason {
    /// The name in an event's `reason`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
