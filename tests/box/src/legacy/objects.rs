//! The objects of a legacy database, as templates of 2021 rendered them.

use serde_json::{Value, json};

use crate::base::names::EBS_DRIVER;
use crate::writer::Dialect;

/// The label of its Node and of its objects; the value is the database's name.
pub const LABEL: &str = "example.com/database";

/// The name of the volume in the pod, with which the claim's name begins.
const VOLUME: &str = "data";

/// The label of the zone, of Kubernetes nodes and of what is in one.
const ZONE: &str = "topology.kubernetes.io/zone";

/// The size of the volume in GiB: small, since real machines make a file of it.
pub const SIZE_GIB: i32 = 2;

/// What Kubernetes' own plugin was called.
const IN_TREE: &str = "kubernetes.io/aws-ebs";

/// What its volume is formatted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// The default of the EBS CSI driver.
    Ext4,
    /// It can grow while it is mounted on any host.
    Xfs,
}

impl FileSystem {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// The `StorageClass` of the EBS CSI driver that makes such volumes.
    pub fn storage_class(self) -> &'static str {
        match self {
            Self::Ext4 => "gp3",
            Self::Xfs => "gp3-xfs",
        }
    }
}

/// How its volume came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// Its claim asked for it, and the EBS CSI driver's provisioner made it.
    Claimed,
    /// A person made the EBS volume, the PersistentVolume and the claim, which names no `StorageClass`.
    ByHand,
    /// Kubernetes' own plugin made it before Kubernetes 1.23: its PersistentVolume names it in
    /// `awsElasticBlockStore`. Its `StorageClass` is the one that EKS creates, which permits no expansion.
    InTree,
}

/// Which database is made.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The engine.
    pub engine: Dialect,
    /// The namespace, which exists.
    pub namespace: &'a str,
    /// The name of the database, its StatefulSet, its Service and its instance.
    pub name: &'a str,
    /// The file system of its volume.
    pub file_system: FileSystem,
    /// How its volume came to be.
    pub disk: Disk,
}

impl Order<'_> {
    /// The name of the `StorageClass` of its claim, which may be empty.
    fn storage_class(self) -> &'static str {
        match self.disk {
            Disk::Claimed => self.file_system.storage_class(),
            Disk::ByHand => "",
            Disk::InTree => "gp2",
        }
    }
}

/// Who a client is.
pub struct Login {
    /// The user.
    pub username: String,
    /// The password.
    pub password: String,
    /// The database in the engine.
    pub database: String,
}

/// What differs between the engines, most of it their images' own.
struct Engine {
    image: &'static str,
    /// The variables that take user, password and database of the Secret; the names of the image.
    variables: &'static [(&'static str, &'static str)],
    /// Variables with a value of their own.
    settings: &'static [(&'static str, &'static str)],
    mount: &'static str,
    /// The port that clients write to, by its name.
    port: (&'static str, u16),
    other_ports: &'static [(&'static str, u16)],
    probe: Value,
    requests: (&'static str, &'static str),
    memory_limit: &'static str,
}

impl Engine {
    fn of(dialect: Dialect) -> Self {
        match dialect {
            // A release of before 9.3.4: it knows no password files.
            Dialect::Questdb => Self {
                image: "questdb/questdb:8.2.0",
                variables: &[("QDB_PG_USER", "DB_USER"), ("QDB_PG_PASSWORD", "DB_PASS")],
                // Acknowledged rows outlive a power cut.
                settings: &[("QDB_CAIRO_COMMIT_MODE", "sync")],
                mount: "/var/lib/questdb",
                port: ("pg", 8812),
                other_ports: &[("http", 9000), ("ilp", 9009), ("health", 9003)],
                probe: json!({"httpGet": {"path": "/", "port": 9003}}),
                requests: ("250m", "1Gi"),
                memory_limit: "2Gi",
            },
            // The image's documentation ("PGDATA"): a folder below the mount point, because a new ext4 file
            // system has lost+found, and initdb refuses a folder that is not empty.
            Dialect::Postgresql => Self {
                image: "postgres:15",
                variables: &[
                    ("POSTGRES_USER", "DB_USER"),
                    ("POSTGRES_PASSWORD", "DB_PASS"),
                    ("POSTGRES_DB", "DB_NAME"),
                ],
                settings: &[("PGDATA", "/var/lib/postgresql/data/pgdata")],
                mount: "/var/lib/postgresql/data",
                port: ("postgres", 5432),
                other_ports: &[],
                probe: json!({"exec": {"command": ["sh", "-c", "pg_isready -U \"$POSTGRES_USER\""]}}),
                requests: ("250m", "256Mi"),
                memory_limit: "1Gi",
            },
        }
    }

    fn ports(&self) -> impl Iterator<Item = &(&'static str, u16)> {
        std::iter::once(&self.port).chain(self.other_ports)
    }
}

/// The port that clients write to.
pub fn port(engine: Dialect) -> u16 {
    Engine::of(engine).port.1
}

/// The credentials of its only user.
pub fn login(engine: Dialect, name: &str) -> Login {
    let (username, database) = match engine {
        Dialect::Questdb => ("admin", "qdb"),
        Dialect::Postgresql => ("postgres", "main"),
    };
    Login {
        username: username.to_owned(),
        password: format!("pw-{name}-2021"),
        database: database.to_owned(),
    }
}

