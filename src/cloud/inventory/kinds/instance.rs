//! Instances: listed by cluster tag, and zone by zone while EC2 refuses that; looked up by the tokens that
//! passes await; and their health, at a slower interval.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::synced::Synced;

use crate::api::keys::{CLUSTER_ID_TAG, NODE_UID_TAG};
use crate::api::{ClientToken, InstanceId};
use crate::cloud::call::Call;
use crate::cloud::error::Class;
use crate::cloud::identity::{self, Kind};
use crate::cloud::inventory::known::{Instances, Named};
use crate::cloud::inventory::store::Resource;
use crate::cloud::inventory::{InstanceView, Inventory};
use crate::cloud::{
    CloudError, IDS_PER_HEALTH, Instance, InstanceHealth, InstanceQuery, InstanceState, VALUES_PER_FILTER,
};

/// The pause between two reads of the instances' health while a kubelet is late. EC2 runs its checks every
/// minute; a read costs three calls.
pub(in crate::cloud::inventory) const HEALTH_PAUSE_WHILE_LATE: Duration = Duration::from_secs(15);

pub(super) const SYNCED: Synced = Synced {
    idle: |timing| Some(timing.instance_sync_interval),
    sync: |inventory, began| Box::pin(sync(inventory, began)),
};

impl Resource for Instance {
    const KIND: Kind = Kind::Node;

    fn id(&self) -> &str {
        &self.id.0
    }

    fn tags(&self) -> &BTreeMap<String, String> {
        &self.tags
    }

    fn is_remains_of_another(&self, token: Option<&ClientToken>) -> bool {
        let is_another = self.token.as_ref().is_some_and(|own| token.is_none_or(|token| own != token));
        is_another && (self.state == InstanceState::Terminated || self.is_foreign())
    }
}

impl Instance {
    /// Whether its client token is not the one of the attempt that its tags name: a tag can be put on
    /// anything. Without one of the tags nothing is known.
    fn is_foreign(&self) -> bool {
        let tag = |key: &str| self.tags.get(key);
        let (Some(cluster), Some(uid)) = (tag(CLUSTER_ID_TAG), tag(NODE_UID_TAG)) else { return false };
        identity::attempt(&self.tags)
            .is_some_and(|attempt| self.token != Some(identity::token(cluster, Kind::Node, uid, attempt)))
    }
}

impl Inventory {
    /// What EC2 shows of the instances of this `Node`.
    pub fn instances_of(&self, node_uid: &str) -> InstanceView {
        let state = self.lock();
        let known = &state.known.instances;
        let instances = known.store.of(node_uid);
        // A machine may have recovered since: an answer is not believed for ever, and of a zone that EC2
        // refuses there is none.
        let is_old = known.is_health_old(self.timing.trust(), Instant::now())
            || instances.iter().any(|instance| known.refused_zones.contains(&instance.zone));
        let is_unhealthy =
            |health: &&InstanceHealth| !is_old && instances.iter().any(|instance| instance.id == health.id);
        InstanceView {
            unhealthy: known.unhealthy.iter().filter(is_unhealthy).cloned().collect(),
            is_health_known: !is_old,
            swept_at: known.swept_at(node_uid, &instances),
            instances,
            token_looked_up_at: known.store.token_looked_up_at(node_uid),
            empty: known.store.empty_runs(node_uid),
        }
    }

    /// This `Node` names this instance, in this zone, and is not being deleted; or it names none. While EC2
    /// refuses lists, what Nodes name is read by id.
    pub fn name_instance(&self, node_uid: &str, named: Option<(InstanceId, String)>) {
        let mut state = self.lock();
        let known = &mut state.known.instances;
        match named {
            Some((id, zone)) => known.named.insert(node_uid.to_owned(), Named { id, zone }),
            None => known.named.remove(node_uid),
        };
    }

    /// Whether EC2 shows this instance of a `Node` neither starting nor running.
    pub fn has_ended(&self, node_uid: &str, instance: &InstanceId) -> bool {
        let is_live =
            |state| matches!(state, InstanceState::Pending | InstanceState::Running | InstanceState::Unknown);
        self.lock()
            .known
            .instances
            .store
            .of(node_uid)
            .iter()
            .any(|known| known.id == *instance && !is_live(known.state))
    }

