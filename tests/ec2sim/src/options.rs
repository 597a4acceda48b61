//! The settings of a simulator; the default is EC2 with everything true and short delays.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use jiff::Timestamp;

use crate::{Fault, Policy, Truths, World};

/// How virtual time passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clock {
    /// With the wall clock, times this factor.
    Running {
        /// Virtual seconds in a second of the wall clock.
        speed: f64,
    },

    /// Only by `advance`.
    Manual,
}

/// Everything that a simulator can be told at its start.
#[derive(Clone, Debug)]
pub struct Options {
    /// How time passes.
    pub clock: Clock,

    /// The first moment; the wall clock's present if absent. A state that is taken up overrides it.
    pub start: Option<Timestamp>,

    /// The file that the journal is appended to, a JSON object a line.
    pub journal: Option<PathBuf>,

    /// The faults that are there from the start.
    pub faults: Vec<Fault>,

    /// The folder that the state is kept in and taken up from.
    pub state: Option<PathBuf>,

    /// What ids and probabilities are drawn from.
    pub seed: u64,

    /// The account's surroundings.
    pub world: World,

    /// The IAM policies, by caller (access key id). A caller without one may do everything.
    pub policies: BTreeMap<String, Policy>,

    /// Which truths hold.
    pub truths: Truths,

    /// How long each change of state takes.
    pub delays: Delays,

    /// How late new resources are seen.
    pub visibility: Visibility,

    /// How long former states are kept for stale reads; zero: not at all.
    pub past: Duration,

    /// The account's quotas and rates.
    pub limits: Limits,

    /// How long a token is remembered, in virtual time. EC2 promises nothing; about 12 hours was seen for
    /// volumes.
    pub token_lifetime: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Clock::Running { speed: 1.0 },
            start: None,
            journal: None,
            faults: Vec::new(),
            state: None,
            seed: 0,
            world: World::default(),
            policies: BTreeMap::new(),
            truths: Truths::all(),
            delays: Delays::fast(),
            visibility: Visibility::default(),
            past: Duration::ZERO,
            limits: Limits::default(),
            token_lifetime: Duration::from_hours(12),
        }
    }
}

/// How long each change of state takes, in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// Instance: pending to running.
    pub pending: Duration,
    /// Status checks: initializing to ok, from running on.
    pub status: Duration,
    /// Instance: stopping to stopped.
    pub stopping: Duration,
    /// Instance: shutting-down to terminated.
    pub shutting_down: Duration,
    /// Volume: creating to available.
    pub creating: Duration,
    /// Volume: deleting to gone.
    pub deleting: Duration,
    /// Volume: from its creation with an unusable key to vanishing.
    pub vanishing: Duration,
    /// Attachment: attaching to attached.
    pub attaching: Duration,
    /// Attachment: detaching to detached.
    pub detaching: Duration,
    /// Modification: modifying to optimizing.
    pub modifying: Duration,
    /// Modification: optimizing to completed.
    pub optimizing: Duration,
    /// Snapshot: pending to completed.
    pub snapshot: Duration,
    /// How long a terminated instance stays visible.
    pub terminated: Duration,
}

impl Delays {
    /// Every change at the next look; a terminated instance still stays for its hour.
    pub const fn zero() -> Self {
        let zero = Duration::ZERO;
        Self {
            pending: zero,
            status: zero,
            stopping: zero,
            shutting_down: zero,
            creating: zero,
            deleting: zero,
            vanishing: zero,
            attaching: zero,
            detaching: zero,
            modifying: zero,
            optimizing: zero,
            snapshot: zero,
            terminated: Duration::from_hours(1),
        }
    }

    /// Fractions of a second, so that each state can be seen and nobody waits.
    pub const fn fast() -> Self {
        let moment = Duration::from_millis(200);
        Self {
            pending: moment,
            status: Duration::from_millis(500),
            stopping: moment,
            shutting_down: moment,
            creating: moment,
            deleting: moment,
            vanishing: moment,
            attaching: moment,
            detaching: moment,
            modifying: moment,
            optimizing: moment,
            snapshot: moment,
            terminated: Duration::from_hours(1),
        }
    }

    /// The order of magnitude that AWS shows.
    pub const fn realistic() -> Self {
        Self {
            pending: Duration::from_secs(8),
            status: Duration::from_secs(150),
            stopping: Duration::from_secs(40),
            shutting_down: Duration::from_secs(45),
            creating: Duration::from_secs(2),
            deleting: Duration::from_secs(5),
            vanishing: Duration::from_secs(5),
            attaching: Duration::from_secs(3),
            detaching: Duration::from_secs(4),
            modifying: Duration::from_secs(5),
            optimizing: Duration::from_mins(10),
            snapshot: Duration::from_mins(3),
            terminated: Duration::from_hours(1),
        }
    }
}

/// How long a new resource is missing from what callers see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visibility {
    /// From a call that names its id.
    pub by_id: Duration,
    /// From a list without ids.
    pub by_filter: Duration,
    /// Its tags, in answers and in filters.
    pub tags: Duration,
}

/// The account's quotas and rates; `None`, or no entry, is no limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// The rate limits, as a share of the figures that AWS publishes (1.0 = as published).
    pub rate: Option<f64>,
    /// Virtual processors of pending and running instances, by the quota of their families, such as
    /// `Standard`, `P` or `G and VT`: `VcpuLimitExceeded`.
    pub vcpus: BTreeMap<String, u32>,
    /// GiB of volumes, by volume type: `VolumeLimitExceeded`.
    pub storage: BTreeMap<String, u32>,
    /// IOPS of volumes, by volume type: `MaxIOPSLimitExceeded`.
    pub iops: BTreeMap<String, u32>,
    /// Pending and running instances: `InstanceLimitExceeded`.
    pub instances: Option<usize>,
    /// Volumes: `VolumeLimitExceeded`.
    pub volumes: Option<usize>,
    /// Snapshots: `SnapshotLimitExceeded`.
    pub snapshots: Option<usize>,
}

impl Limits {
    /// No limit, nor one of the rate.
    pub const NONE: Self = Self {
        rate: None,
        vcpus: BTreeMap::new(),
        storage: BTreeMap::new(),
        iops: BTreeMap::new(),
        instances: None,
        volumes: None,
        snapshots: None,
    };
}

impl Default for Limits {
    /// The published rates.
    fn default() -> Self {
        Self { rate: Some(1.0), ..Self::NONE }
    }
}
