//! Builds the Secret of a DatabaseUser, and what its user in the engine is made from. Pure.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::api::keys::{DATABASE_NAME_LABEL, DATABASE_UID_LABEL, MANAGED_BY_FREEHOLD, MANAGED_BY_LABEL};
use crate::api::names::Names;
use crate::api::{Database, DatabaseUser};
use crate::controller::database::build;
use crate::controller::database::password::Password;
use crate::engine::Profile;
use crate::engine::users::{Mark, Rights};

/// The Secret with a new password.
pub fn secret(user: &DatabaseUser, database: &Database, profile: &Profile, password: &Password) -> Secret {
    let labels = BTreeMap::from([
        (MANAGED_BY_LABEL.to_owned(), MANAGED_BY_FREEHOLD.to_owned()),
        (DATABASE_NAME_LABEL.to_owned(), database.name_any()),
        // The chart's admission policy has the operator change no other Secret.
        (DATABASE_UID_LABEL.to_owned(), database.uid().unwrap_or_default()),
    ]);
    let owner = OwnerReference {
        api_version: DatabaseUser::api_version(&()).into_owned(),
        kind: DatabaseUser::kind(&()).into_owned(),
        name: user.name_any(),
        uid: user.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(user.secret_name()),
            namespace: user.namespace(),
            labels: Some(labels),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        type_: Some(build::secret_type(profile)),
        data: Some(entries(user, database, profile, password.expose())),
        ..Secret::default()
    };
    build::of_generation(secret, Some(user.spec.password_generation))
}

fn entries(
    user: &DatabaseUser,
    database: &Database,
    profile: &Profile,
    password: &str,
) -> BTreeMap<String, ByteString> {
    let first = user.databases().first().copied();
    build::entries(&Names::of(database), profile, first, &user.spec.username, password)
}

/// The JSON merge patch that makes everything in the Secret but the password as it is to be; `None` where it
/// is.
pub fn rewritten(
    user: &DatabaseUser,
    database: &Database,
    profile: &Profile,
    secret: &Secret,
) -> Option<Value> {
    let password = build::value(secret, "password")?;
    let wanted = entries(user, database, profile, &password);
    let is_same = |(key, value): (&String, &ByteString)| {
        secret.data.as_ref().and_then(|data| data.get(key)) == Some(value)
    };
    if wanted.iter().all(is_same) {
        return None;
    }
    let encoded: BTreeMap<&String, String> =
        wanted.iter().map(|(key, value)| (key, BASE64.encode(&value.0))).collect();
    Some(json!({
        "metadata": {"uid": secret.metadata.uid, "resourceVersion": secret.metadata.resource_version},
        "data": encoded,
    }))
}

/// The JSON merge patch that makes the next password the one in force; `None` where there is none.
pub fn with_next_in_force(
    user: &DatabaseUser,
    database: &Database,
    profile: &Profile,
    secret: &Secret,
) -> Option<Value> {
    let next = build::next_password(secret)?;
    // Of the database that the Secret names: another one follows once the user may be there.
    let first = build::value(secret, "database");
    let wanted = build::entries(&Names::of(database), profile, first.as_deref(), &user.spec.username, &next);
    Some(build::promoted(secret, &wanted))
}

/// What the user in the engine is made from: the rights of the spec in the databases that exist, and the
/// password that the engine is to have, which is the next one of the Secret if that has one.
pub fn mark(user: &DatabaseUser, secret: &Secret, missing: &[String]) -> Mark {
    let databases = existing(user, missing).map(str::to_owned).collect();
    Mark {
        uid: user.uid().unwrap_or_default(),
        rights: Rights { role: user.spec.role, databases },
        password: password(secret, next_generation(secret)),
        change: None,
    }
}

/// The databases of the spec that exist, in their order.
pub fn existing<'a>(user: &'a DatabaseUser, missing: &'a [String]) -> impl Iterator<Item = &'a str> {
    user.databases().into_iter().filter(|name| !missing.iter().any(|it| it == name))
}

/// Which password the engine is to have: the next one, or the one in force.
fn next_generation(secret: &Secret) -> i64 {
    let in_force = build::password_generation(secret);
    match build::next_password(secret) {
        Some(_) => build::next_generation(secret).max(in_force.saturating_add(1)),
        None => in_force,
    }
}

/// One that was deleted and created anew has another password.
fn password(secret: &Secret, generation: i64) -> String {
    format!("{}/{generation}", secret.uid().unwrap_or_default())
}

/// Whether the engine was given the password that is in force.
pub fn has_password_in_force(mark: &Mark, secret: &Secret) -> bool {
    mark.password == password(secret, build::password_generation(secret))
}

/// The JSON merge patch that removes the owner of the Secret, so that it stays when its DatabaseUser is gone.
pub fn without_owner(secret: &Secret) -> Value {
    let metadata = &secret.metadata;
    json!({"metadata": {
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
        "ownerReferences": null,
    }})
}
