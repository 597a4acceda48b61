//! Reads the objects of derived names in a Database's namespace.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::child::{Child, child};
use crate::api::Database;
use crate::cluster::mirror::Mirror;
use crate::controller::pass::context::Context;

/// Reads them.
pub(super) struct Children<'a> {
    /// Whether the Database derives any: an adopted one does not.
    pub derives: bool,
    /// The Database.
    pub database: &'a Database,
    /// What the pass is given.
    pub ctx: &'a Context,
}

impl Children<'_> {
    /// The object of this name, from the API server.
    pub async fn read<K>(&self, name: &str) -> Result<Child<K>, kube::Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        if !self.derives {
            return Ok(Child::Absent);
        }
        let api = Api::<K>::namespaced(self.ctx.client.clone(), &self.namespace());
        Ok(child(api.get_opt(name).await?, self.database))
    }

    /// The same as the copy shows it; what the copy does not show is read from the API server.
    pub async fn copied<K>(&self, name: &str, copy: &Mirror<K>) -> Result<Child<K>, kube::Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync,
    {
        let key = ObjectRef::new(name).within(&self.namespace());
        match copy.get(&key).filter(|_| self.derives) {
            Some(live) => Ok(child(Some(live), self.database)),
            None => self.read(name).await,
        }
    }

    fn namespace(&self) -> String {
        self.database.namespace().unwrap_or_default()
    }
}
