//! What happens from outside in the model of a Database's life, at random.

use super::*;

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
        1 => prop::sample::select(vec!["4M", "8M"]).prop_map(Event::Reload),
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
