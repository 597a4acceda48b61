//! The simulator: one model behind a lock, with its clock, faults, journal and kept state; both faces call
//! it.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::watch;

use crate::{
    ApiError, Fate, Fault, InstanceView, JournalEntry, Model, OutsideAction, Policy, Refusal, Response,
    SnapshotView, Transition, Truth, Truths, VolumeView, World,
    action::reads,
    authorization,
    call_facts::facts,
    clock::Watch,
    faults::{Delivery, Faults, Hit},
    iam::Grant,
    journal::Journal,
    kept::{Kept, Late},
    model::Effects,
    options::{Clock, Options},
};

/// How long a signed request is accepted after its date (AWS Signature Version 4).
const SIGNATURE_HOLDS: Duration = Duration::from_mins(15);

/// A simulated EC2. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Simulator {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    core: Mutex<Core>,
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct Core {
    model: Model,
    watch: Watch,
    speed: Option<f64>,
    faults: Faults,
    journal: Journal,
    late: Vec<Late>,
    state: Option<PathBuf>,
    /// The model's version, and how many late sends there were, when the state was kept last.
    kept: (u64, usize),
    seed: u64,
    truths: Truths,
    policies: BTreeMap<String, Policy>,
    /// The statements that have allowed something, by caller.
    used: BTreeMap<String, BTreeSet<String>>,
}

/// An answer and how it gets to the caller.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) result: Result<Response, Refusal>,
    pub(crate) delivery: Delivery,
    /// When the call was carried out.
    pub(crate) at: Timestamp,
}

