//! What each database engine needs: image, ports, probes, settings, credentials. One file per engine; no
//! clock, and a client only in `client.rs`.

pub mod archiver;
pub mod certificate;
pub mod checkpoint;
pub mod client;
mod custom;
mod error;
mod image;
pub mod postgresql;
mod profile;
mod properties;
pub mod questdb;
pub mod release;
pub mod reload;
mod setting;
pub mod users;
pub mod verify;

use std::collections::BTreeMap;

pub use error::EngineError;
use image::from_class;
pub use profile::{
    Binding, Check, ConfigDirectory, Port, Probe, Profile, Rotation, Scratch, Value, Variable,
};

use crate::api::database::{ConfigValue, Engine, EngineType};
use crate::api::node_class::Images;

/// The administrator's user name, in every engine that takes one.
pub const ADMINISTRATOR: &str = "admin";

/// Where the Secret of `spec.tls` is mounted, in every engine that has one: `tls.crt` and `tls.key`.
pub const TLS_DIRECTORY: &str = "/run/freehold/tls";

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

/// The same, with its image from where the NodeClass says, if there is one.
pub fn profile_from(
    engine: &Engine,
    config: &BTreeMap<String, ConfigValue>,
    images: Option<&Images>,
) -> Result<Profile, EngineError> {
    let profile = profile(engine, config)?;
    Ok(match images {
        Some(images) => from_class(profile, engine, images),
        None => profile,
    })
}

#[cfg(test)]
mod tests;
