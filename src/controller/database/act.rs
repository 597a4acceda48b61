//! The act step of the Database controller: carries the plan out. Only writes; it makes no choice.

use k8s_openapi::api::core::v1::{
    ConfigMap, Node as CoreNode, PersistentVolume, PersistentVolumeClaim, Pod, Secret, ServiceAccount,
};
use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Value, json};

use super::act_password::{give_next, prepare_next, put_next_in_force, starts_anyway, stop_for_next};
use super::act_reload::reload_settings;
use super::act_stateful_set::{adopt, apply_set, apply_template, change_source, release_set, scale};
use super::act_tls::load_certificate;
use super::act_upgrade::{create_backup, record_upgrade};
use super::apply::{
    Answers, apply, apply_config_map, apply_spec, created, delete_child, merge, release_child,
};
use super::build;
use super::cause::{NodeDeletion, RestartCause};
use super::messages::events as notes;
use super::observe::child::HeldSecret;
use super::password::Password;
use super::plan::action::{Action, Plan};
use super::written::{
    announce, forget_applied, go_back, go_back_to_served, go_on_with, of_namespace, report, report_altered,
    restore_in_place, write_down,
};
use super::{act_archive, act_flush};
use crate::api::database::{NotStarting, Occurrence, Release, Replacement, Restored};
use crate::api::keys::{ADOPTED_BY_ANNOTATION, DATABASE_NODE_LABEL};
use crate::api::names::Names;
use crate::api::{Database, DatabaseUser, EventReason, Node, Volume};
use crate::cluster::events::Events;
use crate::cluster::{delete, finalizer, recent};
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;
use crate::controller::retention::Holder;
use crate::engine::Profile;

/// Carries out every action in order, up to the first that fails.
pub async fn act(
    plan: &Plan,
    database: Database,
    names: &Names,
    ctx: &Context,
    events: &Events,
) -> (Acted<Database>, Answers) {
    let (mut acted, mut answers) = (Acted::new(database), Answers::default());
    for action in &plan.actions {
        let result = one(action, &mut acted, &mut answers, names, ctx, events).await;
        let starts_anyway = starts_anyway(action, &result);
        if !acted.goes_on(result) && !starts_anyway {
            break;
        }
    }
    (acted, answers)
}

