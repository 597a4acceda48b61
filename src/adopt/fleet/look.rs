//! Looks at many databases: Kubernetes for each, EC2 in as few calls as it takes for all of them.

use futures::{StreamExt as _, stream};
use kube::Client;

use super::entry::{Entry, refuse_shared};
use crate::adopt::error::AdoptError;
use crate::adopt::found::Found;
use crate::adopt::inspect::{in_ec2, in_kubernetes};
use crate::adopt::preflight;
use crate::adopt::render;
use crate::adopt::wanted::Wanted;
use crate::api::Database;
use crate::cloud::Cloud;

/// How many databases are read at once.
const AT_ONCE: usize = 8;

/// One database of many: what is wanted, what was found, and what is known of it.
pub struct Job {
    /// What is wanted of it.
    pub wanted: Wanted,
    /// What is known of it.
    pub entry: Entry,
    /// What there is; `None` if that could not be read.
    pub found: Option<Found>,
    /// The Database that would be written, with the id of the cluster.
    pub database: Option<(String, Database)>,
}

impl Job {
    fn new(wanted: Wanted, found: Result<Found, AdoptError>) -> Self {
        match found {
            Ok(found) => {
                let findings = preflight::check(&found, &wanted);
                let entry = Entry::new(&found, &wanted, &findings);
                let database =
                    render::database(&found, &wanted).map(|database| (found.cluster_id.clone(), database));
                Self { wanted, entry, found: Some(found), database }
            }
            Err(error) => Self { entry: Entry::unread(&wanted, &error), wanted, found: None, database: None },
        }
    }
}

/// Reads.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The API server.
    pub client: &'a Client,
    /// EC2.
    pub cloud: &'a dyn Cloud,
    /// The id of the cluster.
    pub cluster_id: &'a String,
}

impl Look<'_> {
    /// At all of them, in their order. One that cannot be read in Kubernetes hides no other.
    pub async fn at(&self, all: Vec<Wanted>) -> Result<Vec<Job>, AdoptError> {
        let read = stream::iter(all).map(async |wanted| {
            let found = in_kubernetes(self.client, Some(self.cluster_id), &wanted).await;
            (wanted, found)
        });
        let read: Vec<(Wanted, Result<Found, AdoptError>)> = read.buffered(AT_ONCE).collect().await;
        let (mut readable, mut others) = (Vec::new(), Vec::new());
        let mut all_wanted = Vec::new();
        for (wanted, found) in read {
            match found {
                Ok(found) => {
                    readable.push(found);
                    others.push(None);
                }
                Err(error) => others.push(Some(error)),
            }
            all_wanted.push(wanted);
        }
        in_ec2(self.cloud, &mut readable).await?;
        let mut readable = readable.into_iter();
        let found = others.into_iter().map(|error| match error {
            Some(error) => Some(Err(error)),
            None => readable.next().map(Ok),
        });
        let jobs = all_wanted.into_iter().zip(found.flatten());
        let mut jobs: Vec<Job> = jobs.map(|(wanted, found)| Job::new(wanted, found)).collect();
        refuse_shared(&mut jobs.iter_mut().map(|job| &mut job.entry).collect::<Vec<_>>());
        Ok(jobs)
    }

    /// At one of them again, just before it is begun. EC2 is asked again only for another instance or volume
    /// than before: what it says of hundreds is read once.
    pub async fn again(&self, before: Job) -> Result<Job, AdoptError> {
        let mut found = in_kubernetes(self.client, Some(self.cluster_id), &before.wanted).await?;
        let known = before
            .found
            .filter(|it| it.instance_id() == found.instance_id() && it.volume_id() == found.volume_id());
        match known {
            Some(known) => {
                found.instance = known.instance;
                found.volume = known.volume;
                found.modification = known.modification;
            }
            None => in_ec2(self.cloud, std::slice::from_mut(&mut found)).await?,
        }
        Ok(Job::new(before.wanted, Ok(found)))
    }
}
