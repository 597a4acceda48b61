//! Which of a Database's Nodes it runs on, which takes that one's place, and why one must be replaced. Pure.

use kube::ResourceExt;

use super::facts::{condition_message, disk_zone};
use crate::api::node::ReplacementCause;
use crate::api::{ConditionType, Node, Reason};
use crate::controller::conditions;
use crate::controller::database::cause::LostReason;
use crate::controller::database::cause::ReplaceCause;
use crate::controller::database::observe::Observed;

/// The Nodes of a Database by what they are to it: one, and two during a replacement; more only where a lost
/// machine is replaced while those that the database has left are still going.
#[derive(Clone, Debug)]
pub(in crate::controller::database) struct Machines<'a> {
    /// The one that the database runs on, or is to run on.
    pub host: &'a Node,
    /// The one that is to take its place.
    pub successor: Option<&'a Node>,
    /// Those that the database has left.
    pub former: Vec<&'a Node>,
}

/// Distinguishes them: the newest one takes the place of the others, and has done so once its machine carries
/// the database's label.
pub(in crate::controller::database) fn of(observed: &Observed) -> Option<Machines<'_>> {
    let nodes = observed.by_ordinal();
    let (newest, older) = nodes.split_last()?;
    let labelled = older.iter().find(|node| observed.carries_label(node)).or_else(|| older.first()).copied();
    Some(match labelled {
        Some(host) if !observed.carries_label(newest) => {
            let former =
                older.iter().copied().filter(|node| node.metadata.uid != host.metadata.uid).collect();
            Machines { host, successor: Some(newest), former }
        }
        Some(_) | None => Machines { host: newest, successor: None, former: older.to_vec() },
    })
}

/// Why a machine must be replaced; `None` when it may stay.
pub(super) fn why_replaced(observed: &Observed, node: &Node) -> Option<ReplaceCause> {
    if is_lost(node) {
        return Some(lost(node));
    }
    if node.metadata.deletion_timestamp.is_some() && loses_kubernetes_node(node).is_none() {
        return Some(ReplaceCause::NodeDeleted { node: node.name_any() });
    }
    if let Some(why) = departs(node) {
        return Some(why);
    }
    unwanted_type(observed, node)
}

/// Whether the machine is gone or going, whatever the spec says.
pub(super) fn must_be_left(node: &Node) -> bool {
    is_lost(node) || node.metadata.deletion_timestamp.is_some() || loses_kubernetes_node(node).is_some()
}

/// Why a Node that is to take another's place cannot.
pub(super) fn unfit(observed: &Observed, node: &Node) -> Option<ReplaceCause> {
    let lost = || is_lost(node).then(|| lost(node));
    misplaced(observed, node)
        .or_else(lost)
        .or_else(|| loses_kubernetes_node(node))
        .or_else(|| unwanted_type(observed, node))
}

fn lost(node: &Node) -> ReplaceCause {
    ReplaceCause::Lost {
        reason: lost_reason(node),
        message: condition_message(node.conditions(), ConditionType::Lost),
    }
}

/// Its Kubernetes node is being deleted, which cannot be undone.
fn loses_kubernetes_node(node: &Node) -> Option<ReplaceCause> {
    departs(node).filter(|why| matches!(why, ReplaceCause::KubernetesNodeDeleted { .. }))
}

/// Whether the machine serves and is left in good time: what is awaited is the one that takes its place.
pub(super) fn departs_in_time(node: &Node) -> bool {
    let is_it = |why: ReplaceCause| {
        matches!(why, ReplaceCause::EventScheduled { .. } | ReplaceCause::Cordoned { .. })
    };
    departs(node).is_some_and(is_it)
}

/// What the Node controller says that a machine which serves must be left for.
fn departs(node: &Node) -> Option<ReplaceCause> {
    let needed = node.status.as_ref()?.replacement_needed.as_ref()?;
    let message = needed.message.clone();
    match needed.cause {
        ReplacementCause::KubernetesNodeDeleted => Some(ReplaceCause::KubernetesNodeDeleted { message }),
        ReplacementCause::EventScheduled => Some(ReplaceCause::EventScheduled { message }),
        ReplacementCause::Cordoned => Some(ReplaceCause::Cordoned { message }),
        // The Node controller of this version judges anew.
        ReplacementCause::Unknown => None,
    }
}

/// A machine that has joined is moved away from only when its type has left the list. One that has not is the
/// Node controller's affair.
fn unwanted_type(observed: &Observed, node: &Node) -> Option<ReplaceCause> {
    let status = node.status.as_ref()?;
    status.core_node_name.as_ref()?;
    let in_use = status.instance_type.as_ref()?;
    let is_wanted = observed.database.spec.instance_types.contains(in_use);
    (!is_wanted).then(|| ReplaceCause::TypeNotWanted { instance_type: in_use.clone() })
}

/// The machine is declared lost: EC2 shows its end, or it is being fenced.
pub(in crate::controller::database) fn is_lost(node: &Node) -> bool {
    conditions::is_true(node.conditions(), ConditionType::Lost)
}

/// The reason of its condition Lost, for display.
pub(in crate::controller::database) fn lost_reason(node: &Node) -> LostReason {
    let lost = conditions::find(node.conditions(), ConditionType::Lost);
    LostReason(lost.and_then(|lost| Reason::named(&lost.reason)).unwrap_or(Reason::InstanceLost))
}

/// Why a machine can never serve this database: it is not where the disk is.
pub(super) fn misplaced(observed: &Observed, node: &Node) -> Option<ReplaceCause> {
    let disk = disk_zone(observed)?;
    let status = node.status.as_ref()?;
    let machine = status.zone.as_ref()?;
    (*machine != disk && status.instance_id.is_some())
        .then(|| ReplaceCause::Misplaced { machine: machine.clone(), disk })
}

/// Whether the engine may run on it: it was made ready, is not declared lost, and is not being emptied.
pub(in crate::controller::database) fn can_serve(observed: &Observed, node: &Node) -> bool {
    let is_kept = node.metadata.deletion_timestamp.is_none() || observed.carries_label(node);
    is_initialized(node) && !is_lost(node) && is_kept
}

/// Whether the machine was made ready for the database.
pub(super) fn is_initialized(node: &Node) -> bool {
    conditions::is_true(node.conditions(), ConditionType::Initialized)
}
