//! Which operator acts: one Lease for each set of namespaces, taken before anything is done, renewed while it
//! is done, released at the end. [Decision 0023](../../docs/decisions/0023-one-operator-acts.md) has the
//! reasons.

pub mod decision;
pub mod gate;
pub mod record;
pub mod scope;
pub mod standing;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use tokio::time::{Instant, MissedTickBehavior};

use self::decision::{Candidate, Decision, Lost, Refusal, Seen};
use self::scope::Scope;
use self::standing::{Stand, Standing};
use crate::api::EventReason;
use crate::cluster;
use crate::cluster::events::{Events, Happened};
use crate::error_chain::Chain;
use crate::metrics::Metrics;
use crate::settings::Election;
use crate::term::Term;

/// Where all operators of a cluster keep their Leases, so that they meet whatever namespaces they run in.
const NAMESPACE: &str = "kube-system";

/// The shortest pause between two looks at the Leases.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);

/// The Lease of this operator's term, as of its last write.
pub struct Held(Lease);

/// A call to the API server that failed.
#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error("failed to read or write the Leases in {NAMESPACE}")]
    Kube(#[from] kube::Error),
    #[error("the API server did not answer within {0:?}")]
    TimedOut(Duration),
}

/// This operator's part in the election.
pub struct Leadership {
    leases: Api<Lease>,
    us: Candidate,
    timing: Election,
    term: Arc<Term>,
    standing: Arc<Standing>,
    metrics: Arc<Metrics>,
    events: Events,
    /// The version of each Lease, and when it was first seen.
    versions: HashMap<String, (String, Instant)>,
}

impl Leadership {
    /// Of an operator that watches this scope under this cluster id.
    pub fn new(
        client: Client,
        timing: &Election,
        cluster_id: &str,
        scope: Scope,
        term: Arc<Term>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let us = Candidate {
            identity: timing.identity(),
            installation: timing.installation.clone(),
            cluster_id: cluster_id.to_owned(),
            scope,
            duration: timing.leader_elect_lease_duration,
        };
        Self {
            events: Events::new(gate::within(Arc::clone(&term), &client), "operator"),
            leases: Api::namespaced(client, NAMESPACE),
            us,
            timing: timing.clone(),
            term,
            standing: Arc::default(),
            metrics,
            versions: HashMap::new(),
        }
    }

    /// How this operator stands.
    pub fn standing(&self) -> Arc<Standing> {
        Arc::clone(&self.standing)
    }

    /// Waits until this operator may act, and begins its term.
    pub async fn take(&mut self) -> Held {
        loop {
            match self.try_to_take().await {
                Ok(Some(held)) => return held,
                Ok(None) => {}
                Err(error) => {
                    let why = Chain(&error).to_string();
                    tracing::warn!(error = why, "failed to look at the Leases; trying again");
                    self.standing.set(Stand::Unknown(why));
                }
            }
            tokio::time::sleep(self.pause()).await;
        }
    }

    /// Keeps the term until it is lost. From then on nothing is written.
    pub async fn keep(&self, held: &mut Held) -> Lost {
        let lease = held.0.clone();
        let lost = tokio::select! {
            biased;
            () = self.term.over() => {
                if self.term.clock_was_set() { Lost::ClockSet } else { Lost::NotRenewed }
            }
            lost = self.renew_again_and_again(held) => lost,
            lost = async { self.announce(&lease).await; std::future::pending().await } => lost,
        };
        self.term.end();
        self.metrics.leading(false);
        lost
    }

    /// Ends the term so that another operator may take the Lease at once; only when no pass runs any more.
    pub async fn release(&self, held: &Held) {
        self.term.end();
        self.metrics.leading(false);
        let lease = record::released(&held.0);
        let name = lease.name_any();
        match self.call(self.leases.replace(&name, &PostParams::default(), &lease)).await {
            Ok(_) => tracing::info!(lease = name, "released the Lease"),
            Err(error) => {
                tracing::warn!(lease = name, error = %Chain(&error), "failed to release the Lease");
            }
        }
    }

