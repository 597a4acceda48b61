//! The life of a Node that adopts an instance: nothing is launched, and as long as it is to be released
//! nothing of Freehold's ends the instance.

use super::super::adopted::{legacy, plain_core_node};
use super::*;
use crate::api::keys::ADOPT_TAG;
use crate::cluster::finalizer;

impl Life {
    /// An instance and its Kubernetes node that ran before.
    fn adopting(release: bool) -> Self {
        let mut life = Self::new(Vec::new());
        life.node.spec.instance_id = Some(id("i-1"));
        life.node.spec.release = release;
        life.core_node = Some(plain_core_node());
        let instance = legacy(InstanceState::Running);
        life.machines =
            vec![Machine { instance, since: at(-5000), listed_from: at(-5000), has_registered: true }];
        life
    }

    /// Passes follow each other, while this happens. What is to be released is ended by no plan.
    fn goes_on(&mut self, events: &[(usize, Event)]) -> Option<NodeWait> {
        let waiting = self.come_to_rest(events);
        assert_eq!(self.machines.len(), 1, "nothing is launched");
        if self.node.spec.release {
            assert!(self.stops.is_empty() && self.terminations.is_empty(), "nothing is ended");
        }
        waiting
    }

    fn runs_as_before(&self) {
        let tags = &self.machines[0].instance.tags;
        assert_eq!(*tags, legacy(InstanceState::Running).tags);
        let before = plain_core_node();
        let core_node = self.core_node.as_ref().unwrap();
        assert_eq!(core_node.metadata.labels, before.metadata.labels);
        assert_eq!(core_node.metadata.finalizers.iter().flatten().count(), 0);
        assert_eq!(core_node.spec, before.spec);
    }
}

#[test]
fn an_adopted_machine_becomes_ready_and_is_released_as_it_was() {
    let mut life = Life::adopting(true);
    assert_eq!(life.goes_on(&[]), None);
    assert!(life.is_ready());
    life.goes_on(&[(0, Event::Delete)]);
    assert!(life.is_gone);
    life.runs_as_before();
}

#[test]
fn without_its_tag_nothing_is_adopted_and_the_node_can_be_deleted() {
    let mut life = Life::adopting(false);
    life.machines[0].instance.tags.remove(ADOPT_TAG);
    let waiting = life.goes_on(&[]);
    assert!(waiting.is_some_and(|wait| wait.is_stalled()));
    life.goes_on(&[(0, Event::Delete)]);
    assert!(life.is_gone && is_live(&life.machines[0].instance));
}

#[test]
fn a_machine_that_is_not_released_ends_with_its_node() {
    let mut life = Life::adopting(false);
    assert_eq!(life.goes_on(&[]), None);
    life.goes_on(&[(0, Event::Delete)]);
    assert!(life.is_gone && !is_live(&life.machines[0].instance));
}

#[test]
fn a_machine_that_ec2_does_not_show_while_the_status_is_lost_is_released_without_our_tags() {
    for (lost_at, when) in [(36, 36), (30, 25)] {
        let mut life = Life::adopting(true);
        let waiting =
            life.goes_on(&[(when, Event::Hide), (lost_at, Event::StatusLost), (when, Event::Delete)]);
        assert!(life.is_gone, "{waiting:?}");
        assert_eq!(life.machines[0].instance.tags, legacy(InstanceState::Running).tags);
    }
}

/// What happens to a machine from outside.
fn from_outside() -> impl Strategy<Value = Vec<(usize, Event)>> {
    let events = vec![
        Event::Restart,
        Event::StatusLost,
        Event::Silent,
        Event::Stop,
        Event::Terminate,
        Event::Hide,
        Event::DeleteKubernetesNode,
        Event::Undedicate,
        Event::ForeignPod,
    ];
    prop::collection::vec((0..40usize, prop::sample::select(events)), 0..5)
}

proptest! {
    #[test]
    fn whatever_happens_an_adopted_node_launches_nothing_and_comes_to_rest(
        events in events(),
        release in any::<bool>(),
    ) {
        Life::adopting(release).goes_on(&events);
    }

    #[test]
    fn a_node_that_is_released_ends_without_its_machine(events in from_outside(), when in 0..60usize) {
        let mut life = Life::adopting(true);
        let waiting = life.goes_on(&[events, vec![(when, Event::Delete)]].concat());
        prop_assert!(life.is_gone, "{:?}", waiting);
        let instance = &life.machines[0].instance;
        if is_live(instance) {
            prop_assert_eq!(&instance.tags, &legacy(InstanceState::Running).tags);
            prop_assert!(life.core_node.iter().all(|core_node| !finalizer::has(core_node)));
        }
    }
}
