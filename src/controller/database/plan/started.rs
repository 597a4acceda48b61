//! The newest version of the engine that was started on the data: no older one may be. Pure.

use super::facts::{inputs_of_pod, wanted_inputs};
use crate::api::database::EngineType;
use crate::controller::database::observe::Observed;
use crate::controller::database::pod::{self, engine_container};
use crate::controller::retention;
use crate::engine::release;

/// What was known, or what the pod or the record of the retained volume shows if that is newer. QuestDB
/// rewrites the metadata of its tables when a newer version starts, and an older one does not expect it; the
/// major versions of PostgreSQL have directories of their own.
pub(in crate::controller::database) fn newest(observed: &Observed, known: Option<String>) -> Option<String> {
    if observed.database.spec.engine.kind != EngineType::Questdb {
        return known;
    }
    let seen = [of_record(observed), of_pod(observed)];
    seen.into_iter().flatten().fold(known, |newest, seen| match newest {
        Some(newest) if !release::is_older(&newest, &seen) => Some(newest),
        Some(_) | None => Some(seen),
    })
}

/// The version of the pod's engine, if it was started: as the image names it, or as the spec does whose pod
/// it is.
fn of_pod(observed: &Observed) -> Option<String> {
    let pod = observed.pod.as_ref().filter(|pod| pod::has_started(pod, observed.engine()))?;
    let image = engine_container(pod, observed.engine())?.image.as_deref()?;
    let is_current = || inputs_of_pod(observed, pod) == Some(wanted_inputs(observed));
    let of_spec = || observed.database.spec.engine.version.clone().filter(|_| is_current());
    release::of_image(image).or_else(of_spec)
}

/// The version that wrote the retained volume which this Database adopts.
fn of_record(observed: &Observed) -> Option<String> {
    let kept = retention::read(observed.kept.record.as_ref()?)?;
    kept.adopted_by.filter(|holder| holder.uid == observed.names.uid)?;
    kept.engine_version
}
