//! Which databases are meant: the lines of a list, or what a selector selects.

use std::path::Path;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::{Api, ListParams};
use kube::{Client, Resource as _, ResourceExt};

use super::list;
use super::options::Many;
use crate::adopt::error::AdoptError;
use crate::adopt::wanted::Wanted;
use crate::api::Database;
use crate::cluster::{controller_of, if_served};
use crate::command::target::Target;

/// Each database that the options name, in order.
pub async fn select(client: &Client, many: &Many, common: &Wanted) -> Result<Vec<Wanted>, AdoptError> {
    let all = match &many.from {
        Some(path) => {
            let text = read(path).await.map_err(|source| AdoptError::List { path: path.clone(), source })?;
            list::parse(&text, common)?
        }
        None => labelled(client, many, common).await?,
    };
    if all.is_empty() { Err(AdoptError::NoneNamed) } else { Ok(all) }
}

async fn read(path: &Path) -> std::io::Result<String> {
    if path == Path::new("-") {
        return std::io::read_to_string(std::io::stdin());
    }
    tokio::fs::read_to_string(path).await
}

/// What the selector selects, but for what Freehold made itself.
async fn labelled(client: &Client, many: &Many, common: &Wanted) -> Result<Vec<Wanted>, AdoptError> {
    let params = ListParams::default().labels(many.selector.as_deref().unwrap_or_default());
    let all = ListParams::default();
    let (sets, databases) = match &many.namespace {
        Some(namespace) => (
            Api::<StatefulSet>::namespaced(client.clone(), namespace).list(&params).await?,
            Api::<Database>::namespaced(client.clone(), namespace).list(&all).await,
        ),
        None => (
            Api::<StatefulSet>::all(client.clone()).list(&params).await?,
            Api::<Database>::all(client.clone()).list(&all).await,
        ),
    };
    let databases = if_served(databases.map(|list| list.items))?;
    let mut wanted = Vec::new();
    for set in sets {
        let owner = controller_of(&set)
            .filter(|owner| owner.kind == "Database" && owner.api_version == Database::api_version(&()));
        let namespace = set.namespace().unwrap_or_default();
        let database = owner.map(|owner| owner.name.clone());
        let is_made_by_freehold = owner.is_some_and(|owner| {
            databases.iter().any(|it| it.metadata.uid.as_ref() == Some(&owner.uid) && it.spec.adopt.is_none())
        });
        if !is_made_by_freehold {
            let stateful_set = Target { namespace, name: set.name_any() };
            wanted.push(Wanted { stateful_set, database, ..common.clone() });
        }
    }
    Ok(wanted)
}
