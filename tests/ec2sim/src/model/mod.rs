//! The pure model of EC2: state, time and requests in, answers out; no I/O and no clock of its own.

mod attachments;
mod catalog;
mod dry_run;
mod initialization;
mod instances;
mod launch;
mod launch_request;
mod lifecycle;
mod limits;
mod lists;
mod modifications;
mod outside;
mod past;
mod phases;
mod quotas;
mod records;
mod schedule;
mod shapes;
mod snapshots;
mod status;
mod tags;
mod tokens;
mod transitions;
mod volumes;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    InstanceView, Refusal, Response, Sight, SnapshotView, Truth, Truths, VolumeView, World,
    options::{Delays, Limits, Options, Visibility},
    params::Reader,
};

use records::{Bucket, Scheduled, TokenRecord};

/// How the model behaves; comes from the options at every start and is not part of the state.
#[derive(Clone, Debug)]
struct Rules {
    seed: u64,
    truths: Truths,
    delays: Delays,
    visibility: Visibility,
    limits: Limits,
    token_lifetime: Duration,
}

/// What faults, and a policy that denies a key, do to one call inside the model.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "any number of them may hold for a call")]
pub(crate) struct Effects {
    /// The (type, zone) pairs without capacity; an absent part means any.
    pub(crate) capacity_out: Vec<(Option<String>, Option<String>)>,
    /// The code that a create is refused with as if a quota was used up; checked before the token.
    pub(crate) quota: Option<String>,
    /// The zones that are disrupted.
    pub(crate) zones_down: Vec<String>,
    /// A launch dies with this state reason.
    pub(crate) launch_dies: Option<String>,
    /// A created volume vanishes after this time.
    pub(crate) vanishes: Option<Duration>,
    /// A created resource is invisible for this time.
    pub(crate) invisible: Vec<(Sight, Duration)>,
    /// An attachment never leaves `attaching`, or `detaching`.
    pub(crate) hangs: bool,
    /// A stop or a termination takes so much longer.
    pub(crate) lingers: Duration,
    /// A read is answered as it would have been so long ago.
    pub(crate) stale: Option<Duration>,
    /// What the call began ends badly.
    pub(crate) fails: bool,
    /// A list answers with an empty page and the same place to go on from.
    pub(crate) empty_page: bool,
    /// The caller may not use the KMS key that the call names.
    pub(crate) key_refused: bool,
}

pub use limits::rates;
pub use transitions::{Phase, Transition};

/// When a new resource begins to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Visible {
    by_id: Timestamp,
    by_filter: Timestamp,
    tags: Timestamp,
}

/// A resource with what the model needs to know besides what can be seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Held<T> {
    view: T,
    visible: Visible,
    /// Lists are ordered by creation.
    order: u64,
    /// Grows with each change of state, so that a change that was scheduled before is recognised as
    /// overtaken.
    epoch: u64,
}

/// Everything that is kept over a restart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    now: Timestamp,
    sequence: u64,
    version: u64,
    instances: BTreeMap<String, Held<InstanceView>>,
    volumes: BTreeMap<String, Held<VolumeView>>,
    snapshots: BTreeMap<String, Held<SnapshotView>>,
    tokens: BTreeMap<String, TokenRecord>,
    schedule: Vec<Scheduled>,
    buckets: BTreeMap<String, Bucket>,
}

/// The account, as EC2 knows it.
#[derive(Debug)]
pub struct Model {
    world: World,
    rules: Rules,
    state: State,
    transitions: transitions::Transitions,
    past: past::Past<State>,
}

