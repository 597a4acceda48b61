//! What is shown of objects, read from the watch's copies at each scrape.

mod labels;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::runtime::reflector::Store;
use kube::{Resource, ResourceExt};
use parking_lot::Mutex;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use self::labels::{BackupLabels, ConditionLabels, DatabaseLabels, NamespaceLabels, ObjectLabels};
use super::{registered, registered_in_bytes, registered_in_seconds};
use crate::api::verification::VerificationResult;
use crate::api::{Backup, BackupSchedule, ConditionType, Database, Reason, Volume};

/// The series that are written anew at each reading: a condition that has passed, or an object that is gone,
/// leaves none.
pub struct Shown {
    families: Families,
    objects: Mutex<Vec<Reader>>,
}

/// Writes the series of the objects of one kind.
type Reader = Box<dyn Fn(&Families) + Send + Sync>;

struct Families {
    conditions: Family<ConditionLabels, Gauge>,
    databases: Family<DatabaseLabels, Gauge>,
    engine_restarts: Family<ObjectLabels, Gauge>,
    replacements: Family<ObjectLabels, Gauge>,
    archive_lags: Family<ObjectLabels, Gauge>,
    volume_sizes: Family<ObjectLabels, Gauge>,
    volume_iops: Family<ObjectLabels, Gauge>,
    retained_volumes: Family<NamespaceLabels, Gauge>,
    retained_bytes: Family<NamespaceLabels, Gauge>,
    backup_times: Family<BackupLabels, Gauge>,
    backups_failed: Family<BackupLabels, Gauge>,
    checkpoints_held: Family<BackupLabels, Gauge>,
    scheduled_times: Family<BackupLabels, Gauge>,
    verified_times: Family<BackupLabels, Gauge>,
    verifications_failed: Family<BackupLabels, Gauge>,
    verification_times: Family<BackupLabels, Gauge>,
}

impl Shown {
    pub(super) fn registered(to: &mut Registry) -> Self {
        let families = Families {
            conditions: registered(
                to,
                "condition",
                "1 for the condition Ready of every object, and for every other that is not as it should be",
                Family::default(),
            ),
            databases: registered(
                to,
                "database_info",
                "1 for every Database, with its engine, the wanted version, its NodeClass, the instance type \
                    in use and the zone",
                Family::default(),
            ),
            engine_restarts: registered(
                to,
                "engine_restarts",
                "How often Kubernetes has started the engine's container again in the pod of today",
                Family::default(),
            ),
            replacements: registered_in_seconds(
                to,
                "replacement_start_time",
                "Since when a database has two Nodes, as Unix time",
                Family::default(),
            ),
            archive_lags: registered_in_seconds(
                to,
                "wal_archive_lag",
                "How long the oldest file of a database's write-ahead log that is not archived waits, as its engine said last; 0 where none does",
                Family::default(),
            ),
            volume_sizes: registered_in_bytes(
                to,
                "volume_size",
                "The size of a Volume in EBS",
                Family::default(),
            ),
            volume_iops: registered(
                to,
                "volume_iops",
                "The IOPS that a Volume must have, where its Database says a number",
                Family::default(),
            ),
            retained_volumes: registered(
                to,
                "retained_volumes",
                "EBS volumes that outlived their Database, by namespace",
                Family::default(),
            ),
            retained_bytes: registered_in_bytes(
                to,
                "retained_volumes",
                "Size of the EBS volumes that outlived their Database, by namespace",
                Family::default(),
            ),
            backup_times: registered_in_seconds(
                to,
                "backup_last_completed_time",
                "The moment that the newest complete backup of a Database is of, as Unix time",
                Family::default(),
            ),
            backups_failed: registered(
                to,
                "backups_failed",
                "Backups of a Database that failed, or whose snapshot is gone, since the newest that can be restored",
                Family::default(),
            ),
            checkpoints_held: registered_in_seconds(
                to,
                "backup_checkpoint_start_time",
                "Since when an engine may hold a checkpoint for a Backup, as Unix time",
                Family::default(),
            ),
            scheduled_times: registered_in_seconds(
                to,
                "backup_last_scheduled_time",
                "The newest time of a BackupSchedule of a Database that has come, as Unix time",
                Family::default(),
            ),
            verified_times: registered_in_seconds(
                to,
                "backup_last_verified_time",
                "When a backup of a Database passed its verification last, as Unix time",
                Family::default(),
            ),
            verifications_failed: registered(
                to,
                "backup_verification_failed",
                "1 while the newest verification of a BackupSchedule of a Database is one that failed",
                Family::default(),
            ),
            verification_times: registered_in_seconds(
                to,
                "backup_last_verification_scheduled_time",
                "The newest time of a verification of a BackupSchedule of a Database that has come, as Unix time",
                Family::default(),
            ),
        };
        Self { families, objects: Mutex::default() }
    }

