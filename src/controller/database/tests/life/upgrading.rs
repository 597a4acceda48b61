//! Changes of the engine behind a backup in the model of a Database's life: whichever engine serves in the
//! end, it has every row that was ever acknowledged.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::in_place::troubles;
use super::*;
use crate::api::backup::{BackupSource, Consistency};
use crate::api::database::{EngineType, UpgradePolicy};
use crate::api::keys::DATABASE_UID_LABEL;
use crate::api::{Backup, BackupStatus, SnapshotId, VolumeId};
use crate::cloud::{Snapshot, SnapshotState};
use crate::controller::database::in_place::{Due, due, restored_unrecorded};
use crate::controller::database::observe::restore::RestoreView;
use crate::controller::database::upgrade::{Phase, in_phase, is_stopped_for, needs_backups};
use crate::controller::database::wait::UpgradeWait;
use crate::engine::release;

/// The version that every life begins with, one that serves, and one that does not.
const FIRST: &str = "9.3.4";
const GOOD: &str = "9.3.5";
const BAD: &str = "9.4.0";
/// A later one than that, which serves.
const LATER: &str = "9.4.1";

/// What is on an EBS volume, or in a snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
struct Data {
    rows: usize,
    /// The newest engine that was started on it.
    version: String,
}

/// What the model has of data and of Backups.
#[derive(Clone, Default)]
pub(super) struct Upgrading {
    data: Data,
    retained: BTreeMap<String, Data>,
    snapshots: BTreeMap<String, Data>,
    backups: Vec<Backup>,
    /// How many rows a client was acknowledged.
    acknowledged: usize,
    /// EC2 starts no snapshot of a stopped database.
    is_refused: bool,
    /// For how many steps EC2 completes no snapshot.
    slow: usize,
    /// The last status in which a changed engine was tried.
    trial: Option<DatabaseStatus>,
}

impl Life {
    /// The version of the pod's engine.
    fn version(&self) -> Option<String> {
        let containers = &self.pod.as_ref()?.spec.as_ref()?.containers;
        release::of_image(containers.first()?.image.as_deref()?)
    }

    /// Whether the pod's engine ever serves.
    pub(super) fn is_good(&self) -> bool {
        self.version().as_deref() != Some(BAD)
    }

    /// An engine is started on the data.
    pub(super) fn begins_with_data(&mut self) {
        let Some(version) = self.version() else { return };
        let data = &mut self.upgrading.data;
        assert!(
            data.version.is_empty() || !release::is_older(&version, &data.version),
            "{version} is started on data of {}",
            data.version
        );
        data.version = version;
    }

    /// What clients were acknowledged is there when they can connect again.
    pub(super) fn check_rows(&self) {
        let Upgrading { data, acknowledged, .. } = &self.upgrading;
        assert_eq!(data.rows, *acknowledged, "rows");
    }

    /// While the engine serves, and the Service selects its pod, clients write.
    pub(super) fn write_rows(&mut self) {
        if self.is_serving() && self.is_open() {
            self.upgrading.data.rows += 1;
            self.upgrading.acknowledged = self.upgrading.data.rows;
        }
    }

    /// The status, as long as a changed engine is tried.
    pub(super) fn remember_trial(&mut self) {
        if in_phase(&self.database, Phase::Trying).is_some() {
            self.upgrading.trial.clone_from(&self.database.status);
        }
    }

    /// Another client writes the status of then.
    pub(super) fn rewind(&mut self) {
        if let Some(then) = &self.upgrading.trial {
            self.database.status = Some(then.clone());
        }
    }

    /// Whether the Service lets clients in.
    fn is_open(&self) -> bool {
        let selector = self.service.as_ref().and_then(|service| service.spec.as_ref()?.selector.as_ref());
        selector.and_then(|selector| selector.get(DATABASE_UID_LABEL)) == Some(&self.names.uid)
    }

    /// The EBS volume makes room for another one.
    pub(super) fn leave_data(&mut self, record: &str) {
        let data = take(&mut self.upgrading.data);
        self.upgrading.retained.insert(record.to_owned(), data);
    }

    /// A Volume is created. That of a user's backup has other data, which is no loss.
    pub(super) fn take_data(&mut self, volume: &Volume) {
        let Upgrading { data, retained, snapshots, acknowledged, .. } = &mut self.upgrading;
        let of_record = volume.spec.adopt_retained.as_ref().and_then(|record| retained.remove(record));
        let id = volume.spec.snapshot_id.as_ref();
        let of_snapshot = id.and_then(|id| snapshots.get(&id.0).cloned());
        let is_other = id.is_some() && of_snapshot.is_none();
        if let Some(taken) = of_record.or(of_snapshot) {
            *data = taken;
        }
        if is_other || volume.spec.adopt_retained.is_some() {
            *acknowledged = data.rows;
        }
    }