#[expect(clippy::too_many_lines, reason = "one dispatch over the actions")]
async fn one(
    action: &Action,
    acted: &mut Acted<Database>,
    answers: &mut Answers,
    names: &Names,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let namespace = names.namespace.as_str();
    let client = || ctx.client.clone();
    let databases = Api::<Database>::namespaced(client(), namespace);
    let nodes = Api::<Node>::namespaced(client(), namespace);
    let volumes = Api::<Volume>::namespaced(client(), namespace);
    let secrets = Api::<Secret>::namespaced(client(), namespace);
    let users = Api::<DatabaseUser>::namespaced(client(), namespace);
    match action {
        Action::AddFinalizer => acted.object = finalizer::add(&databases, &acted.object).await?,
        Action::CreateCredentials(profile) => create_credentials(profile, names, acted, ctx).await?,
        Action::PrepareNextPassword(secret, generation) => prepare_next(secret, *generation, ctx).await?,
        Action::GiveNextPassword(access, secret) => give_next(access, secret, ctx).await?,
        Action::PutNextPasswordInForce(profile, secret) => {
            put_next_in_force(profile, secret, names, acted, ctx, events).await?;
        }
        Action::StopForNextPassword(uid, profile, secret) => {
            stop_for_next(uid, profile, secret, names, acted, ctx, events).await?;
        }
        Action::ReloadSettings(load) => reload_settings(load, acted, ctx, events).await?,
        Action::RecordSettings(record) => {
            write_down(acted, ctx, |status| status.config = Some(record.as_ref().clone())).await?;
        }
        Action::SwitchLog(pod_uid, access) => act_archive::switch_log(pod_uid, access, ctx).await?,
        Action::LoadCertificate(certify) => load_certificate(certify, acted, ctx, events).await?,
        Action::TakeRecord(record) => {
            hold(record, Some(&Holder::of(&acted.object)), ctx).await?;
            let note = notes::record_held(&record.name_any());
            report(EventReason::RetainedVolumeReserved, note, acted, events).await;
        }
        Action::ReleaseRecord(record) => hold(record, None, ctx).await?,
        Action::TakeCredentials(profile, held) => {
            take_credentials(profile, held, names, acted, ctx, events).await?;
        }
        Action::DeleteRetainedCredentials(name, uid) => delete::delete(&secrets, name, uid).await?,
        Action::ReportAltered(what, object) => report_altered(*what, object, acted, ctx, events).await?,
        Action::ApplyConfigMap(object) => apply_files(object, acted, answers, ctx).await?,
        Action::ApplyService(it) => drop(apply(&of_namespace(&**it, ctx), it).await?),
        Action::ApplyNetworkPolicy(it) => drop(apply_spec(&of_namespace(&**it, ctx), it).await?),
        Action::ApplyDisruptionBudget(it) => drop(apply_spec(&of_namespace(&**it, ctx), it).await?),
        Action::CreateApplicationUser(user) => {
            of_namespace(&**user, ctx).create(&created(), user).await?;
        }
        Action::UpdateApplicationUser(uid, spec) => {
            merge(&users, &names.application_user, &json!({"metadata": {"uid": uid}, "spec": spec})).await?;
        }
        Action::CreateServiceAccount(it) => drop(apply(&of_namespace(&**it, ctx), it).await?),
        Action::MendServiceAccount(patch) => mend_account(patch, names, ctx).await?,
        Action::ApplyStatefulSet(object) => {
            apply_template(object, names, acted, answers, ctx, events).await?;
        }
        Action::RestoreStatefulSet(object) => apply_set(object, acted, answers, ctx).await?,
        Action::ReleaseStatefulSet(live, found) => {
            release_set(live, found, names, acted, ctx, events).await?;
        }
        Action::RecordAdoption(adoption) => {
            write_down(acted, ctx, |status| status.adoption = Some(adoption.as_ref().clone())).await?;
        }
        Action::GoBack(back) => go_back(back, acted, ctx, events).await?,
        Action::GoBackToServed(back) => go_back_to_served(back, acted, ctx, events).await?,
        Action::RecordRelease(release) => record_release(Some(release), acted, ctx).await?,
        Action::ForgetRelease => record_release(None, acted, ctx).await?,
        Action::ReleaseChild(kind, live, to) => release_child(*kind, live, to, client()).await?,
        Action::AdoptStatefulSet(object, adoption) => {
            adopt(object, adoption, acted, answers, ctx, events).await?;
        }
        Action::ChangeImageSource(object) => {
            change_source(object, names, acted, answers, ctx, events).await?;
        }
        Action::BeginFlush(flush) => act_flush::begin(flush, &acted.object, ctx)?,
        Action::Scale(uid, replicas) => scale(uid, *replicas, names, acted, ctx, events).await?,
        Action::CreateNode(ordinal, node, replacement) => {
            create_node(*ordinal, node, replacement.as_ref(), acted, ctx, events).await?;
        }
        Action::UpdateNode(name, uid, spec) => {
            merge(&nodes, name, &json!({"metadata": {"uid": uid}, "spec": spec})).await?;
        }
        Action::DeleteNode(name, uid, why) => delete_node(name, uid, why, acted, ctx, events).await?,
        Action::RecordRestore(restored) => record_restore(restored, acted, ctx, events).await?,
        Action::RecordRestoreInPlace(record) => restore_in_place(record, acted, ctx, events).await?,
        Action::RecordUpgrade(record) => record_upgrade(record, acted, ctx, events).await?,
        Action::CreateBackup(backup) => create_backup(backup, ctx).await?,
        Action::RecordData(record) => go_on_with(record, acted, ctx).await?,
        Action::RecordZone(zone) => {
            write_down(acted, ctx, |status| status.zone = Some(zone.clone())).await?;
        }
        Action::CreateVolume(volume) => create_volume(volume, acted, ctx, events).await?,
        Action::UpdateVolume(uid, spec) => {
            merge(&volumes, &names.volume, &json!({"metadata": {"uid": uid}, "spec": spec})).await?;
            let note = notes::volume_changed(&names.volume, spec);
            report(EventReason::VolumeChanged, note, acted, events).await;
        }
        Action::DeleteVolume(uid) => {
            delete::delete(&volumes, &names.volume, uid).await?;
            report(EventReason::VolumeDeleted, notes::volume_deleted(&names.volume), acted, events).await;
        }
        Action::Label(name, uid, moved) => {
            if let Some(moved) = moved {
                announce(Occurrence::Moved, &moved.message(), acted, ctx, events).await?;
            }
            label(name, uid, Some(&names.uid), ctx).await?;
        }
        Action::Unlabel(name, uid) => label(name, uid, None, ctx).await?,
        Action::Relabel(name, uid, former) => label(name, uid, Some(former), ctx).await?,
        Action::RecordNotStarting(record) => record_not_starting(record, acted, ctx).await?,
        Action::ReplacePod(name, uid, as_read, why) => {
            replace_pod(name, uid, as_read.as_deref(), why, acted, ctx, events).await?;
        }
        Action::FreeClaim(claim) => free_claim(claim, ctx).await?,
        Action::KeepCredentials(held) => keep_credentials(held, names, acted, ctx, events).await?,
        Action::DeleteCredentials(uid) => delete::delete(&secrets, &names.credentials_secret, uid).await?,
        Action::DeleteChild(kind, name, uid) => delete_child(*kind, name, uid, namespace, client()).await?,
        Action::RemoveFinalizer => {
            finalizer::remove(&databases, &acted.object).await?;
            acted.finished = true;
        }
    }
    Ok(())
}

