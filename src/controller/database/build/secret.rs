//! Builds and checks the Secret of the administrator's credentials, laid out as the Service Binding
//! specification says.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use data_encoding::BASE64;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{host, unowned};
use crate::api::keys::{
    ADOPTED_RECORD_ANNOTATION, NEXT_PASSWORD, NEXT_PASSWORD_GENERATION_ANNOTATION,
    PASSWORD_GENERATION_ANNOTATION, RETAINED_LABEL, TAKEN_FROM_ANNOTATION,
};
use crate::api::names::Names;
use crate::controller::database::password::Password;
use crate::engine::{ADMINISTRATOR, Profile};

/// The shortest password that counts as one of ours.
const SHORTEST_PASSWORD: usize = 16;

/// What is wrong with a Secret of credentials. The text holds nothing of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// A key is missing.
    #[error("the key {0} is missing or empty")]
    Missing(&'static str),
    /// A value is not plain text.
    #[error("the value of {0} is not plain text on one line")]
    NotPlain(&'static str),
    /// The password was replaced by something short.
    #[error("the password is shorter than {SHORTEST_PASSWORD} characters")]
    TooShort,
}

/// The Secret. It has no owner: on a deletion that keeps the data, the password is kept with it, since the
/// engine may have it stored.
pub fn credentials(names: &Names, profile: &Profile, password: &Password) -> Secret {
    binding(names, profile, ADMINISTRATOR, password.expose())
}

/// The Secret of a new Database, with the generation that its spec asks for: what it begins with has it.
pub fn of_generation(mut secret: Secret, generation: Option<i64>) -> Secret {
    if let Some(generation) = generation {
        let annotation = (PASSWORD_GENERATION_ANNOTATION.to_owned(), generation.to_string());
        secret.metadata.annotations.get_or_insert_default().extend([annotation]);
    }
    secret
}

/// The same from the credentials that were kept with a volume, which its data was made with: user and
/// password as they were, everything else as this Database's. It says where it was taken from. A rotation
/// that the former Database had begun goes on, since the data may have either password.
pub fn taken_over(names: &Names, profile: &Profile, kept: &Secret, record: &str) -> Secret {
    let mut secret = binding(
        names,
        profile,
        &value(kept, "username").unwrap_or_default(),
        &value(kept, "password").unwrap_or_default(),
    );
    secret.metadata.annotations = Some(BTreeMap::from([
        (TAKEN_FROM_ANNOTATION.to_owned(), kept.metadata.name.clone().unwrap_or_default()),
        (ADOPTED_RECORD_ANNOTATION.to_owned(), record.to_owned()),
    ]));
    if let Some(next) = next_password(kept) {
        secret.data.get_or_insert_default().insert(NEXT_PASSWORD.to_owned(), ByteString(next.into_bytes()));
    }
    secret
}

/// The text of a key; none where it is missing or empty.
pub fn value(secret: &Secret, key: &str) -> Option<String> {
    let value = secret.data.as_ref()?.get(key).filter(|value| !value.0.is_empty())?;
    Some(String::from_utf8_lossy(&value.0).into_owned())
}

/// The password that the engine is given next, if a rotation is under way.
pub fn next_password(secret: &Secret) -> Option<String> {
    let next = secret.data.as_ref()?.get(NEXT_PASSWORD)?;
    let is_ours = next.0.len() >= SHORTEST_PASSWORD && next.0.iter().all(u8::is_ascii_graphic);
    is_ours.then(|| String::from_utf8_lossy(&next.0).into_owned())
}

/// Which password the Secret has, counted from 1.
pub fn password_generation(secret: &Secret) -> i64 {
    generation(secret, PASSWORD_GENERATION_ANNOTATION).unwrap_or(1)
}

/// Which password the engine is given next. A retained Secret has no number for it: it counts as the one that
/// the new Database begins with.
pub fn next_generation(secret: &Secret) -> i64 {
    generation(secret, NEXT_PASSWORD_GENERATION_ANNOTATION).unwrap_or_else(|| password_generation(secret))
}

fn generation(secret: &Secret, annotation: &str) -> Option<i64> {
    secret.annotations().get(annotation)?.parse().ok()
}

/// The JSON merge patch that puts the next password beside the one in force, if the Secret is still as it was
/// read.
pub fn with_next(secret: &Secret, password: &Password, generation: i64) -> Value {
    json!({
        "metadata": {
            "uid": secret.metadata.uid,
            "resourceVersion": secret.metadata.resource_version,
            "annotations": {NEXT_PASSWORD_GENERATION_ANNOTATION: generation.to_string()},
        },
        "data": {NEXT_PASSWORD: BASE64.encode(password.expose().as_bytes())},
    })
}

/// The JSON merge patch that makes the next password the one in force, in everything that holds it, if the
/// Secret is still as it was read; none where there is no next one.
pub fn with_next_in_force(names: &Names, profile: &Profile, secret: &Secret) -> Option<Value> {
    let next = next_password(secret)?;
    let username = value(secret, "username").unwrap_or_default();
    Some(promoted(secret, &entries(names, profile, profile.binding.database, &username, &next)))
}

/// The same, with these entries.
pub fn promoted(secret: &Secret, wanted: &BTreeMap<String, ByteString>) -> Value {
    let encoded = |key: &str| wanted.get(key).map(|value| BASE64.encode(&value.0));
    json!({
        "metadata": {
            "uid": secret.metadata.uid,
            "resourceVersion": secret.metadata.resource_version,
            "annotations": {
                PASSWORD_GENERATION_ANNOTATION: next_generation(secret).to_string(),
                NEXT_PASSWORD_GENERATION_ANNOTATION: null,
            },
        },
        "data": {"password": encoded("password"), "uri": encoded("uri"), NEXT_PASSWORD: null},
    })
}

/// What a Secret of credentials has (servicebinding.io, "Well-known Secret Entries"): of a connection to this
/// database in the engine, where it has some.
pub fn entries(
    names: &Names,
    profile: &Profile,
    database: Option<&str>,
    username: &str,
    password: &str,
) -> BTreeMap<String, ByteString> {
    let host = host(names);
    let port = profile.primary_port_number().unwrap_or_default();
    let binding = &profile.binding;
    let path = database.map(|name| format!("/{name}")).unwrap_or_default();
    let uri = format!("{}://{}:{}@{host}:{port}{path}", binding.scheme, escaped(username), escaped(password));
    let mut entries = BTreeMap::from([
        ("type", binding.kind.to_owned()),
        ("provider", binding.provider.to_owned()),
        ("host", host),
        ("port", port.to_string()),
        ("username", username.to_owned()),
        ("password", password.to_owned()),
        ("uri", uri),
    ]);
    if let Some(database) = database {
        entries.insert("database", database.to_owned());
    }
    entries.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes()))).collect()
}

