//! The objects of derived names in a Database's namespace.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::child::{Child, child};
use crate::api::names::Names;
use crate::api::{Database, DatabaseUser};
use crate::cluster::mirror::{Mirror, Reads};
use crate::controller::copies::Copies;
use crate::controller::pass::context::Context;

/// Looks at them.
pub(super) struct Children<'a> {
    /// Whether the Database derives any. What an adopted one has of these was there before, is used by its
    /// name alone, and is never ours.
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

    /// The DatabaseUser of the application, from its copy: it is created under a name that is taken once, and
    /// changed and deleted by its UID. One that a Database which is deleted waits for is read from the API
    /// server: the copy keeps what it had of a kind whose definition is deleted. One of another Database's
    /// engine is foreign, whoever owns it.
    pub async fn application_user(
        &self,
        names: &Names,
        copies: &Copies,
    ) -> Result<Child<DatabaseUser>, kube::Error> {
        let (name, copy) = (&names.application_user, &copies.users);
        let shown = Children { reads: Reads::Cached, ..*self }.copied(name, copy).await?;
        let is_awaited = self.database.metadata.deletion_timestamp.is_some() && shown.ours().is_some();
        let read = if is_awaited {
            child(copy.read(&self.api(), name, Reads::Live).await?, self.database)
        } else {
            shown
        };
        let is_its = |user: &DatabaseUser| user.spec.database_name == self.database.name_any();
        Ok(if read.ours().is_some_and(|user| !is_its(user)) { Child::Foreign } else { read })
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        let namespace = self.database.namespace().unwrap_or_default();
        Api::namespaced(self.ctx.client.clone(), &namespace)
    }
}
