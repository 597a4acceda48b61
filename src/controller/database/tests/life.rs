//! The life of a Database in a small model of Kubernetes: its plans are carried out, its Nodes, its Volume
//! and its pod come and go as their controllers let them, time moves to what the plans wait for, and whatever
//! happens meanwhile, it comes to rest with one machine, with one volume, and never with two engines.

mod carry_out;
mod configuring;
mod events;
mod flushing;
mod happening;
mod in_place;
mod kubernetes;
mod machine;
mod observed;
mod passing;
mod resting;
mod rotating;
mod upgrading;

use std::mem::take;
use std::sync::LazyLock;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use proptest::prelude::*;

use super::*;
use crate::api::database::Occurrence;
use crate::api::{DatabaseStatus, DeletionPolicy};
use crate::controller::database::apply::Answers;
use crate::controller::database::status::{Decided, status as status_of};
use crate::controller::database::wait::DatabaseWait;
use crate::controller::pass::acted::Acted;
use crate::controller::tests::rest::Rest;
use crate::engine::{EngineError, Profile};
use crate::time::later;
use configuring::Mounted;
use events::{Event, Which, anything, delays, mishaps, policies, some};
use machine::Machine;

/// More passes than any life of the model needs; a life that needs more goes round in a circle.
const MOST_PASSES: usize = 400;

/// The claim of the Volume.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Claim {
    Absent,
    Bound,
    /// It is deleted, and goes when no pod uses it.
    Leaving,
}

#[derive(Clone)]
struct Life {
    database: Database,
    names: Names,
    profile: Result<Profile, EngineError>,
    machines: Vec<Machine>,
    volume: Option<Volume>,
    claim: Claim,
    credentials: Option<HeldSecret>,
    retained: Option<HeldSecret>,
    /// The password that the engine takes, once it was started.
    engine_password: Option<String>,
    config_map: Option<ConfigMap>,
    mounted: Mounted,
    service: Option<Service>,
    service_account: Option<ServiceAccount>,
    network_policy: Option<NetworkPolicy>,
    disruption_budget: Option<PodDisruptionBudget>,
    stateful_set: Option<StatefulSet>,
    /// The StatefulSet as its controller saw it last.
    seen: Option<StatefulSet>,
    pod: Option<Pod>,
    flush: FlushView,
    /// The objects that the API server answered with in this pass.
    answers: Answers,
    /// How many objects were made: each has a UID of its own.
    made: usize,
    volumes_made: usize,
    pods_made: usize,
    /// The retention records of what was replaced in place, and what is wrong with the backup.
    in_place: in_place::InPlace,
    /// The data, the Backups, and the engine that does not serve.
    upgrading: upgrading::Upgrading,
    /// What its policy said when the Volume went.
    volume_ended: Option<DeletionPolicy>,
    /// The Volume, or the Secret, was deleted by another client: a person must act.
    is_broken: bool,
    /// For how many more steps EC2 has no capacity.
    no_capacity: usize,
    /// For how many more steps the StatefulSet's controller does nothing.
    slow: usize,
    /// After how many more writes the operator ends.
    writes_left: Option<usize>,
    /// Something has changed by itself, or from outside, since the last pass.
    is_moving: bool,
    now: Timestamp,
    is_gone: bool,
}

impl Life {
    fn new(policy: DeletionPolicy) -> Self {
        let mut database = database(json!({"deletionPolicy": policy}), json!({}));
        (database.metadata.finalizers, database.status) = (None, None);
        Self {
            names: Names::of(&database),
            profile: engine::profile(&database.spec.engine, &database.spec.config),
            database,
            machines: Vec::new(),
            volume: None,
            claim: Claim::Absent,
            credentials: None,
            retained: None,
            engine_password: None,
            config_map: None,
            mounted: Mounted::default(),
            service: None,
            service_account: None,
            network_policy: None,
            disruption_budget: None,
            stateful_set: None,
            seen: None,
            pod: None,
            flush: FlushView::NotBegun,
            answers: Answers::default(),
            made: 0,
            volumes_made: 0,
            pods_made: 0,
            in_place: in_place::InPlace::default(),
            upgrading: upgrading::Upgrading::default(),
            volume_ended: None,
            is_broken: false,
            no_capacity: 0,
            slow: 0,
            writes_left: None,
            is_moving: false,
            now: now(),
            is_gone: false,
        }
    }