fn binding(names: &Names, profile: &Profile, username: &str, password: &str) -> Secret {
    Secret {
        metadata: unowned(names, &names.credentials_secret),
        type_: Some(secret_type(profile)),
        data: Some(entries(names, profile, profile.binding.database, username, password)),
        // Not immutable: a rotation changes it, and a kubelet reads one that is immutable only once.
        ..Secret::default()
    }
}

/// The type of a Secret of credentials, as the Service Binding specification has it.
pub fn secret_type(profile: &Profile) -> String {
    format!("servicebinding.io/{}", profile.binding.kind)
}

/// A text as it stands in a URI's user information (RFC 3986). What is generated needs no escape.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

/// Whether the engine can be started with this Secret: what it holds is never mended, since the engine may
/// have stored it.
pub fn check_credentials(secret: &Secret) -> Result<(), CredentialsError> {
    for key in ["username", "password"] {
        let value = secret.data.as_ref().and_then(|data| data.get(key)).filter(|value| !value.0.is_empty());
        let Some(value) = value else {
            return Err(CredentialsError::Missing(key));
        };
        if !value.0.iter().all(u8::is_ascii_graphic) {
            return Err(CredentialsError::NotPlain(key));
        }
        if key == "password" && value.0.len() < SHORTEST_PASSWORD {
            return Err(CredentialsError::TooShort);
        }
    }
    Ok(())
}

/// The copy that is kept with the disk after a deletion that retains the data.
pub fn retained(names: &Names, secret: &Secret) -> Secret {
    let mut metadata = unowned(names, &names.retained_secret);
    metadata.labels.get_or_insert_default().insert(RETAINED_LABEL.to_owned(), "true".to_owned());
    Secret { metadata, type_: secret.type_.clone(), data: secret.data.clone(), ..Secret::default() }
}