    /// From now on the conditions of these objects are shown.
    pub fn conditions<K>(&self, objects: Store<K>, conditions: fn(&K) -> &[Condition])
    where
        K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
    {
        self.each(objects, move |families, object| {
            for labels in condition_labels(object, conditions(object)) {
                families.conditions.get_or_create(&labels).set(1);
            }
        });
    }

    /// From now on these Databases are shown.
    pub fn databases(&self, databases: Store<Database>) {
        self.each(databases, Families::database);
    }

    /// From now on it is shown how far the archives of these Databases' logs are behind, as this gives it for
    /// the UID of a pod.
    pub fn wal_archives(
        &self,
        databases: Store<Database>,
        lag: impl Fn(&str) -> Option<Duration> + Send + Sync + 'static,
    ) {
        self.each(databases, move |families, database| {
            let archive = database.status.as_ref().and_then(|status| status.wal_archive.as_ref());
            if let Some(lag) = archive.and_then(|archive| lag(&archive.pod_uid)) {
                let seconds = lag.as_secs().try_into().unwrap_or(i64::MAX);
                families.archive_lags.get_or_create(&ObjectLabels::of(database)).set(seconds);
            }
        });
    }

    /// From now on these Volumes are shown.
    pub fn volumes(&self, volumes: Store<Volume>) {
        self.each(volumes, Families::volume);
    }

    /// From now on these BackupSchedules are shown.
    pub fn backup_schedules(&self, schedules: Store<BackupSchedule>) {
        self.each(schedules, Families::backup_schedule);
    }

    /// From now on these Backups are shown.
    pub fn backups(&self, backups: Store<Backup>) {
        let reader = move |families: &Families| {
            let backups = backups.state();
            let newest = newest_restorable(&backups);
            for backup in &backups {
                families.backup(backup, &newest);
            }
        };
        self.objects.lock().push(Box::new(reader));
    }

    /// From now on the retained volumes are shown as this gives them: the namespace of each, and its size in
    /// GiB.
    pub fn retained(&self, retained: impl Fn() -> Vec<(String, i32)> + Send + Sync + 'static) {
        let reader = move |families: &Families| {
            for (namespace, size) in retained() {
                let labels = NamespaceLabels { namespace };
                families.retained_volumes.get_or_create(&labels).inc();
                families.retained_bytes.get_or_create(&labels).inc_by(i64::from(size) << 30);
            }
        };
        self.objects.lock().push(Box::new(reader));
    }

    fn each<K>(&self, objects: Store<K>, write: impl Fn(&Families, &K) + Send + Sync + 'static)
    where
        K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
    {
        let reader = move |families: &Families| {
            for object in objects.state() {
                write(families, &object);
            }
        };
        self.objects.lock().push(Box::new(reader));
    }

    /// Writes the series as the copies are now. No other scrape writes them while the caller holds the guard.
    pub(super) fn read(&self) -> impl Sized + use<'_> {
        let objects = self.objects.lock();
        self.families.clear();
        for read in objects.iter() {
            read(&self.families);
        }
        objects
    }
}

/// When the newest Backup of each Database that can be restored was created.
fn newest_restorable(backups: &[Arc<Backup>]) -> HashMap<BackupLabels, Option<Time>> {
    let mut newest: HashMap<BackupLabels, Option<Time>> = HashMap::new();
    for backup in backups.iter().filter(|backup| backup.can_be_restored()) {
        let created = newest.entry(BackupLabels::of(backup)).or_default();
        *created = backup.creation_timestamp().max(created.take());
    }
    newest
}

impl Families {
    fn clear(&self) {
        self.conditions.clear();
        self.databases.clear();
        let of_databases = [&self.engine_restarts, &self.replacements, &self.archive_lags];
        for family in of_databases.into_iter().chain([&self.volume_sizes, &self.volume_iops]) {
            family.clear();
        }
        self.retained_volumes.clear();
        self.retained_bytes.clear();
        let of_backups =
            [&self.backup_times, &self.backups_failed, &self.checkpoints_held, &self.scheduled_times];
        let of_verifications = [&self.verified_times, &self.verifications_failed, &self.verification_times];
        for family in of_backups.into_iter().chain(of_verifications) {
            family.clear();
        }
    }

