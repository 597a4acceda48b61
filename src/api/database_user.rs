//! `DatabaseUser`: who may do what in the engine of a `Database`, beside its administrator.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

/// What the name of a user is like.
pub(super) const USERNAME: &str = "self.matches('^[a-z][a-z0-9_-]*$')";

/// What is said of another one.
pub(super) const USERNAME_SHAPE: &str = "the username must begin with a lower-case letter, and have only \
    lower-case letters, digits, _ and -";

/// Which names are not a user's.
pub(super) const RESERVED_USERNAMES: &str = "!self.startsWith('pg_') && !self.startsWith('freehold_') && \
    !(self in ['admin', 'postgres', 'public', 'none', 'freehold'])";

/// What is said of one of them.
pub(super) const RESERVED_USERNAME: &str = "the username is reserved: choose one that is not admin, postgres, \
    public, none or freehold, and does not begin with pg_ or freehold_";

/// A user of a Database's engine.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "freehold.dev",
    version = "v1alpha1",
    kind = "DatabaseUser",
    plural = "databaseusers",
    singular = "databaseuser",
    shortname = "fuser",
    category = "freehold",
    namespaced,
    status = "DatabaseUserStatus",
    derive = "PartialEq",
    doc = "A user of the engine of a Database of the same namespace, with a password in a Secret: an application \
        connects as one, and not as the administrator. PostgreSQL only.",
    printcolumn(
        name = "Ready", type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the user can connect, with the rights of the spec."
    ),
    printcolumn(
        name = "Reason", type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why it cannot."
    ),
    printcolumn(
        name = "Database", type_ = "string",
        json_path = ".spec.databaseName",
        description = "The Database."
    ),
    printcolumn(
        name = "Role", type_ = "string",
        json_path = ".spec.role",
        description = "What the user may do."
    ),
    printcolumn(
        name = "Secret", type_ = "string",
        json_path = ".status.binding.name",
        description = "The Secret with the password."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 58")
        .message("metadata.name must have at most 58 characters: the Secret is named after it")
)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseUserSpec {
    /// The Database, in the namespace of this DatabaseUser. It need not exist yet. It cannot change.
    #[schemars(length(min = 1, max = 40))]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("spec.databaseName cannot change: create another DatabaseUser"))]
    pub database_name: String,

    /// The name that the user connects with. It cannot change.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("spec.username cannot change: create another DatabaseUser"))]
    #[x_kube(validation = Rule::new(USERNAME).message(USERNAME_SHAPE))]
    #[x_kube(validation = Rule::new(RESERVED_USERNAMES).message(RESERVED_USERNAME))]
    pub username: String,

    /// What the user may do in each of `databases`: `Read` reads every table, `Write` reads and changes the
    /// rows of every table, and `Owner` may also create schemas, tables and trusted extensions, and change
    /// and drop what owners have created.
    pub role: UserRole,

    /// The databases inside the engine (`CREATE DATABASE`), which must exist. The Secret names the first one.
    /// Default: `app`, which Freehold creates.
    #[serde(default = "default_databases")]
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 40)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    #[x_kube(validation = Rule::new("!self.exists(name, name in ['postgres', 'template0', 'template1'])")
        .message("spec.databases: postgres, template0 and template1 are the engine's own: name another one"))]
    #[x_kube(validation = Rule::new("self.all(name, name.matches('^[a-z_][a-z0-9_-]*$'))")
        .message("spec.databases: each must begin with a lower-case letter or _, and have only lower-case \
            letters, digits, _ and -"))]
    pub databases: Vec<String>,

    /// Which password of the user is to be in force, counted from 1: a higher number than the one in force
    /// (status.passwordGeneration) has Freehold generate another password, and give it to the engine.
    /// Connections stay. Default: 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1, max = 1_000_000))]
    #[x_kube(validation = Rule::new("self >= oldSelf")
        .message("spec.passwordGeneration is only raised: a password that was in force before is not known any \
            more"))]
    pub password_generation: i64,

    /// What becomes of the user in the engine when this DatabaseUser is deleted: `Delete` drops it, and what
    /// it owns stays as another role's; `Retain` leaves it as it is, with its Secret. No table is touched.
    /// Default: Delete.
    #[serde(default)]
    pub deletion_policy: UserDeletionPolicy,
}

fn default_databases() -> Vec<String> {
    vec!["app".to_owned()]
}

fn first() -> i64 {
    1
}

/// What a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr)]
#[derive(Serialize, Deserialize, JsonSchema)]
pub enum UserRole {
    /// Read every table.
    Read,
    /// Read every table, and insert, update and delete rows.
    Write,
    /// The same, and create, change and drop what is in the database.
    Owner,
}

/// What becomes of a user in the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UserDeletionPolicy {
    /// It is dropped.
    #[default]
    Delete,
    /// It stays.
    Retain,
}

impl DatabaseUser {
    /// What its status says; nothing before its controller's first pass.
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    /// The Secret with its password.
    pub fn secret_name(&self) -> String {
        Self::secret_of(self.metadata.name.as_deref().unwrap_or_default())
    }

    /// The Secret with the password of the DatabaseUser of this name.
    pub fn secret_of(name: &str) -> String {
        format!("{name}-user")
    }

    /// The databases without repetition, in their order.
    pub fn databases(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        self.spec.databases.iter().map(String::as_str).filter(|name| seen.insert(*name)).collect()
    }
}

/// What is known of a user.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseUserStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Ready and Stalled.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// The Secret with the user's credentials, as the Service Binding specification has it ("Provisioned
    /// Service"): its keys are type, provider, host, port, database, username, password and uri.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,

    /// What the user may do in the engine, as it was when the user was Ready last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<UserRole>,

    /// Which password is in the Secret, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_generation: Option<i64>,
}

/// Where credentials are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Binding {
    /// The name of the Secret, in the same namespace.
    pub name: String,
}