/// The `StorageClass` of its claim, if it names one.
pub fn storage_class(order: Order<'_>) -> Option<(&'static str, Value)> {
    let (name, file_system) = (order.storage_class(), order.file_system.as_str());
    let (provisioner, parameters, permits_expansion) = match order.disk {
        Disk::ByHand => return None,
        Disk::Claimed => (EBS_DRIVER, json!({"type": "gp3", "csi.storage.k8s.io/fstype": file_system}), true),
        Disk::InTree => (IN_TREE, json!({"type": "gp2", "fsType": file_system}), false),
    };
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "parameters": parameters,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": permits_expansion,
    });
    Some((name, class))
}

/// The PersistentVolume of an EBS volume that no claim asked for.
pub fn record(order: Order<'_>, id: &str, zone: &str) -> Value {
    let file_system = order.file_system.as_str();
    let mut record = json!({
        "metadata": {"name": record_name(order), "labels": labels(order.name)},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size()},
            "claimRef": {"namespace": order.namespace, "name": claim_name(order.name)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{
                "matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}],
            }]}},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": order.storage_class(),
        },
    });
    if order.disk == Disk::InTree {
        record["metadata"]["annotations"] = json!({"pv.kubernetes.io/provisioned-by": IN_TREE});
        record["metadata"]["labels"] = json!({ZONE: zone});
        record["spec"]["persistentVolumeReclaimPolicy"] = json!("Delete");
        record["spec"]["awsElasticBlockStore"] =
            json!({"volumeID": format!("aws://{zone}/{id}"), "fsType": file_system});
    } else {
        record["spec"]["csi"] = json!({"driver": EBS_DRIVER, "volumeHandle": id, "fsType": file_system});
    }
    record
}

/// The claim on it.
pub fn claim(order: Order<'_>) -> Value {
    let mut claim = json!({
        "metadata": {"name": claim_name(order.name), "labels": labels(order.name)},
        "spec": claim_spec(order),
    });
    claim["spec"]["volumeName"] = record_name(order).into();
    claim
}

/// The name of the claim.
pub fn claim_name(name: &str) -> String {
    format!("{VOLUME}-{name}-0")
}

/// PersistentVolumes are in no namespace.
fn record_name(order: Order<'_>) -> String {
    format!("{}-{}", order.namespace, order.name)
}

fn claim_spec(order: Order<'_>) -> Value {
    json!({
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": order.storage_class(),
        "resources": {"requests": {"storage": size()}},
    })
}

fn size() -> String {
    format!("{SIZE_GIB}Gi")
}

fn labels(name: &str) -> Value {
    json!({"app": name, LABEL: name})
}

/// The name of the Secret.
pub fn secret_name(name: &str) -> String {
    format!("{name}-credentials")
}

/// The Secret, in the provisioner's own layout: none of its keys is one of the Service Binding specification.
pub fn secret(order: Order<'_>) -> Value {
    let login = login(order.engine, order.name);
    json!({
        "metadata": {"name": secret_name(order.name), "labels": labels(order.name)},
        "type": "Opaque",
        "stringData": {
            "DB_USER": login.username,
            "DB_PASS": login.password,
            "DB_NAME": login.database,
        },
    })
}

/// The Service.
pub fn service(order: Order<'_>) -> Value {
    let engine = Engine::of(order.engine);
    let ports: Vec<Value> = engine.ports().map(|(name, port)| json!({"name": name, "port": port})).collect();
    json!({
        "metadata": {"name": order.name, "labels": labels(order.name)},
        "spec": {"selector": {"app": order.name}, "ports": ports},
    })
}

/// The StatefulSet: one pod, which runs as whom the image starts as.
pub fn stateful_set(order: Order<'_>) -> Value {
    let name = order.name;
    let engine = Engine::of(order.engine);
    let secret = |(variable, key): &(&str, &str)| {
        let reference = json!({"name": secret_name(name), "key": key});
        json!({"name": variable, "valueFrom": {"secretKeyRef": reference}})
    };
    let plain = |(variable, value): &(&str, &str)| json!({"name": variable, "value": value});
    let variables: Vec<Value> =
        engine.variables.iter().map(secret).chain(engine.settings.iter().map(plain)).collect();
    let ports: Vec<Value> =
        engine.ports().map(|(name, port)| json!({"name": name, "containerPort": port})).collect();
    let probe = |delay: u32, period: u32, failures: u32| {
        let mut probe = engine.probe.clone();
        probe["initialDelaySeconds"] = delay.into();
        probe["periodSeconds"] = period.into();
        probe["timeoutSeconds"] = 5.into();
        probe["failureThreshold"] = failures.into();
        probe
    };
    json!({
        "metadata": {"name": name, "labels": labels(name)},
        "spec": {
            "serviceName": name,
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": labels(name)},
                "spec": {
                    "nodeSelector": {LABEL: name},
                    "containers": [{
                        "name": order.engine.as_str(),
                        "image": engine.image,
                        "imagePullPolicy": "IfNotPresent",
                        "env": variables,
                        "ports": ports,
                        "readinessProbe": probe(2, 2, 3),
                        "livenessProbe": probe(60, 10, 6),
                        "resources": {
                            "requests": {"cpu": engine.requests.0, "memory": engine.requests.1},
                            "limits": {"memory": engine.memory_limit},
                        },
                        "volumeMounts": [{"name": VOLUME, "mountPath": engine.mount}],
                    }],
                },
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": VOLUME, "labels": labels(name)},
                "spec": claim_spec(order),
            }],
        },
    })
}
