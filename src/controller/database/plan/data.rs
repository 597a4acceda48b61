//! Whether a template or a pod is of the data that its Volume has: an engine must recover from the backup
//! that its data is of, and from no other one, and archive its log where that of its volume is. Pure.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::PodSpec;

use super::facts::ebs_volume;
use crate::api::Volume;
use crate::controller::database::build;
use crate::controller::database::in_place::{is_unserved, restored_unrecorded, underway};
use crate::controller::database::observe::Observed;

/// Whether the template that is there is of other data, or may be, so that no pod is started from it: its
/// engine would not recover from the backup, or would not know the password.
pub(super) fn is_of_other_data(observed: &Observed, live: &StatefulSet) -> bool {
    let is_unknown = |volume: &Volume| restored_unrecorded(&observed.database, volume).is_some();
    let is_unserved = |volume: &Volume| is_unserved(&observed.database, volume);
    observed.volume.ours().is_some_and(|volume| is_unserved(volume) || is_unknown(volume))
        || !recovers(observed, template_of(live))
}

/// The template of its pods.
pub(super) fn template_of(live: &StatefulSet) -> Option<&PodSpec> {
    live.spec.as_ref()?.template.spec.as_ref()
}

/// Whether the engine of this pod recovers from what its data is of.
pub(super) fn recovers(observed: &Observed, pod: Option<&PodSpec>) -> bool {
    let database = &observed.database;
    if !pod.is_none_or(|pod| build::is_of_volume(database, ebs_volume(observed), pod)) {
        return false;
    }
    match &observed.profile {
        Ok(profile) => build::recovers(database, profile, pod),
        // It is not known from what; a template of before a restore in place is not right then.
        Err(_) => underway(database).is_none(),
    }
}
