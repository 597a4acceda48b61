//! What a Database's NodeClass permits, and what becomes of a spec that requests something else. Pure.
//!
//! A Database that has nothing yet gets nothing. One that was created goes on, and is repaired, as it was
//! decided before: only what its spec requests anew is not carried out.

use k8s_openapi::api::apps::v1::StatefulSet;

use super::facts::is_outdated;
use crate::api::ConditionType;
use crate::api::database::EngineType;
use crate::controller::conditions::Entry;
use crate::controller::database::cause::ClassRefusal;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;
use crate::controller::pattern;

/// What keeps a Database that has nothing yet from being created.
pub(super) fn creation(observed: &Observed) -> Option<ClassRefusal> {
    if was_created(observed) { None } else { refusal(observed) }
}

/// What keeps the template of the newest spec from being applied; `None` when it may be, or is.
pub(super) fn template(observed: &Observed, live: &StatefulSet) -> Option<ClassRefusal> {
    if is_outdated(observed, live) { engine(observed) } else { None }
}

/// Says what of the spec is not permitted, whether it is carried out or not.
pub(in crate::controller::database) fn told(observed: &Observed) -> Option<Entry> {
    let refusal = refusal(observed).filter(|_| observed.database.metadata.deletion_timestamp.is_none())?;
    Some(Entry::yes(ConditionType::NotPermitted, refusal.reason(), refusal.message()))
}

/// What of the spec is not permitted.
fn refusal(observed: &Observed) -> Option<ClassRefusal> {
    engine(observed)
}

/// Something was decided before: a machine or a volume was made, or is being made.
fn was_created(observed: &Observed) -> bool {
    let was_made = observed.database.status.as_ref().is_some_and(|status| status.volume_name.is_some());
    was_made || observed.volume != Child::Absent || !observed.nodes.is_empty()
}

/// What of the engine is not permitted.
pub(in crate::controller::database) fn engine(observed: &Observed) -> Option<ClassRefusal> {
    let spec = &observed.database.spec;
    let class = || spec.node_class_name.clone();
    let Some(permitted) = observed.class.as_ref().map(|class| &class.spec) else {
        return Some(ClassRefusal::NoClass { class: class() });
    };
    if spec.engine.kind != EngineType::Custom {
        return None;
    }
    let allowed = &permitted.custom.allowed_images;
    let image = spec.engine.custom.as_ref().map(|custom| custom.image.clone()).unwrap_or_default();
    if !permitted.custom.enabled {
        Some(ClassRefusal::CustomDisabled { class: class() })
    } else if !allowed.is_empty() && !pattern::is_any(allowed, &image) {
        Some(ClassRefusal::ImageNotAllowed { class: class(), image, allowed: allowed.clone() })
    } else {
        None
    }
}
