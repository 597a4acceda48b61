//! The life of a Volume in a small model of EC2 and Kubernetes: its plans are carried out, time moves to what
//! they wait for, and whatever EC2 answers and whatever happens meanwhile, it comes to rest, with one EBS
//! volume and none of its data lost.

mod carry_out;
mod passing;

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::api::ClientToken;
use crate::cloud::{Modification, ModificationState};
use crate::controller::creation::judge::last_possible_send;
use crate::controller::memory::sends::Sends;
use crate::controller::pass::acted::Acted;
use crate::controller::tests::answers::{Answer, answers};
use crate::controller::tests::rest::Rest;
use crate::controller::volume::status::status as status_of;
use crate::time::later;

/// More passes than any life of the model needs; a life that needs more goes round in a circle.
const MOST_PASSES: usize = 400;

/// What happens from outside.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The operator starts anew, and remembers nothing.
    Restart,
    /// The status is lost.
    StatusLost,
    /// The spec asks for this many GiB.
    Resize(i32),
    /// The volume is attached to a machine.
    Attach,
    /// It is detached.
    Detach,
    /// EC2 does not list the EBS volume for a minute.
    Hide,
    /// The claim is deleted.
    DeleteClaim,
    /// The PersistentVolume is deleted.
    DeletePersistentVolume,
}

/// An EBS volume as it is, whether EC2 lists it or not.
#[derive(Debug)]
struct Disk {
    volume: EbsVolume,
    token: ClientToken,
    listed_from: Timestamp,
}

#[expect(clippy::option_option, reason = "an attempt may be looked up since no known send")]
struct Life {
    volume: Volume,
    disks: Vec<Disk>,
    /// With the GiB that it is to have.
    modification: Option<(Modification, i32)>,
    snapshots: Vec<(Snapshot, Timestamp)>,
    record: Option<PersistentVolume>,
    claim: Option<PersistentVolumeClaim>,
    claims_made: usize,
    is_attached: bool,
    sends: Sends,
    /// Since which last possible send is looked up.
    awaited: Option<Option<Timestamp>>,
    snapshot_awaited: Option<Option<Timestamp>>,
    empty: Option<EmptyRun>,
    snapshot_empty: Option<EmptyRun>,
    answers: VecDeque<Answer>,
    leading_since: Timestamp,
    now: Timestamp,
    is_gone: bool,
}

impl Life {
    fn new(policy: DeletionPolicy, answers: Vec<Answer>) -> Self {
        let mut volume = volume(None);
        volume.metadata.finalizers = None;
        volume.spec.deletion_policy = policy;
        Self {
            volume,
            disks: Vec::new(),
            modification: None,
            snapshots: Vec::new(),
            record: None,
            claim: None,
            claims_made: 0,
            is_attached: false,
            sends: Sends::default(),
            awaited: None,
            snapshot_awaited: None,
            empty: None,
            snapshot_empty: None,
            answers: answers.into(),
            leading_since: at(-100),
            now: at(0),
            is_gone: false,
        }
    }

    fn status(&mut self) -> &mut VolumeStatus {
        self.volume.status.get_or_insert_with(VolumeStatus::default)
    }

    fn listed(&self) -> Vec<EbsVolume> {
        let is_listed =
            |disk: &&Disk| disk.listed_from <= self.now && disk.volume.state != VolumeState::Deleted;
        self.disks.iter().filter(is_listed).map(|disk| disk.volume.clone()).collect()
    }

    fn listed_snapshots(&self) -> Vec<Snapshot> {
        let is_listed = |(_, from): &&(Snapshot, Timestamp)| *from <= self.now;
        self.snapshots.iter().filter(is_listed).map(|(snapshot, _)| snapshot.clone()).collect()
    }

    /// What a pass reads.
    fn observed(&self) -> Observed {
        let status = self.volume.status.clone().unwrap_or_default();
        let is_leaving = self.volume.metadata.deletion_timestamp.is_some();
        Observed {
            volume: self.volume.clone(),
            volumes: VolumeView {
                volumes: self.listed(),
                modification: self.modification.as_ref().map(|(modification, _)| modification.clone()),
                modification_is_known: true,
                initialization: None,
                swept_at: Some(self.now),
                empty: self.empty,
            },
            snapshots: SnapshotView {
                snapshots: self.listed_snapshots(),
                swept_at: self.snapshot_awaited.map(|_| self.now),
                empty: self.snapshot_empty,
            },
            sent: status.creation.as_ref().and_then(|it| self.sends.of(&it.client_token)),
            persistent_volume: self.record.clone(),
            claim: self.claim.clone(),
            attachments: if is_leaving && self.is_attached { vec!["csi-1".to_owned()] } else { Vec::new() },
            leading_since: self.leading_since,
            ..world()
        }
    }

    /// One pass, as the controller makes it.
    fn pass(&mut self) -> Plan {
        let mut observed = self.observed();
        let mut plan = super::plan(&observed, self.now);
        if let Some(id) = &plan.look_up {
            observed.by_id = match self.disk(id) {
                Some(disk) => ById::Shown(Box::new(disk.volume.clone())),
                None => ById::NotShown,
            };
            plan = super::plan(&observed, self.now);
        }
        for action in &plan.actions {
            if !self.carry_out(action) {
                break;
            }
        }
        let status = status_of(&observed, &plan, &Acted::new(self.volume.clone()), self.now);
        let creation = status.creation.as_ref().filter(|creation| creation.attempt.refused.is_none());
        let last_send = match creation {
            Some(VolumeCreation { attempt, client_token, .. }) => {
                let sent = self.sends.of(client_token);
                Some(last_possible_send(Some(attempt), sent.as_ref(), self.leading_since))
            }
            None => status.volume_id.as_ref().map(|_| self.leading_since),
        };
        let awaited = (plan.interest != VolumeInterest::Settled).then_some(last_send);
        if awaited != self.awaited {
            (self.awaited, self.empty) = (awaited, None);
        }
        let attempt = status.final_snapshot.as_ref().map(|snapshot| &snapshot.attempt);
        let last_send = attempt
            .filter(|attempt| attempt.refused.is_none())
            .map(|attempt| last_possible_send(Some(attempt), None, self.leading_since));
        let awaited = (plan.interest == VolumeInterest::Snapshot).then_some(last_send);
        if awaited != self.snapshot_awaited {
            (self.snapshot_awaited, self.snapshot_empty) = (awaited, None);
        }
        self.volume.status = Some(status);
        plan
    }

