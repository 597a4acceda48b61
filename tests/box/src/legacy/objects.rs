//! The objects of a legacy database, as templates of 2021 rendered them.

use serde_json::{Value, json};

use crate::base::names::EBS_DRIVER;
use crate::writer::Dialect;

/// The label of its Node and of its objects; the value is the database's name.
pub const LABEL: &str = "example.com/database";

/// The name of the volume in the pod, with which the claim's name begins.
pub const VOLUME: &str = "data";

/// The size of the volume: small, since real machines make a file of it.
const SIZE: &str = "2Gi";

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

    /// The `StorageClass` that makes such volumes: EKS clusters have the first one.
    pub fn storage_class(self) -> &'static str {
        match self {
            Self::Ext4 => "gp3",
            Self::Xfs => "gp3-xfs",
        }
    }
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

/// The `StorageClass` of this file system.
pub fn storage_class(file_system: FileSystem) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": file_system.storage_class()},
        "provisioner": EBS_DRIVER,
        "parameters": {"type": "gp3", "csi.storage.k8s.io/fstype": file_system.as_str()},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    })
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
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": order.file_system.storage_class(),
                    "resources": {"requests": {"storage": SIZE}},
                },
            }],
        },
    })
}
