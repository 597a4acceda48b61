//! What happens from outside in the model of a Database's life, at random.

use super::*;

/// Which of the machines an event is about; the only one, if there is one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    Oldest,
    Newest,
}

/// What happens from outside.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The Database is deleted.
    Delete,
    /// The operator ends after so many writes of this pass, and starts anew: it leaves nothing in memory.
    Restart(usize),
    /// The status is lost.
    StatusLost,
    /// `spec.running` is false.
    Pause,
    /// `spec.running` is true.
    Resume,
    /// These are the instance types from now on.
    Types(&'static [&'static str]),
    /// This is a setting of the engine from now on.
    Setting(&'static str),
    /// The size grows.
    Grow,
    /// This is the deletion policy from now on.
    Policy(DeletionPolicy),
    /// A machine is lost, and EC2 shows its end so many steps later.
    Lose(Which, usize),
    /// The same, and its Kubernetes node is gone, while what runs on it may run on.
    LoseWithNode(Which, usize),
    /// EC2 has no capacity for so many steps.
    NoCapacity(usize),
    /// The StatefulSet's controller does nothing for so many steps.
    Slow(usize),
    /// A Node is deleted.
    DeleteNode(Which),
    /// A machine's Kubernetes node is deleted.
    DeleteKubernetesNode(Which),
    /// The Kubernetes nodes lose the Database's label.
    TakeLabel,
    /// The pod is deleted.
    DeletePod,
    /// The StatefulSet is deleted.
    DeleteStatefulSet,
    /// Another client adds a file to the ConfigMap.
    AlterFiles,
    /// Another client adds an init container to the StatefulSet's template.
    AlterTemplate,
    /// Service, ConfigMap, NetworkPolicy and PodDisruptionBudget are deleted.
    DeleteWays,
    /// The claim is deleted.
    DeleteClaim,
    /// The Volume is deleted.
    DeleteVolume,
    /// The Secret of the credentials is deleted.
    DeleteCredentials,
    /// The engine's container ends, and Kubernetes starts it again.
    Crash,
    /// The spec asks for another password.
    Rotate,
    /// This is a setting from now on that the engine takes while it runs, unless it is `lots`.
    Reload(&'static str),
    /// The spec asks for the data of the backup.
    RestoreInPlace,
    /// It asks for that no more.
    TakeBack,
    /// Another client sets the number of pods to one.
    ScaleUp,
    /// This is the version of the engine from now on.
    Version(&'static str),
    /// The status is as it was when a changed engine was last tried.
    Rewind,
}

const TYPES: [&[&str]; 4] =
    [&["r7i.large"], &["m7i.large"], &["m7i.large", "r7i.large"], &["r7i.large", "r6i.large", "m7i.large"]];

pub(super) fn policies() -> impl Strategy<Value = DeletionPolicy> {
    prop::sample::select(vec![DeletionPolicy::Retain, DeletionPolicy::Delete, DeletionPolicy::Snapshot])
}

fn which() -> impl Strategy<Value = Which> {
    prop::sample::select(vec![Which::Oldest, Which::Newest])
}

/// What a Database gets over by itself.
pub(super) fn mishaps() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => delays(),
        1 => Just(Event::StatusLost),
        1 => prop::sample::select(TYPES.to_vec()).prop_map(Event::Types),
        1 => prop::sample::select(vec!["60s", "120s"]).prop_map(Event::Setting),
        1 => Just(Event::Grow),
        1 => (which(), 0..12usize).prop_map(|(which, steps)| Event::Lose(which, steps)),
        1 => (which(), 0..12usize).prop_map(|(which, steps)| Event::LoseWithNode(which, steps)),
        1 => which().prop_map(Event::DeleteNode),
        1 => which().prop_map(Event::DeleteKubernetesNode),
        1 => Just(Event::TakeLabel),
        1 => Just(Event::DeletePod),
        1 => Just(Event::DeleteStatefulSet),
        1 => Just(Event::DeleteWays),
        1 => Just(Event::Crash),
        1 => Just(Event::Rotate),
    ]
}

/// What makes a change take longer.
pub(super) fn delays() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0..6usize).prop_map(Event::Restart),
        prop::sample::select(vec![5, 20, 100]).prop_map(Event::NoCapacity),
        (1..6usize).prop_map(Event::Slow),
    ]
}

/// What a Database gets over by itself, and what it does not.
pub(super) fn anything() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => mishaps(),
        1 => Just(Event::Delete),
        2 => Just(Event::Pause),
        2 => Just(Event::Resume),
        1 => policies().prop_map(Event::Policy),
        1 => Just(Event::DeleteClaim),
        1 => Just(Event::DeleteVolume),
        1 => Just(Event::DeleteCredentials),
    ]
}

/// Some of these events, each before one of the first passes.
pub(super) fn some(event: impl Strategy<Value = Event>) -> impl Strategy<Value = Vec<(usize, Event)>> {
    prop::collection::vec((0..30usize, event), 0..10)
}