    /// Whether EC2 shows this instance with the tags of another `Node` than this one.
    pub fn is_of_another(&self, node_uid: &str, instance: &InstanceId) -> bool {
        let state = self.lock();
        state.known.instances.store.owner_of(&instance.0).is_some_and(|owner| owner != node_uid)
    }

    /// The live instances with the tags of a `Node` that has not existed for a whole absence window.
    pub fn unclaimed_instances(&self) -> Vec<Instance> {
        let state = self.lock();
        state.known.instances.store.unclaimed(self.timing.absence_window).cloned().collect()
    }

    /// Whether EC2 refused to list the instances of this zone, and no full sync has followed.
    pub fn refuses_zone(&self, zone: &str) -> bool {
        self.lock().known.instances.refused_zones.contains(zone)
    }

    /// True if an instance of this `Node` is known by its token alone: its tags lag, or were removed.
    pub fn is_by_token_alone(&self, node_uid: &str) -> bool {
        self.lock().known.instances.store.is_by_token_alone(node_uid)
    }

    /// Reads these instances now, whatever the interval of the syncs, and wakes the owners of those that
    /// changed. While any of them still runs, the health of the instances is read more often, too. For
    /// machines whose kubelets are late.
    pub async fn look_at(&self, ids: &[InstanceId]) -> Result<(), CloudError> {
        let mut still_runs = false;
        for ids in ids.chunks(VALUES_PER_FILTER) {
            self.acquire(Call::DescribeInstances, 1).await;
            let started = self.clock.now();
            let query = InstanceQuery::Among(ids.to_vec());
            let instances = match self.slowed(self.cloud.describe_instances(&query).await) {
                Err(error) if is_refused(&error) => {
                    let mut zones = self.lock().known.instances.by_zone();
                    for known in zones.values_mut() {
                        known.retain(|id| ids.contains(id));
                    }
                    zones.retain(|_, known| !known.is_empty());
                    read_by_zone(self, zones).await;
                    continue;
                }
                answer => answer?,
            };
            still_runs |= instances.iter().any(|instance| instance.state == InstanceState::Running);
            let mut state = self.lock();
            let woken = state.known.instances.store.refresh(started, instances);
            state.wake(Kind::Node, woken);
        }
        let now = Instant::now();
        let is_due = still_runs && self.lock().known.instances.is_health_due(HEALTH_PAUSE_WHILE_LATE, now);
        if is_due {
            self.slowed(read_health(self, now, true).await)?;
        }
        Ok(())
    }
}

/// One sync. Where EC2 refuses the list, it may answer what else is asked of it: what it shows then counts,
/// and what it does not show proves nothing.
async fn sync(inventory: &Inventory, began: Instant) -> Result<(), CloudError> {
    let listed = list(inventory).await;
    let is_whole = listed.is_ok();
    if listed.as_ref().is_err_and(|error| !is_refused(error)) {
        return listed;
    }
    let looked_up = look_up_tokens(inventory, is_whole).await;
    if is_whole {
        looked_up?;
    }
    // Three calls: only at the idle interval, however often the syncs come.
    let is_due = {
        let state = inventory.lock();
        let known = &state.known.instances;
        known.is_health_due(inventory.timing.instance_sync_interval, began)
            && !(is_whole && known.store.is_empty())
    };
    // The lists go on at their own interval, and the health is read again at its own.
    if is_due && let Err(error) = inventory.slowed(read_health(inventory, began, is_whole).await) {
        tracing::warn!(%error, "EC2 did not report the health of the instances; keeping the last report");
    }
    listed
}

