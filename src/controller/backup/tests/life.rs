//! The life of a Backup in a small model of an engine and of EC2: its plans are carried out, answers are
//! lost, the operator is killed between any two steps, the engine is started anew, and another client makes
//! checkpoints. Whatever happens, no checkpoint of the Backup is held at the end, none of another client was
//! released, and what counts as consistent is.

mod carry_out;

use std::collections::VecDeque;

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;
use crate::controller::backup::status::status as status_of;
use crate::controller::creation::judge::last_possible_send;
use crate::controller::pass::acted::Acted;

/// More passes than any life of the model needs; a life that needs more goes round in a circle.
const MOST_PASSES: usize = 1500;

/// What becomes of one step of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It is carried out, and answered.
    Fine,
    /// It is carried out, and the answer is lost.
    Lost,
    /// It is not carried out, and nothing is answered.
    Never,
    /// It is carried out, and the operator is killed.
    Killed,
}

/// What happens from outside.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The operator starts anew, and remembers nothing.
    Restart,
    /// The engine's container is started again in its pod.
    EngineRestart,
    /// The pod is replaced.
    NewPod,
    /// The pod is gone; it comes back later.
    NoPod,
    /// The engine cannot be reached for a while.
    Unreachable,
    /// Another client requests a checkpoint.
    OtherCreates,
    /// Another client releases whatever the engine holds.
    OtherReleases,
    /// EC2 refuses snapshots for a while.
    Refuse,
    /// The newest snapshot fails in EC2.
    SnapshotFails,
    /// Every snapshot is deleted outside Freehold.
    SnapshotsGo,
    /// The Backup is deleted.
    Delete,
}

/// A snapshot as it is, whether EC2 lists it or not.
struct Taken {
    snapshot: Snapshot,
    listed_from: Timestamp,
    /// It began while the engine held the checkpoint of the Backup.
    is_consistent: bool,
}

struct Life {
    backup: Backup,
    pod: Option<String>,
    pods: usize,
    /// The checkpoint that the engine holds, and whether another client has made it.
    held: Option<(Timestamp, bool)>,
    unreachable_until: Timestamp,
    refused_until: Timestamp,
    pod_back_at: Timestamp,
    taken: Vec<Taken>,
    empty: Option<EmptyRun>,
    awaited: Option<Timestamp>,
    steps: VecDeque<Step>,
    leading_since: Timestamp,
    now: Timestamp,
    is_gone: bool,
    is_killed: bool,
}

impl Life {
    fn new(policy: SnapshotPolicy, steps: Vec<Step>) -> Self {
        let mut backup = backup();
        backup.metadata.finalizers = None;
        backup.spec.deletion_policy = policy;
        Self {
            backup,
            pod: Some("pod-0".to_owned()),
            pods: 0,
            held: None,
            unreachable_until: at(0),
            refused_until: at(0),
            pod_back_at: at(0),
            taken: Vec::new(),
            empty: None,
            awaited: None,
            steps: steps.into(),
            leading_since: at(-1),
            now: at(0),
            is_gone: false,
            is_killed: false,
        }
    }

    fn status(&mut self) -> &mut BackupStatus {
        self.backup.status.get_or_insert_with(BackupStatus::default)
    }

    fn observed(&self) -> Observed {
        let pod = self.pod.as_ref().map_or(EnginePod::Absent, |uid| EnginePod::Running {
            uid: uid.clone(),
            address: None,
            is_ready: true,
            image: None,
        });
        let is_reachable = self.pod.is_some() && self.now >= self.unreachable_until;
        let shown = CheckpointStatus { held_since: self.held.map(|(since, _)| since), now: self.now };
        let id = self.backup.status.as_ref().and_then(|status| status.snapshot_id.as_ref());
        let is_there = self.taken.iter().any(|it| Some(&it.snapshot.id) == id);
        let listed = self.taken.iter().filter(|it| it.listed_from <= self.now);
        with(world(), |it| {
            it.backup = self.backup.clone();
            it.pod = pod;
            it.engine = match (self.pod.is_some(), is_reachable) {
                (false, _) => EngineView::NotRead,
                (true, false) => EngineView::Unreadable("no".to_owned()),
                (true, true) => EngineView::Shown(shown),
            };
            it.snapshots.swept_at = Some(self.now);
            it.snapshots.snapshots = listed.map(|it| it.snapshot.clone()).collect();
            it.snapshots.empty = self.empty;
            it.by_id = if is_there { ById::Shown } else { ById::NotShown };
            it.leading_since = self.leading_since;
        })
    }

    fn step(&mut self) -> Step {
        let step = self.steps.pop_front().unwrap_or(Step::Fine);
        self.is_killed |= step == Step::Killed;
        step
    }

    /// One pass.
    fn pass(&mut self) {
        let observed = self.observed();
        let plan = plan(&observed, self.now);
        self.is_killed = false;
        let mut went_well = true;
        for action in &plan.actions {
            went_well = self.carry_out(action);
            if !went_well || self.is_killed || self.is_gone {
                break;
            }
        }
        if self.is_killed {
            self.restart();
        } else if went_well && !self.is_gone {
            let acted = Acted::new(self.backup.clone());
            self.backup.status = Some(status_of(&observed, &plan, &acted, self.now));
        }
        self.remember(&plan);
        let pause = plan.requeue.map_or(4, |pause| i64::try_from(pause.as_secs()).unwrap());
        let pause = if self.awaited.is_some() && plan.actions.is_empty() { pause.max(60) } else { pause };
        self.now += SignedDuration::from_secs(pause.max(1));
    }

    fn restart(&mut self) {
        self.leading_since = self.now;
        self.empty = None;
        self.awaited = None;
    }

