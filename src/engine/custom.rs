//! An image of the user's own: one port, one data path, credentials by the variables that it names.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Binding, Check, EngineError, Port, Probe, Profile, Rotation, Scratch, Value, Variable};
use crate::api::database::{ConfigValue, CustomCredentials, CustomEngine, Engine};
use crate::api::node_class::PullPolicy;

/// Where the password's file is mounted.
const PASSWORD_DIRECTORY: &str = "/run/freehold/credentials";

/// Directories that the pod mounts for itself.
const TAKEN: [&str; 2] = ["/tmp", "/run"];

/// What the image needs.
pub fn profile(engine: &Engine, config: &BTreeMap<String, ConfigValue>) -> Result<Profile, EngineError> {
    let Some(custom) = &engine.custom else {
        return Err(EngineError::CustomMissing);
    };
    check(custom)?;
    if !config.is_empty() {
        return Err(EngineError::ConfigUnsupported);
    }
    let credentials = custom.credentials.as_ref();
    if let Some(credentials) = credentials {
        check_variables(credentials)?;
    }
    let reads_file = credentials.is_some_and(|credentials| credentials.password_file_variable.is_some());
    Ok(Profile {
        image: custom.image.clone(),
        pull_policy: PullPolicy::default(),
        pull_secrets: Vec::new(),
        command: Vec::new(),
        ports: vec![Port { name: "database", number: custom.port, is_service: true }],
        metrics: None,
        primary_port: "database",
        data_path: custom.data_path.clone(),
        user_id: custom.user_id,
        environment: credentials.map(environment).unwrap_or_default(),
        config: None,
        password_directory: reads_file.then_some(PASSWORD_DIRECTORY),
        rotation: Rotation::Unknown,
        startup: accepts(1, 3600),
        readiness: accepts(5, 3),
        liveness: accepts(10, 6),
        flush: None,
        termination_grace: Duration::from_secs(120),
        recovery: None,
        binding: Binding { kind: "custom", provider: "custom", scheme: "tcp", database: None },
        scratch: vec![Scratch::disk("/tmp")],
    })
}

/// The rules of the resource definition, again.
fn check(custom: &CustomEngine) -> Result<(), EngineError> {
    let refuse = |field, value: &str, way_out| {
        Err(EngineError::CustomField { field, value: value.to_owned(), way_out })
    };
    let image = custom.image.as_str();
    let name = image.rsplit('/').next().unwrap_or(image);
    if image.is_empty()
        || image.chars().any(char::is_whitespace)
        || !name.contains(':')
        || name.ends_with(':')
        || name.ends_with(":latest")
    {
        return refuse(
            "image",
            image,
            "name an image with a digest, or a tag other than latest: a restart must not change the version",
        );
    }
    if !(1024..=65535).contains(&custom.port) {
        return refuse(
            "port",
            &custom.port.to_string(),
            "use a port from 1024 to 65535: the container runs without privileges",
        );
    }
    if custom.user_id < 1 {
        return refuse(
            "userId",
            &custom.user_id.to_string(),
            "use a user id above 0: the container never runs as root",
        );
    }
    let path = custom.data_path.as_str();
    let is_plain = path.len() > 1
        && path.starts_with('/')
        && !path.contains(':')
        && !path.contains("..")
        && !path.chars().any(char::is_control);
    if !is_plain {
        return refuse("dataPath", path, "use an absolute path such as /var/lib/data");
    }
    let is_taken = |taken: &str| {
        path.trim_end_matches('/') == taken || taken.starts_with(&format!("{}/", path.trim_end_matches('/')))
    };
    if path.trim_end_matches('/').is_empty() || TAKEN.into_iter().any(is_taken) {
        return refuse("dataPath", path, "this directory is the pod's own; use a path such as /var/lib/data");
    }
    Ok(())
}

/// The names of variables: what a container accepts, and exactly one way to take the password.
fn check_variables(credentials: &CustomCredentials) -> Result<(), EngineError> {
    let CustomCredentials { username_variable, password_variable, password_file_variable } = credentials;
    for (field, name) in [
        ("credentials.usernameVariable", username_variable),
        ("credentials.passwordVariable", password_variable),
        ("credentials.passwordFileVariable", password_file_variable),
    ] {
        let Some(name) = name else { continue };
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name {
            let way_out = "use letters, digits and '_', no digit first";
            return Err(EngineError::CustomField { field, value: name.clone(), way_out });
        }
    }
    if password_variable.is_some() == password_file_variable.is_some() {
        let value = password_variable.clone().unwrap_or_default();
        let way_out = "name exactly one of passwordVariable and passwordFileVariable";
        return Err(EngineError::CustomField { field: "credentials", value, way_out });
    }
    Ok(())
}

/// The variables that carry the credentials.
fn environment(credentials: &CustomCredentials) -> Vec<Variable> {
    let CustomCredentials { username_variable, password_variable, password_file_variable } = credentials;
    let path = format!("{PASSWORD_DIRECTORY}/password");
    [
        username_variable.clone().map(|name| Variable { name, value: Value::Username }),
        password_variable.clone().map(|name| Variable { name, value: Value::Password }),
        password_file_variable.clone().map(|name| Variable { name, value: Value::Text(path) }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A connection to the port.
fn accepts(period: i32, failures: i32) -> Probe {
    Probe { check: Check::Tcp { port: "database" }, period, timeout: 5, failures }
}
