//! What the act step does to the StatefulSet. Only writes; it makes no choice.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::apply::{Answers, apply, apply_stateful_set, merge, release_child};
use super::child_kind::ChildKind;
use super::messages::{self, events as notes};
use super::written::{forget_applied, of_namespace, report, write_down};
use crate::api::database::{Adoption, Occurrence};
use crate::api::names::Names;
use crate::api::{Database, EventReason};
use crate::cluster::events::Events;
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;

/// Creates the StatefulSet, or gives it a new template. That a database which was never ready has one is a
/// part of its creation, of which its own Ready is the end.
pub(super) async fn apply_template(
    object: &StatefulSet,
    names: &Names,
    acted: &mut Acted<Database>,
    answers: &mut Answers,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    apply_set(object, acted, answers, ctx).await?;
    let is_new = object.metadata.uid.is_none();
    let was_ready = acted.object.status.as_ref().is_some_and(|status| status.first_ready_at.is_some());
    if is_new && !was_ready {
        return Ok(());
    }
    let reason = if is_new { EventReason::StatefulSetCreated } else { EventReason::TemplateChanged };
    report(reason, notes::stateful_set_applied(&names.stateful_set, is_new), acted, events).await;
    Ok(())
}

/// Makes the StatefulSet what it was when it was found, or one that no Database owns.
pub(super) async fn release_set(
    live: &StatefulSet,
    to: &Value,
    names: &Names,
    acted: &Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    release_child(ChildKind::StatefulSet, &live.metadata, to, ctx.client.clone()).await?;
    let note = messages::release::released(&names.stateful_set, to.get("spec").is_some());
    report(EventReason::StatefulSetReleased, note, acted, events).await;
    Ok(())
}

/// Changes where the images of the template are pulled from, in the spec that was read.
pub(super) async fn change_source(
    object: &StatefulSet,
    names: &Names,
    acted: &mut Acted<Database>,
    answers: &mut Answers,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    forget_applied(object, Occurrence::StatefulSetAltered, acted, ctx).await?;
    answers.stateful_set = Some(apply(&of_namespace(object, ctx), object).await?);
    let note = notes::image_source_changed(&names.stateful_set);
    report(EventReason::ImageSourceChanged, note, acted, events).await;
    Ok(())
}

/// Gives the StatefulSet this spec, or creates it.
pub(super) async fn apply_set(
    object: &StatefulSet,
    acted: &mut Acted<Database>,
    answers: &mut Answers,
    ctx: &Context,
) -> Result<(), ActError> {
    forget_applied(object, Occurrence::StatefulSetAltered, acted, ctx).await?;
    let found = as_found(&acted.object);
    answers.stateful_set = Some(apply_stateful_set(&of_namespace(object, ctx), object, found).await?);
    Ok(())
}

/// The StatefulSet of an adopted database, as the API server sent it when it was found.
fn as_found(database: &Database) -> Option<&Value> {
    database.spec.adopt.as_ref()?;
    database.status.as_ref()?.adoption.as_ref().map(|adoption| &adoption.stateful_set)
}

/// Adopts a StatefulSet that was found: how it was found is written down first. The write names the
/// resourceVersion that was read, so that it replaces nothing that was changed since.
pub(super) async fn adopt(
    object: &StatefulSet,
    adoption: &Adoption,
    acted: &mut Acted<Database>,
    answers: &mut Answers,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    write_down(acted, ctx, |status| {
        status.adoption = Some(adoption.clone());
        status.forget_applied(Occurrence::StatefulSetAltered);
    })
    .await?;
    let found = Some(&adoption.stateful_set);
    answers.stateful_set = Some(apply_stateful_set(&of_namespace(object, ctx), object, found).await?);
    report(EventReason::StatefulSetAdopted, notes::adopted(&object.name_any()), acted, events).await;
    Ok(())
}

/// Sets the number of pods.
pub(super) async fn scale(
    uid: &str,
    replicas: i32,
    names: &Names,
    acted: &Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), kube::Error> {
    let stateful_sets = Api::<StatefulSet>::namespaced(ctx.client.clone(), &names.namespace);
    let patch = json!({"metadata": {"uid": uid}, "spec": {"replicas": replicas}});
    merge(&stateful_sets, &names.stateful_set, &patch).await?;
    if replicas == 0 {
        let note = notes::engine_stopping(&names.stateful_set);
        report(EventReason::EngineStopping, note, acted, events).await;
    }
    Ok(())
}
