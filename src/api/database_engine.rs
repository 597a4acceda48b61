//! The engine of a `Database`: which one, its version, or an image of one's own.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumIter, IntoStaticStr};

/// The engine of a database. `questdb` and `postgresql` need `version`; `custom` needs `custom`.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.type != 'questdb' || has(self.version)")
    .message("spec.engine.version is required for questdb, for example 9.3.4"))]
#[x_kube(validation = Rule::new("self.type != 'questdb' || !has(self.custom)")
    .message("spec.engine.custom is only for the type custom: remove it, or set spec.engine.type to custom"))]
#[x_kube(validation = Rule::new("self.type != 'postgresql' || has(self.version)")
    .message("spec.engine.version is required for postgresql, for example 17.6"))]
#[x_kube(validation = Rule::new("self.type != 'postgresql' || !has(self.version) || \
    self.version.matches('^1[4-8][.][0-9]+$')")
    .message("spec.engine.version of postgresql must be a whole release of the major versions 14 to 18, for \
        example 17.6"))]
#[x_kube(validation = Rule::new("self.type != 'postgresql' || !has(self.custom)")
    .message("spec.engine.custom is only for the type custom: remove it, or set spec.engine.type to custom"))]
#[x_kube(validation = Rule::new("self.type != 'custom' || has(self.custom)")
    .message("spec.engine.custom (image, port, dataPath) is required for the type custom"))]
#[x_kube(validation = Rule::new("self.type != 'custom' || !has(self.version)")
    .message("spec.engine.version is not for the type custom: put the version into spec.engine.custom.image"))]
pub struct Engine {
    /// Which engine: questdb, postgresql, or custom for an image of your own. It cannot change.
    #[serde(rename = "type")]
    pub kind: EngineType,

    /// The engine's release, for example 9.3.4 (QuestDB) or 17.6 (PostgreSQL, in YAML with quotes: "17.6"):
    /// always a whole version, never `latest`. A change restarts the database. The major version of
    /// PostgreSQL cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9]+[.][0-9]+([.][0-9]+)?$')")
        .message("spec.engine.version must be a whole release such as 9.3.4 or 17.6"))]
    pub version: Option<String>,

    /// An image of your own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomEngine>,
}

/// The engines that Freehold knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum EngineType {
    /// QuestDB.
    Questdb,
    /// PostgreSQL.
    Postgresql,
    /// An image of your own.
    Custom,
}

impl EngineType {
    /// The name as it is written in a Database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// An image that Freehold has no profile for.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomEngine {
    /// The container image, with a tag or digest.
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new("self.matches('^[^ ]+(:[^ :/]+|@sha256:[0-9a-f]{64})$') && \
        !self.endsWith(':latest')")
        .message("spec.engine.custom.image needs a tag or a digest, and the tag must not be latest: a \
            restart must not change the version"))]
    pub image: String,

    /// The TCP port that the engine listens on. It must not be below 1024: the container runs without
    /// privileges.
    #[schemars(range(min = 1024, max = 65535))]
    pub port: i32,

    /// Where the volume is mounted in the container: an absolute path, the one that the image has its data
    /// in. It cannot change with the same image once the database was ready.
    #[schemars(length(min = 2, max = 256))]
    #[x_kube(validation = Rule::new("self.matches('^/[^:]+$') && !self.contains('..')")
        .message("spec.engine.custom.dataPath must be an absolute path without '..'"))]
    pub data_path: String,

    /// The user id (and group id) that the container runs as; never root. It cannot change once the database
    /// was ready: the files on the volume belong to it. Default: 10001.
    #[serde(default = "default_user_id")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub user_id: i64,

    /// How the image takes its generated credentials; without it the Secret is created but not passed to the
    /// container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<CustomCredentials>,
}

/// The environment variables through which an image takes its credentials.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.passwordVariable) != has(self.passwordFileVariable)")
    .message("spec.engine.custom.credentials needs exactly one of passwordVariable and passwordFileVariable"))]
pub struct CustomCredentials {
    /// The variable that takes the user name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub username_variable: Option<String>,

    /// The variable that takes the password itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub password_variable: Option<String>,

    /// The variable that takes the path of a file that holds the password: safer, where the image knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub password_file_variable: Option<String>,
}

fn default_user_id() -> i64 {
    10001
}
