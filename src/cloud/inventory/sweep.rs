//! The loops that fill the inventory: when to list, and what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Inventory, State};
use crate::api::{ClientToken, InstanceId, VolumeId};
use crate::cloud::call::Call;
use crate::cloud::error::Class;
use crate::cloud::identity::{self, Kind};
use crate::cloud::limits::Priority;
use crate::cloud::{CloudError, InstanceQuery, InstanceState, VolumeQuery};

/// The most values that one filter takes (EC2 API reference, "Filters").
const VALUES_PER_FILTER: usize = 200;

/// Between two looks at whether instances are well while some kubelet is late. EC2 runs its checks every minute: a look costs three calls.
pub(super) const SOON: Duration = Duration::from_secs(15);

/// What one loop remembers between its sweeps.
pub(super) struct Rhythm {
    kind: Kind,
    pub started: Instant,
    failures: u32,
}

impl Rhythm {
    pub fn new(kind: Kind, now: Instant) -> Self {
        Self { kind, started: now, failures: 0 }
    }
}

impl Inventory {
    /// Sweeps one kind until it is told to stop: at once, then as often as what is awaited asks for.
    pub(super) async fn keep(&self, kind: Kind, stop: &CancellationToken) {
        let mut rhythm = Rhythm::new(kind, Instant::now());
        // Nobody asks for snapshots until a pass does.
        let mut is_due = kind != Kind::Snapshot;
        while !stop.is_cancelled() {
            if is_due {
                rhythm.started = Instant::now();
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.sweep(&mut rhythm) => {}
                }
            }
            // A nudge only says that the time may have changed: the loop asks again.
            is_due = tokio::select! {
                () = stop.cancelled() => return,
                () = at(self.due(&rhythm)) => true,
                () = self.nudges.of(kind).notified() => false,
            };
        }
    }

    /// When the next sweep is due; `None`: not until somebody asks.
    pub(super) fn due(&self, rhythm: &Rhythm) -> Option<Instant> {
        let state = self.lock();
        let (is_pending, is_poked) = match rhythm.kind {
            Kind::Node => (state.instances.is_pending(), state.instances.is_poked()),
            Kind::Volume => (state.volumes.is_pending(), state.volumes.is_poked()),
            Kind::Snapshot => (state.snapshots.is_pending(), state.snapshots.is_poked()),
        };
        let idle = match rhythm.kind {
            Kind::Node => Some(self.timing.sweep_instances),
            Kind::Volume => Some(self.timing.sweep_volumes),
            Kind::Snapshot => None,
        };
        let wanted = if is_poked {
            Some(self.timing.sweep_pending / 4)
        } else if is_pending {
            Some(self.timing.sweep_pending)
        } else {
            idle
        };
        if rhythm.failures == 0 {
            return wanted.map(|wait| rhythm.started + wait);
        }
        // A failed sweep is tried again soon, then less and less often, but no less often than instances are swept when idle.
        let calm = self.timing.sweep_pending.saturating_mul(1 << rhythm.failures.min(6)).min(self.timing.sweep_instances);
        wanted.map(|_| rhythm.started + calm)
    }

    /// One sweep of a kind, and what became of it.
    pub(super) async fn sweep(&self, rhythm: &mut Rhythm) {
        match self.look(rhythm).await {
            Ok(()) => rhythm.failures = 0,
            Err(error) => self.note_failure(rhythm, &error),
        }
    }

    async fn look(&self, rhythm: &mut Rhythm) -> Result<(), CloudError> {
        match rhythm.kind {
            Kind::Node => {
                self.sweep_instances().await?;
                self.look_up_tokens().await?;
                // Three calls: only at the idle rhythm, however fast the sweeps come.
                if self.is_health_due(self.timing.sweep_instances, rhythm.started) && !self.lock().instances.is_empty() {
                    self.look_at_health(rhythm.started).await?;
                }
                Ok(())
            }
            Kind::Volume => {
                self.sweep_volumes().await?;
                self.look_up_modifications().await
            }
            Kind::Snapshot => self.sweep_snapshots().await,
        }
    }

    async fn sweep_instances(&self) -> Result<(), CloudError> {
        self.turn(Call::DescribeInstances, 1).await;
        self.lock().instances.begin();
        let started = self.clock.now();
        let query = InstanceQuery::Tags(identity::cluster_tags(&self.cluster_id));
        let instances = match self.cloud.describe_instances(&query).await {
            Ok(instances) => instances,
            Err(error) => {
                // Only if EC2 itself answered: without a way to EC2 more calls say nothing more.
                if error.class == Class::InDoubt && error.code.is_some() {
                    self.refresh_by_zone().await;
                }
                return Err(error);
            }
        };
        let mut state = self.lock();
        state.refused_zones.clear();
        let woken = state.instances.apply_sweep(started, instances);
        state.wake(Kind::Node, woken);
        Ok(())
    }

    /// Looks at the known instances by id, zone by zone: while a zone is disrupted EC2 refuses lists without ids for the whole Region,
    /// but answers for the ids of healthy zones. That shows changes and is no sweep: it proves nothing absent and makes no age younger.
    async fn refresh_by_zone(&self) {
        let mut zones: BTreeMap<String, Vec<InstanceId>> = BTreeMap::new();
        // One that EC2 has forgotten would fail the call for all: terminated ones are left out.
        for instance in self.lock().instances.swept_values().filter(|instance| instance.state != InstanceState::Terminated) {
            zones.entry(instance.zone.clone()).or_default().push(instance.id.clone());
        }
        for (zone, ids) in zones {
            for ids in ids.chunks(VALUES_PER_FILTER) {
                self.turn(Call::DescribeInstances, 1).await;
                let started = self.clock.now();
                match self.cloud.describe_instances(&InstanceQuery::Ids(ids.to_vec())).await {
                    Ok(instances) => {
                        let mut state = self.lock();
                        let woken = state.instances.refresh(started, instances);
                        state.wake(Kind::Node, woken);
                    }
                    Err(error) => {
                        tracing::warn!(zone, error = %error, "EC2 does not answer for the instances of this zone");
                        self.lock().refused_zones.insert(zone.clone());
                    }
                }
            }
        }
    }

    /// Looks at these instances now, whatever the rhythm of the sweeps, and wakes the owners of those that changed; while any of them
    /// still runs, asks soon whether instances are well, too. For machines whose kubelets are late.
    pub async fn look_at(&self, ids: &[InstanceId]) -> Result<(), CloudError> {
        let mut still_runs = false;
        for ids in ids.chunks(VALUES_PER_FILTER) {
            self.turn(Call::DescribeInstances, 1).await;
            let started = self.clock.now();
            let instances = self.slowed(self.cloud.describe_instances(&InstanceQuery::Among(ids.to_vec())).await)?;
            still_runs |= instances.iter().any(|instance| instance.state == InstanceState::Running);
            let mut state = self.lock();
            let woken = state.instances.refresh(started, instances);
            state.wake(Kind::Node, woken);
        }
        let now = Instant::now();
        if still_runs && self.is_health_due(SOON, now) {
            self.slowed(self.look_at_health(now).await)?;
        }
        Ok(())
    }

    /// Whether it is this long since instances were last asked whether they are well.
    pub(super) fn is_health_due(&self, pause: Duration, now: Instant) -> bool {
        self.health_at.lock().unwrap_or_else(PoisonError::into_inner).is_none_or(|at| now.duration_since(at) >= pause)
    }

    async fn look_up_tokens(&self) -> Result<(), CloudError> {
        let tokens = self.lock().instances.tokens();
        for tokens in tokens.chunks(VALUES_PER_FILTER) {
            let tokens: Vec<ClientToken> = tokens.to_vec();
            self.turn(Call::DescribeInstances, 1).await;
            let started = self.clock.now();
            let found = self.cloud.describe_instances(&InstanceQuery::Tokens(tokens.clone())).await?;
            let mut state = self.lock();
            let woken = state.instances.apply_tokens(started, &tokens, &found, |instance| instance.token.as_ref());
            state.wake(Kind::Node, woken);
        }
        Ok(())
    }

    async fn look_at_health(&self, began: Instant) -> Result<(), CloudError> {
        self.turn(Call::DescribeInstanceStatus, 3).await;
        let unhealthy = self.cloud.describe_unhealthy_instances().await?;
        // The same answer is news to those who did not believe the last one any more.
        let was_forgotten = self.is_health_due(self.timing.trust(), began);
        let mut state = self.lock();
        let woken = {
            let State { instances, unhealthy: before, .. } = &*state;
            let changed: BTreeSet<_> = unhealthy
                .iter()
                .filter(|health| was_forgotten || !before.contains(health))
                .chain(before.iter().filter(|health| !unhealthy.contains(health)))
                .map(|health| health.id.clone())
                .collect();
            instances.owners_where(|instance| changed.contains(&instance.id))
        };
        state.unhealthy = unhealthy;
        state.wake(Kind::Node, woken);
        *self.health_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(began);
        Ok(())
    }

    async fn sweep_volumes(&self) -> Result<(), CloudError> {
        self.turn(Call::DescribeVolumes, 1).await;
        self.lock().volumes.begin();
        let started = self.clock.now();
        let query = VolumeQuery::Tags(identity::cluster_tags(&self.cluster_id));
        let volumes = self.cloud.describe_volumes(&query).await?;
        let mut state = self.lock();
        let woken = state.volumes.apply_sweep(started, volumes);
        state.wake(Kind::Volume, woken);
        Ok(())
    }

    async fn look_up_modifications(&self) -> Result<(), CloudError> {
        let modifying: Vec<VolumeId> = self.lock().volumes.modifying().into_iter().collect();
        for ids in modifying.chunks(VALUES_PER_FILTER) {
            self.turn(Call::DescribeVolumesModifications, 1).await;
            let found = self.cloud.describe_modifications(ids).await?;
            let mut state = self.lock();
            let mut changed = BTreeSet::new();
            for id in ids {
                let answer = found.iter().find(|modification| modification.volume == *id).cloned();
                if state.modifications.get(id) != Some(&answer) {
                    state.modifications.insert(id.clone(), answer);
                    changed.insert(id.clone());
                }
            }
            let woken = state.volumes.owners_modifying(&changed);
            state.wake(Kind::Volume, woken);
        }
        Ok(())
    }

    async fn sweep_snapshots(&self) -> Result<(), CloudError> {
        self.turn(Call::DescribeSnapshots, 1).await;
        self.lock().snapshots.begin();
        let started = self.clock.now();
        let snapshots = self.cloud.describe_snapshots(&identity::cluster_tags(&self.cluster_id)).await?;
        let mut state = self.lock();
        let woken = state.snapshots.apply_sweep(started, snapshots);
        state.wake(Kind::Snapshot, woken);
        Ok(())
    }

    /// Waits until this many requests of this call are ours to make.
    async fn turn(&self, call: Call, requests: usize) {
        for _ in 0..requests {
            while let Err(wait) = self.limits.try_take(call, Priority::Repair, self.clock.now()) {
                let pause = Duration::try_from(wait.until.duration_since(self.clock.now())).unwrap_or(Duration::ZERO);
                // At least a moment, so that a clock that stands still does not make this loop spin.
                tokio::time::sleep(pause.max(Duration::from_millis(10))).await;
            }
        }
    }

    /// The same answer; a throttle slows the calls of its kind.
    fn slowed<T>(&self, answer: Result<T, CloudError>) -> Result<T, CloudError> {
        answer.inspect_err(|error| self.slow(error))
    }

    fn slow(&self, error: &CloudError) {
        if error.class == Class::Throttled
            && let Some(call) = Call::ALL.into_iter().find(|call| call.as_str() == error.action)
        {
            self.limits.throttled(call, self.clock.now());
        }
    }

    fn note_failure(&self, rhythm: &mut Rhythm, error: &CloudError) {
        rhythm.failures = rhythm.failures.saturating_add(1);
        self.slow(error);
        tracing::warn!(kind = rhythm.kind.as_str(), failures = rhythm.failures, error = %error, "a sweep of EC2 failed; what is known grows older");
        let mut state = self.lock();
        match rhythm.kind {
            Kind::Node => state.instances.note_failure(error.to_string()),
            Kind::Volume => state.volumes.note_failure(error.to_string()),
            Kind::Snapshot => state.snapshots.note_failure(error.to_string()),
        }
    }
}

/// Sleeps until then; for ever without a time.
async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
