//! The behaviours of EC2 that this simulator vouches for, each with a switch that takes it out.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use strum::{EnumIter, EnumMessage};

/// One behaviour of EC2. The test of the same name states its source; with the behaviour switched off that
/// test fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, EnumIter, EnumMessage)]
#[serde(rename_all = "kebab-case")]
pub enum Truth {
    /// The same token and parameters give the same resource again.
    TokenGivesSameResource,
    /// The same token with other parameters is refused.
    TokenMismatchRefused,
    /// A token has at most 64 ASCII characters.
    TokenLengthLimited,
    /// Tokens that differ in case are different tokens.
    TokenCaseSensitive,
    /// A RunInstances token counts per zone.
    TokenPerZone,
    /// The token of a terminated instance is refused.
    TokenOfTerminatedRefused,
    /// Actions without a token refuse one.
    TokenOnlyWhereDefined,
    /// A limit is checked before the token.
    LimitBeforeToken,
    /// A volume with an unusable KMS key is answered with success and vanishes; its token is dead.
    KmsRefusalIsLate,
    /// Without a token each call makes a new resource.
    NoTokenNewResource,
    /// Instances can be filtered by client token, volumes can not.
    TokenFilterOnlyOnInstances,
    /// A send that timed out may be carried out up to 15 minutes later, and not after.
    LateSend,
    /// New resources and their tags are seen late.
    EventualConsistency,
    /// A terminated instance is visible for an hour and then gone.
    TerminatedVisibleForAnHour,
    /// Tokens are forgotten after their lifetime.
    TokensForgotten,

    /// An instance is pending before it runs, and shutting down before it is terminated.
    InstancePassesThroughStates,
    /// A launch that was accepted may die, with a state reason.
    LaunchMayDie,
    /// Status checks begin as initializing.
    StatusInitializing,
    /// A scheduled event is seen in the instance's status.
    ScheduledEvents,
    /// An instance is stopped, started or rebooted only from a state that allows it.
    InstanceStateRefusals,
    /// A volume is creating before it is available, and deleting before it is gone.
    VolumePassesThroughStates,
    /// An attachment is attaching before attached, detaching before detached.
    AttachmentPassesThroughStates,
    /// The volumes of a terminating instance stay attached until it is terminated.
    VolumesHeldUntilTerminated,
    /// The vCPUs of the families have quotas of their own.
    VcpuQuotaPerFamily,
    /// The storage and the IOPS of the volume types have quotas of their own.
    VolumeQuotaPerType,
    /// `DeleteOnTermination` is honoured per mapping.
    DeleteOnTermination,
    /// A volume that is not available can't be attached.
    AttachRefusesUsedVolume,
    /// A volume can't be attached across zones.
    AttachRefusesOtherZone,
    /// A volume can be attached only to a running or stopped instance.
    AttachRefusesInstanceState,
    /// A device name is used once per instance.
    AttachRefusesTakenDevice,
    /// An instance takes a limited number of volumes.
    AttachRefusesTooMany,
    /// The root volume of a running instance can't be detached.
    DetachRefusesRoot,
    /// A volume in use can't be deleted.
    DeleteRefusesUsedVolume,
    /// A new size can be used from `optimizing` on, not before.
    SizeUsableAtOptimizing,
    /// The next modification needs the previous one to be completed.
    OneModificationAtATime,
    /// At most four modifications of a volume in a rolling 24 hours, those that change nothing included.
    ModificationBudget,
    /// A volume never shrinks.
    VolumesOnlyGrow,
    /// Sizes, IOPS and throughput keep to the ranges and ratios of the volume's type.
    VolumeRanges,
    /// A snapshot is pending, with its progress, before it is completed.
    SnapshotPassesThroughStates,
    /// Snapshots of one volume need a pause between them.
    SnapshotRate,
    /// A volume has a limited number of pending snapshots.
    SnapshotConcurrency,
    /// A volume made from a snapshot has at least its size.
    SnapshotMinimumSize,
    /// A volume made from a snapshot is initialized over time, at its provisioned rate if it has one.
    InitializationTakesTime,
    /// A provisioned rate of initialization has a range, and needs a snapshot.
    InitializationRateRange,

    /// Requests beyond the account's rate are refused.
    RequestRate,
    /// Resources beyond the account's rate are refused.
    ResourceRate,
    /// A describe without filter and page has a smaller allowance.
    UnfilteredDescribeRate,

    /// At most 50 filters with 200 values each.
    FilterLimits,
    /// `MaxResults` has a range.
    MaxResultsRange,
    /// `MaxResults` and a list of ids exclude each other.
    MaxResultsWithoutIds,
    /// More than 500 volumes or snapshots a page are answered with 500.
    VolumePagesOf500,
    /// A page may be empty and still carry a token.
    EmptyPages,
    /// One unknown id fails the whole list; an unknown id in a filter fails nothing.
    UnknownIdFailsWhole,
    /// While a zone is disrupted a list without ids fails, and one with ids of healthy zones works.
    ZoneDownFailsSweeps,

    /// A caller with a policy does what the policy allows, and nothing else.
    PolicyHolds,
    /// `DryRun` changes nothing and says what would have happened.
    DryRun,
    /// What is not modelled is refused.
    UnknownRefused,
}

/// Which truths hold; all of them unless one was taken out for a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truths {
    taken_out: BTreeSet<Truth>,
}

impl Truths {
    /// All truths hold: EC2 as it is.
    pub fn all() -> Self {
        Self::default()
    }

    /// These truths without one of them.
    #[must_use]
    pub fn without(mut self, truth: Truth) -> Self {
        self.taken_out.insert(truth);
        self
    }

    /// Whether `truth` holds.
    pub fn holds(&self, truth: Truth) -> bool {
        !self.taken_out.contains(&truth)
    }
}
