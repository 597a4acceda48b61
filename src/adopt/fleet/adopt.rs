//! Adopts one database of many, as it is adopted by itself.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use backoff::ExponentialBackoffBuilder;
use backoff::backoff::Backoff as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt};
use tokio::time::sleep;

use super::entry::{Entry, State};
use super::look::{Job, Look};
use crate::adopt::error::AdoptError;
use crate::adopt::wanted::Wanted;
use crate::adopt::write::Writer;
use crate::api::{Database, SnapshotId, names};
use crate::clock::{Clock as _, SystemClock};
use crate::cloud::{Class, Cloud};

/// How long EC2 may go on asking to slow down before a database counts as failed: hundreds of tags use up
/// what an account may write in a burst, and some calls a second go on (EC2 developer guide, "Request
/// throttling").
const THROTTLING_LIMIT: Duration = Duration::from_secs(120);

/// Who adopts.
pub struct Adopter<'a> {
    /// The API server.
    pub client: &'a Client,
    /// EC2, with the credentials of the caller.
    pub cloud: &'a dyn Cloud,
    /// Reads the database again before it is begun.
    pub look: Look<'a>,
    /// How long it may take until it is Ready.
    pub timeout: Duration,
}

impl Adopter<'_> {
    /// Adopts it; what became of it.
    pub async fn adopt(&self, job: Job) -> Entry {
        let started_at = Some(SystemClock.now());
        // What Ready says last, for the entry of one that does not become it.
        let last_said = Mutex::new(String::new());
        let say = |line: &str| line.clone_into(&mut last_said.lock().unwrap_or_else(PoisonError::into_inner));
        let mut entry = job.entry.clone();
        let done = self.attempt(job, &mut entry, &say).await;
        let last_said = last_said.into_inner().unwrap_or_else(PoisonError::into_inner);
        let entry = match done {
            Ok(()) => entry,
            Err(error) => entry.failed(&error, &last_said),
        };
        Entry { started_at, finished_at: Some(SystemClock.now()), ..entry }
    }

    async fn attempt(
        &self,
        job: Job,
        entry: &mut Entry,
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<(), AdoptError> {
        let job = self.look.again(job).await?;
        *entry = job.entry;
        let Some((cluster_id, database)) = job.database.filter(|_| entry.state == State::Adoptable) else {
            return Ok(());
        };
        let writer = Writer { client: self.client, cloud: self.cloud, say };
        let snapshot = self.begin(&writer, &cluster_id, &database, &job.wanted).await?;
        entry.snapshot_id = snapshot.map(|id| id.0);
        writer.ready(&database, self.timeout).await?;
        let namespace = &job.wanted.stateful_set.namespace;
        let pods = Api::<Pod>::namespaced(self.client.clone(), namespace);
        let pod = pods.get_opt(&names::pod(&job.wanted.stateful_set.name)).await?;
        entry.pod_uid_after = pod.and_then(|pod| pod.uid());
        if let Some(before) = entry.pod_uid_before.clone()
            && entry.pod_uid_after.as_ref() != Some(&before)
        {
            return Err(AdoptError::PodReplaced { before, after: entry.pod_uid_after.clone() });
        }
        entry.state = State::Adopted;
        Ok(())
    }

    /// Begins it, again and more slowly while EC2 asks to slow down: each step is found again by the next
    /// attempt.
    async fn begin(
        &self,
        writer: &Writer<'_>,
        cluster_id: &str,
        database: &Database,
        wanted: &Wanted,
    ) -> Result<Option<SnapshotId>, AdoptError> {
        let mut pauses =
            ExponentialBackoffBuilder::new().with_max_elapsed_time(Some(THROTTLING_LIMIT)).build();
        loop {
            match writer.begin(cluster_id, database, wanted).await {
                Err(AdoptError::Cloud(error)) if error.class == Class::Throttled => {
                    let Some(pause) = pauses.next_backoff() else { return Err(error.into()) };
                    sleep(pause).await;
                }
                done => return done,
            }
        }
    }
}
