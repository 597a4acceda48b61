//! Restores in place in the model of a Database's life: what is replaced is retained, no engine starts on the
//! data of a backup but to recover from it, and where it does not serve with that, the former data is back.

use k8s_openapi::api::core::v1::PersistentVolume;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::database::RestoreInPlace;
use crate::api::keys::{ADOPTED_BY_ANNOTATION, DATABASE_UID_LABEL, RETAINED_LABEL};
use crate::api::{DatabaseSpec, Size, SnapshotId, VolumeId, VolumeStatus};
use crate::cloud::{Snapshot, SnapshotState};
use crate::controller::database::in_place::{due, record_read, restored_unrecorded};
use crate::controller::database::observe::restore::RestoreView;
use crate::controller::database::wait::RestoreWait;
use crate::controller::retention::{self, Holder};
use crate::controller::volume::build as volumes;

/// What the model has beside the Volume.
#[derive(Clone, Default)]
pub(super) struct InPlace {
    /// The retention records.
    pub(super) records: Vec<PersistentVolume>,
    /// No engine serves the data of the backup.
    is_bad: bool,
}

/// The spec asks for the data of the backup.
pub(super) fn request(spec: &mut DatabaseSpec) {
    let request = RestoreInPlace {
        generation: 1,
        backup_name: Some("nightly".to_owned()),
        snapshot_id: None,
        point_in_time: None,
        initialization_rate: None,
        timeout_minutes: 5,
    };
    spec.restore_in_place = Some(request);
}

/// What the Volume's controller says of the EBS volume.
pub(super) fn name(status: &mut VolumeStatus, volume: &Volume) {
    let uid = volume.uid().unwrap();
    status.volume_id = Some(VolumeId(format!("vol-{uid}")));
    status.persistent_volume_name = Some(format!("freehold-{uid}"));
}

impl Life {
    /// The Volume is gone, and its EBS volume is retained.
    pub(super) fn retain_replaced(&mut self) {
        let volume = self.volume.take().unwrap();
        self.claim = Claim::Absent;
        let status = volume.status.clone().unwrap();
        self.leave_data(status.persistent_volume_name.as_deref().unwrap());
        let id = status.volume_id.unwrap();
        let mut record =
            volumes::persistent_volume(&volume, &id, &Size::from_gib(100), "freehold", Some("c".to_owned()));
        record.labels_mut().insert(RETAINED_LABEL.to_owned(), "true".to_owned());
        record.labels_mut().insert(DATABASE_UID_LABEL.to_owned(), self.names.uid.clone());
        self.in_place.records.push(record);
    }

    /// The record is reserved for the Database, or free.
    pub(super) fn hold(&mut self, record: &PersistentVolume, is_held: bool) {
        let holder = Holder::of(&self.database).to_annotation();
        let is_it = |it: &&mut PersistentVolume| it.metadata.name == record.metadata.name;
        let annotations = self.in_place.records.iter_mut().find(is_it).unwrap().annotations_mut();
        annotations.remove(ADOPTED_BY_ANNOTATION);
        annotations.extend(is_held.then(|| (ADOPTED_BY_ANNOTATION.to_owned(), holder)));
    }

    /// Whether this Volume has data, and another one has made room for it. Its controller takes an EBS volume
    /// only by a record that is held.
    pub(super) fn has_replaced(&mut self, volume: &Volume) -> bool {
        if let Some(record) = &volume.spec.adopt_retained {
            let is_it = |it: &PersistentVolume| it.metadata.name.as_ref() == Some(record);
            let found = self.in_place.records.iter().position(is_it);
            let taken = self.in_place.records.remove(found.expect("the record is there"));
            let kept = retention::read(&taken).unwrap();
            assert_eq!(kept.adopted_by.map(|holder| holder.uid).as_ref(), Some(&self.names.uid));
            return true;
        }
        volume.spec.snapshot_id.is_some() && !self.in_place.records.is_empty()
    }

    /// What is kept of the Database itself, and the backup.
    pub(super) fn kept(&self) -> Kept {
        let is_due = self.volume.as_ref().is_some_and(|volume| {
            let unrecorded = restored_unrecorded(&self.database, volume);
            due(&self.database, volume).is_some() || unrecorded.is_some()
        });
        let named = record_read(&self.database);
        let is_named = |it: &&PersistentVolume| it.metadata.name.as_deref() == named;
        let found = self.volume.is_none() && named.is_none() && !self.is_deleting();
        Kept {
            restore: self.way_back().unwrap_or_else(|| if is_due { backup() } else { RestoreView::NotRead }),
            backups: self.backups(),
            record: self.in_place.records.iter().find(is_named).cloned(),
            found: found.then(|| self.in_place.records.iter().filter_map(retention::read).collect()),
            ..Kept::default()
        }
    }

    /// Whether the engine serves with the data that is there.
    pub(super) fn accepts_data(&self) -> bool {
        let is_backup = self.volume.as_ref().is_some_and(|volume| volume.spec.snapshot_id.is_some());
        !(self.in_place.is_bad && is_backup)
    }

