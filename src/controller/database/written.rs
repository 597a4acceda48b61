//! What is written into the status of a Database before an action that rests on it.

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};

use super::history;
use super::in_place;
use super::messages::events as notes;
use super::object_name::ObjectName;
use crate::api::database::{EngineNotStarted, Occurrence, RestoredInPlace, WentBack};
use crate::api::{Database, DatabaseStatus, EventReason};
use crate::cluster::events::{Events, Happened};
use crate::cluster::status;
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;

/// Writes into the status what the next step rests on, with the resourceVersion of this pass' read: the check
/// that this view is not old.
pub(super) async fn write_down(
    acted: &mut Acted<Database>,
    ctx: &Context,
    change: impl FnOnce(&mut DatabaseStatus),
) -> Result<(), ActError> {
    let old = acted.object.status.clone().unwrap_or_default();
    let mut new = old.clone();
    change(&mut new);
    let databases = of_namespace(&acted.object, ctx);
    acted.object = status::patch(&databases, &acted.object, &old, &new).await?;
    Ok(())
}

/// The objects of this one's kind in its namespace.
pub(super) fn of_namespace<K>(object: &K, ctx: &Context) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    Api::namespaced(ctx.client.clone(), &object.namespace().unwrap_or_default())
}

/// Before an object that is there is written: what is in it is not known from here on, until the closing
/// patch of a pass says so. A write of ours whose answer is lost is then not taken for a change of others.
/// The record of the other object stays: a write that is refused each time must change nothing each time,
/// since every change of the status wakes the Database.
pub(super) async fn forget_applied<K: Resource>(
    object: &K,
    what: Occurrence,
    acted: &mut Acted<Database>,
    ctx: &Context,
) -> Result<(), ActError> {
    if object.meta().uid.is_none() {
        return Ok(());
    }
    write_down(acted, ctx, |status| status.forget_applied(what)).await
}

/// What was changed outside Freehold is written down before it is restored; in the same write, what was
/// applied to it is forgotten.
pub(super) async fn report_altered(
    what: Occurrence,
    object: &ObjectName,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let cause = notes::altered(object);
    write_down(acted, ctx, |status| {
        status.history = history::extended(&status.history, Some(&(what, cause.clone())), ctx.clock.now());
        status.forget_applied(what);
    })
    .await?;
    if let Some(event) = what.event() {
        events.publish(&acted.object, &Happened::warning(event, cause)).await;
    }
    Ok(())
}

/// That the database goes back to what it ran as before.
pub(super) async fn go_back(
    back: &WentBack,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let record = |status: &mut DatabaseStatus| {
        if let Some(adoption) = &mut status.adoption {
            adoption.went_back = Some(back.clone());
        }
    };
    tell_going_back(record, &back.message, acted, ctx, events).await
}

/// The same for one that goes back to the engine that it served as.
pub(super) async fn go_back_to_served(
    back: &EngineNotStarted,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let record = |status: &mut DatabaseStatus| {
        if let Some(served) = &mut status.served {
            served.went_back = Some(back.clone());
        }
    };
    tell_going_back(record, &back.message, acted, ctx, events).await
}

/// That a restore in place begins, or that the database goes back to the data that it had. What ends the
/// engine's run is in the history before that.
pub(super) async fn restore_in_place(
    record: &RestoredInPlace,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let now = ctx.clock.now();
    let write = |status: &mut DatabaseStatus, cause: String| {
        status.restored_in_place = Some(Box::new(record.clone()));
        status.history = history::extended(&status.history, Some(&(Occurrence::Restarted, cause)), now);
    };
    if let Some(back) = &record.went_back {
        let write = |status: &mut DatabaseStatus| write(status, notes::data_goes_back(&back.message));
        return tell_going_back(write, &back.message, acted, ctx, events).await;
    }
    let note = notes::restore_decided(&record.backup);
    write_down(acted, ctx, |status| write(status, notes::stopped_for_restore(&note))).await?;
    report(EventReason::RestoreDecided, note, acted, events).await;
    Ok(())
}

/// What the data is of that the database goes on with.
pub(super) async fn go_on_with(
    record: &RestoredInPlace,
    acted: &mut Acted<Database>,
    ctx: &Context,
) -> Result<(), ActError> {
    write_down(acted, ctx, |status| in_place::goes_on_with(status, record)).await
}

/// That the database goes back is written down before its template is: it must not be tried again.
pub(super) async fn tell_going_back(
    record: impl FnOnce(&mut DatabaseStatus),
    message: &str,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    write_down(acted, ctx, record).await?;
    let note = notes::goes_back(message);
    events.publish(&acted.object, &Happened::warning(EventReason::WentBack, note)).await;
    Ok(())
}

/// What interrupts the database is written down before it is done: no restart without its cause.
pub(super) async fn announce(
    what: Occurrence,
    cause: &str,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    if acted.object.status.as_ref().is_some_and(|status| history::is_announced(status, what, cause)) {
        return Ok(());
    }
    write_down(acted, ctx, |status| {
        status.history = history::extended(&status.history, Some(&(what, cause.to_owned())), ctx.clock.now());
    })
    .await?;
    if let Some(event) = what.event() {
        report(event, cause.to_owned(), acted, events).await;
    }
    Ok(())
}

/// The event of what was just done.
pub(super) async fn report(reason: EventReason, note: String, acted: &Acted<Database>, events: &Events) {
    events.publish(&acted.object, &Happened::normal(reason, note)).await;
}