/// Writes down what the database is restored from.
async fn record_restore(
    restored: &Restored,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    write_down(acted, ctx, |status| status.restored = Some(restored.clone())).await?;
    report(EventReason::RestoreDecided, notes::restore_decided(restored), acted, events).await;
    Ok(())
}

async fn delete_node(
    name: &str,
    uid: &str,
    why: &NodeDeletion,
    acted: &Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), kube::Error> {
    let namespace = acted.object.namespace().unwrap_or_default();
    delete::delete(&Api::<Node>::namespaced(ctx.client.clone(), &namespace), name, uid).await?;
    let note = notes::node_deleted(name, &why.message());
    report(EventReason::NodeDeleted, note, acted, events).await;
    Ok(())
}

async fn create_volume(
    volume: &Volume,
    acted: &Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), kube::Error> {
    of_namespace(volume, ctx).create(&created(), volume).await?;
    let note = notes::volume_created(&volume.name_any(), volume);
    report(EventReason::VolumeCreated, note, acted, events).await;
    Ok(())
}

async fn create_secret(secret: &Secret, ctx: &Context) -> Result<(), kube::Error> {
    let created = of_namespace(secret, ctx).create(&created(), secret).await?;
    let key = recent::key(&created.namespace().unwrap_or_default(), &created.name_any());
    ctx.secrets.put(&key, Some(Some(created)));
    Ok(())
}

/// Makes the Secret, with a password of its own.
async fn create_credentials(
    profile: &Profile,
    names: &Names,
    acted: &Acted<Database>,
    ctx: &Context,
) -> Result<(), ActError> {
    let password = Password::generate().map_err(ActError::Randomness)?;
    let secret = build::credentials(names, profile, &password);
    create_secret(&build::of_generation(secret, acted.object.spec.access.password_generation), ctx).await?;
    Ok(())
}

/// Makes the Secret from the one that was retained with a volume.
async fn take_credentials(
    profile: &Profile,
    held: &HeldSecret,
    names: &Names,
    acted: &Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), kube::Error> {
    let record = acted.object.spec.storage.adopt_retained.clone().unwrap_or_default();
    let secret = build::taken_over(names, profile, &held.0, &record);
    let secret = build::of_generation(secret, acted.object.spec.access.password_generation);
    create_secret(&secret, ctx).await?;
    let note = notes::credentials_adopted(&names.credentials_secret, &held.0.name_any());
    report(EventReason::CredentialsAdopted, note, acted, events).await;
    Ok(())
}