impl Simulator {
    /// A simulator with an empty account, or with the one that the state folder holds.
    ///
    /// # Errors
    /// If the journal or the state can't be read or written.
    pub fn new(options: Options) -> io::Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "the clock of the simulator begins somewhere")]
        let start = options.start.unwrap_or_else(Timestamp::now);
        let mut model = Model::new(&options, start);
        let mut late = Vec::new();
        if let Some(kept) = options.state.as_deref().map(Kept::take_up).transpose()?.flatten() {
            model.restore(kept.model.into_owned());
            late = kept.late.into_owned();
        }
        let mut faults = Faults::default();
        for fault in options.faults {
            faults.add(fault);
        }
        let core = Core {
            watch: Watch::starting(options.clock, model.now()),
            speed: match options.clock {
                Clock::Running { speed } => Some(speed),
                Clock::Manual => None,
            },
            faults,
            journal: Journal::open(options.journal.as_deref())?,
            kept: (model.version(), late.len()),
            late,
            state: options.state,
            seed: options.seed,
            truths: options.truths,
            policies: options.policies,
            used: BTreeMap::new(),
            model,
        };
        let changes = watch::Sender::new(core.model.version());
        Ok(Self { inner: Arc::new(Inner { core: Mutex::new(core), changes }) })
    }

    /// Makes one request as `caller` (an access key id): the parameters of the Query protocol, `Action` among
    /// them. An answer that a fault delays comes at once here.
    ///
    /// # Errors
    /// What EC2 refuses; [`ApiError::NoAnswer`] if a fault took the answer away.
    pub fn call<K: AsRef<str>, V: AsRef<str>>(
        &self,
        caller: &str,
        params: &[(K, V)],
    ) -> Result<Response, ApiError> {
        let params: Vec<_> =
            params.iter().map(|(key, value)| (key.as_ref().to_owned(), value.as_ref().to_owned())).collect();
        match self.perform(caller, &params) {
            Some(Answer { result, delivery: Delivery::Whole | Delivery::After(_), .. }) => Ok(result?),
            Some(Answer { delivery: Delivery::Lost | Delivery::Truncated, .. }) | None => {
                Err(ApiError::NoAnswer)
            }
        }
    }

    /// Makes one request; `None` means that it was dropped on its way.
    pub(crate) fn perform(&self, caller: &str, params: &[(String, String)]) -> Option<Answer> {
        self.with(|core| core.perform(caller, params))
    }

    /// The instances as they are, whatever callers can see of them; terminated ones for an hour.
    pub fn instances(&self) -> Vec<InstanceView> {
        self.with(|core| core.model.instances())
    }

    /// The instance of this id as it is.
    pub fn instance(&self, id: &str) -> Option<InstanceView> {
        self.with(|core| core.model.instance(id))
    }

    /// The volumes as they are.
    pub fn volumes(&self) -> Vec<VolumeView> {
        self.with(|core| core.model.volumes())
    }

    /// The volume of this id as it is.
    pub fn volume(&self, id: &str) -> Option<VolumeView> {
        self.with(|core| core.model.volume_as_is(id).cloned())
    }

    /// Whether this is true of all volumes as they are. None is copied.
    pub fn is_true_of_all_volumes(&self, is_true: impl Fn(&VolumeView) -> bool) -> bool {
        self.with(|core| core.model.are_all_volumes(&is_true))
    }

    /// The snapshots as they are.
    pub fn snapshots(&self) -> Vec<SnapshotView> {
        self.with(|core| core.model.snapshots())
    }

    /// The surroundings that the account was set up with.
    pub fn world(&self) -> World {
        self.with(|core| core.model.world().clone())
    }

    /// The account's twelve digits.
    pub(crate) fn account(&self) -> String {
        self.with(|core| core.model.world().account.clone())
    }

    /// Every change of a resource's state in this run, in order.
    pub fn transitions(&self) -> Vec<Transition> {
        self.with(|core| core.model.transitions())
    }

    /// All calls of this run so far.
    pub fn journal(&self) -> Vec<JournalEntry> {
        self.journal_since(0)
    }

    /// The calls after the entry with this number.
    pub fn journal_since(&self, seq: u64) -> Vec<JournalEntry> {
        self.with(|core| core.journal.since(seq))
    }

    /// The Sids of the statements of the caller's policy that have allowed something in this run (`#` and the
    /// number for a statement without a Sid).
    pub fn used_statements(&self, caller: &str) -> BTreeSet<String> {
        self.with(|core| core.used.get(caller).cloned().unwrap_or_default())
    }

    /// A number that grows whenever the truth changes, by a call or (while the simulator serves, or is asked)
    /// by time.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Adds a fault and answers with its id.
    pub fn add_fault(&self, fault: Fault) -> String {
        self.with(|core| core.faults.add(fault))
    }

    /// The faults that are set.
    pub fn faults(&self) -> Vec<Fault> {
        self.with(|core| core.faults.all())
    }

    /// Removes all faults. What they have already done stays.
    pub fn clear_faults(&self) {
        self.with(|core| core.faults.clear(None));
    }

    /// Removes the fault of this id.
    pub fn clear_fault(&self, id: &str) {
        self.with(|core| core.faults.clear(Some(id)));
    }

    /// Lets virtual time pass, at once.
    pub fn advance(&self, time: Duration) {
        self.with(|core| {
            core.watch.step(time);
            core.pass_time();
        });
    }

    /// Virtual time.
    pub fn now(&self) -> Timestamp {
        self.with(|core| core.watch.now())
    }

    /// Does something to the account as AWS or a person would.
    ///
    /// # Errors
    /// If there is no such resource.
    pub fn outside(&self, action: &OutsideAction) -> Result<(), Refusal> {
        self.with(|core| {
            core.model.outside(action)?;
            core.pass_time();
            Ok(())
        })
    }

    /// Brings the model up to the present; called again and again while the simulator serves.
    pub(crate) fn tick(&self) {
        self.with(|_| ());
    }

    /// Keeps the state with the present time, whether anything has changed or not.
    pub(crate) fn keep(&self) {
        self.with(|core| core.kept = (0, usize::MAX));
    }

    /// How much of the wall clock a virtual time takes; `None` if time is stepped by hand.
    pub(crate) fn in_wall_time(&self, time: Duration) -> Option<Duration> {
        self.with(|core| {
            core.speed
                .map(|speed| Duration::try_from_secs_f64(time.as_secs_f64() / speed).unwrap_or_default())
        })
    }

    /// Brings the model up to the present, does `work`, keeps the state and tells those who watch if anything
    /// has changed.
    fn with<T>(&self, work: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.lock();
        core.pass_time();
        let result = work(&mut core);
        let version = core.model.version();
        core.keep();
        drop(core);
        self.inner.changes.send_if_modified(|seen| std::mem::replace(seen, version.max(*seen)) < version);
        result
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.inner.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// Brings the model up to the present; sends that are due late are carried out at their moment.
    fn pass_time(&mut self) {
        let now = self.watch.now();
        self.late.sort_by_key(|late| late.at);
        while self.late.first().is_some_and(|late| late.at <= now) {
            let late = self.late.remove(0);
            self.model.advance(late.at);
            let call = facts(&late.caller, &late.params, |id| self.model.tags_of(id));
            let result = self.carry_out(&late.caller, late.at, &late.params, &Effects::default());
            let fate = if result.is_ok() { Fate::Lost } else { Fate::Refused };
            let entry = JournalEntry::of(late.at, &call, &late.params, Some(&result), fate, &Hit::default());
            self.journal.add(JournalEntry { late_of: Some(late.sent), ..entry });
        }
        self.model.advance(now);
    }

    fn perform(&mut self, caller: &str, params: &[(String, String)]) -> Option<Answer> {
        let now = self.model.now();
        let call = facts(caller, params, |id| self.model.tags_of(id));
        let hit = self.faults.hit(&call, self.seed);
        if hit.blocked || hit.late.is_some() {
            let sent = self.journal.add(JournalEntry::of(now, &call, params, None, Fate::Blocked, &hit));
            if let Some(delay) =
                hit.late.filter(|delay| *delay <= SIGNATURE_HOLDS && self.truths.holds(Truth::LateSend))
            {
                let late = Late { at: now + delay, caller: caller.to_owned(), params: params.to_vec(), sent };
                self.late.push(late);
            }
            return None;
        }
        let result = match &hit.refusal {
            Some((code, message)) => Err(Refusal::new(code, message)),
            None => self.carry_out(caller, now, params, &hit.effects),
        };
        let is_read = reads(&call.action);
        let fate = match &result {
            Err(_) => Fate::Refused,
            Ok(_) if is_read => Fate::Read,
            Ok(_) if matches!(hit.delivery, Delivery::Lost | Delivery::Truncated) => Fate::Lost,
            Ok(_) => Fate::Committed,
        };
        self.journal.add(JournalEntry::of(now, &call, params, Some(&result), fate, &hit));
        if let Ok(response) = &result {
            let mut resources = response.resource_ids();
            if resources.is_empty() {
                resources.clone_from(&call.resources);
            }
            for (delay, action) in hit.afterwards(&resources) {
                self.model.outside_later(delay, action);
            }
        }
        Some(Answer { result, delivery: hit.delivery, at: now })
    }

    /// Carries out a call that the caller's policy allows. A late send is authorised when it arrives.
    fn carry_out(
        &mut self,
        caller: &str,
        at: Timestamp,
        params: &[(String, String)],
        effects: &Effects,
    ) -> Result<Response, Refusal> {
        let grant = match self.policies.get(caller).filter(|_| self.truths.holds(Truth::PolicyHolds)) {
            Some(policy) => authorization::authorize(policy, caller, &self.model, params)?,
            None => Grant::default(),
        };
        if !grant.statements.is_empty() {
            self.used.entry(caller.to_owned()).or_default().extend(grant.statements);
        }
        let effects = Effects { key_refused: grant.key_refused, ..effects.clone() };
        self.model.call(at, params, &effects)
    }

    /// Writes the state if it has changed since it was last written.
    fn keep(&mut self) {
        let Some(folder) = &self.state else { return };
        let present = (self.model.version(), self.late.len());
        if self.kept == present {
            return;
        }
        let kept = Kept { model: Cow::Borrowed(self.model.state()), late: Cow::Borrowed(&self.late) };
        let written = kept.write(folder);
        match written {
            Ok(()) => self.kept = present,
            Err(error) => {
                tracing::error!(%error, folder = %folder.display(), "failed to keep the state");
            }
        }
    }
}
