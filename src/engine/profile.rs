//! What an engine needs: image, ports, probes, settings, credentials.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::node_class::PullPolicy;

/// Everything that the StatefulSet, the Service, the Secret and the NetworkPolicy of a database need to know
/// of its engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The container image.
    pub image: String,
    /// When the machine pulls an image that it has.
    pub pull_policy: PullPolicy,
    /// The Secrets that hold credentials for the image's registry.
    pub pull_secrets: Vec<String>,
    /// What is run instead of the image's own entrypoint; empty for that.
    pub command: Vec<&'static str>,
    /// Every port of the container. Only those with `is_service` are reachable.
    pub ports: Vec<Port>,
    /// The name of the port that serves metrics to Prometheus, if the engine has one.
    pub metrics: Option<&'static str>,
    /// The name of the port that the Secret's `port` and `uri` speak of.
    pub primary_port: &'static str,
    /// Where the volume is mounted: the engine's root.
    pub data_path: String,
    /// The user id and group id that the engine runs as.
    pub user_id: i64,
    /// Environment variables, in this order.
    pub environment: Vec<Variable>,
    /// Files of settings, mounted as one read-only directory (never as `subPath`: a running pod would not see
    /// a changed file).
    pub config: Option<ConfigDirectory>,
    /// The directory that the Secret's password is mounted in, when the engine reads it from the file
    /// `password`.
    pub password_directory: Option<&'static str>,
    /// How the engine takes another password.
    pub rotation: Rotation,
    /// Says when the engine has started; the other probes wait for it.
    pub startup: Probe,
    /// Says whether clients may be sent to it.
    pub readiness: Probe,
    /// Says whether it must be restarted.
    pub liveness: Probe,
    /// The statement by which the engine writes what it has in memory to its volume while it serves, so that
    /// the stop which follows is short. None where it has none, or needs none.
    pub flush: Option<&'static str>,
    /// How long the engine may take to stop.
    pub termination_grace: Duration,
    /// A shell script that has the engine recover from the checkpoint in restored data at its next start. It
    /// runs before each start, with the snapshot in `RESTORED_FROM`. None if the engine recovers by itself.
    pub recovery: Option<&'static str>,
    /// How clients learn of it.
    pub binding: Binding,
    /// Empty directories to write to; the rest of the root file system is read-only.
    pub scratch: Vec<Scratch>,
}

impl Profile {
    /// The ports that clients reach, by protocol name.
    pub fn service_ports(&self) -> BTreeMap<String, i32> {
        self.ports
            .iter()
            .filter(|port| port.is_service)
            .map(|port| (port.name.to_owned(), port.number))
            .collect()
    }

    /// The port that serves the engine's metrics to Prometheus, without a password.
    pub fn metrics_port(&self) -> Option<&Port> {
        self.ports.iter().find(|port| Some(port.name) == self.metrics)
    }

    /// The number of the port that the credentials speak of.
    pub fn primary_port_number(&self) -> Option<i32> {
        self.ports.iter().find(|port| port.name == self.primary_port).map(|port| port.number)
    }
}

/// One TCP port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The protocol's name, also the port's name in Kubernetes (at most 15 characters).
    pub name: &'static str,
    /// The number.
    pub number: i32,
    /// Whether clients reach it through the Service.
    pub is_service: bool,
}

/// One environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// Where a variable's value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// This text.
    Text(String),
    /// The user name in the credentials' Secret.
    Username,
    /// The password in the credentials' Secret.
    Password,
}

/// How an engine takes another password of its administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// By a statement, while it serves; it stores the password.
    Statement,
    /// At each start, from the Secret; it stores none.
    AtStart,
    /// It is not known whether it takes one.
    Unknown,
}

/// An empty directory of the pod's own, gone with the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// Where it is mounted.
    pub path: &'static str,
    /// Whether it is held in memory rather than on the machine's root disk.
    pub in_memory: bool,
}

impl Scratch {
    /// One on the machine's root disk.
    pub const fn disk(path: &'static str) -> Self {
        Self { path, in_memory: false }
    }

    /// One in memory; what is in it counts as the container's.
    pub const fn memory(path: &'static str) -> Self {
        Self { path, in_memory: true }
    }
}

/// A directory of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigDirectory {
    /// Where it is mounted.
    pub path: &'static str,
    /// The files by name.
    pub files: BTreeMap<String, String>,
}

/// One probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What is asked.
    pub check: Check,
    /// Seconds between two questions.
    pub period: i32,
    /// Seconds until a question counts as failed.
    pub timeout: i32,
    /// How many failures in a row count.
    pub failures: i32,
}

/// What a probe asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// An HTTP GET of this path on the port of this name answers with success.
    Http {
        /// The path.
        path: &'static str,
        /// The port's name.
        port: &'static str,
    },
    /// This program, run in the container, ends with success.
    Command(Vec<&'static str>),
    /// The port of this name accepts a connection.
    Tcp {
        /// The port's name.
        port: &'static str,
    },
}

/// How the Service Binding specification describes the database (servicebinding.io, "Well-known Secret
/// Entries").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The abstract kind of service: what a client library looks for.
    pub kind: &'static str,
    /// Who provides it.
    pub provider: &'static str,
    /// The scheme of the URI.
    pub scheme: &'static str,
    /// The database's name, when the engine has one.
    pub database: Option<&'static str>,
}
