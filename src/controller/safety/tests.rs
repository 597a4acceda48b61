//! Every row of the destructive questions.

use std::collections::BTreeMap;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::api::InstanceId;

const SILENCE: Duration = Duration::from_secs(300);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn instance(state: InstanceState, data: &[&str]) -> Instance {
    // An image may have two disks.
    let mut volumes = vec![VolumeId("vol-root".into()), VolumeId("vol-second".into())];
    volumes.extend(data.iter().map(|id| VolumeId((*id).to_owned())));
    Instance {
        id: InstanceId("i-1".into()),
        state,
        state_reason: None,
        token: None,
        zone: "us-east-1a".into(),
        instance_type: "r7i.large".into(),
        launched_at: None,
        tags: BTreeMap::new(),
        volumes,
    }
}

fn core_node(value: serde_json::Value) -> CoreNode {
    serde_json::from_value(value).unwrap()
}

/// What is known to hold data.
fn data() -> Vec<VolumeId> {
    vec![VolumeId("vol-data".into())]
}

/// A name, the machine, its kubelet, its pods, its attachments, and why it may not be terminated.
type Emptied<'a> = (&'a str, Instance, Kubelet, &'a [String], &'a [String], Option<Reason>);

fn reason(answer: Result<(), Blocker>) -> Option<Reason> {
    answer.err().map(|blocker| blocker.reason())
}

#[test]
fn a_kubelet_is_as_its_node_says_and_silence_counts_from_a_time_that_is_known() {
    let created = at(7).to_string();
    let with = |conditions: serde_json::Value| {
        core_node(json!({"metadata": {"creationTimestamp": created}, "status": {"conditions": conditions}}))
    };
    let rows = [
        ("no Node", None, Kubelet::Absent),
        ("Ready", Some(with(json!([{"type": "Ready", "status": "True"}]))), Kubelet::Ready),
        (
            "not Ready since then",
            Some(with(json!([{"type": "Ready", "status": "Unknown",
            "lastTransitionTime": at(9).to_string()}]))),
            Kubelet::NotReady(at(9)),
        ),
        ("it has said nothing yet: since its Node is there", Some(with(json!([]))), Kubelet::NotReady(at(7))),
        (
            "not Ready without a time",
            Some(with(json!([{"type": "Ready", "status": "False"}]))),
            Kubelet::NotReady(at(7)),
        ),
        (
            "without any time: its silence is not proven",
            Some(core_node(json!({"metadata": {}}))),
            Kubelet::NotReady(Timestamp::MAX),
        ),
    ];
    for (name, core_node, expected) in rows {
        assert_eq!(kubelet(core_node.as_ref()), expected, "{name}");
    }
}

#[test]
fn a_machine_is_terminated_only_when_it_is_empty_or_cannot_run_anything() {
    let (pods, none) = (vec!["team-a/orders-0".to_owned()], Vec::new());
    let attached = vec!["csi-1".to_owned()];
    let running = || instance(InstanceState::Running, &[]);
    let silent = |seconds: i64| Kubelet::NotReady(at(-seconds));
    let rows: Vec<Emptied<'_>> = vec![
        ("empty", running(), Kubelet::Ready, &none, &none, None),
        ("a pod", running(), Kubelet::Ready, &pods, &none, Some(Reason::AwaitingDrain)),
        (
            "a pod and an attachment: the pod first",
            running(),
            Kubelet::Ready,
            &pods,
            &attached,
            Some(Reason::AwaitingDrain),
        ),
        ("an attachment", running(), Kubelet::Ready, &none, &attached, Some(Reason::AwaitingDetach)),
        (
            "silent for less than the grace",
            running(),
            silent(299),
            &pods,
            &attached,
            Some(Reason::AwaitingDrain),
        ),
        ("silent for the grace", running(), silent(300), &pods, &attached, None),
        (
            "silent since who knows when",
            running(),
            Kubelet::NotReady(Timestamp::MAX),
            &pods,
            &none,
            Some(Reason::AwaitingDrain),
        ),
        ("stopped", instance(InstanceState::Stopped, &["vol-data"]), Kubelet::Ready, &pods, &attached, None),
        (
            "stopping is not stopped",
            instance(InstanceState::Stopping, &[]),
            Kubelet::Ready,
            &pods,
            &none,
            Some(Reason::AwaitingDrain),
        ),
        (
            "no Node, and a data volume",
            instance(InstanceState::Running, &["vol-data"]),
            Kubelet::Absent,
            &none,
            &none,
            Some(Reason::AwaitingDetach),
        ),
        ("no Node, and only its own disks", running(), Kubelet::Absent, &none, &none, None),
        (
            "the CSI driver has detached what an older sweep shows",
            instance(InstanceState::Running, &["vol-data"]),
            Kubelet::Ready,
            &none,
            &none,
            None,
        ),
    ];
    for (name, instance, kubelet, pods, attachments, expected) in rows {
        assert_eq!(
            reason(may_terminate(&instance, kubelet, pods, attachments, &data(), SILENCE, at(0))),
            expected,
            "{name}"
        );
    }
}

