//! Which engine and settings are carried out in place of those of the spec, because of an upgrade: those that
//! served, until a backup is taken, and where the database went back to them. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodSpec};

use super::back_to_served::{is_image_of, is_pod_of, with_engine};
use super::comparison::{self, Finding};
use super::data::template_of;
use super::facts::{engine_waiting, is_outdated};
use super::{permission, validation};
use crate::api::database::{ConfigValue, EngineType, Served};
use crate::controller::database::observe::Observed;
use crate::controller::database::pod::engine_container;
use crate::controller::database::upgrade;
use crate::controller::database::wait::UpgradeWait;
use crate::controller::engine_container::engine_of;
use crate::engine::release;

/// The world of a Database that requests the engine and the settings of before: as long as nothing has begun
/// for those of its spec, and where it went back.
pub(super) fn world(requested: &Observed) -> Option<Observed> {
    if let Some((engine, config)) = upgrade::carried_out(&requested.database) {
        return Some(with_engine(requested, engine, config));
    }
    let served = due(requested)?;
    Some(with_engine(requested, &served.engine, &in_force(requested)))
}

/// What the database serves as, where a changed engine is to be started behind a backup. What cannot be
/// carried out is said as for any change, and where another engine than the one that served may have been
/// started, a backup would come too late.
pub(super) fn due(requested: &Observed) -> Option<&Served> {
    let served = upgrade::due(&requested.database)?;
    let is_as_served = |pod: &Pod| is_pod_of(requested, served, pod);
    let of_pod = requested.pod.as_ref().is_none_or(is_as_served);
    // What another client has changed in the template says nothing of what was started.
    let set =
        requested.stateful_set.ours().filter(|_| comparison::stateful_set(requested) != Finding::Altered);
    let image_of = |template: &PodSpec| engine_of(&template.containers, requested.engine())?.image.clone();
    let of_set = set
        .and_then(template_of)
        .is_none_or(|template| is_image_of(requested, served, image_of(template).as_ref()));
    let is_refused = validation::invalid(requested).is_some() || permission::engine(requested).is_some();
    (of_pod && of_set && !is_refused).then_some(served)
}

/// Why the engine of the spec takes no place behind a backup: nothing says what the database would go back
/// to, as after its status was lost, or where another engine may have been started unseen. What never served
/// is started without one, and so is what a restore in place begins with.
pub(super) fn nothing_served(observed: &Observed) -> Option<UpgradeWait> {
    let database = &observed.database;
    let status = database.status.as_ref();
    let is_known = status.is_some_and(|status| status.served.is_some());
    let has_served = || {
        let before = status.is_some_and(|status| status.first_ready_at.is_some());
        before || engine_waiting(observed).is_none()
    };
    let is_gated = database.spec.upgrade.is_some() && database.spec.adopt.is_none();
    if !is_gated || is_known || upgrade::is_closed(database) || !has_served() {
        return None;
    }
    let live = observed.stateful_set.ours().filter(|live| is_outdated(observed, live))?;
    let of_pod = observed.pod.as_ref().and_then(|pod| engine_container(pod, observed.engine()));
    let of_template = || engine_of(&template_of(live)?.containers, observed.engine());
    let runs = of_pod.or_else(of_template)?.image.clone()?;
    let wanted = &observed.profile.as_ref().ok()?.image;
    let is_same = match (release::of_image(&runs), release::of_image(wanted)) {
        // From wherever it is pulled.
        (Some(runs), Some(wanted)) if database.spec.engine.kind != EngineType::Custom => runs == wanted,
        _ => runs == *wanted,
    };
    (!is_same).then_some(UpgradeWait::NothingServed(runs))
}

/// The settings that the engine runs with. What has none on record has none.
pub(super) fn in_force(requested: &Observed) -> BTreeMap<String, ConfigValue> {
    let config = requested.database.status.as_ref().and_then(|status| status.config.as_ref());
    config.map(|config| config.in_force.clone()).unwrap_or_default()
}
