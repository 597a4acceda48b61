//! What a Database's NodeClass permits, and what becomes of a spec that requests something else. Pure.
//!
//! A Database that has nothing yet gets nothing. One that was created goes on, and is repaired, as it was
//! decided before: only what its spec requests anew is not carried out.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::core::{Selector, SelectorExt};

use super::action::Plan;
use super::facts::{is_outdated, slowly};
use super::leaving::is_leaving;
use super::total_storage;
use crate::api::ConditionType;
use crate::api::database::{DatabaseSpec, EngineType, Storage};
use crate::api::node_class::{Limits, NodeClassSpec};
use crate::controller::conditions::Entry;
use crate::controller::database::cause::ClassRefusal;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;
use crate::controller::database::observe::usage::Usage;
use crate::controller::database::wait::DatabaseWait;
use crate::controller::pattern;

/// What keeps a Database that has nothing yet from being created.
pub(super) fn creation(observed: &Observed) -> Option<ClassRefusal> {
    if was_created(observed) { None } else { refusal(observed).or_else(|| databases(observed)) }
}

/// The world in which what is not permitted is as it was decided before, and what is not permitted; `None`
/// when nothing must be left out. The engine's template is left out by [`template`].
pub(super) fn as_decided_before(observed: &Observed) -> Option<(Observed, ClassRefusal)> {
    let class = class(observed);
    let refusal = class.clone().or_else(|| storage(observed))?;
    let spec = &observed.database.spec;
    let mut before = spec.clone();
    if let Child::Ours(volume) = &observed.volume {
        before.storage = Storage {
            size: volume.spec.size.clone(),
            volume_type: volume.spec.volume_type.clone(),
            iops: volume.spec.iops,
            throughput: volume.spec.throughput,
            ..spec.storage.clone()
        };
    }
    let of_volume = observed.volume.ours().map(|volume| &volume.spec.node_class_name);
    let of_node = observed.nodes.first().map(|node| &node.spec.node_class_name);
    if let (Some(_), Some(decided)) = (class, of_volume.or(of_node)) {
        before.node_class_name.clone_from(decided);
    }
    (before != *spec).then(|| {
        let mut world = observed.clone();
        world.database.spec = before;
        (world, refusal)
    })
}

/// The plan, which says that something is not permitted unless it waits for more than that.
pub(super) fn with_refusal(mut plan: Plan, refusal: ClassRefusal) -> Plan {
    plan.waiting.get_or_insert(DatabaseWait::NotPermitted(refusal));
    plan
}

/// The plan, with a time for the next pass while something is not permitted: namespaces, and other
/// Databases, are not watched.
pub(super) fn requeued(plan: Plan, observed: &Observed) -> Plan {
    match &plan.waiting {
        Some(DatabaseWait::NotPermitted(refusal)) if plan.requeue.is_none() => {
            let soon = observed.timing.requeue_interval;
            let pause = if refusal.is_final() { slowly(observed) } else { soon };
            plan.requeue(pause)
        }
        Some(_) | None => plan,
    }
}

/// What keeps the template of the newest spec from being applied; `None` when it may be, or is.
pub(super) fn template(observed: &Observed, live: &StatefulSet) -> Option<ClassRefusal> {
    if is_outdated(observed, live) { engine(observed) } else { None }
}

/// Says what of the spec is not permitted, whether it is carried out or not.
pub(in crate::controller::database) fn reported(observed: &Observed) -> Option<Entry> {
    if is_leaving(observed) {
        return None;
    }
    let refusal = creation(observed).or_else(|| refusal(observed)).filter(ClassRefusal::is_final)?;
    Some(Entry::yes(ConditionType::NotPermitted, refusal.reason(), refusal.message()))
}

/// What of the spec is not permitted.
fn refusal(observed: &Observed) -> Option<ClassRefusal> {
    engine(observed).or_else(|| storage(observed))
}

/// Something was decided before: a machine or a volume was made, or is being made.
fn was_created(observed: &Observed) -> bool {
    let was_made = observed.database.status.as_ref().is_some_and(|status| status.volume_name.is_some());
    was_made || observed.volume != Child::Absent || !observed.nodes.is_empty()
}

/// The class as such: it must exist, and admit the namespace.
pub(super) fn class(observed: &Observed) -> Option<ClassRefusal> {
    of_namespace(
        &observed.database.spec,
        permitted(observed),
        &observed.names.namespace,
        &observed.namespace_labels,
    )
}