    /// What the look-ups of EC2 have shown since the last possible send.
    fn remember(&mut self, plan: &Plan) {
        let status = self.backup.status.clone().unwrap_or_default();
        let attempt = status.creation.as_ref().map(|creation| creation.attempt.clone());
        let last = attempt.map(|attempt| last_possible_send(Some(&attempt), None, self.leading_since));
        let awaited = last.filter(|_| plan.is_pending);
        if awaited != self.awaited {
            self.awaited = awaited;
            self.empty = None;
        }
        if let Some(last) = self.awaited {
            let is_hit = self.taken.iter().any(|it| it.listed_from <= self.now);
            self.empty = EmptyRun::after(self.empty, last, self.now, is_hit);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Restart => self.restart(),
            Event::EngineRestart | Event::OtherReleases => self.held = None,
            Event::NewPod => {
                self.pods += 1;
                self.pod = Some(format!("pod-{}", self.pods));
                self.held = None;
            }
            Event::NoPod => {
                (self.pod, self.held) = (None, None);
                self.pod_back_at = self.now + SignedDuration::from_secs(120);
            }
            Event::Unreachable => self.unreachable_until = self.now + SignedDuration::from_secs(700),
            // Within a minute of a request without an answer the two cannot be told apart.
            Event::OtherCreates if self.pod.is_some() && self.held.is_none() && !self.is_unanswered() => {
                // Never in the same moment as one of ours: the engine's time goes on between the two.
                self.held = Some((self.now - SignedDuration::from_millis(500), true));
            }
            Event::OtherCreates => {}
            Event::Refuse => self.refused_until = self.now + SignedDuration::from_secs(400),
            Event::SnapshotFails => {
                if let Some(it) =
                    self.taken.last_mut().filter(|it| it.snapshot.state != SnapshotState::Completed)
                {
                    it.snapshot.state = SnapshotState::Error;
                }
            }
            Event::SnapshotsGo => self.taken.clear(),
            Event::Delete => {
                let now = Time(self.now);
                self.backup.metadata.deletion_timestamp.get_or_insert(now);
                self.is_gone |= self.backup.metadata.finalizers.is_none();
            }
        }
    }

    fn is_unanswered(&self) -> bool {
        let owed = self.backup.status.as_ref().and_then(|status| status.checkpoint.as_ref());
        owed.is_some_and(|owed| owed.began_at.is_none())
    }

    /// What happens by itself.
    fn go_on(&mut self) {
        if self.pod.is_none() && self.now >= self.pod_back_at {
            self.happen(Event::NewPod);
        }
        for it in &mut self.taken {
            let is_old = it
                .snapshot
                .started_at
                .is_some_and(|at| self.now.duration_since(at) > SignedDuration::from_secs(90));
            if is_old && it.snapshot.state == SnapshotState::Pending {
                it.snapshot.state = SnapshotState::Completed;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_gone || self.backup.metadata.deletion_timestamp.is_none() && self.backup.is_over()
    }

    fn judge(&self) {
        assert!(self.held.is_none_or(|(_, is_others)| is_others), "a checkpoint is held for ever");
        let status = self.backup.status.clone().unwrap_or_default();
        if self.is_gone {
            let is_kept = self.backup.spec.deletion_policy == SnapshotPolicy::Retain;
            assert!(is_kept || self.taken.is_empty(), "the policy is Delete");
            return;
        }
        let id = status.snapshot_id.clone();
        let taken = self.taken.iter().find(|it| Some(&it.snapshot.id) == id.as_ref());
        if status.completed_at.is_some() && status.consistency == Some(Consistency::EngineCheckpoint) {
            assert!(taken.is_none_or(|it| it.is_consistent), "{status:?}");
        }
        for it in &self.taken {
            let tag = it.snapshot.tags["freehold.dev/consistency"].as_str();
            assert!(tag != "EngineCheckpoint" || it.is_consistent, "the tag of {:?}", it.snapshot);
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Fine),
        1 => Just(Step::Lost),
        1 => Just(Step::Never),
        2 => Just(Step::Killed),
    ];
    prop::collection::vec(step, 0..14)
}

fn events() -> impl Strategy<Value = Vec<(usize, Event)>> {
    let event = prop::sample::select(vec![
        Event::Restart,
        Event::EngineRestart,
        Event::NewPod,
        Event::NoPod,
        Event::Unreachable,
        Event::OtherCreates,
        Event::OtherReleases,
        Event::Refuse,
        Event::SnapshotFails,
        Event::SnapshotsGo,
        Event::Delete,
    ]);
    prop::collection::vec((0_usize..14, event), 0..4)
}

proptest! {
    #[test]
    fn whatever_happens_no_checkpoint_stays_and_only_what_is_consistent_counts_so(
        policy in prop::sample::select(vec![SnapshotPolicy::Retain, SnapshotPolicy::Delete]),
        steps in steps(),
        events in events(),
    ) {
        let mut life = Life::new(policy, steps);
        let last = events.iter().map(|(pass, _)| *pass).max().unwrap_or_default();
        for pass in 0..MOST_PASSES {
            for (_, event) in events.iter().filter(|(at, _)| *at == pass) {
                life.happen(*event);
            }
            // A client that holds a checkpoint for ever keeps every backup waiting.
            if pass > 40 && life.held.is_some_and(|(_, is_others)| is_others) {
                life.happen(Event::OtherReleases);
            }
            life.go_on();
            if pass > last && life.is_over() {
                break;
            }
            life.pass();
        }
        prop_assert!(life.is_over(), "it goes round: {:?}", life.backup.status);
        life.judge();
    }
}
