//! Begins the adoption: snapshot, tags, Database, in this order, each step found again by the next run; then
//! waits.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};

use super::error::AdoptError;
use super::wanted::Wanted;
use crate::api::database::Adopt;
use crate::api::keys::{ADOPT_TAG, NAME_TAG};
use crate::api::{ConditionType, Database, SnapshotId};
use crate::cloud::identity::adopter;
use crate::cloud::{Cloud, SnapshotState};
use crate::command::progress::{Look, watch};

/// Who and what is written with.
pub struct Writer<'a> {
    /// The API server.
    pub client: &'a Client,
    /// EC2, with the credentials of the caller.
    pub cloud: &'a dyn Cloud,
    /// Prints a line.
    pub say: &'a (dyn Fn(&str) + Sync),
}

impl Writer<'_> {
    /// Everything that the adoption needs of a person. Gives the snapshot, unless it is skipped.
    pub async fn begin(
        &self,
        cluster_id: &str,
        database: &Database,
        wanted: &Wanted,
    ) -> Result<Option<SnapshotId>, AdoptError> {
        let Some(adopt) = &database.spec.adopt else { return Ok(None) };
        let subject = format!("{}/{}", database.namespace().unwrap_or_default(), database.name_any());
        let proof = BTreeMap::from([(ADOPT_TAG.to_owned(), adopter(cluster_id, &subject))]);
        let snapshot = if wanted.skip_snapshot {
            (self.say)("snapshot      skipped, as requested");
            None
        } else {
            Some(self.snapshot(adopt, &subject, &proof).await?)
        };
        for id in [&adopt.volume_id.0, &adopt.instance_id.0] {
            self.cloud.tag_resource(id, &proof).await?;
            (self.say)(&format!("tag           {id} carries {ADOPT_TAG}"));
        }
        self.create(database, &subject).await?;
        Ok(snapshot)
    }

    /// One that was taken for this adoption, by this run or an earlier one. It need not be complete: it holds
    /// what the volume held when it was started.
    async fn snapshot(
        &self,
        adopt: &Adopt,
        subject: &str,
        proof: &BTreeMap<String, String>,
    ) -> Result<SnapshotId, AdoptError> {
        let found = self.cloud.describe_snapshots(proof).await?;
        let is_of_volume = |state: SnapshotState| state != SnapshotState::Error;
        if let Some(there) =
            found.into_iter().find(|it| it.volume == adopt.volume_id && is_of_volume(it.state))
        {
            (self.say)(&format!("snapshot      {} is there already", there.id));
            return Ok(there.id);
        }
        let mut tags = proof.clone();
        tags.insert(NAME_TAG.to_owned(), format!("{subject} before its adoption"));
        let made = self.cloud.create_snapshot(&adopt.volume_id, &tags).await?;
        (self.say)(&format!("snapshot      {} of {} is started", made.id, adopt.volume_id));
        Ok(made.id)
    }

    async fn create(&self, database: &Database, subject: &str) -> Result<(), AdoptError> {
        let databases = self.databases(database);
        match databases.create(&PostParams::default(), database).await {
            Ok(_) => (self.say)(&format!("Database      {subject} is created")),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let there = databases.get(&database.name_any()).await?;
                if there.spec.adopt != database.spec.adopt {
                    return Err(AdoptError::OtherDatabase(subject.to_owned()));
                }
                (self.say)(&format!("Database      {subject} is there already"));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Waits until the Database is Ready in its present generation, and says what it says meanwhile.
    pub async fn ready(&self, database: &Database, limit: Duration) -> Result<(), AdoptError> {
        let (databases, name) = (self.databases(database), database.name_any());
        let is_ready = watch(self.say, limit, async || -> Result<Look, AdoptError> {
            let there = databases.get(&name).await?;
            let ready = there.conditions().iter().find(|it| it.type_ == ConditionType::Ready.as_str());
            let line = ready.map_or_else(
                || "waiting       for the operator to see the Database".to_owned(),
                |ready| format!("{:<13} {}", ready.reason, ready.message),
            );
            Ok(if is_ready(&there) { Look::Over(Some(line)) } else { Look::Awaited(line) })
        })
        .await?;
        if is_ready { Ok(()) } else { Err(AdoptError::NotReady { name, limit }) }
    }

    fn databases(&self, database: &Database) -> Api<Database> {
        Api::namespaced(self.client.clone(), &database.namespace().unwrap_or_default())
    }
}

/// Whether the Database is Ready in its present generation.
fn is_ready(database: &Database) -> bool {
    let ready = database.conditions().iter().find(|it| it.type_ == ConditionType::Ready.as_str());
    ready.is_some_and(|it| it.status == "True" && it.observed_generation == database.metadata.generation)
}