fn of_namespace(
    spec: &DatabaseSpec,
    class: Option<&NodeClassSpec>,
    namespace: &str,
    labels: &BTreeMap<String, String>,
) -> Option<ClassRefusal> {
    let name = spec.node_class_name.clone();
    let Some(permitted) = class else { return Some(ClassRefusal::NoClass { class: name }) };
    let selector = permitted.namespace_selector.clone()?;
    // A selector that is none admits no namespace.
    let is_admitted = Selector::try_from(selector).is_ok_and(|selector| selector.matches(labels));
    (!is_admitted).then(|| ClassRefusal::Namespace { class: name, namespace: namespace.to_owned() })
}

/// What of a spec the class does not permit in this namespace, whatever other Databases have.
pub fn of_spec(
    spec: &DatabaseSpec,
    class: Option<&NodeClassSpec>,
    namespace: &str,
    labels: &BTreeMap<String, String>,
) -> Option<ClassRefusal> {
    let refusal = of_namespace(spec, class, namespace, labels);
    refusal.or_else(|| of_engine(spec, class?)).or_else(|| of_storage(spec, class?))
}

fn permitted(observed: &Observed) -> Option<&NodeClassSpec> {
    observed.class.as_ref().map(|class| &class.spec)
}

/// Of the Databases of a namespace, those that were created first are the ones that may name the class. A
/// deleted one with an orphaned Node or Volume still has its place.
fn databases(observed: &Observed) -> Option<ClassRefusal> {
    let most = permitted(observed)?.limits.databases?;
    let class = observed.database.spec.node_class_name.clone();
    let Usage { created_before, orphaned, storage: _ } = observed.usage;
    let is_one_of_them = usize::try_from(most).is_ok_and(|most| created_before + orphaned < most);
    (!is_one_of_them).then_some(ClassRefusal::Databases { class, most, orphaned })
}

/// What of the engine is not permitted, or of the class that must permit it.
pub(in crate::controller::database) fn engine(observed: &Observed) -> Option<ClassRefusal> {
    class(observed).or_else(|| of_engine(&observed.database.spec, permitted(observed)?))
}

fn of_engine(spec: &DatabaseSpec, class: &NodeClassSpec) -> Option<ClassRefusal> {
    let NodeClassSpec { custom, limits, .. } = class;
    let class = spec.node_class_name.clone();
    let kind = spec.engine.kind;
    if !limits.engines.is_empty() && !limits.engines.contains(&kind) {
        let allowed = limits.engines.iter().map(|engine| engine.as_str().to_owned()).collect();
        return Some(ClassRefusal::NotListed {
            class,
            what: "engine",
            wanted: kind.as_str().to_owned(),
            allowed,
        });
    }
    if kind != EngineType::Custom {
        return None;
    }
    let allowed = &custom.allowed_images;
    let wanted = spec.engine.custom.as_ref().map(|custom| custom.image.clone()).unwrap_or_default();
    if !custom.enabled {
        Some(ClassRefusal::CustomDisabled { class })
    } else if !allowed.is_empty() && !pattern::is_any(allowed, &wanted) {
        Some(ClassRefusal::NotListed { class, what: "image", wanted, allowed: allowed.clone() })
    } else {
        None
    }
}

/// What of the volume is not permitted.
pub(super) fn storage(observed: &Observed) -> Option<ClassRefusal> {
    of_storage(&observed.database.spec, permitted(observed)?).or_else(|| total_storage::refusal(observed))
}

fn of_storage(spec: &DatabaseSpec, class: &NodeClassSpec) -> Option<ClassRefusal> {
    let Limits { storage, iops, throughput, volume_types, databases: _, total_storage: _, engines: _ } =
        &class.limits;
    let wanted = &spec.storage;
    let class = || spec.node_class_name.clone();
    if !volume_types.is_empty() && !volume_types.contains(&wanted.volume_type) {
        let (wanted, allowed) = (wanted.volume_type.clone(), volume_types.clone());
        return Some(ClassRefusal::NotListed { class: class(), what: "volume type", wanted, allowed });
    }
    let above = |field: &'static str, wanted: String, most: String| {
        Some(ClassRefusal::Above { class: class(), field, wanted, most })
    };
    if let Some(most) = storage
        && wanted.size.gib() > most.gib()
    {
        return above("storage", wanted.size.to_string(), most.to_string());
    }
    let number = |field: &'static str, wanted: Option<i32>, most: Option<i32>| {
        let (wanted, most) = (wanted?, most?);
        if wanted > most { above(field, wanted.to_string(), most.to_string()) } else { None }
    };
    number("iops", wanted.iops, *iops).or_else(|| number("throughput", wanted.throughput, *throughput))
}