/// Keeps the Secret with the data. If one of its name appeared meanwhile, the next pass finds out who owns
/// it.
async fn keep_credentials(
    held: &HeldSecret,
    names: &Names,
    acted: &Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), kube::Error> {
    let secret = build::retained(names, &held.0);
    create_secret(&secret, ctx).await?;
    let note = notes::credentials_retained(&names.retained_secret);
    report(EventReason::CredentialsRetained, note, acted, events).await;
    Ok(())
}

/// Gives the ConfigMap this content, or creates it.
async fn apply_files(
    object: &ConfigMap,
    acted: &mut Acted<Database>,
    answers: &mut Answers,
    ctx: &Context,
) -> Result<(), ActError> {
    forget_applied(object, Occurrence::ConfigMapAltered, acted, ctx).await?;
    answers.config_map = Some(apply_config_map(&of_namespace(object, ctx), object).await?);
    Ok(())
}

async fn mend_account(patch: &Value, names: &Names, ctx: &Context) -> Result<(), kube::Error> {
    let accounts = Api::<ServiceAccount>::namespaced(ctx.client.clone(), &names.namespace);
    merge(&accounts, &names.service_account, patch).await
}

/// Puts the label of the Database with this UID on a Kubernetes node, or takes it off.
async fn label(name: &str, uid: &str, database: Option<&str>, ctx: &Context) -> Result<(), kube::Error> {
    let patch = json!({"metadata": {"uid": uid, "labels": {DATABASE_NODE_LABEL: database}}});
    merge(&Api::<CoreNode>::all(ctx.client.clone()), name, &patch).await
}

/// Writes down that the release begins, or that it does not.
async fn record_release(
    release: Option<&Release>,
    acted: &mut Acted<Database>,
    ctx: &Context,
) -> Result<(), ActError> {
    write_down(acted, ctx, |status| status.release = release.cloned()).await
}

/// Writes down that one more pod is replaced because its engine keeps ending.
async fn record_not_starting(
    record: &NotStarting,
    acted: &mut Acted<Database>,
    ctx: &Context,
) -> Result<(), ActError> {
    write_down(acted, ctx, |status| status.not_starting = Some(record.clone())).await
}

/// Announces the restart and deletes the pod; where a resourceVersion is given, only as long as it is as it
/// was read.
async fn replace_pod(
    name: &str,
    uid: &str,
    as_read: Option<&str>,
    why: &RestartCause,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    announce(Occurrence::Restarted, &why.message(), acted, ctx, events).await?;
    let namespace = acted.object.namespace().unwrap_or_default();
    let pods = Api::<Pod>::namespaced(ctx.client.clone(), &namespace);
    match as_read {
        Some(version) => delete::delete_as_read(&pods, name, uid, version).await?,
        None => delete::delete(&pods, name, uid).await?,
    }
    Ok(())
}

async fn free_claim(claim: &PersistentVolumeClaim, ctx: &Context) -> Result<(), kube::Error> {
    finalizer::remove(&of_namespace(claim, ctx), claim).await
}

/// The ordinal and the replacement first, then the Node of that name: a lost answer cannot make a second one.
async fn create_node(
    ordinal: i32,
    node: &Node,
    replacement: Option<&Replacement>,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    write_down(acted, ctx, |status| {
        (status.node_ordinal, status.replacement) = (Some(ordinal), replacement.cloned());
    })
    .await?;
    let namespace = acted.object.namespace().unwrap_or_default();
    Api::<Node>::namespaced(ctx.client.clone(), &namespace).create(&created(), node).await?;
    let reason =
        if replacement.is_some() { EventReason::ReplacementStarted } else { EventReason::NodeCreated };
    report(reason, notes::node_created(node, replacement), acted, events).await;
    Ok(())
}

/// Says on a record which Database takes its volume. With the resourceVersion of what was read: of two
/// Databases one wins.
async fn hold(record: &PersistentVolume, holder: Option<&Holder>, ctx: &Context) -> Result<(), kube::Error> {
    let patch = json!({"metadata": {
        "uid": record.metadata.uid,
        "resourceVersion": record.metadata.resource_version,
        "annotations": {ADOPTED_BY_ANNOTATION: holder.map(Holder::to_annotation)},
    }});
    merge(&Api::<PersistentVolume>::all(ctx.client.clone()), &record.name_any(), &patch).await
}
