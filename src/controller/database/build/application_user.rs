//! Builds the DatabaseUser of the application.

use super::owned;
use crate::api::DatabaseUser;
use crate::api::database::ApplicationUser;
use crate::api::database_user::{DatabaseUserSpec, UserDeletionPolicy};
use crate::api::names::Names;
use crate::engine::postgresql::DATABASE;

/// The DatabaseUser of the application as it is created. Of the spec of one that is there only the role is
/// the Database's: its password is counted there, and its owner may add databases to it.
pub fn application_user(names: &Names, user: &ApplicationUser) -> DatabaseUser {
    let spec = DatabaseUserSpec {
        database_name: names.database.clone(),
        username: user.username.clone(),
        role: user.role,
        databases: vec![DATABASE.to_owned()],
        password_generation: 1,
        deletion_policy: UserDeletionPolicy::Delete,
    };
    DatabaseUser { metadata: owned(names, &names.application_user), spec, status: None }
}