impl Model {
    /// An account without any resource, at the moment `now`.
    pub fn new(options: &Options, now: Timestamp) -> Self {
        Self {
            world: options.world.clone(),
            rules: Rules {
                seed: options.seed,
                truths: options.truths.clone(),
                delays: options.delays,
                visibility: options.visibility,
                limits: options.limits.clone(),
                token_lifetime: options.token_lifetime,
            },
            state: State {
                now,
                sequence: 0,
                version: 0,
                instances: BTreeMap::new(),
                volumes: BTreeMap::new(),
                snapshots: BTreeMap::new(),
                tokens: BTreeMap::new(),
                schedule: Vec::new(),
                buckets: BTreeMap::new(),
            },
            transitions: transitions::Transitions::default(),
            past: past::Past::new(options.past),
        }
    }

    /// The whole state, to be kept.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Goes on from a state that was kept.
    pub(crate) fn restore(&mut self, kept: State) {
        self.state = kept;
    }

    /// The last moment that the model has seen.
    pub fn now(&self) -> Timestamp {
        self.state.now
    }

    /// Grows with every change of the truth, by a call or by the passing of time.
    pub fn version(&self) -> u64 {
        self.state.version
    }

    /// The surroundings.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// Carries out one request. The caller's identity is not looked at: all callers share one account, and
    /// what each may do is decided before.
    pub(crate) fn call(
        &mut self,
        now: Timestamp,
        params: &[(String, String)],
        effects: &Effects,
    ) -> Result<Response, Refusal> {
        self.advance(now);
        let mut reader = Reader::new(params, &self.rules.truths)?;
        self.throttle(&reader)?;
        let hash = crate::params::hash(params);
        let stale = effects.stale.filter(|_| crate::action::reads(reader.action()));
        let answer = match stale {
            Some(age) => self.as_it_was(age, |model| model.carry_out(&mut reader, &hash, effects)),
            None => self.carry_out(&mut reader, &hash, effects),
        };
        self.note_transitions();
        answer
    }

    fn carry_out(&mut self, r: &mut Reader, hash: &str, effects: &Effects) -> Result<Response, Refusal> {
        match r.action().to_owned().as_str() {
            "RunInstances" => self.run_instances(r, hash, effects),
            "TerminateInstances" => self.terminate_instances(r, effects),
            "StopInstances" => self.stop_instances(r, effects),
            "StartInstances" => self.start_instances(r, effects),
            "RebootInstances" => self.reboot_instances(r),
            "DescribeInstances" => self.describe_instances(r, effects),
            "DescribeInstanceStatus" => self.describe_instance_status(r, effects),
            "GetConsoleOutput" => self.get_console_output(r),
            "CreateVolume" => self.create_volume(r, hash, effects),
            "DeleteVolume" => self.delete_volume(r),
            "AttachVolume" => self.attach_volume(r, effects),
            "DetachVolume" => self.detach_volume(r, effects),
            "ModifyVolume" => self.modify_volume(r, effects),
            "DescribeVolumes" => self.describe_volumes(r, effects),
            "DescribeVolumeStatus" => self.describe_volume_status(r, effects),
            "DescribeVolumesModifications" => self.describe_volumes_modifications(r, effects),
            "CreateSnapshot" => self.create_snapshot(r, effects),
            "DeleteSnapshot" => self.delete_snapshot(r),
            "DescribeSnapshots" => self.describe_snapshots(r, effects),
            "CreateTags" => self.create_tags(r),
            "DeleteTags" => self.delete_tags(r),
            "DescribeTags" => self.describe_tags(r, effects),
            "DescribeSubnets" => self.describe_subnets(r, effects),
            "DescribeAvailabilityZones" => self.describe_availability_zones(r),
            "DescribeInstanceTypes" => self.describe_instance_types(r, effects),
            "DescribeImages" => self.describe_images(r, effects),
            "DescribeSecurityGroups" => self.describe_security_groups(r, effects),
            other if self.holds(Truth::UnknownRefused) => Err(Refusal::unsupported(format!(
                "The action \
                {other} is not modelled"
            ))),
            _ => Ok(Response::Done),
        }
    }

    /// The instances as they are, whatever callers can see of them.
    pub fn instances(&self) -> Vec<InstanceView> {
        in_order(&self.state.instances).map(|held| self.with_attachments(&held.view)).collect()
    }

