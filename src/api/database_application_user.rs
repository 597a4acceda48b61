//! The user that an application connects to the engine of a `Database` as, in its spec.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::database_user::{RESERVED_USERNAME, RESERVED_USERNAMES, USERNAME, USERNAME_SHAPE, UserRole};

/// The user of an application, which is no superuser.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationUser {
    /// The name that the application connects with. It cannot change once status.binding names its Secret.
    /// Default: `app`.
    #[serde(default = "default_username")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new(USERNAME).message(USERNAME_SHAPE))]
    #[x_kube(validation = Rule::new(RESERVED_USERNAMES).message(RESERVED_USERNAME))]
    pub username: String,

    /// What it may do, as the role of a DatabaseUser. Default: Owner.
    #[serde(default = "default_role")]
    pub role: UserRole,
}

fn default_username() -> String {
    "app".to_owned()
}

fn default_role() -> UserRole {
    UserRole::Owner
}
