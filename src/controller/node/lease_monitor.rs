//! Finds machines whose kubelets are late, and requests their state from EC2 long before an inventory sync or
//! a node's condition would show it.
//!
//! A kubelet renews its Lease every 10 s. Kubernetes calls a node not Ready after 50 s, and EC2 is listed
//! every 60 s. A Lease that has not changed for 17 s costs one read of EC2 for all the late ones together, so
//! that a machine that was killed is known within 30 s; while no Lease is stale nothing is requested of EC2.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::ResourceExt;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::registration::instance_of;
use crate::api::InstanceId;
use crate::cluster::leases;
use crate::controller::pass::context::Context;

/// For how long EC2 is asked at each poll about a machine whose Lease is stale; then the inventory syncs do.
const POLLED_FOR: Duration = Duration::from_secs(60);

/// Polls until it is stopped.
pub async fn run(ctx: Arc<Context>, stop: CancellationToken) {
    let mut beats = Beats::default();
    let mut looks = tokio::time::interval(ctx.timing.lease_poll_interval);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut changes = ctx.core_nodes.changes();
    let mut leaving = HashSet::new();
    loop {
        let late = tokio::select! {
            () = stop.cancelled() => return,
            _ = looks.tick() => {
                forget_gone(&ctx, &mut leaving);
                look(&ctx, &mut beats).await
            }
            // A cloud-controller deletes the Node of a machine that has ended: EC2 may show it long before
            // the next inventory sync.
            Some(core_node) = changes.next() => is_leaving(&core_node,
            &mut leaving).then(|| instance_of(&core_node)).flatten().into_iter().collect(),
        };
        if late.is_empty() {
            continue;
        }
        tracing::info!(instances = ?late,
        "kubelets are late, or their Nodes are being deleted: EC2 is asked about their machines");
        tokio::select! {
            () = stop.cancelled() => return,
            looked = ctx.inventory.look_at(&late) => {
                if let Err(error) = looked {
                    tracing::warn!(%error, "EC2 could not be asked about machines whose kubelets are late");
                }
            }
        }
    }
}

/// Forgets the core Nodes that are gone.
fn forget_gone(ctx: &Context, leaving: &mut HashSet<String>) {
    if !leaving.is_empty()
        && let Some(uids) = ctx.core_nodes.picked(ResourceExt::uid)
    {
        leaving.retain(|uid| uids.contains(uid));
    }
}

/// Whether the deletion of this core Node is news.
fn is_leaving(core_node: &CoreNode, known: &mut HashSet<String>) -> bool {
    core_node.metadata.deletion_timestamp.is_some() && core_node.uid().is_some_and(|uid| known.insert(uid))
}

/// One list of Leases, and the machines to ask EC2 about.
async fn look(ctx: &Context, beats: &mut Beats) -> Vec<InstanceId> {
    // Others' machines are not ours to ask about.
    let is_ours = |id: &InstanceId| ctx.references.by_instance(id).is_some();
    let machine =
        |core_node: &_| Some((ResourceExt::name_any(core_node), instance_of(core_node).filter(is_ours)?));
    let machines = ctx.core_nodes.picked(machine).unwrap_or_default();
    if machines.is_empty() {
        return Vec::new();
    }
    match leases::renewals(&ctx.client).await {
        Ok(renewals) => beats.late(
            &renewals,
            &machines,
            ctx.timing.lease_stale_after,
            ctx.timing.lease_poll_interval,
            Instant::now(),
        ),
        Err(error) => {
            tracing::warn!(%error, "the kubelets' Leases could not be listed");
            Vec::new()
        }
    }
}

/// When each Lease was seen to change, by our own clock: a kubelet's may be wrong.
#[derive(Default)]
struct Beats {
    changed: HashMap<String, (Option<Timestamp>, Instant)>,
    looked: Option<Instant>,
}

