//! The objects of derived names in a Database's namespace.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::child::{Child, child};
use crate::api::Database;
use crate::cluster::mirror::Mirror;
use crate::controller::pass::context::Context;

/// Looks at them.
pub(super) struct Children<'a> {
    /// Whether the Database derives any: an adopted one does not.
    pub derives: bool,
    /// The Database.
    pub database: &'a Database,
    /// What the pass is given.
    pub ctx: &'a Context,
}

impl Children<'_> {
    /// The object of this name, from its copy, as this process' last write left it, or newer.
    pub async fn copied<K>(&self, name: &str, copy: &Mirror<K>) -> Result<Child<K>, kube::Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync,
    {
        if !self.derives {
            return Ok(Child::Absent);
        }
        Ok(child(copy.current(&self.ctx.client, &self.namespace(), name).await?, self.database))
    }

    fn namespace(&self) -> String {
        self.database.namespace().unwrap_or_default()
    }
}
