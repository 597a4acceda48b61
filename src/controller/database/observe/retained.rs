//! What was retained of former Databases and concerns this one. Only reads.

use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, Secret};
use kube::ResourceExt;
use kube::api::{Api, ListParams};

use super::child::{Child, Credentials, secret};
use super::restore::{self, RestoreView};
use crate::api::keys::{
    ADOPTED_RECORD_ANNOTATION, DATABASE_NAME_LABEL, DATABASE_UID_LABEL, RETAINED_LABEL, TAKEN_FROM_ANNOTATION,
};
use crate::api::names::Names;
use crate::api::{Backup, ConditionType, Database, Volume};
use crate::cluster::if_served;
use crate::cluster::mirror::Reads;
use crate::controller::conditions;
use crate::controller::database::{in_place, upgrade};
use crate::controller::pass::context::Context;
use crate::controller::retention::{self, Holder, Retained};

/// What was kept of former databases and concerns this one.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The records under this Database's own name and namespace; `None`: they were not looked for.
    pub found: Option<Vec<Retained>>,
    /// The record that this Database takes over, or took over from.
    pub record: Option<PersistentVolume>,
    /// Another Database holds the record, and does not exist any more.
    pub holder_is_gone: bool,
    /// The Volume that had the disk before is not gone yet.
    pub former_exists: bool,
    /// The Secret that was kept with the disk.
    pub credentials: Credentials,
    /// The UID of the namespace; read only where there are records, or a backup is to be restored.
    pub namespace_uid: Option<String>,
    /// The backup that this Database is to begin with.
    pub restore: RestoreView,
    /// The Backups of this Database; read only while its engine is to change behind one.
    pub backups: Option<Vec<Backup>>,
}

impl Default for Kept {
    /// Nothing was looked for.
    fn default() -> Self {
        Self {
            found: None,
            record: None,
            holder_is_gone: false,
            former_exists: false,
            namespace_uid: None,
            restore: RestoreView::NotRead,
            backups: None,
            credentials: Credentials::Read(Child::Absent),
        }
    }
}

impl Kept {
    /// The Backup of this name, if the Backups were read and it is one of them.
    pub fn backup(&self, name: &str) -> Option<&Backup> {
        self.backups.iter().flatten().find(|backup| backup.metadata.name.as_deref() == Some(name))
    }
}

/// Reads only what this Database may still need: usually nothing.
pub(super) async fn observe(
    database: &Database,
    names: &Names,
    credentials: &Credentials,
    volume: &Child<Volume>,
    reads: Reads,
    ctx: &Context,
) -> Result<Kept, kube::Error> {
    let own = match credentials {
        Credentials::Read(Child::Ours(held)) => Some(&held.0),
        Credentials::Read(Child::Absent | Child::Foreign) | Credentials::Unreadable(_) => None,
    };
    let note = |key: &str| own.and_then(|secret| secret.annotations().get(key)).cloned();
    let is_new = *volume == Child::Absent;
    let former = in_place::record_read(database).map(str::to_owned);
    let asked = former.or_else(|| database.spec.storage.adopt_retained.clone());
    let found = found(database, names, is_new, asked.is_some(), reads, ctx).await?;
    let has_found = found.as_ref().is_some_and(|found| !found.is_empty());
    let restore = restore::observe(database, volume, ctx).await?;
    let is_needed = has_found || asked.is_some() || restore != RestoreView::NotRead;
    let namespace_uid = if is_needed { namespace_uid(names, ctx).await? } else { None };
    // What an earlier namespace of the name had is no concern of this one.
    let is_of = |record: &Retained| retention::is_of(record, namespace_uid.as_deref());
    let found = found.map(|found| found.into_iter().filter(is_of).collect());
    let backups = backups(database, names, ctx).await?;
    let mut kept = Kept { found, namespace_uid, restore, backups, ..Kept::default() };
    let Some(name) = asked.or_else(|| note(ADOPTED_RECORD_ANNOTATION)) else { return Ok(kept) };
    // One that is being deleted is no record any more, however long others' finalizers hold it.
    let record = Api::<PersistentVolume>::all(ctx.client.clone()).get_opt(&name).await?;
    kept.record = record.filter(|record| record.metadata.deletion_timestamp.is_none());
    let namespace = names.namespace.as_str();
    let record =
        kept.record.as_ref().and_then(retention::read).filter(|record| record.namespace == namespace);
    if let Some(record) = &record {
        kept.holder_is_gone = is_gone(record.adopted_by.as_ref(), names, ctx).await?;
        kept.former_exists = exists(record, namespace, ctx).await?;
    }
    let secret = note(TAKEN_FROM_ANNOTATION).or_else(|| record.as_ref()?.credentials_secret.clone());
    if let Some(secret) = secret {
        let uid = record.as_ref().and_then(|record| record.database_uid.as_deref());
        kept.credentials =
            kept_credentials(&Api::namespaced(ctx.client.clone(), namespace), &secret, uid).await?;
    }
    Ok(kept)
}