#[test]
fn a_duplicate_is_terminated_only_when_no_database_can_be_on_it() {
    let labelled = core_node(json!({"metadata": {"labels": {DATABASE_NODE_LABEL: "uid"}}}));
    let plain = core_node(json!({"metadata": {}}));
    let rows = [
        ("it never joined, and has two disks", instance(InstanceState::Running, &[]), true, None, None),
        (
            "only its tags are ours",
            instance(InstanceState::Running, &[]),
            false,
            None,
            Some(Reason::DuplicateInstance),
        ),
        ("it joined and got no label", instance(InstanceState::Running, &[]), true, Some(&plain), None),
        (
            "it has the label",
            instance(InstanceState::Running, &[]),
            true,
            Some(&labelled),
            Some(Reason::DuplicateInstance),
        ),
        (
            "it has a data volume",
            instance(InstanceState::Running, &["vol-data"]),
            true,
            None,
            Some(Reason::DuplicateInstance),
        ),
    ];
    for (name, instance, is_own, core_node, expected) in rows {
        let answer = may_terminate_duplicate(&instance, is_own, core_node, &data());
        assert!(answer.as_ref().err().is_none_or(|blocker| blocker.message().contains("i-1")), "{name}");
        assert_eq!(reason(answer), expected, "{name}");
    }
}

#[test]
fn a_data_volume_is_one_that_is_known_to_be_and_the_disks_of_the_image_are_none() {
    let attached = instance(InstanceState::Running, &["vol-data", "vol-of-another-pod"]);
    assert_eq!(data_volumes(&attached, &data()), data());
    assert_eq!(data_volumes(&instance(InstanceState::Running, &[]), &data()), []);
}

#[test]
fn a_volume_is_deleted_only_when_it_is_available_and_carries_our_tags() {
    let wanted = BTreeMap::from([("cluster".to_owned(), "c".to_owned()), ("uid".to_owned(), "u".to_owned())]);
    let volume = |state: VolumeState, tags: &[(&str, &str)]| EbsVolume {
        id: VolumeId("vol-1".into()),
        state,
        zone: "us-east-1a".into(),
        size: 100,
        volume_type: "gp3".into(),
        iops: None,
        throughput: None,
        encrypted: true,
        created_at: None,
        multi_attach: false,
        attachments: vec![],
        tags: tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
    };
    let ours = [("cluster", "c"), ("uid", "u"), ("more", "m")];
    let rows = [
        ("available and ours", volume(VolumeState::Available, &ours), None),
        (
            "a tag is missing",
            volume(VolumeState::Available, &ours[1..]),
            Some(Reason::AwaitingVolumeDeletion),
        ),
        (
            "another UID",
            volume(VolumeState::Available, &[("cluster", "c"), ("uid", "x")]),
            Some(Reason::AwaitingVolumeDeletion),
        ),
        ("in use", volume(VolumeState::InUse, &ours), Some(Reason::AwaitingDetach)),
        ("broken", volume(VolumeState::Error, &ours), Some(Reason::AwaitingDetach)),
        ("being made", volume(VolumeState::Creating, &ours), Some(Reason::AwaitingDetach)),
        ("a state of a later day", volume(VolumeState::Unknown, &ours), Some(Reason::AwaitingDetach)),
    ];
    for (name, volume, expected) in rows {
        let answer = may_delete_volume(&volume, &wanted, false);
        assert!(answer.as_ref().err().is_none_or(|blocker| blocker.message().contains("vol-1")), "{name}");
        assert_eq!(reason(answer), expected, "{name}");
        let released = may_delete_volume(&volume, &wanted, true);
        assert_eq!(released, Err(Blocker::Released(volume.id)), "{name}: what is released is never deleted");
    }
}

#[test]
fn a_database_is_deleted_after_a_verification_only_if_it_is_that_ones_own() {
    let schedule: BackupSchedule = serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "BackupSchedule",
        "metadata": {"name": "nightly", "uid": "schedule-uid"},
        "spec": {"databaseName": "orders", "schedule": "0 3 * * *"},
    }))
    .unwrap();
    let running = |uid: Option<&str>| Verification {
        backup_name: "nightly-1".to_owned(),
        backup_uid: "backup-uid".to_owned(),
        database_name: "verify-nightly-1".to_owned(),
        database_uid: uid.map(str::to_owned),
        started_at: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(0)),
    };
    let may = |database: &Database, uid| may_delete_restored(database, Some(&running(uid)), &schedule);
    let database = |change: fn(&mut serde_json::Value)| -> Database {
        let owner = json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "BackupSchedule", "name": "nightly",
            "uid": "schedule-uid", "controller": true});
        let mut object = json!({
            "apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
            "metadata": {"name": "verify-nightly-1", "uid": "restored-uid", "ownerReferences": [owner],
                "labels": {"freehold.dev/verification": "nightly"}},
            "spec": {"engine": {"type": "questdb", "version": "9.3.4"}, "storage": {"size": "100Gi"}},
        });
        change(&mut object);
        serde_json::from_value(object).unwrap()
    };
    let ours = database(|_| {});
    assert!(may(&ours, None) && may(&ours, Some("restored-uid")) && !may(&ours, Some("earlier-uid")));
    let another = database(|it| it["metadata"]["name"] = json!("verify-nightly-2"));
    assert!(!may(&another, None));
    assert!(may_delete_restored(&another, None, &schedule), "left of a verification that is over");
    let others = vec![
        database(|it| it["metadata"]["ownerReferences"] = json!(null)),
        database(|it| it["metadata"]["ownerReferences"][0]["uid"] = json!("other")),
        database(|it| it["metadata"]["ownerReferences"][0]["controller"] = json!(false)),
        database(|it| it["metadata"]["labels"] = json!(null)),
        database(|it| it["metadata"]["labels"]["freehold.dev/verification"] = json!("weekly")),
        database(|it| it["spec"]["deletionProtection"] = json!(true)),
    ];
    for database in others {
        assert!(!may(&database, None) && !may_delete_restored(&database, None, &schedule), "{database:?}");
    }
    let nameless = BackupSchedule { metadata: kube::core::ObjectMeta::default(), ..schedule.clone() };
    assert!(!may_delete_restored(&ours, None, &nameless));
}
