//! What is found in tests: a QuestDB and a PostgreSQL as a provisioner of 2021 left them.

mod preflight;
mod rendering;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::found::{Found, FoundClaim};
use super::wanted::Wanted;
use crate::api::{InstanceId, VolumeId};
use crate::cloud::{Attachment, EbsVolume, Instance, InstanceState, VolumeState};
use crate::command::target::Target;

const INSTANCE: &str = "i-0123456789abcdef0";
const VOLUME: &str = "vol-0123456789abcdef0";
const ZONE: &str = "us-east-1b";

fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// What a person says of it.
pub fn wanted() -> Wanted {
    Wanted {
        stateful_set: Target { namespace: "team-a".to_owned(), name: "orders".to_owned() },
        database: None,
        node_class: "default".to_owned(),
        service: None,
        secret: None,
        no_secret: false,
        instance_types: vec!["r7i.large".to_owned(), "r6i.large".to_owned()],
        engine_version: None,
        custom: false,
        unmanaged: false,
        skip_snapshot: false,
    }
}

/// A StatefulSet with this container of its engine.
fn set(container: &Value) -> Value {
    json!({
        "metadata": {"name": "orders", "namespace": "team-a", "uid": "set-uid",
            "labels": {"app": "orders", "example.com/database": "orders"}},
        "spec": {
            "replicas": 1, "serviceName": "orders", "selector": {"matchLabels": {"app": "orders"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "podManagementPolicy": "OrderedReady",
            "template": {
                "metadata": {"labels": {"app": "orders"}},
                "spec": {
                    "nodeSelector": {"example.com/database": "orders"},
                    "tolerations": [{"key": "database", "operator": "Exists", "effect": "NoSchedule"}],
                    "containers": [container],
                    "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "securityContext": {},
                    "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 120,
                },
            },
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}],
        },
        "status": {"replicas": 1, "observedGeneration": 1, "updateRevision": "orders-1"},
    })
}

/// A database with this container, mounted where its volume `data` is.
pub fn running(container: &Value) -> Found {
    let claim = "data-orders-0";
    Found {
        cluster_id: "cluster-1".to_owned(),
        stateful_set: from_json(set(container)),
        pod: Some(from_json(json!({
            "metadata": {"name": "orders-0", "namespace": "team-a", "uid": "pod-uid",
                "labels": {"app": "orders", "controller-revision-hash": "orders-1"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "orders",
                    "uid": "set-uid", "controller": true}]},
            "spec": {"nodeName": "ip-10-0-0-1", "containers": [container],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [{"name": container["name"], "image": "i", "imageID": "i",
                    "ready": true, "restartCount": 0, "state": {"running": {}}}]},
        }))),
        claims: vec![FoundClaim {
            name: claim.to_owned(),
            claim: Some(from_json(json!({"metadata": {"name": claim}, "spec": {"storageClassName": "gp3"}}))),
            persistent_volume: Some(from_json(json!({
                "metadata": {"name": "pvc-1"},
                "spec": {"accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Delete",
                    "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": VOLUME, "fsType": "ext4"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{
                        "key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [ZONE]}]}]}}},
            }))),
        }],
        storage_class: Some(from_json(json!({"metadata": {"name": "gp3"}, "provisioner": "ebs.csi.aws.com",
            "allowVolumeExpansion": true}))),
        core_node: Some(from_json(json!({
            "metadata": {"name": "ip-10-0-0-1", "labels": {
                "topology.kubernetes.io/zone": ZONE, "node.kubernetes.io/instance-type": "r5.large"}},
            "spec": {"providerID": format!("aws:///{ZONE}/{INSTANCE}")},
        }))),
        pods: vec![from_json(
            json!({"metadata": {"name": "orders-0", "namespace": "team-a", "uid": "pod-uid"}}),
        )],
        services: vec![from_json(json!({"metadata": {"name": "orders"},
            "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 8812}]}}))],
        instance: Some(Instance {
            id: InstanceId(INSTANCE.to_owned()),
            state: InstanceState::Running,
            state_reason: None,
            token: None,
            zone: ZONE.to_owned(),
            instance_type: "r5.large".to_owned(),
            launched_at: None,
            tags: BTreeMap::from([("Name".to_owned(), "orders".to_owned())]),
            volumes: vec![VolumeId(VOLUME.to_owned())],
        }),
        volume: Some(EbsVolume {
            id: VolumeId(VOLUME.to_owned()),
            state: VolumeState::InUse,
            zone: ZONE.to_owned(),
            size: 200,
            volume_type: "gp3".to_owned(),
            iops: Some(6000),
            throughput: Some(250),
            encrypted: true,
            created_at: None,
            multi_attach: false,
            attachments: vec![Attachment {
                instance: InstanceId(INSTANCE.to_owned()),
                device: "/dev/xvdba".to_owned(),
                delete_on_termination: false,
            }],
            tags: BTreeMap::new(),
        }),
        modification: None,
        node_class: Some(from_json(json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "NodeClass",
            "metadata": {"name": "default"}, "spec": {"imageID": "ami-1", "subnets": [], "securityGroupIDs": [],
                "instanceProfile": "machines", "userData": "", "instanceTypes": ["r*"]}}))),
        namespace_labels: BTreeMap::new(),
        database: None,
    }
}

/// A container of QuestDB.
pub fn questdb() -> Value {
    let secret = |name: &str, key: &str| {
        let source = json!({"secretKeyRef": {"name": "orders-credentials", "key": key}});
        json!({"name": name, "valueFrom": source})
    };
    json!({
        "name": "questdb", "image": "questdb/questdb:8.2.0", "imagePullPolicy": "IfNotPresent",
        "env": [secret("QDB_PG_USER", "DB_USER"), secret("QDB_PG_PASSWORD", "DB_PASS")],
        "ports": [{"name": "pg", "containerPort": 8812}, {"name": "http", "containerPort": 9000}],
        "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
        "livenessProbe": {"httpGet": {"path": "/", "port": 9003}},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "volumeMounts": [{"name": "data", "mountPath": "/var/lib/questdb"}],
    })
}

fn postgresql() -> Value {
    json!({
        "name": "postgres", "image": "postgres:15",
        "args": ["-c", "shared_buffers=4GB"],
        "env": [
            {"name": "POSTGRES_PASSWORD",
                "valueFrom": {"secretKeyRef": {"name": "orders-credentials", "key": "DB_PASS"}}},
            {"name": "PGDATA", "value": "/var/lib/postgresql/data/pgdata"},
        ],
        "ports": [{"name": "postgres", "containerPort": 5432}],
        "volumeMounts": [{"name": "data", "mountPath": "/var/lib/postgresql/data"}],
    })
}