    /// A new Database, or one that is ready.
    fn begun(is_new: bool, policy: DeletionPolicy) -> Self {
        let mut life = if is_new { Self::new(policy) } else { Self::ready() };
        life.happens(Event::Policy(policy));
        life
    }

    /// A Database that has come to rest, and is ready.
    fn ready() -> Self {
        static READY: LazyLock<Life> = LazyLock::new(|| {
            let mut life = Life::new(DeletionPolicy::Retain);
            let waiting = life.come_to_rest(&[]);
            life.check_ready(waiting.as_ref());
            life
        });
        READY.clone()
    }

    fn status(&mut self) -> &mut DatabaseStatus {
        self.database.status.get_or_insert_with(DatabaseStatus::default)
    }

    fn is_deleting(&self) -> bool {
        self.database.metadata.deletion_timestamp.is_some()
    }

    /// A UID that no other object has.
    fn new_uid(&mut self) -> String {
        self.made += 1;
        format!("uid-{}", self.made)
    }

    /// One pass, as the controller makes it.
    fn pass(&mut self) -> Plan {
        let observed = self.observed();
        let plan = plan(&observed, self.now);
        for action in &plan.actions {
            if !self.carry_out(action) {
                break;
            }
        }
        if !self.is_gone && self.may_write() {
            let acted = Acted::new(self.database.clone());
            let answers = take(&mut self.answers);
            let decided = Decided { answers, ..Decided::of(&observed, &plan, &acted) };
            self.database.status = Some(status_of(&observed, &decided, &acted, self.now));
            self.check(&plan);
            self.remember_trial();
        }
        if self.writes_left.take().is_some() {
            self.flush = FlushView::NotBegun;
        }
        self.answers = Answers::default();
        plan
    }

    /// What holds after every pass that was not cut short.
    fn check(&self, plan: &Plan) {
        let machines: Vec<&str> =
            self.machines.iter().filter_map(|machine| machine.node.metadata.name.as_deref()).collect();
        let is_repair = self.machines.iter().any(|machine| machine.is_lost);
        assert!(machines.len() <= 2 || is_repair, "{machines:?} at once");
        let staying = self.machines.iter().filter(|machine| !machine.is_deleting()).count();
        assert!(staying <= 2, "{staying} of {machines:?} stay");
        self.check_password();
        let labelled = self.labelled().count();
        assert!(labelled <= 1, "{labelled} Kubernetes nodes have the label at once");
        let is_wanted = self.database.spec.running && !self.is_deleting();
        let is_stalled = plan.waiting.as_ref().is_some_and(DatabaseWait::is_stalled);
        let is_leaving = |machine: &Machine| machine.is_leaving(&self.database.spec.instance_types);
        if machines.len() == 2 && is_wanted && !is_stalled {
            assert!(!self.is_serving() || self.machines.iter().any(is_leaving), "{machines:?} stay");
        }
    }

    /// Passes follow each other until nothing happens any more. Returns what the last plan waits for.
    fn come_to_rest(&mut self, events: &[(usize, Event)]) -> Option<DatabaseWait> {
        let mut rest = Rest::new();
        let mut waiting = None;
        for number in 0..MOST_PASSES {
            for (_, event) in events.iter().filter(|(when, _)| *when == number) {
                self.happens(*event);
            }
            let plan = self.pass();
            if self.is_gone {
                return plan.waiting;
            }
            let has_happened = events.iter().all(|(when, _)| *when < number);
            let is_quiet = plan.actions.is_empty() && !self.is_moving && has_happened;
            if rest.is_reached(plan.waiting.as_ref(), is_quiet) {
                return plan.waiting;
            }
            self.wait_for(&plan);
            waiting = plan.waiting;
        }
        panic!("no rest after {MOST_PASSES} passes, and the last waits for {waiting:?}");
    }
}