    pub(super) fn create_backup(&mut self, backup: &Backup) {
        let is_there = self.upgrading.backups.iter().any(|it| it.metadata.name == backup.metadata.name);
        assert!(!is_there, "a Backup is created twice");
        self.upgrading.backups.push(backup.clone());
    }

    /// The Backups' controller, and EC2.
    pub(super) fn settle_backups(&mut self) -> bool {
        let (is_serving, has_pod) = (self.is_serving(), self.pod.is_some());
        let volume_id = self.volume.as_ref().and_then(|volume| volume.status.as_ref()?.volume_id.clone());
        let mut has_moved = false;
        let Upgrading { data, snapshots, backups, is_refused, slow, .. } = &mut self.upgrading;
        for backup in backups.iter_mut().filter(|backup| !backup.is_over()) {
            let is_for_stopped = is_stopped_for(&self.database, &backup.name_any());
            let may_begin = if is_for_stopped { !has_pod && !*is_refused } else { is_serving };
            let status = backup.status.get_or_insert_with(BackupStatus::default);
            if status.snapshot_id.is_some() {
                has_moved = true;
                *slow = slow.saturating_sub(1);
                status.completed_at = (*slow == 0).then_some(Time(self.now));
            } else if is_for_stopped && *is_refused {
                has_moved = true;
            } else if may_begin && volume_id.is_some() {
                has_moved = true;
                let id = format!("snap-stopped-{}", snapshots.len());
                snapshots.insert(id.clone(), data.clone());
                status.snapshot_id = Some(SnapshotId(id));
                status.source = volume_id.clone().map(source);
            }
        }
        has_moved
    }

    pub(super) fn backups(&self) -> Option<Vec<Backup>> {
        needs_backups(&self.database).then(|| self.upgrading.backups.clone())
    }

    /// Whether the snapshot is of a database that was stopped.
    pub(super) fn is_of_stopped(&self, id: &SnapshotId) -> bool {
        self.upgrading.snapshots.contains_key(&id.0)
    }

    /// The snapshot that an upgrade goes back to, or went back to where no status says so.
    pub(super) fn way_back(&self) -> Option<RestoreView> {
        let volume = self.volume.as_ref()?;
        let unrecorded = restored_unrecorded(&self.database, volume).filter(|id| self.is_of_stopped(id));
        let due = due(&self.database, volume).filter(Due::is_of_upgrade);
        let id = unrecorded.cloned().or_else(|| due?.backup.snapshot_id)?;
        let is_it = |it: &&Backup| it.status.as_ref().is_some_and(|it| it.snapshot_id.as_ref() == Some(&id));
        let is_complete = self.upgrading.backups.iter().find(is_it).is_some_and(Backup::can_be_restored);
        let version = self.upgrading.snapshots[&id.0].version.clone();
        let tags = [
            ("freehold.dev/database", "team-a/orders"),
            ("freehold.dev/consistency", Consistency::CrashConsistent.as_str()),
            ("freehold.dev/engine", "questdb"),
            ("freehold.dev/engine-version", version.as_str()),
            ("freehold.dev/file-system", "xfs"),
        ];
        Some(RestoreView::Shown(Box::new(Snapshot {
            id,
            volume: VolumeId("vol-9".to_owned()),
            size: Some(100),
            state: if is_complete { SnapshotState::Completed } else { SnapshotState::Pending },
            started_at: None,
            tags: tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        })))
    }

    fn check_serves(&self, version: &str) {
        assert!(self.is_serving() && self.is_open());
        assert_eq!(self.version().as_deref(), Some(version));
        self.check_rows();
    }
}

fn source(volume_id: VolumeId) -> BackupSource {
    BackupSource {
        database_uid: String::new(),
        volume_name: String::new(),
        volume_id,
        file_system: "xfs".to_owned(),
        engine: EngineType::Questdb,
        engine_version: None,
        image: None,
    }
}

/// A Database that is ready, and changes its engine behind a backup.
fn life(slow: usize) -> Life {
    let mut life = Life::ready();
    life.database.spec.upgrade = Some(UpgradePolicy { timeout_minutes: 5 });
    life.upgrading.slow = slow;
    life
}

/// What a change of the engine gets over.
fn with_version(
    events: Vec<(usize, Event)>,
    version: &'static str,
    more: &[(usize, Event)],
) -> Vec<(usize, Event)> {
    [events, vec![(3, Event::Version(version)), (50, Event::Resume)], more.to_vec()].concat()
}

