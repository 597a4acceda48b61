//! What an engine needs of its house: image, ports, probes, settings, credentials. One file per engine; no client, no clock.

mod custom;
pub mod postgresql;
mod properties;
mod questdb;
mod setting;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::database::{ConfigValue, Engine, EngineType};

/// The administrator's user name, in every engine that takes one.
pub const ADMINISTRATOR: &str = "admin";

/// Everything that the StatefulSet, the Service, the Secret and the NetworkPolicy of a database need to know of its engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The container image.
    pub image: String,
    /// What is run instead of the image's own entrypoint; empty for that.
    pub command: Vec<&'static str>,
    /// Every port of the container. Only those with `is_service` are reachable.
    pub ports: Vec<Port>,
    /// The name of the port that the Secret's `port` and `uri` speak of.
    pub primary_port: &'static str,
    /// Where the volume is mounted: the engine's root.
    pub data_path: String,
    /// The user id and group id that the engine runs as.
    pub user_id: i64,
    /// Environment variables, in this order.
    pub environment: Vec<Variable>,
    /// Files of settings, mounted as one read-only directory (never as `subPath`: a running pod would not see a changed file).
    pub config: Option<ConfigDirectory>,
    /// The directory that the Secret's password is mounted in, when the engine reads it from the file `password`.
    pub password_directory: Option<&'static str>,
    /// Says when the engine has started; the other probes wait for it.
    pub startup: Probe,
    /// Says whether clients may be sent to it.
    pub readiness: Probe,
    /// Says whether it must be restarted.
    pub liveness: Probe,
    /// How long the engine may take to stop.
    pub termination_grace: Duration,
    /// How clients are told of it.
    pub binding: Binding,
    /// Empty directories to write to; the rest of the root file system is read-only.
    pub scratch: Vec<Scratch>,
}

impl Profile {
    /// The ports that clients reach, by protocol name.
    pub fn service_ports(&self) -> BTreeMap<String, i32> {
        self.ports.iter().filter(|port| port.is_service).map(|port| (port.name.to_owned(), port.number)).collect()
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

/// How the Service Binding specification describes the database (servicebinding.io, "Well-known Secret Entries").
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

/// Why an engine cannot be run as it is asked for. The text names the field and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The engine needs a version.
    #[error("spec.engine.version is required for {engine}, for example {example}")]
    VersionMissing {
        /// The engine.
        engine: &'static str,
        /// A release of it.
        example: &'static str,
    },
    /// The version is not a release.
    #[error("spec.engine.version {version:?} is not a whole release: write it as {example}")]
    VersionForm {
        /// What was written.
        version: String,
        /// A release.
        example: &'static str,
    },
    /// The major version is not among those that can be run.
    #[error("spec.engine.version {version} is of a major version that this Freehold does not run: use one of {known}")]
    VersionUnknown {
        /// What was written.
        version: String,
        /// Those that can be run.
        known: &'static str,
    },
    /// The release cannot be run safely.
    #[error("spec.engine.version {version} is too old: {reason}; use {minimum} or later")]
    VersionTooOld {
        /// What was written.
        version: String,
        /// Why it does not do.
        reason: &'static str,
        /// The first release that does.
        minimum: &'static str,
    },
    /// The custom engine is not described.
    #[error("spec.engine.custom (image, port, dataPath) is required for the type custom")]
    CustomMissing,
    /// A field of the custom engine cannot be used.
    #[error("spec.engine.custom.{field} {value:?} cannot be used: {way_out}")]
    CustomField {
        /// The field.
        field: &'static str,
        /// What was written.
        value: String,
        /// What to write instead.
        way_out: &'static str,
    },
    /// The engine takes no settings.
    #[error("spec.config is not for the type custom: build the settings into spec.engine.custom.image, and remove spec.config")]
    ConfigUnsupported,
    /// A setting that the operator decides.
    #[error("spec.config: {key} is set by the operator and cannot be changed: {way_out}")]
    ConfigOwned {
        /// The setting.
        key: String,
        /// What to do instead.
        way_out: &'static str,
    },
    /// A key that is not the name of a setting.
    #[error("spec.config: {key:?} is not the name of a setting: use letters, digits, '.' and '_', a letter first, at most 128 characters")]
    ConfigKey {
        /// The key.
        key: String,
    },
    /// A value that is not one line of text.
    #[error("spec.config: the value of {key} must be one line of text without control characters, at most 1024 characters")]
    ConfigValue {
        /// The setting.
        key: String,
    },
}

/// What this engine with these settings needs.
///
/// The rules of the resource definition are checked again here: a stored object may be older than a rule.
pub fn profile(engine: &Engine, config: &BTreeMap<String, ConfigValue>) -> Result<Profile, EngineError> {
    match engine.kind {
        EngineType::Postgresql => postgresql::profile(engine, config),
        EngineType::Questdb => questdb::profile(engine, config),
        EngineType::Custom => custom::profile(engine, config),
    }
}

#[cfg(test)]
mod tests;