/// What is read of an object of a derived name: all of them are the Database's in the model.
fn child<T: Clone>(object: Option<&T>) -> Child<T> {
    object.map_or(Child::Absent, |object| ours(object.clone()))
}

proptest! {
    #[test]
    fn whatever_happens_a_database_comes_to_rest_as_its_spec_says(
        is_new: bool,
        policy in policies(),
        events in some(anything()),
    ) {
        let mut life = Life::begun(is_new, policy);
        let waiting = life.come_to_rest(&events);
        life.check_rest(waiting.as_ref());
    }

    #[test]
    fn a_database_is_ready_again_whatever_was_lost_or_changed(is_new: bool, events in some(mishaps())) {
        let mut life = Life::begun(is_new, DeletionPolicy::Retain);
        let waiting = life.come_to_rest(&events);
        life.check_ready(waiting.as_ref());
    }

    #[test]
    fn a_change_that_is_taken_back_ends_where_it_began(
        (first, back) in prop_oneof![
            Just((Event::Types(&["m7i.large"]), Event::Types(&["r7i.large"]))),
            Just((Event::Setting("60s"), Event::Setting("120s"))),
            Just((Event::Pause, Event::Resume)),
        ],
        events in prop::collection::vec((0..20usize, delays()), 0..4),
        when in 1..20usize,
    ) {
        let mut life = Life::ready();
        let changes = [events, vec![(0, first), (when, back)]].concat();
        let waiting = life.come_to_rest(&changes);
        life.check_ready(waiting.as_ref());
    }

    #[test]
    fn one_change_restarts_the_engine_once_however_often_the_operator_does(
        change in prop_oneof![Just(Event::Types(&["m7i.large"])), Just(Event::Setting("60s"))],
        restarts in prop::collection::vec((0..20usize, delays()), 0..6),
    ) {
        let mut life = Life::ready();
        let pods = life.pods_made;
        let waiting = life.come_to_rest(&[restarts, vec![(0, change)]].concat());
        life.check_ready(waiting.as_ref());
        prop_assert_eq!(life.pods_made, pods + 1);
        let shown: Vec<(Occurrence, i32)> =
            life.status().history.iter().map(|entry| (entry.what, entry.count)).collect();
        let (moved, restarted) = ((Occurrence::Moved, 1), (Occurrence::Restarted, 1));
        // The pod of a move is deleted by Freehold, or ended with its machine.
        let expected = if matches!(change, Event::Types(_)) {
            [vec![moved], vec![moved, restarted]]
        } else {
            [vec![restarted], vec![restarted]]
        };
        prop_assert!(expected.contains(&shown), "{:?}", shown);
    }

    #[test]
    fn what_other_clients_alter_ends_as_freehold_applied_it_and_so_does_the_pod(
        is_new: bool,
        events in some(prop_oneof![
            delays(),
            prop::sample::select(vec![Event::AlterFiles, Event::AlterTemplate, Event::DeletePod]),
            prop::sample::select(vec![Event::Pause, Event::Resume]),
        ]),
    ) {
        let mut life = Life::begun(is_new, DeletionPolicy::Retain);
        let waiting = life.come_to_rest(&[events, vec![(30, Event::Resume)]].concat());
        life.check_ready(waiting.as_ref());
        life.check_as_applied();
    }

    #[test]
    fn a_deleted_database_ends_with_its_machines_and_its_data_as_its_policy_says(
        is_new: bool,
        policy in policies(),
        events in some(anything()),
        when in 0..40usize,
    ) {
        let mut life = Life::begun(is_new, policy);
        let waiting = life.come_to_rest(&[events, vec![(when, Event::Delete)]].concat());
        prop_assert!(life.is_gone, "{:?}", waiting);
        life.check_gone();
    }
}