async fn list(inventory: &Inventory) -> Result<(), CloudError> {
    let started = inventory.begin(Kind::Node, Call::DescribeInstances).await;
    let query = InstanceQuery::Tags(identity::cluster_tags(&inventory.cluster_id));
    let instances = match inventory.cloud.describe_instances(&query).await {
        Ok(instances) => instances,
        Err(error) => {
            if is_refused(&error) {
                let zones = inventory.lock().known.instances.by_zone();
                read_by_zone(inventory, zones).await;
            }
            return Err(error);
        }
    };
    let is_credible = is_credible(inventory, &instances).await;
    let mut state = inventory.lock();
    state.known.instances.refused_zones.clear();
    state.known.instances.read_by_id.clear();
    let woken = state.known.instances.store.apply_full_sync(started, instances, is_credible);
    state.wake(Kind::Node, woken);
    let known = &mut state.known.instances;
    known.store.note_unclaimed(|instance| {
        let is_live = !matches!(instance.state, InstanceState::ShuttingDown | InstanceState::Terminated);
        is_live && inventory.expects(&instance.tags)
    });
    Ok(())
}

/// Whether what a full sync does not show may be absent: it shows at least half of the instances that the
/// Nodes' statuses name, or some of them and EC2 does not show the others by their ids either, which no lost
/// tag hides. Of one that shows none, the ids say nothing: another account or Region knows none of them.
async fn is_credible(inventory: &Inventory, instances: &[Instance]) -> bool {
    let (coverage, missing) = inventory.lock().known.instances.store.coverage(instances);
    if !coverage.is_suspect() {
        return true;
    }
    let is_confirmed = coverage.shown > 0 && are_unknown(inventory, &missing).await;
    if !is_confirmed {
        inventory.report_suspect(Kind::Node, coverage);
    }
    is_confirmed
}

/// Whether EC2 answers that it knows none of these ids.
async fn are_unknown(inventory: &Inventory, ids: &[String]) -> bool {
    for ids in ids.chunks(VALUES_PER_FILTER) {
        inventory.acquire(Call::DescribeInstances, 1).await;
        let query = InstanceQuery::Among(ids.iter().cloned().map(InstanceId).collect());
        let answer = inventory.slowed(inventory.cloud.describe_instances(&query).await);
        if !answer.is_ok_and(|shown| shown.is_empty()) {
            return false;
        }
    }
    true
}

impl Instances {
    /// As of when the instances of this Node are known: as of the last full sync, or of a later read of the
    /// one that it names by its id, which shows what becomes of it, and not what else there is.
    fn swept_at(&self, node_uid: &str, instances: &[Instance]) -> Option<Timestamp> {
        let named = self.named.get(node_uid).map(|named| &named.id);
        let is_shown = |id: &&InstanceId| instances.iter().any(|instance| instance.id == **id);
        let read_at = named.filter(is_shown).and_then(|id| self.read_by_id.get(id)).copied();
        self.store.swept_at().max(read_at)
    }
}

/// Whether EC2 itself refused a list: while EC2 cannot be reached, more calls show nothing more.
fn is_refused(error: &CloudError) -> bool {
    error.class == Class::InDoubt && error.code.is_some()
}

/// Reads instances by id, zone by zone: while a zone is disrupted, EC2 refuses lists without ids for the
/// whole Region, but answers for the ids of healthy zones. This is no full sync: it proves no absence.
async fn read_by_zone(inventory: &Inventory, zones: BTreeMap<String, BTreeSet<InstanceId>>) {
    for (zone, ids) in zones {
        let ids: Vec<InstanceId> = ids.into_iter().collect();
        let mut refusal = None;
        for ids in ids.chunks(VALUES_PER_FILTER) {
            refusal = read_by_id(inventory, ids).await.err().or(refusal);
        }
        let mut state = inventory.lock();
        let refused_zones = &mut state.known.instances.refused_zones;
        match refusal {
            None => {
                refused_zones.remove(&zone);
            }
            Some(error) => {
                tracing::warn!(zone, %error,
                    "EC2 did not list the instances of this zone; keeping the previous data");
                refused_zones.insert(zone);
            }
        }
    }
}

