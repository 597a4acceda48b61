//! What is listed as claimed by no object, with what is said of it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolume;
use pretty_assertions::assert_eq;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::found::{Found, Orphan, orphans};
use super::report;
use crate::api::{InstanceId, SnapshotId, VolumeId};
use crate::cloud::identity::{self, Kind, Owner};
use crate::cloud::{Attachment, EbsVolume, Instance, InstanceState, Snapshot, SnapshotState, VolumeState};

const API: &str = "freehold.dev/v1alpha1";

fn from_json<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

fn tags(kind: Kind, uid: &str) -> BTreeMap<String, String> {
    let owner = Owner {
        cluster_id: "c".to_owned(),
        kind,
        uid: uid.to_owned(),
        database: "team-a/orders".to_owned(),
        name: "orders-1".to_owned(),
    };
    identity::tags(&owner, 1, &BTreeMap::new())
}

fn instance(id: &str, node_uid: &str) -> Instance {
    Instance {
        id: InstanceId(id.to_owned()),
        state: InstanceState::Running,
        state_reason: None,
        token: Some(identity::token("c", Kind::Node, node_uid, 1)),
        zone: "us-east-1a".to_owned(),
        instance_type: "r7i.large".to_owned(),
        launched_at: Some("2026-11-22T00:00:00Z".parse().unwrap()),
        tags: tags(Kind::Node, node_uid),
        volumes: Vec::new(),
    }
}

fn volume(id: &str, tags: BTreeMap<String, String>, attached: Option<(&str, bool)>) -> EbsVolume {
    EbsVolume {
        id: VolumeId(id.to_owned()),
        state: VolumeState::Available,
        zone: "us-east-1a".to_owned(),
        size: 100,
        volume_type: "gp3".to_owned(),
        iops: None,
        throughput: None,
        encrypted: true,
        created_at: Some("2026-11-24T23:00:00Z".parse().unwrap()),
        multi_attach: false,
        attachments: attached
            .into_iter()
            .map(|(instance, delete_on_termination)| Attachment {
                instance: InstanceId(instance.to_owned()),
                device: "/dev/xvdba".to_owned(),
                delete_on_termination,
            })
            .collect(),
        tags,
    }
}

fn snapshot(id: &str, of: &str, volume_uid: &str) -> Snapshot {
    let mut tags = tags(Kind::Volume, volume_uid);
    tags.extend(identity::owner_tags("c", Kind::Snapshot, volume_uid));
    Snapshot {
        id: SnapshotId(id.to_owned()),
        volume: VolumeId(of.to_owned()),
        size: Some(100),
        state: SnapshotState::Completed,
        started_at: None,
        tags,
    }
}

/// The snapshot of a Backup, of an EBS volume that is gone.
fn backup(id: &str, uid: &str) -> Snapshot {
    let tags = identity::owner_tags("c", Kind::Backup, uid);
    Snapshot { tags, ..snapshot(id, "vol-gone", "") }
}

/// One Database with its Node and its Volume, and one volume that is retained.
fn found() -> Found {
    let metadata = |uid: &str| json!({"namespace": "team-a", "name": format!("orders-{uid}"), "uid": uid});
    let record: PersistentVolume = from_json(json!({
        "metadata": {"name": "kept", "labels": {"freehold.dev/retained": "true", "freehold.dev/volume-uid": "old"},
            "annotations": {"freehold.dev/database": "team-a/former"}},
        "spec": {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-kept"},
            "claimRef": {"namespace": "team-a", "name": "former"}},
    }));
    Found {
        instances: vec![instance("i-1", "n1")],
        ebs_volumes: vec![
            volume("vol-1", tags(Kind::Volume, "v1"), Some(("i-1", false))),
            volume("vol-root", tags(Kind::Node, "n1"), Some(("i-1", true))),
            volume("vol-kept", tags(Kind::Volume, "old"), None),
        ],
        snapshots: vec![snapshot("snap-1", "vol-1", "v1"), backup("snap-2", "b1")],
        namespace: None,
        databases: vec![from_json(json!({"apiVersion": API, "kind": "Database",
            "metadata": {"namespace": "team-a", "name": "orders"},
            "spec": {"engine": {"type": "questdb", "version": "9.3.4"}, "storage": {"size": "100Gi"}}}))],
        nodes: vec![from_json(json!({"apiVersion": API, "kind": "Node", "metadata": metadata("n1"),
            "spec": {"nodeClassName": "default", "instanceTypes": ["r7i.large"]}}))],
        volumes: vec![from_json(json!({"apiVersion": API, "kind": "Volume", "metadata": metadata("v1"),
            "spec": {"nodeClassName": "default", "size": "100Gi", "type": "gp3", "fileSystem": "xfs",
                "zone": "us-east-1a", "deletionPolicy": "Retain"}}))],
        backups: vec![from_json(json!({"apiVersion": API, "kind": "Backup", "metadata": metadata("b1"),
            "spec": {"databaseName": "orders"}}))],
        persistent_volumes: vec![record],
    }
}