/// The Backups of this Database, where one of them comes before its engine changes.
async fn backups(
    database: &Database,
    names: &Names,
    ctx: &Context,
) -> Result<Option<Vec<Backup>>, kube::Error> {
    if !upgrade::needs_backups(database) {
        return Ok(None);
    }
    let backups = Api::<Backup>::namespaced(ctx.client.clone(), &names.namespace);
    let all = if_served(backups.list(&ListParams::default()).await.map(|list| list.items))?;
    let name = database.name_any();
    Ok(Some(all.into_iter().filter(|backup| backup.spec.database_name == name).collect()))
}

async fn namespace_uid(names: &Names, ctx: &Context) -> Result<Option<String>, kube::Error> {
    let namespace = Api::<Namespace>::all(ctx.client.clone()).get_opt(&names.namespace).await?;
    Ok(namespace.and_then(|namespace| namespace.uid()))
}

/// The records under the Database's name: looked for until it has a volume of its own, and as long as it says
/// that there are some.
async fn found(
    database: &Database,
    names: &Names,
    is_new: bool,
    is_adopting: bool,
    reads: Reads,
    ctx: &Context,
) -> Result<Option<Vec<Retained>>, kube::Error> {
    let is_told = conditions::is_true(database.conditions(), ConditionType::RetainedVolumeFound);
    if is_adopting || database.metadata.deletion_timestamp.is_some() || !(is_new || is_told) {
        return Ok(None);
    }
    let of_this_name =
        |record: &Retained| record.namespace == names.namespace && record.database == names.database;
    let picked = |record: &PersistentVolume| retention::read(record).filter(of_this_name);
    if reads == Reads::Cached
        && let Some(copied) = ctx.persistent_volumes.picked(picked)
    {
        return Ok(Some(copied));
    }
    let selector = format!("{}=true,{}={}", RETAINED_LABEL, DATABASE_NAME_LABEL, names.database);
    let records = Api::<PersistentVolume>::all(ctx.client.clone())
        .list(&ListParams::default().labels(&selector))
        .await?;
    Ok(Some(records.items.iter().filter_map(picked).collect()))
}

/// Whether the Database that holds the record is another one, and gone.
async fn is_gone(holder: Option<&Holder>, names: &Names, ctx: &Context) -> Result<bool, kube::Error> {
    let Some(holder) = holder.filter(|holder| holder.uid != names.uid && !holder.name.is_empty()) else {
        return Ok(false);
    };
    let databases = Api::<Database>::namespaced(ctx.client.clone(), &names.namespace);
    let database = databases.get_opt(&holder.name).await?;
    Ok(database.and_then(|database| database.uid()).as_ref() != Some(&holder.uid))
}

/// Whether the Volume that had the disk is still there: until it is gone, its own deletion decides.
async fn exists(record: &Retained, namespace: &str, ctx: &Context) -> Result<bool, kube::Error> {
    let Some(name) = &record.volume else { return Ok(false) };
    let volume = if_served(Api::<Volume>::namespaced(ctx.client.clone(), namespace).get_opt(name).await)?;
    Ok(volume.and_then(|volume| volume.uid()).as_ref() == Some(&record.volume_uid))
}

/// The kept Secret; ours to use when it is marked as kept, for the Database of the record.
async fn kept_credentials(
    secrets: &Api<Secret>,
    name: &str,
    uid: Option<&str>,
) -> Result<Credentials, kube::Error> {
    let has =
        |secret: &Secret, label: &str, value: &str| secret.labels().get(label).is_some_and(|it| it == value);
    let is_kept = |secret: &Secret| has(secret, RETAINED_LABEL, "true");
    let is_of = |secret: &Secret| uid.is_none_or(|uid| has(secret, DATABASE_UID_LABEL, uid));
    secret(secrets, name, |secret| is_kept(secret) && is_of(secret)).await
}