    fn database(&self, database: &Database) {
        let (spec, status) = (&database.spec, database.status.as_ref());
        let object = ObjectLabels::of(database);
        let labels = DatabaseLabels {
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            engine: spec.engine.kind.into(),
            version: spec.engine.version.clone().unwrap_or_default(),
            node_class: spec.node_class_name.clone(),
            instance_type: status.and_then(|it| it.instance_type.clone()).unwrap_or_default(),
            zone: status.and_then(|it| it.zone.clone()).unwrap_or_default(),
        };
        self.databases.get_or_create(&labels).set(1);
        if let Some(run) = status.and_then(|it| it.run.as_ref()) {
            self.engine_restarts.get_or_create(&object).set(run.restarts.into());
        }
        if let Some(replacement) = status.and_then(|it| it.replacement.as_ref()) {
            self.replacements.get_or_create(&object).set(replacement.started_at.0.as_second());
        }
    }

    fn backup_schedule(&self, schedule: &BackupSchedule) {
        let Some(status) = schedule.status.as_ref().filter(|_| !schedule.spec.suspend) else { return };
        let namespace = schedule.namespace().unwrap_or_default();
        let labels = BackupLabels { namespace, database: schedule.spec.database_name.clone() };
        let show = |family: &Family<BackupLabels, Gauge>, time: Option<&Time>| {
            if let Some(time) = time {
                let newest = family.get_or_create(&labels);
                newest.set(newest.get().max(time.0.as_second()));
            }
        };
        show(&self.scheduled_times, status.last_time.as_ref());
        if schedule.spec.verify.is_none() {
            return;
        }
        show(&self.verification_times, status.last_verification_time.as_ref());
        let Some(last) = &status.last_verification else { return };
        show(&self.verified_times, last.passed_at.as_ref());
        if last.result == VerificationResult::Failed {
            self.verifications_failed.get_or_create(&labels).set(1);
        }
    }

    fn backup(&self, backup: &Backup, newest_restorable: &HashMap<BackupLabels, Option<Time>>) {
        let Some(status) = &backup.status else { return };
        let labels = BackupLabels::of(backup);
        if backup.can_be_restored() {
            let at = status.started_at.as_ref().or(status.completed_at.as_ref());
            let newest = self.backup_times.get_or_create(&labels);
            newest.set(newest.get().max(at.map_or(0, |at| at.0.as_second())));
        }
        let later = newest_restorable.get(&labels);
        let is_superseded = later.is_some_and(|later| *later > backup.creation_timestamp());
        if status.is_final() && !backup.can_be_restored() && !is_superseded {
            self.backups_failed.get_or_create(&labels).inc();
        }
        if let Some(owed) = &status.checkpoint {
            self.checkpoints_held.get_or_create(&labels).set(owed.since.0.as_second());
        }
    }

    fn volume(&self, volume: &Volume) {
        let object = ObjectLabels::of(volume);
        if let Some(size) = volume.status.as_ref().and_then(|status| status.size.as_ref()?.gib()) {
            self.volume_sizes.get_or_create(&object).set(i64::from(size) << 30);
        }
        if let Some(iops) = volume.spec.iops {
            self.volume_iops.get_or_create(&object).set(iops.into());
        }
    }
}