    /// The instance of this id as it is, whatever callers can see of it.
    pub(crate) fn instance(&self, id: &str) -> Option<InstanceView> {
        self.instance_as_is(id).map(|view| self.with_attachments(view))
    }

    /// Whether this is true of all volumes as they are.
    pub(crate) fn are_all_volumes(&self, is_true: impl Fn(&VolumeView) -> bool) -> bool {
        self.state.volumes.values().all(|held| is_true(&held.view))
    }

    /// The volumes as they are.
    pub fn volumes(&self) -> Vec<VolumeView> {
        in_order(&self.state.volumes).map(|held| held.view.clone()).collect()
    }

    /// The snapshots as they are.
    pub fn snapshots(&self) -> Vec<SnapshotView> {
        in_order(&self.state.snapshots).map(|held| held.view.clone()).collect()
    }

    /// The instance of this id as it is, without its attachments.
    pub(crate) fn instance_as_is(&self, id: &str) -> Option<&InstanceView> {
        self.state.instances.get(id).map(|held| &held.view)
    }

    /// The volume of this id as it is.
    pub(crate) fn volume_as_is(&self, id: &str) -> Option<&VolumeView> {
        self.state.volumes.get(id).map(|held| &held.view)
    }

    /// The snapshot of this id as it is.
    pub(crate) fn snapshot_as_is(&self, id: &str) -> Option<&SnapshotView> {
        self.state.snapshots.get(id).map(|held| &held.view)
    }

    fn holds(&self, truth: Truth) -> bool {
        self.rules.truths.holds(truth)
    }

    fn changed(&mut self) {
        self.state.version += 1;
    }

    /// An id that depends on the seed and on how many were made before.
    fn new_id(&mut self, prefix: &str) -> String {
        self.state.sequence += 1;
        let mut digest = Sha256::new();
        digest.update(self.rules.seed.to_be_bytes());
        digest.update(self.state.sequence.to_be_bytes());
        let hex = data_encoding::HEXLOWER.encode(&digest.finalize());
        format!("{prefix}-0{}", &hex[..16])
    }

    /// A resource that is new now.
    fn hold<T>(&mut self, view: T, effects: &Effects) -> Held<T> {
        let now = self.state.now;
        let lag = self.rules.visibility;
        let mut visible =
            Visible { by_id: now + lag.by_id, by_filter: now + lag.by_filter, tags: now + lag.tags };
        for (sight, time) in &effects.invisible {
            visible.hide(*sight, now + *time);
        }
        self.state.sequence += 1;
        self.changed();
        Held { view, visible, order: self.state.sequence, epoch: 0 }
    }

    fn sees_id(&self, visible: &Visible) -> bool {
        !self.holds(Truth::EventualConsistency) || visible.by_id <= self.state.now
    }

    fn sees_in_lists(&self, visible: &Visible) -> bool {
        !self.holds(Truth::EventualConsistency) || visible.by_filter <= self.state.now
    }

    fn sees_tags(&self, visible: &Visible) -> bool {
        !self.holds(Truth::EventualConsistency) || visible.tags <= self.state.now
    }
}

impl Visible {
    fn hide(&mut self, sight: Sight, until: Timestamp) {
        match sight {
            Sight::Id => self.by_id = self.by_id.max(until),
            Sight::Filter => self.by_filter = self.by_filter.max(until),
            Sight::Tags => self.tags = self.tags.max(until),
            Sight::All => {
                self.hide(Sight::Id, until);
                self.hide(Sight::Filter, until);
                self.hide(Sight::Tags, until);
            }
        }
    }
}

fn in_order<T>(held: &BTreeMap<String, Held<T>>) -> impl Iterator<Item = &Held<T>> {
    let mut all: Vec<&Held<T>> = held.values().collect();
    all.sort_by_key(|one| one.order);
    all.into_iter()
}