fn went_back(waiting: Option<&DatabaseWait>) -> Option<bool> {
    if let Some(DatabaseWait::Upgrade(UpgradeWait::WentBack { data_restored, .. })) = waiting {
        Some(*data_restored)
    } else {
        None
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_happens_a_changed_engine_that_serves_is_kept(slow in 0..20usize, events in some(troubles())) {
        let mut life = life(slow);
        let waiting = life.come_to_rest(&with_version(events, GOOD, &[]));
        life.check_ready(waiting.as_ref());
        life.check_serves(GOOD);
        let upgrade = life.status().upgrade.clone().unwrap();
        prop_assert!(upgrade.ended_at.is_some() && upgrade.went_back.is_none());
        prop_assert!(life.in_place.records.is_empty(), "no volume was exchanged");
    }

    #[test]
    fn a_changed_engine_that_does_not_serve_leaves_the_place_and_the_data_to_the_one_before(
        slow in 0..20usize,
        events in some(troubles()),
    ) {
        let mut life = life(slow);
        let waiting = life.come_to_rest(&with_version(events, BAD, &[]));
        prop_assert_eq!(went_back(waiting.as_ref()), Some(true), "{:?}", waiting);
        life.check_serves(FIRST);
        prop_assert_eq!(life.in_place.records.len(), 1, "what the changed engine wrote is retained");
    }

    #[test]
    fn an_engine_that_is_set_back_ends_as_it_was(
        version in prop::sample::select(vec![GOOD, BAD]),
        slow in 0..20usize,
        when in 3..60usize,
        events in some(troubles()),
    ) {
        let mut life = life(slow);
        let events = with_version(events, version, &[(when, Event::Version(FIRST))]);
        let waiting = life.come_to_rest(&events);
        // One that was let serve is not left for an older one.
        let has_ended = version == GOOD && life.version().as_deref() == Some(GOOD);
        if has_ended {
            prop_assert!(waiting.is_some_and(|it| it.is_stalled()));
            life.check_serves(GOOD);
        } else {
            life.check_ready(waiting.as_ref());
            life.check_serves(FIRST);
        }
    }

    #[test]
    fn another_version_mends_what_the_first_one_could_not(
        slow in 0..20usize,
        when in 3..60usize,
        events in some(troubles()),
    ) {
        let mut life = life(slow);
        let waiting = life.come_to_rest(&with_version(events, BAD, &[(when, Event::Version(LATER))]));
        life.check_ready(waiting.as_ref());
        life.check_serves(LATER);
    }

    #[test]
    fn a_snapshot_that_does_not_start_leaves_the_engine_as_it_is(events in some(troubles())) {
        let mut life = life(0);
        life.upgrading.is_refused = true;
        let waiting = life.come_to_rest(&with_version(events, GOOD, &[]));
        prop_assert_eq!(went_back(waiting.as_ref()), Some(false), "{:?}", waiting);
        life.check_serves(FIRST);
        prop_assert!(life.in_place.records.is_empty());
    }

    #[test]
    fn a_status_that_is_lost_in_a_change_of_the_engine_loses_no_row(
        version in prop::sample::select(vec![GOOD, BAD]),
        slow in 0..20usize,
        when in 3..40usize,
        events in some(troubles()),
    ) {
        let mut life = life(slow);
        life.come_to_rest(&with_version(events, version, &[(when, Event::StatusLost)]));
        let Upgrading { data, snapshots, acknowledged, .. } = &life.upgrading;
        let has_all = |data: &Data| data.rows == *acknowledged;
        prop_assert!(has_all(data) || snapshots.values().any(has_all));
    }

    #[test]
    fn a_status_that_is_rewound_to_the_trial_once_that_has_ended_loses_no_row(
        version in prop::sample::select(vec![GOOD, BAD]),
        slow in 0..20usize,
        when in 0..3usize,
        events in some(delays()),
    ) {
        let mut life = life(slow);
        life.come_to_rest(&with_version(events, version, &[]));
        // The engine does not serve in that moment.
        life.come_to_rest(&[(when, Event::Crash), (when, Event::Rewind)]);
        life.check_serves(if version == GOOD { GOOD } else { FIRST });
    }

    #[test]
    fn a_database_is_deleted_in_a_change_of_its_engine_as_at_any_time(
        version in prop::sample::select(vec![GOOD, BAD]),
        policy in policies(),
        when in 3..60usize,
        events in some(troubles()),
    ) {
        let mut life = life(3);
        life.happens(Event::Policy(policy));
        let waiting = life.come_to_rest(&with_version(events, version, &[(when, Event::Delete)]));
        prop_assert!(life.is_gone, "{:?}", waiting);
    }
}
