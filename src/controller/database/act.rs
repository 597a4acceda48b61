//! The act step of the Database controller: carries the plan out. Only writes; it makes no choice.

use std::fmt::Debug;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Node as CoreNode, PersistentVolume, Pod, Secret, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::build;
use super::history;
use super::messages::events as notes;
use super::password::Password;
use super::plan::action::{Action, ChildKind, Plan};

use crate::api::database::{Occurrence, Replacement};
use crate::api::keys::{ADOPTED_BY_ANNOTATION, DATABASE_FIELD_MANAGER, DATABASE_NODE_LABEL};
use crate::api::names::Names;
use crate::api::{Database, DatabaseStatus, EventReason, Node, Volume};
use crate::cluster::events::{Events, Happened};
use crate::cluster::{self, delete, finalizer, status};
use crate::controller::pass::acted::ActError;
use crate::controller::pass::context::Context;
use crate::controller::retention::Holder;

/// What became of a plan.
#[derive(Debug)]
pub struct Acted {
    /// The Database as of the last write to it.
    pub database: Database,
    /// The Database is gone: there is no status to write.
    pub finished: bool,
    /// The write that failed; what came before it stands.
    pub error: Option<Failed>,
}

/// A write that failed.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The API server, or the status.
    #[error(transparent)]
    Write(#[from] ActError),
    /// The operating system gave no randomness for a password.
    #[error("failed to get randomness for a password from the operating system")]
    Randomness(#[source] getrandom::Error),
}

impl From<kube::Error> for Failed {
    fn from(error: kube::Error) -> Self {
        Self::Write(error.into())
    }
}

impl From<status::PatchError> for Failed {
    fn from(error: status::PatchError) -> Self {
        Self::Write(error.into())
    }
}

impl Failed {
    /// The API server's answer, if that is what failed.
    pub fn kube(&self) -> Option<&kube::Error> {
        match self {
            Self::Write(ActError::Kube(error) | ActError::Status(status::PatchError::Kube(error))) => Some(error),
            Self::Write(_) | Self::Randomness(_) => None,
        }
    }

    /// This view was old, or an object of the name appeared meanwhile: observe again.
    pub fn is_conflict(&self) -> bool {
        self.kube().is_some_and(|error| cluster::is_conflict(error) || cluster::is_already_exists(error))
    }
}

/// Carries out every action in order, up to the first that fails.
pub async fn act(plan: &Plan, database: Database, names: &Names, ctx: &Context, events: &Events) -> Acted {
    let mut acted = Acted { database, finished: false, error: None };
    for action in &plan.actions {
        if let Err(error) = one(action, &mut acted, names, ctx, events).await {
            acted.error = Some(error);
            break;
        }
    }
    acted
}

async fn one(action: &Action, acted: &mut Acted, names: &Names, ctx: &Context, events: &Events) -> Result<(), Failed> {
    let namespace = names.namespace.as_str();
    let client = || ctx.client.clone();
    let databases = Api::<Database>::namespaced(client(), namespace);
    let nodes = Api::<Node>::namespaced(client(), namespace);
    let volumes = Api::<Volume>::namespaced(client(), namespace);
    let secrets = Api::<Secret>::namespaced(client(), namespace);
    let core_nodes = Api::<CoreNode>::all(client());
    match action {
        Action::AddFinalizer => acted.database = finalizer::add(&databases, &acted.database).await?,
        Action::CreateCredentials(profile) => {
            let password = Password::generate().map_err(Failed::Randomness)?;
            secrets.create(&created(), &build::credentials(names, profile, &password)).await?;
            let note = notes::credentials_created(&names.credentials_secret);
            events.publish(&acted.database, &Happened::normal(EventReason::CredentialsCreated, note)).await;
        }
        Action::TakeRecord(record) => {
            hold(record, Some(&Holder::of(&acted.database)), ctx).await?;
            let note = notes::record_held(&record.name_any());
            events.publish(&acted.database, &Happened::normal(EventReason::RetainedVolumeHeld, note)).await;
        }
        Action::ReleaseRecord(record) => hold(record, None, ctx).await?,
        Action::TakeCredentials(profile, held) => {
            let record = acted.database.spec.storage.adopt_retained.clone().unwrap_or_default();
            secrets.create(&created(), &build::taken_over(names, profile, &held.0, &record)).await?;
            let note = notes::credentials_adopted(&names.credentials_secret, &held.0.name_any());
            events.publish(&acted.database, &Happened::normal(EventReason::CredentialsTakenOver, note)).await;
        }
        Action::DeleteKept(name, uid) => delete::delete(&secrets, name, uid).await?,
        Action::ApplyConfigMap(object) => apply(&Api::<ConfigMap>::namespaced(client(), namespace), object.as_ref()).await?,
        Action::ApplyService(object) => apply(&Api::<Service>::namespaced(client(), namespace), object.as_ref()).await?,
        Action::ApplyNetworkPolicy(object) => apply(&Api::<NetworkPolicy>::namespaced(client(), namespace), object.as_ref()).await?,
        Action::ApplyStatefulSet(object) => {
            apply(&Api::<StatefulSet>::namespaced(client(), namespace), object.as_ref()).await?;
            let is_new = object.metadata.uid.is_none();
            let reason = if is_new { EventReason::StatefulSetCreated } else { EventReason::TemplateChanged };
            let note = notes::stateful_set_applied(&names.stateful_set, is_new);
            events.publish(&acted.database, &Happened::normal(reason, note)).await;
        }
        Action::Scale(uid, replicas) => {
            let patch = json!({"metadata": {"uid": uid}, "spec": {"replicas": replicas}});
            merge(&Api::<StatefulSet>::namespaced(client(), namespace), &names.stateful_set, &patch).await?;
            if *replicas == 0 {
                let note = notes::engine_stopping(&names.stateful_set);
                events.publish(&acted.database, &Happened::normal(EventReason::EngineStopping, note)).await;
            }
        }
        Action::CreateNode(ordinal, node, replacement) => create_node(*ordinal, node, replacement.as_ref(), acted, ctx, events).await?,
        Action::UpdateNode(name, uid, spec) => merge(&nodes, name, &json!({"metadata": {"uid": uid}, "spec": spec})).await?,
        Action::DeleteNode(name, uid, why) => {
            delete::delete(&nodes, name, uid).await?;
            events.publish(&acted.database, &Happened::normal(EventReason::NodeDeleted, notes::node_deleted(name, &why.message()))).await;
        }
        Action::RecordZone(zone) => record_zone(zone, acted, ctx, events).await?,
        Action::CreateVolume(volume) => {
            volumes.create(&created(), volume).await?;
            let note = notes::volume_created(&names.volume, volume);
            events.publish(&acted.database, &Happened::normal(EventReason::VolumeCreated, note)).await;
        }
        Action::UpdateVolume(uid, spec) => {
            merge(&volumes, &names.volume, &json!({"metadata": {"uid": uid}, "spec": spec})).await?;
            let note = notes::volume_changed(&names.volume, spec);
            events.publish(&acted.database, &Happened::normal(EventReason::VolumeChanged, note)).await;
        }
        Action::DeleteVolume(uid) => {
            delete::delete(&volumes, &names.volume, uid).await?;
            let note = notes::volume_deleted(&names.volume);
            events.publish(&acted.database, &Happened::normal(EventReason::VolumeDeleted, note)).await;
        }
        Action::Label(name, uid, moved) => {
            if let Some(moved) = moved {
                announce(Occurrence::Moved, &moved.message(), acted, ctx, events).await?;
            }
            let patch = json!({"metadata": {"uid": uid, "labels": {DATABASE_NODE_LABEL: names.uid}}});
            merge(&core_nodes, name, &patch).await?;
        }
        Action::Unlabel(name, uid) => {
            let patch = json!({"metadata": {"uid": uid, "labels": {DATABASE_NODE_LABEL: null}}});
            merge(&core_nodes, name, &patch).await?;
        }
        Action::ReplacePod(name, uid, why) => {
            announce(Occurrence::Restarted, &why.message(), acted, ctx, events).await?;
            delete::delete(&Api::<Pod>::namespaced(client(), namespace), name, uid).await?;
        }
        Action::KeepCredentials(held) => {
            // If a Secret of that name appeared meanwhile, the next pass finds out who owns it.
            secrets.create(&created(), &build::retained(names, &held.0)).await?;
            let note = notes::credentials_retained(&names.retained_secret);
            events.publish(&acted.database, &Happened::normal(EventReason::CredentialsKept, note)).await;
        }
        Action::DeleteCredentials(uid) => delete::delete(&secrets, &names.credentials_secret, uid).await?,
        Action::DeleteChild(kind, name, uid) => delete_child(*kind, name, uid, namespace, ctx).await?,
        Action::RemoveFinalizer => {
            finalizer::remove(&databases, &acted.database).await?;
            acted.finished = true;
        }
    }
    Ok(())
}

/// The zone that capacity has chosen, with the resourceVersion of this pass' read.
async fn record_zone(zone: &str, acted: &mut Acted, ctx: &Context, events: &Events) -> Result<(), Failed> {
    let databases = Api::<Database>::namespaced(ctx.client.clone(), &acted.database.namespace().unwrap_or_default());
    let old = acted.database.status.clone().unwrap_or_default();
    let new = DatabaseStatus { zone: Some(zone.to_owned()), ..old.clone() };
    acted.database = status::patch(&databases, &acted.database, &old, &new).await?;
    let note = notes::zone_chosen(zone);
    events.publish(&acted.database, &Happened::normal(EventReason::ZoneChosen, note)).await;
    Ok(())
}

async fn delete_child(kind: ChildKind, name: &str, uid: &str, namespace: &str, ctx: &Context) -> Result<(), kube::Error> {
    let client = ctx.client.clone();
    match kind {
        ChildKind::StatefulSet => delete::delete(&Api::<StatefulSet>::namespaced(client, namespace), name, uid).await,
        ChildKind::Service => delete::delete(&Api::<Service>::namespaced(client, namespace), name, uid).await,
        ChildKind::ConfigMap => delete::delete(&Api::<ConfigMap>::namespaced(client, namespace), name, uid).await,
        ChildKind::NetworkPolicy => delete::delete(&Api::<NetworkPolicy>::namespaced(client, namespace), name, uid).await,
    }
}

/// The ordinal and the replacement first, with the resourceVersion of this pass' read: the check that this view is not old. Then the Node
/// of that name, so that a lost answer cannot make a second one.
async fn create_node(
    ordinal: i32,
    node: &Node,
    replacement: Option<&Replacement>,
    acted: &mut Acted,
    ctx: &Context,
    events: &Events,
) -> Result<(), Failed> {
    let namespace = acted.database.namespace().unwrap_or_default();
    let databases = Api::<Database>::namespaced(ctx.client.clone(), &namespace);
    let old = acted.database.status.clone().unwrap_or_default();
    let new = DatabaseStatus { node_ordinal: Some(ordinal), replacement: replacement.cloned(), ..old.clone() };
    acted.database = status::patch(&databases, &acted.database, &old, &new).await?;
    Api::<Node>::namespaced(ctx.client.clone(), &namespace).create(&created(), node).await?;
    let reason = if replacement.is_some() { EventReason::ReplacementStarted } else { EventReason::NodeCreated };
    let happened = Happened::normal(reason, notes::node_created(node, replacement));
    events.publish(&acted.database, &happened).await;
    Ok(())
}

/// What interrupts the database is written down before it is done, with the resourceVersion of this pass' read: the check that this view is
/// not old, and no restart without its cause.
async fn announce(what: Occurrence, cause: &str, acted: &mut Acted, ctx: &Context, events: &Events) -> Result<(), Failed> {
    let old = acted.database.status.clone().unwrap_or_default();
    if history::is_announced(&old, what, cause) {
        return Ok(());
    }
    let history = history::extended(&old.history, Some(&(what, cause.to_owned())), ctx.clock.now());
    let new = DatabaseStatus { history, ..old.clone() };
    let databases = Api::<Database>::namespaced(ctx.client.clone(), &acted.database.namespace().unwrap_or_default());
    acted.database = status::patch(&databases, &acted.database, &old, &new).await?;
    events.publish(&acted.database, &Happened::normal(what.event(), cause.to_owned())).await;
    Ok(())
}

/// Says on a record which Database takes its volume. With the resourceVersion of what was read: of two Databases one wins.
async fn hold(record: &PersistentVolume, holder: Option<&Holder>, ctx: &Context) -> Result<(), kube::Error> {
    let patch = json!({"metadata": {
        "uid": record.metadata.uid,
        "resourceVersion": record.metadata.resource_version,
        "annotations": {ADOPTED_BY_ANNOTATION: holder.map(Holder::to_annotation)},
    }});
    merge(&Api::<PersistentVolume>::all(ctx.client.clone()), &record.name_any(), &patch).await
}

/// A new object is applied without force: one of the name that appeared since it was looked for answers with a conflict. One that is
/// ours (it names its UID) is patched by JSON merge patch, which replaces lists whole. Server-side apply would keep the entries that
/// somebody else has put into a list by key, such as a Service's ports, and then fail on the names that both use.
async fn apply<K>(api: &Api<K>, object: &K) -> Result<(), kube::Error>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Debug,
{
    let name = object.name_any();
    if object.meta().uid.is_none() {
        return api.patch(&name, &PatchParams::apply(DATABASE_FIELD_MANAGER), &Patch::Apply(object)).await.map(drop);
    }
    let params = PatchParams { field_manager: Some(DATABASE_FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    api.patch(&name, &params, &Patch::Merge(object)).await.map(drop)
}

async fn merge<K>(api: &Api<K>, name: &str, patch: &serde_json::Value) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let params = PatchParams { field_manager: Some(DATABASE_FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    api.patch(name, &params, &Patch::Merge(patch)).await.map(drop)
}

fn created() -> PostParams {
    PostParams { field_manager: Some(DATABASE_FIELD_MANAGER.to_owned()), ..PostParams::default() }
}