impl Beats {
    /// Takes a list of Leases; gives the machines whose Leases have stayed the same for this long, and not
    /// for a minute longer.
    fn late(
        &mut self,
        renewals: &BTreeMap<String, Option<Timestamp>>,
        machines: &[(String, InstanceId)],
        silence_timeout: Duration,
        every: Duration,
        now: Instant,
    ) -> Vec<InstanceId> {
        // While nothing could be seen (the API server was away) no Lease was stale.
        if self.looked.is_none_or(|looked| now.duration_since(looked) > every * 2) {
            self.changed.clear();
        }
        self.looked = Some(now);
        self.changed.retain(|name, _| renewals.contains_key(name));
        let mut late = Vec::new();
        for (name, id) in machines {
            let Some(renewed) = renewals.get(name) else { continue };
            let (known, changed) = self.changed.entry(name.clone()).or_insert((*renewed, now));
            if known != renewed {
                (*known, *changed) = (*renewed, now);
            }
            let silent = now.duration_since(*changed);
            if silent >= silence_timeout && silent < silence_timeout + POLLED_FOR {
                late.push(id.clone());
            }
        }
        late
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    const LOOK: Duration = Duration::from_secs(5);
    const SILENCE_TIMEOUT: Duration = Duration::from_secs(17);

    /// Looks every five seconds at one machine whose Lease holds what `renewed` gives for the second; the
    /// seconds at which it is late.
    fn late_at(seconds: impl IntoIterator<Item = u64>, renewed: impl Fn(u64) -> Option<i64>) -> Vec<u64> {
        let (mut beats, start) = (Beats::default(), Instant::now());
        let machines = [("ip-10-0-0-1".to_owned(), InstanceId("i-1".to_owned()))];
        let is_late = |second: &u64| {
            let time = renewed(*second).map(|second| Timestamp::from_second(second).unwrap());
            let renewals = BTreeMap::from([("ip-10-0-0-1".to_owned(), time)]);
            !beats
                .late(&renewals, &machines, SILENCE_TIMEOUT, LOOK, start + Duration::from_secs(*second))
                .is_empty()
        };
        seconds.into_iter().filter(is_late).collect()
    }

    fn looks(until: u64) -> impl Iterator<Item = u64> {
        (0..=until / 5).map(|look| look * 5)
    }

    #[test]
    fn a_kubelet_that_renews_every_ten_seconds_is_never_late() {
        for phase in 0..10 {
            assert_eq!(
                late_at(looks(600), |second| Some(i64::try_from((second + phase) / 10).unwrap())),
                Vec::<u64>::new(),
                "{phase}"
            );
        }
    }

    #[test]
    fn one_that_stops_is_asked_about_within_twenty_five_seconds_of_its_last_renewal_and_for_a_minute() {
        for phase in 0..10 {
            let last = 20 + phase;
            let renewed =
                |second: u64| Some((i64::try_from(second).unwrap().min(last) - phase).div_euclid(10));
            let late = late_at(looks(300), renewed);
            assert!(late[0] <= u64::try_from(last).unwrap() + 25, "{phase}: {late:?}");
            assert_eq!(late.len(), 12, "{phase}: {late:?}");
        }
    }

    #[test]
    fn a_clock_that_is_wrong_does_not_matter_and_a_lease_without_a_time_counts_from_when_it_is_seen() {
        assert_eq!(
            late_at(looks(600), |second| Some(-1_000_000 + i64::try_from(second / 10).unwrap())),
            Vec::<u64>::new()
        );
        assert_eq!(late_at(looks(25), |_| None), [20, 25]);
    }

    #[test]
    fn nobody_is_late_after_a_time_in_which_nothing_could_be_seen() {
        assert_eq!(late_at([0, 5, 100, 105, 110, 115], |_| Some(0)), Vec::<u64>::new());
        assert_eq!(late_at([0, 5, 100, 105, 110, 115, 120], |_| Some(0)), [120]);
    }

    #[test]
    fn a_machine_without_a_lease_is_not_late() {
        let mut beats = Beats::default();
        let machines = [("ip-10-0-0-1".to_owned(), InstanceId("i-1".to_owned()))];
        for second in looks(100) {
            let now = Instant::now() + Duration::from_secs(second);
            assert_eq!(
                beats.late(&BTreeMap::new(), &machines, SILENCE_TIMEOUT, LOOK, now),
                Vec::<InstanceId>::new()
            );
        }
    }
}