fn ids(found: &Found) -> Vec<String> {
    orphans(found).into_iter().map(|orphan| orphan.id).collect()
}

fn one(found: &Found, id: &str) -> Orphan {
    orphans(found).into_iter().find(|orphan| orphan.id == id).unwrap()
}

#[test]
fn what_an_object_or_a_retention_record_claims_is_no_orphan() {
    assert_eq!(ids(&found()), Vec::<String>::new());
}

#[test]
fn what_lost_its_object_is_an_orphan_and_a_root_disk_goes_with_its_instance() {
    let without_node = Found { nodes: Vec::new(), ..found() };
    assert_eq!(ids(&without_node), ["i-1"]);
    let held = "EBS volume vol-1 is attached, and Volume team-a/orders-v1 waits for it";
    assert_eq!(one(&without_node, "i-1").holds, [held]);
    let nothing = Found { nodes: Vec::new(), volumes: Vec::new(), ..found() };
    assert_eq!(ids(&nothing), ["i-1", "vol-1", "snap-1"]);
    assert_eq!(one(&nothing, "i-1").holds, ["EBS volume vol-1 is attached, which no object claims either"]);
    let without_backup = Found { backups: Vec::new(), ..found() };
    assert_eq!(ids(&without_backup), ["snap-2"]);
    assert_eq!(one(&without_backup, "snap-2").holds, ["a backup, retained when its Backup was deleted"]);
    let without_record = Found { persistent_volumes: Vec::new(), ..found() };
    assert_eq!(ids(&without_record), ["vol-kept"]);
}

#[test]
fn what_has_ended_is_no_orphan() {
    let mut nothing = Found { nodes: Vec::new(), volumes: Vec::new(), snapshots: Vec::new(), ..found() };
    nothing.instances[0].state = InstanceState::Terminated;
    nothing.ebs_volumes.truncate(1);
    nothing.ebs_volumes[0].state = VolumeState::Deleting;
    assert_eq!(ids(&nothing), Vec::<String>::new());
    // A root disk that its instance left behind.
    nothing.ebs_volumes = vec![volume("vol-root", tags(Kind::Node, "n1"), None)];
    assert_eq!(ids(&nothing), ["vol-root"]);
    assert_eq!(one(&nothing, "vol-root").way_out, ["aws ec2 delete-volume --volume-id vol-root"]);
}

#[test]
fn an_instance_that_freehold_did_not_launch_is_not_offered_for_termination() {
    let mut without_node = Found { nodes: Vec::new(), ..found() };
    without_node.instances[0].token = None;
    let orphan = one(&without_node, "i-1");
    assert_eq!(
        orphan.way_out,
        ["aws ec2 delete-tags --resources i-1 --tags Key=freehold.dev/cluster-id Key=freehold.dev/node-uid"]
    );
    assert!(
        orphan.holds.contains(&"it was not launched by Freehold, and may serve something else".to_owned())
    );
}

#[test]
fn data_that_ec2_would_delete_with_the_instance_is_kept_first() {
    let mut without_node = Found { nodes: Vec::new(), ..found() };
    without_node.ebs_volumes[0].attachments[0].delete_on_termination = true;
    let way_out = one(&without_node, "i-1").way_out;
    assert!(way_out[0].starts_with("aws ec2 modify-instance-attribute --instance-id i-1"), "{way_out:?}");
    assert_eq!(way_out[1], "aws ec2 terminate-instances --instance-ids i-1");
}

#[test]
fn one_namespace_sees_what_is_of_its_databases() {
    let of = |namespace: &str| Found { nodes: Vec::new(), namespace: Some(namespace.to_owned()), ..found() };
    assert_eq!((ids(&of("team-a")), ids(&of("team-b"))), (vec!["i-1".to_owned()], Vec::new()));
}

#[test]
fn the_table_lines_up_and_ends_with_what_to_do() {
    let found = Found { nodes: Vec::new(), volumes: Vec::new(), ..found() };
    let now = "2026-11-25T00:00:00Z".parse().unwrap();
    assert_eq!(
        report::text(&orphans(&found), None, now),
        [
            "KIND      ID      DATABASE       STATE      AGE  SIZE       ZONE        HOLDS",
            "instance  i-1     team-a/orders  running    3d   r7i.large  us-east-1a  EBS volume vol-1 is attached, which no object claims either",
            "volume    vol-1   team-a/orders  available  60m  100 GiB    us-east-1a  it is attached to instance i-1; a Database of this name exists, with another volume",
            "snapshot  snap-1  team-a/orders  completed  -    100 GiB    -           EBS volume vol-1 is still there",
            "",
            "The age of an instance is that of its last start. Freehold ends none of these. What you can do, once you are certain that nothing uses it:",
            "",
            "  instance i-1",
            "    aws ec2 terminate-instances --instance-ids i-1",
            "",
            "  snapshot snap-1",
            "    aws ec2 delete-snapshot --snapshot-id snap-1",
            "",
        ]
        .join("\n")
    );
}