    /// One look at the Leases; takes ours if that is allowed.
    async fn try_to_take(&mut self) -> Result<Option<Held>, CallError> {
        let (leases, seen) = self.look().await?;
        match decision::decide(&seen, &self.us) {
            Decision::Take => {}
            Decision::StandBy { holder } => {
                if self.standing.set(Stand::StandingBy(holder.clone())) {
                    tracing::info!(holder, identity = self.us.identity, "another replica leads; standing by");
                }
                return Ok(None);
            }
            Decision::Refuse(refusal) => {
                self.refuse(refusal);
                return Ok(None);
            }
        }
        let name = self.us.scope.lease_name();
        let own = leases.into_iter().find(|lease| lease.name_any() == name);
        let before = own.as_ref().map(record::claim);
        let sent = self.term.about_to_renew();
        let is_there = own.is_some();
        let lease = record::taken(own, &self.us, sent.time);
        let written = if is_there {
            self.call(self.leases.replace(&name, &PostParams::default(), &lease)).await
        } else {
            self.call(self.leases.create(&PostParams::default(), &lease)).await
        };
        let held = match written {
            Ok(lease) => Held(lease),
            Err(CallError::Kube(error))
                if cluster::is_conflict(&error) || cluster::is_already_exists(&error) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        // Each operator writes its own claim before it reads those of the others: of two that begin at the
        // same time at least one sees the other.
        let (_, seen) = self.look().await?;
        if let Some(refusal) = decision::overlapping(&seen, &self.us) {
            self.release(&held).await;
            self.refuse(refusal);
            tokio::time::sleep(self.jitter()).await;
            return Ok(None);
        }
        self.term.renewed(sent, self.timing.leader_elect_renew_deadline);
        self.standing.set(Stand::Leading);
        self.metrics.leading(true);
        let term = record::claim(&held.0).transitions;
        let former = before.map(|claim| claim.holder).unwrap_or_default();
        tracing::info!(
            lease = name,
            identity = self.us.identity,
            former,
            term,
            "took the Lease: this operator leads"
        );
        Ok(Some(held))
    }

    fn refuse(&self, refusal: Refusal) {
        let why = refusal.to_string();
        if self.standing.set(Stand::Refusing(refusal)) {
            tracing::error!(why, "this operator does not act");
        }
    }

    /// Every Lease that an operator may have, with what it says and for how long it has stayed the same.
    async fn look(&mut self) -> Result<(Vec<Lease>, Vec<Seen>), CallError> {
        let asked = Instant::now();
        // Without a resourceVersion: never an old answer from the API server's cache.
        let list = self.call(self.leases.list(&ListParams::default())).await?;
        let leases: Vec<Lease> =
            list.items.into_iter().filter(|lease| Scope::is_lease(&lease.name_any())).collect();
        let before = std::mem::take(&mut self.versions);
        let mut seen = Vec::new();
        for lease in &leases {
            let (name, version) = (lease.name_any(), lease.resource_version().unwrap_or_default());
            let known = before.get(&name).filter(|(known, _)| *known == version);
            // What is new is seen from now on, after its answer.
            let since = known.map_or_else(Instant::now, |(_, since)| *since);
            seen.push(Seen {
                claim: record::claim(lease),
                unchanged_for: asked.saturating_duration_since(since),
            });
            self.versions.insert(name, (version, since));
        }
        Ok((leases, seen))
    }

    /// Until the next look: the retry period, or until the first Lease would have been unchanged for its
    /// term.
    fn pause(&self) -> Duration {
        let now = Instant::now();
        let ends = self
            .versions
            .values()
            .map(|(_, since)| (*since + self.us.duration).saturating_duration_since(now));
        let next = ends.filter(|left| !left.is_zero()).min().unwrap_or(Duration::MAX);
        next.min(self.timing.leader_elect_retry_period).max(SHORTEST_PAUSE)
    }

    /// Up to a retry period by chance: two operators that withdrew for each other do not meet again for ever.
    fn jitter(&self) -> Duration {
        let part = f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX);
        self.timing.leader_elect_retry_period.mul_f64(part)
    }

    async fn renew_again_and_again(&self, held: &mut Held) -> Lost {
        let period = self.timing.leader_elect_retry_period;
        let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
        // A renewal that the API server did not answer in time is tried again at once.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(lost) = self.renew(held).await {
                return lost;
            }
        }
    }

    /// Publishes that this operator leads, on its Lease as Kubernetes' own controllers do, however long the
    /// API server takes for it; one that fails is logged.
    async fn announce(&self, lease: &Lease) {
        let note = format!("operator {} leads from now on", self.us.identity);
        self.events.publish(lease, &Happened::normal(EventReason::LeaderElection, note)).await;
    }

    /// Renews once; where another client wrote the Lease meanwhile, or the answer to an earlier renewal was
    /// lost, reads it and tries once more. What fails otherwise is tried again after the retry period.
    async fn renew(&self, held: &mut Held) -> Result<(), Lost> {
        for _ in 0..2 {
            let sent = self.term.about_to_renew();
            let lease = record::renewed(&held.0, sent.time);
            let name = lease.name_any();
            match self.call(self.leases.replace(&name, &PostParams::default(), &lease)).await {
                Ok(lease) => {
                    *held = Held(lease);
                    self.term.renewed(sent, self.timing.leader_elect_renew_deadline);
                    return Ok(());
                }
                Err(CallError::Kube(error))
                    if cluster::is_conflict(&error) || cluster::is_not_found(&error) =>
                {
                    self.read_again(held).await?;
                }
                Err(error) => {
                    let why = Chain(&error).to_string();
                    tracing::warn!(lease = name, why, "failed to renew the Lease; trying again");
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads the Lease of this term anew, if it still is that of this term.
    async fn read_again(&self, held: &mut Held) -> Result<(), Lost> {
        let name = held.0.name_any();
        let found = match self.call(self.leases.list(&ListParams::default())).await {
            Ok(list) => list.items.into_iter().find(|lease| lease.name_any() == name),
            Err(error) => {
                let why = Chain(&error).to_string();
                tracing::warn!(lease = name, why, "failed to read the Lease; trying again");
                return Ok(());
            }
        };
        let claim = found.as_ref().map(record::claim);
        decision::goes_on(claim.as_ref(), &self.us, record::claim(&held.0).transitions)?;
        if let Some(lease) = found {
            *held = Held(lease);
        }
        Ok(())
    }

    /// A call with a time limit of half the renew deadline, as in Kubernetes' own controllers: an API server
    /// that takes seconds for an answer does not cost the term, nor does a connection that is dead.
    async fn call<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, CallError> {
        let limit = self.timing.leader_elect_renew_deadline / 2;
        Ok(tokio::time::timeout(limit, call).await.map_err(|_| CallError::TimedOut(limit))??)
    }
}