    fn happens(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Restart => {
                self.sends = Sends::default();
                (self.awaited, self.empty) = (None, None);
                (self.snapshot_awaited, self.snapshot_empty) = (None, None);
                self.leading_since = now;
            }
            // The status of a backup is older than what EC2 takes to list what it made, and EC2 goes on
            // listing what no status names.
            Event::StatusLost
                if self.disks.iter().all(|disk| disk.listed_from <= now)
                    && self.volume.metadata.deletion_timestamp.is_none() =>
            {
                self.volume.status = None;
            }
            Event::StatusLost => {}
            Event::Resize(size) => {
                self.volume.spec.size = Size::from_gib(size);
                self.volume.metadata.generation = self.volume.metadata.generation.map(|it| it + 1);
            }
            Event::Attach => self.is_attached = self.claim.is_some(),
            Event::Detach => self.is_attached = false,
            Event::Hide if self.volume.status.is_none() => {}
            Event::Hide => {
                for disk in &mut self.disks {
                    disk.listed_from = later(now, Duration::from_secs(60));
                }
            }
            Event::DeleteClaim => {
                if let Some(claim) = &mut self.claim {
                    claim.metadata.deletion_timestamp.get_or_insert(Time(now));
                }
            }
            Event::DeletePersistentVolume => self.record = None,
        }
    }

    fn delete(&mut self) {
        self.is_attached = false;
        self.volume.metadata.deletion_timestamp = Some(Time(self.now));
    }

    /// Passes follow each other until nothing happens any more. Returns what the last plan waits for.
    fn come_to_rest(&mut self, events: &[(usize, Event)]) -> Option<VolumeWait> {
        let mut rest = Rest::new();
        for number in 0..MOST_PASSES {
            for (_, event) in events.iter().filter(|(when, _)| *when == number) {
                self.happens(*event);
            }
            let plan = self.pass();
            let kept = self.left();
            assert!(kept <= 1, "{kept} EBS volumes at once");
            if self.is_gone {
                return plan.waiting;
            }
            // A proof begins anew with what happens.
            let has_happened = events.iter().all(|(when, _)| *when < number);
            let is_quiet = plan.actions.is_empty() && !self.is_moving() && has_happened;
            if rest.is_reached(plan.waiting.as_ref(), is_quiet) {
                return plan.waiting;
            }
            self.wait_for(&plan);
        }
        panic!("no rest after {MOST_PASSES} passes");
    }

    /// How many EBS volumes are left.
    fn left(&self) -> usize {
        let is_kept =
            |disk: &&Disk| !matches!(disk.volume.state, VolumeState::Deleting | VolumeState::Deleted);
        self.disks.iter().filter(is_kept).count()
    }
}

fn events() -> impl Strategy<Value = Vec<(usize, Event)>> {
    let events = vec![
        Event::Restart,
        Event::StatusLost,
        Event::Resize(100),
        Event::Resize(150),
        Event::Resize(200),
        Event::Attach,
        Event::Detach,
        Event::Hide,
        Event::DeleteClaim,
        Event::DeletePersistentVolume,
    ];
    prop::collection::vec((0..40usize, prop::sample::select(events)), 0..6)
}

fn policies() -> impl Strategy<Value = DeletionPolicy> {
    prop::sample::select(vec![DeletionPolicy::Retain, DeletionPolicy::Delete, DeletionPolicy::Snapshot])
}

proptest! {
    #[test]
    fn whatever_happens_a_volume_comes_to_rest_with_one_ebs_volume(answers in answers("InsufficientVolumeCapacity"), events in events()) {
        Life::new(DeletionPolicy::Retain, answers).come_to_rest(&events);
    }

    #[test]
    fn a_volume_becomes_as_wanted_whatever_ec2_answers_first(
        answers in answers("InsufficientVolumeCapacity"),
        restart in 0..40usize,
        resize in 0..40usize,
    ) {
        let events = [(restart, Event::Restart), (resize, Event::Resize(150))];
        let waiting = Life::new(DeletionPolicy::Retain, answers).come_to_rest(&events);
        prop_assert_eq!(waiting, None);
    }

    #[test]
    fn a_deleted_volume_ends_as_its_policy_says(
        policy in policies(),
        answers in answers("InsufficientVolumeCapacity"),
        events in events(),
        restart in 0..40usize,
    ) {
        let mut life = Life::new(policy, answers);
        life.come_to_rest(&events);
        let made = life.left();
        life.delete();
        let waiting = life.come_to_rest(&[(restart, Event::Restart)]);
        prop_assert!(life.is_gone, "{:?}", waiting);
        let expected = if policy == DeletionPolicy::Retain { made } else { 0 };
        prop_assert_eq!(life.left(), expected);
        let snapshots = life.snapshots.iter().filter(|(it, _)| it.state == SnapshotState::Completed).count();
        prop_assert!(policy != DeletionPolicy::Snapshot || snapshots >= made);
    }
}