/// Reads these instances by id. One that EC2 does not know fails the call for all of them: they are parted
/// until it is alone, and then it is left out.
async fn read_by_id(inventory: &Inventory, ids: &[InstanceId]) -> Result<(), CloudError> {
    let mut parts = vec![ids];
    while let Some(part) = parts.pop() {
        inventory.acquire(Call::DescribeInstances, 1).await;
        let started = inventory.clock.now();
        match inventory.cloud.describe_instances(&InstanceQuery::Ids(part.to_vec())).await {
            Ok(instances) => {
                let mut state = inventory.lock();
                let known = &mut state.known.instances;
                known.read_by_id.extend(instances.iter().map(|instance| (instance.id.clone(), started)));
                let woken = known.store.refresh(started, instances);
                state.wake(Kind::Node, woken);
            }
            Err(error) if error.class == Class::NotFound => {
                let (one, other) = part.split_at(part.len() / 2);
                parts.extend([one, other].into_iter().filter(|half| !half.is_empty() && part.len() > 1));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Looks up what passes await by its token. Only with a whole list of the same sync a token that EC2 does not
/// know counts towards a proof of absence: in a disruption EC2 may leave out what it has.
async fn look_up_tokens(inventory: &Inventory, is_whole: bool) -> Result<(), CloudError> {
    let tokens = inventory.lock().known.instances.store.tokens();
    for tokens in tokens.chunks(VALUES_PER_FILTER) {
        let tokens: Vec<ClientToken> = tokens.to_vec();
        inventory.acquire(Call::DescribeInstances, 1).await;
        let started = inventory.clock.now();
        let found = inventory.cloud.describe_instances(&InstanceQuery::Tokens(tokens.clone())).await?;
        let is_found = |token: &ClientToken| found.iter().any(|it| it.token.as_ref() == Some(token));
        let tokens: Vec<ClientToken> =
            tokens.into_iter().filter(|token| is_whole || is_found(token)).collect();
        let mut state = inventory.lock();
        let woken = state
            .known
            .instances
            .store
            .apply_tokens(started, &tokens, &found, |instance| instance.token.as_ref());
        state.wake(Kind::Node, woken);
    }
    Ok(())
}

/// Reads the health of all instances, or of those in the zones that EC2 answers for while it refuses lists.
async fn read_health(inventory: &Inventory, began: Instant, is_whole: bool) -> Result<(), CloudError> {
    inventory.lock().known.instances.health_requested_at = Some(began);
    let unhealthy = if is_whole {
        inventory.acquire(Call::DescribeInstanceStatus, 3).await;
        inventory.cloud.describe_unhealthy_instances().await?
    } else {
        health_by_id(inventory).await?
    };
    let mut state = inventory.lock();
    let known = &mut state.known.instances;
    // The same answer is a change for an owner for which the last one had expired.
    let had_expired = known.is_health_old(inventory.timing.trust(), began);
    let before = &known.unhealthy;
    let changed: BTreeSet<_> = unhealthy
        .iter()
        .filter(|health| had_expired || !before.contains(health))
        .chain(before.iter().filter(|health| !unhealthy.contains(health)))
        .map(|health| health.id.clone())
        .collect();
    let woken = known.store.owners_where(|instance| changed.contains(&instance.id));
    known.unhealthy = unhealthy;
    known.health_at = Some(began);
    state.wake(Kind::Node, woken);
    Ok(())
}

/// Which of the running instances in the zones that EC2 answers for are not well.
async fn health_by_id(inventory: &Inventory) -> Result<Vec<InstanceHealth>, CloudError> {
    let ids: Vec<InstanceId> = {
        let state = inventory.lock();
        let known = &state.known.instances;
        let is_asked =
            |it: &&Instance| it.state == InstanceState::Running && !known.refused_zones.contains(&it.zone);
        known.store.values().filter(is_asked).map(|instance| instance.id.clone()).collect()
    };
    let mut unhealthy = Vec::new();
    for ids in ids.chunks(IDS_PER_HEALTH) {
        inventory.acquire(Call::DescribeInstanceStatus, 1).await;
        unhealthy.extend(inventory.cloud.describe_health(ids).await?);
    }
    Ok(unhealthy)
}
