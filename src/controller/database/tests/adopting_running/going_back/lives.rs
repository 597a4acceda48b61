//! Lives of an adopted database, in any order of edits, failures and lost pods: an image never goes back
//! behind one that was started, and nothing is tried for ever.

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::controller::engine_container::engine_of;

/// What happens between two passes.
#[derive(Clone, Debug)]
enum Step {
    /// The spec requests this version, and these resources.
    Request(usize, usize),
    /// The pod is like this; one whose engine was started is never again as if it were not.
    Pod(usize),
    /// Time passes, in minutes.
    Minutes(i64),
    /// The pod is gone, and Kubernetes has created another.
    Lost,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..3_usize, 0..3_usize).prop_map(|(version, memory)| Step::Request(version, memory)),
        (0..3_usize).prop_map(Step::Pod),
        (1..100_i64).prop_map(Step::Minutes),
        Just(Step::Lost),
    ]
}

struct Life {
    world: Observed,
    now: i64,
    pods: usize,
    /// The image of the engine that was started last.
    started: String,
    /// How often the database went back since the last edit.
    went_back: usize,
}

impl Life {
    fn new() -> Self {
        let found = "mirror.example.com/postgres:17.5-acme".to_owned();
        Self { world: kept(json!({})), now: CREATED, pods: 0, started: found, went_back: 0 }
    }

    fn happens(&mut self, step: &Step) {
        match step {
            Step::Request(release, memory) => {
                let mut spec = version(["17.5", "17.6", "17.7"][*release]);
                if *memory > 0 {
                    spec["resources"] = json!({"limits": {"memory": format!("{memory}Gi")}});
                }
                let before = self.world.database.spec.clone();
                requested(&mut self.world, spec);
                if self.world.database.spec != before {
                    self.went_back = 0;
                }
            }
            Step::Pod(state) => {
                let has_started = self.world.pod.as_ref().is_some_and(|pod| pod::has_started(pod, None));
                let states = if has_started {
                    [serving(), crashing(), recovering()]
                } else {
                    [serving(), no_image(), fits_nowhere()]
                };
                self.world.pod.as_mut().unwrap().status = from_json(states[*state].clone());
            }
            Step::Minutes(minutes) => self.now += 60 * minutes,
            Step::Lost => self.create_pod(),
        }
        let pod = self.world.pod.as_ref().unwrap();
        if pod::has_started(pod, None) && pod.metadata.uid.as_deref() != Some("legacy-pod-uid") {
            self.started = image_of(&pod.spec.as_ref().unwrap().containers);
        }
    }

    fn create_pod(&mut self) {
        self.pods += 1;
        let set = self.world.stateful_set.ours().unwrap();
        let mut pod = Pod { status: None, ..pod_of(set) };
        pod.metadata.name = Some("pg-17-0".to_owned());
        pod.metadata.uid = Some(format!("pod-{}", self.pods));
        pod.metadata.creation_timestamp = Some(Time(at(self.now)));
        self.world.pod = Some(pod);
    }

    /// Passes until one does nothing.
    fn passes(&mut self) {
        for _ in 0..10 {
            let plan = plan(&self.world, at(self.now));
            for action in &plan.actions {
                self.carry_out(action);
            }
            self.world.database.status = Some(status_at(&self.world, self.now));
            if plan.actions.is_empty() {
                return;
            }
        }
        panic!("no end: {}", line(&plan(&self.world, at(self.now))));
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "every other action is none of this model")]
    fn carry_out(&mut self, action: &Action) {
        match action {
            Action::ApplyStatefulSet(set) => {
                let live = self.world.stateful_set.ours().unwrap();
                let annotations = set.metadata.annotations.clone();
                let metadata = ObjectMeta { annotations, ..live.metadata.clone() };
                let set = StatefulSet { metadata, spec: set.spec.clone(), ..live.clone() };
                self.world.stateful_set = ours(seen(set));
                as_applied(&mut self.world);
                self.check();
            }
            Action::GoBack(back) => {
                adoption(&mut self.world).went_back = Some(back.as_ref().clone());
                self.went_back += 1;
                assert_eq!(self.went_back, 1, "the same spec is tried once");
            }
            Action::ReplacePod(..) => self.create_pod(),
            other => panic!("{}", word(other)),
        }
    }

    /// A template has the image that the spec requests, or the one that was started last.
    fn check(&self) {
        let set = self.world.stateful_set.ours().unwrap();
        let spec = set.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
        let (image, release) = (image_of(&spec.containers), &self.world.database.spec.engine.version);
        let requested = format!("mirror.example.com/postgres:{}-acme", release.as_ref().unwrap());
        assert!(image == requested || image == self.started, "{image} after {}", self.started);
        assert!(spec.node_selector.as_ref().unwrap().contains_key(DATABASE_NODE_LABEL));
    }
}

fn image_of(containers: &[k8s_openapi::api::core::v1::Container]) -> String {
    engine_of(containers, None).unwrap().image.clone().unwrap()
}

proptest! {
    #[test]
    fn an_image_never_goes_back_behind_one_that_was_started(steps in prop::collection::vec(step(), 1..40)) {
        let mut life = Life::new();
        for step in &steps {
            life.happens(step);
            life.passes();
        }
    }
}
