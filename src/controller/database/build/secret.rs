//! Builds and checks the Secret of the administrator's credentials, laid out as the Service Binding
//! specification says.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::{host, unowned};
use crate::api::keys::{ADOPTED_RECORD_ANNOTATION, RETAINED_LABEL, TAKEN_FROM_ANNOTATION};
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

/// The same from the credentials that were kept with a volume, which its data was made with: user and
/// password as they were, everything else as this Database's. It says where it was taken from.
pub fn taken_over(names: &Names, profile: &Profile, kept: &Secret, record: &str) -> Secret {
    let value = |key: &str| {
        kept.data
            .as_ref()
            .and_then(|data| data.get(key))
            .map(|value| String::from_utf8_lossy(&value.0).into_owned())
    };
    let mut secret = binding(
        names,
        profile,
        &value("username").unwrap_or_default(),
        &value("password").unwrap_or_default(),
    );
    secret.metadata.annotations = Some(BTreeMap::from([
        (TAKEN_FROM_ANNOTATION.to_owned(), kept.metadata.name.clone().unwrap_or_default()),
        (ADOPTED_RECORD_ANNOTATION.to_owned(), record.to_owned()),
    ]));
    secret
}

fn binding(names: &Names, profile: &Profile, username: &str, password: &str) -> Secret {
    let host = host(names);
    let port = profile.primary_port_number().unwrap_or_default();
    let binding = &profile.binding;
    let path = binding.database.map(|name| format!("/{name}")).unwrap_or_default();
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
    if let Some(database) = binding.database {
        entries.insert("database", database.to_owned());
    }
    let data =
        entries.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes()))).collect();
    Secret {
        metadata: unowned(names, &names.credentials_secret),
        type_: Some(format!("servicebinding.io/{}", binding.kind)),
        data: Some(data),
        // Another password would be the engine's only if the engine were told, too.
        immutable: Some(true),
        ..Secret::default()
    }
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