    /// The engine recovers from the checkpoint of the backup that its volume was created from, and from no
    /// other one.
    pub(super) fn check_recovery(&self, pod: &Pod) {
        let init = pod.spec.as_ref().and_then(|spec| spec.init_containers.as_ref());
        let from = init.into_iter().flatten().flat_map(|container| container.env.iter().flatten());
        let from = from.filter(|variable| variable.name == "RESTORED_FROM").find_map(|it| it.value.clone());
        let volume = self.volume.as_ref().unwrap();
        // One of a stopped database needs no recovery.
        let id = volume.spec.snapshot_id.as_ref().filter(|id| !self.is_of_stopped(id));
        assert_eq!(from.as_ref(), id.map(|id| &id.0), "what it recovers from");
    }

    fn waits_for(&self, waiting: Option<&DatabaseWait>) -> &'static str {
        match waiting {
            None => "nothing",
            Some(DatabaseWait::Restore(RestoreWait::WentBack(..))) => "a person, as it went back",
            // No record says any more what it could go back to.
            Some(DatabaseWait::Engine(_)) if self.in_place.is_bad && self.has_backup() => "a person",
            Some(DatabaseWait::DataRetained { .. }) => "a person, as its status was lost",
            Some(other) => panic!("{other:?}, with {:?}", self.database.status),
        }
    }

    /// Whether the database has the data of the backup.
    fn has_backup(&self) -> bool {
        self.volume.as_ref().is_some_and(|volume| volume.spec.snapshot_id.is_some())
    }
}

/// The snapshot of a backup that fits.
fn backup() -> RestoreView {
    let tags = [
        ("freehold.dev/database", "team-a/orders"),
        ("freehold.dev/consistency", "EngineCheckpoint"),
        ("freehold.dev/engine", "questdb"),
        ("freehold.dev/engine-version", "9.3.4"),
        ("freehold.dev/file-system", "xfs"),
    ];
    RestoreView::Shown(Box::new(Snapshot {
        id: SnapshotId("snap-1".to_owned()),
        volume: VolumeId("vol-9".to_owned()),
        size: Some(100),
        state: SnapshotState::Completed,
        started_at: None,
        tags: tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
    }))
}

fn life(is_bad: bool) -> Life {
    let mut life = Life::ready();
    life.in_place.is_bad = is_bad;
    life
}

/// What a restore gets over.
pub(super) fn troubles() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => delays(),
        1 => Just(Event::Types(&["m7i.large"])),
        1 => Just(Event::Setting("60s")),
        1 => Just(Event::Grow),
        1 => (0..12usize).prop_map(|steps| Event::Lose(Which::Newest, steps)),
        1 => (0..12usize).prop_map(|steps| Event::LoseWithNode(Which::Newest, steps)),
        1 => Just(Event::DeleteNode(Which::Newest)),
        1 => Just(Event::TakeLabel),
        1 => Just(Event::DeletePod),
        1 => Just(Event::DeleteStatefulSet),
        1 => Just(Event::DeleteWays),
        1 => Just(Event::Crash),
        1 => Just(Event::ScaleUp),
        1 => Just(Event::Rotate),
        1 => Just(Event::Pause),
        1 => Just(Event::Resume),
    ]
}

fn with_restore(events: Vec<(usize, Event)>, more: &[(usize, Event)]) -> Vec<(usize, Event)> {
    [events, vec![(3, Event::RestoreInPlace), (30, Event::Resume)], more.to_vec()].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_happens_a_restore_in_place_ends_with_the_data_of_the_backup(events in some(troubles())) {
        let mut life = life(false);
        let waiting = life.come_to_rest(&with_restore(events, &[]));
        life.check_ready(waiting.as_ref());
        prop_assert!(life.has_backup());
        prop_assert_eq!(life.in_place.records.len(), 1, "the data of before is retained");
    }

    #[test]
    fn data_that_no_engine_serves_leaves_the_place_to_the_data_of_before(events in some(troubles())) {
        let mut life = life(true);
        let waiting = life.come_to_rest(&with_restore(events, &[]));
        prop_assert_eq!(life.waits_for(waiting.as_ref()), "a person, as it went back");
        prop_assert!(!life.has_backup() && life.is_serving());
        prop_assert_eq!(life.in_place.records.len(), 1, "the data of the backup is retained");
    }

    #[test]
    fn a_restore_in_place_that_is_taken_back_ends_with_one_of_both(
        is_bad: bool,
        when in 3..30usize,
        events in some(troubles()),
    ) {
        let mut life = life(is_bad);
        let waiting = life.come_to_rest(&with_restore(events, &[(when, Event::TakeBack)]));
        life.check_ready(waiting.as_ref());
        prop_assert!(!(is_bad && life.has_backup()));
    }

    #[test]
    fn a_status_that_is_lost_in_a_restore_in_place_loses_no_data(
        is_bad: bool,
        when in 3..20usize,
        events in some(prop_oneof![troubles(), Just(Event::StatusLost)]),
    ) {
        let mut life = life(is_bad);
        let waiting = life.come_to_rest(&with_restore(events, &[(when, Event::StatusLost)]));
        let outcome = life.waits_for(waiting.as_ref());
        let volumes = life.in_place.records.len() + usize::from(life.volume.is_some());
        prop_assert!(volumes >= 1, "{outcome}");
    }

    #[test]
    fn a_database_is_deleted_in_a_restore_in_place_as_at_any_time(
        is_bad: bool,
        policy in policies(),
        when in 3..40usize,
        events in some(troubles()),
    ) {
        let mut life = life(is_bad);
        life.happens(Event::Policy(policy));
        let waiting = life.come_to_rest(&with_restore(events, &[(when, Event::Delete)]));
        prop_assert!(life.is_gone, "{:?}", waiting);
    }
}