/// What is shown of an object's conditions: a few series, however many conditions it has.
fn condition_labels<'a, K>(
    object: &'a K,
    conditions: &'a [Condition],
) -> impl Iterator<Item = ConditionLabels> + 'a
where
    K: Resource<DynamicType = ()>,
{
    conditions.iter().filter(|condition| is_shown(condition)).map(|condition| ConditionLabels {
        kind: K::kind(&()).into_owned(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        r#type: condition.type_.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone(),
    })
}

fn is_shown(condition: &Condition) -> bool {
    let is_calm = match Reason::named(&condition.reason) {
        Some(Reason::AsExpected | Reason::UpToDate | Reason::Progressing) => true,
        Some(_) | None => false,
    };
    condition.type_ == ConditionType::Ready.as_str() || !is_calm
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kube::runtime::reflector::store::Writer;
    use kube::runtime::watcher::Event;

    use super::*;
    use crate::api::VolumeId;
    use crate::api::database::{EngineRun, Replacement, WalArchiveState, WalArchiveStatus};
    use crate::metrics::Metrics;

    fn condition(kind: &str, status: &str, reason: &str) -> Condition {
        Condition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
        }
    }

    fn database(conditions: &[Condition]) -> Database {
        let spec = serde_json::json!({"engine": {"type": "questdb", "version": "9.3.4"},
        "storage": {"size": "100Gi"}});
        serde_json::from_value(serde_json::json!({
            "apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
            "metadata": {"name": "orders", "namespace": "team-a"}, "spec": spec,
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    #[test]
    fn what_is_not_as_it_should_be_is_shown_while_it_is_so() {
        let mut copy = Writer::default();
        let metrics = Metrics::new();
        metrics.shown().conditions(copy.as_reader(), Database::conditions);
        let waiting = [
            condition("Ready", "False", "AwaitingNode"),
            condition("NodeReady", "False", "Launching"),
            condition("Stalled", "False", "Progressing"),
        ];
        copy.apply_watcher_event(&Event::Apply(database(&waiting)));
        let text = metrics.text().unwrap();
        let shown = |text: &str| {
            text.lines()
                .filter(|line| line.starts_with("freehold_condition{"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let line = "freehold_condition{kind=\"Database\",namespace=\"team-a\",name=\"orders\",type=\"Ready\",status=\"False\",reason=\"AwaitingNode\"} 1";
        assert!(shown(&text).len() == 2 && text.contains(line), "{text}");

        let ready = [condition("Ready", "True", "AsExpected"), condition("NodeReady", "True", "AsExpected")];
        copy.apply_watcher_event(&Event::Apply(database(&ready)));
        let text = metrics.text().unwrap();
        assert!(shown(&text).len() == 1 && text.contains("type=\"Ready\",status=\"True\""), "{text}");

        copy.apply_watcher_event(&Event::Delete(database(&ready)));
        assert!(shown(&metrics.text().unwrap()).is_empty());
    }

    #[test]
    fn the_newest_backup_that_can_be_restored_and_those_that_cannot_are_shown() {
        let metrics = Metrics::new();
        let mut backups = Writer::default();
        metrics.shown().backups(backups.as_reader());
        let mut shown = |name: &str, created: &str, status: serde_json::Value| {
            let backup = serde_json::json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "Backup",
                "metadata": {"name": name, "namespace": "team-a", "creationTimestamp": created},
                "spec": {"databaseName": "orders"}, "status": status});
            backups.apply_watcher_event(&Event::Apply(serde_json::from_value(backup).unwrap()));
            metrics.text().unwrap()
        };
        let completed = |at: &str, missing: &str| {
            serde_json::json!({"conditions": [condition("SnapshotMissing", missing, "SnapshotMissing")],
                "startedAt": at, "completedAt": at})
        };
        let at = ["00", "10", "20", "30", "40"].map(|second| format!("2026-01-01T00:00:{second}Z"));
        let [first, second, third, fourth, fifth] = at.each_ref().map(String::as_str);
        let failed = serde_json::json!({"conditions": [],
            "failure": {"at": first, "what": "SnapshotFailed"}});
        shown("failed", first, failed);
        shown("new", third, completed(third, "False"));
        let text = shown("old", second, completed(second, "False"));
        let of = "{namespace=\"team-a\",database=\"orders\"}";
        let newest = format!("freehold_backup_last_completed_time_seconds{of} 1767225620");
        assert!(text.contains(&newest), "{text}");
        assert!(!text.contains("freehold_backups_failed{"), "a later one can be restored: {text}");
        let text = shown("gone", fourth, completed(fourth, "True"));
        assert!(text.contains(&newest) && text.contains(&format!("freehold_backups_failed{of} 1")), "{text}");
        let text = shown("newest", fifth, completed(fifth, "False"));
        assert!(!text.contains("freehold_backups_failed{"), "{text}");
    }

    #[test]
    fn the_newest_verification_is_shown_while_verifications_are_requested() {
        let metrics = Metrics::new();
        let mut schedules = Writer::default();
        metrics.shown().backup_schedules(schedules.as_reader());
        let mut shown = |verify: serde_json::Value, result: &str| {
            let schedule = serde_json::json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "BackupSchedule",
                "metadata": {"name": "nightly", "namespace": "team-a"},
                "spec": {"databaseName": "orders", "schedule": "0 3 * * *", "verify": verify},
                "status": {"lastVerificationTime": "2026-01-01T00:00:10Z",
                    "lastVerification": {"backupName": "nightly-1", "verifiedAt": "2026-01-01T00:00:30Z",
                        "result": result, "passedAt": "2026-01-01T00:00:20Z"}}});
            schedules.apply_watcher_event(&Event::Apply(serde_json::from_value(schedule).unwrap()));
            metrics.text().unwrap()
        };
        let of = "{namespace=\"team-a\",database=\"orders\"}";
        let passed = format!("freehold_backup_last_verified_time_seconds{of} 1767225620");
        let due = format!("freehold_backup_last_verification_scheduled_time_seconds{of} 1767225610");
        let failed = format!("freehold_backup_verification_failed{of} 1");
        let verify = || serde_json::json!({"schedule": "0 4 * * *"});
        let text = shown(verify(), "Failed");
        assert!([&passed, &due, &failed].iter().all(|line| text.contains(*line)), "{text}");
        let text = shown(verify(), "Passed");
        assert!(text.contains(&passed) && !text.contains(&failed), "{text}");
        let text = shown(serde_json::json!(null), "Failed");
        assert!(![&passed, &due, &failed].iter().any(|line| text.contains(*line)), "{text}");
    }

    #[test]
    fn an_archive_is_shown_while_its_engine_says_how_far_behind_it_is() {
        let metrics = Metrics::new();
        let mut databases = Writer::default();
        let lag = |pod: &str| (pod == "uid").then_some(Duration::from_secs(90));
        metrics.shown().wal_archives(databases.as_reader(), lag);
        let line = "freehold_wal_archive_lag_seconds{namespace=\"team-a\",name=\"orders\"} 90";
        for (pod, is_shown) in [(None, false), (Some("another"), false), (Some("uid"), true)] {
            let mut orders = database(&[]);
            orders.status.as_mut().unwrap().wal_archive = pod.map(|pod| WalArchiveStatus {
                pod_uid: pod.to_owned(),
                destination: "s3://backups".to_owned(),
                volume_id: VolumeId("vol-1".to_owned()),
                state: WalArchiveState::Archiving,
                since: Time(jiff::Timestamp::UNIX_EPOCH),
            });
            databases.apply_watcher_event(&Event::Apply(orders));
            let text = metrics.text().unwrap();
            assert_eq!(text.contains(line), is_shown, "{pod:?} {text}");
            assert_eq!(text.contains("freehold_wal_archive_lag_seconds{"), is_shown, "{pod:?} {text}");
        }
    }

    #[test]
    fn a_database_and_its_volume_are_shown_as_they_are() {
        let (mut databases, mut volumes) = (Writer::default(), Writer::default());
        let metrics = Metrics::new();
        metrics.shown().databases(databases.as_reader());
        metrics.shown().volumes(volumes.as_reader());
        let mut orders = database(&[]);
        let status = orders.status.as_mut().unwrap();
        status.instance_type = Some("r7i.large".to_owned());
        status.zone = Some("us-east-1a".to_owned());
        let at = Time("2026-01-01T00:00:00Z".parse().unwrap());
        status.run = Some(EngineRun { pod_uid: "uid".to_owned(), restarts: 3, since: at.clone() });
        status.replacement = Some(Replacement {
            from: "orders-0".to_owned(),
            to: "orders-1".to_owned(),
            cause: String::new(),
            started_at: at,
            leaving: Vec::new(),
        });
        databases.apply_watcher_event(&Event::Apply(orders));
        let volume = serde_json::json!({
            "apiVersion": "freehold.dev/v1alpha1", "kind": "Volume",
            "metadata": {"name": "orders", "namespace": "team-a"},
            "spec": {"nodeClassName": "default", "zone": "us-east-1a", "size": "200Gi", "type": "gp3",
                "iops": 4000, "fileSystem": "xfs", "deletionPolicy": "Retain"},
            "status": {"size": "100Gi"},
        });
        volumes.apply_watcher_event(&Event::Apply(serde_json::from_value(volume).unwrap()));
        metrics.shown().retained(|| vec![("team-a".to_owned(), 100), ("team-a".to_owned(), 1)]);
        let text = metrics.text().unwrap();
        for line in [
            "freehold_database_info{namespace=\"team-a\",name=\"orders\",engine=\"questdb\",\
             version=\"9.3.4\",node_class=\"default\",instance_type=\"r7i.large\",zone=\"us-east-1a\"} 1",
            "freehold_engine_restarts{namespace=\"team-a\",name=\"orders\"} 3",
            "freehold_replacement_start_time_seconds{namespace=\"team-a\",name=\"orders\"} 1767225600",
            "freehold_volume_size_bytes{namespace=\"team-a\",name=\"orders\"} 107374182400",
            "freehold_retained_volumes{namespace=\"team-a\"} 2",
            "freehold_retained_volumes_bytes{namespace=\"team-a\"} 108447924224",
            "freehold_volume_iops{namespace=\"team-a\",name=\"orders\"} 4000",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
