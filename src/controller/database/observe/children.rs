//! The objects of derived names in a Database's namespace.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::child::{Child, child};
use crate::api::Database;
use crate::cluster::mirror::{Mirror, Reads};
use crate::controller::pass::context::Context;

/// Looks at them.
pub(super) struct Children<'a> {
    /// Whether the Database derives any: an adopted one does not.
    pub derives: bool,
    /// The Database.
    pub database: &'a Database,
    /// What is believed of the copies.
    pub reads: Reads,
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
        Ok(child(copy.current(&self.api(), name, self.reads).await?, self.database))
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        let namespace = self.database.namespace().unwrap_or_default();
        Api::namespaced(self.ctx.client.clone(), &namespace)
    }
}
