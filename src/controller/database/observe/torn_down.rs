//! Reads what is being torn down around a Database that is being deleted.

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, CustomResourceExt, ResourceExt};

use super::stage::is_plain;
use crate::api::{Database, Node, Volume};
use crate::cluster::recent;
use crate::cluster::teardown::{are_ending, is_ending};
use crate::controller::pass::context::Context;

/// What is being torn down around the Database; read only while it is being deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TornDown {
    /// Its namespace: nothing can be created in it any more, and all in it goes.
    pub namespace: bool,
    /// Our resource definitions: every object of ours goes.
    pub definitions: bool,
}

impl TornDown {
    /// A teardown: there was no decision to delete this very database.
    pub fn any(self) -> bool {
        self.namespace || self.definitions
    }

    /// What either of two reads has shown: a later one takes nothing back that the rest was read under.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            namespace: self.namespace || other.namespace,
            definitions: self.definitions || other.definitions,
        }
    }
}

/// As it was read within the last minute, if nothing was torn down then: enough to end engine and machine. A
/// Database that is protected goes on unless something is torn down, and one that is to be released ends
/// otherwise then: for them it is read anew.
pub(super) async fn recently(database: &Database, ctx: &Context) -> Result<TornDown, kube::Error> {
    let namespace = database.namespace().unwrap_or_default();
    match ctx.standing.get(&key(&namespace)).filter(|()| is_plain(database)) {
        Some(()) => Ok(TornDown::default()),
        None => now(&namespace, ctx).await,
    }
}

/// As it is: what becomes of data is decided on this.
pub async fn now(namespace: &str, ctx: &Context) -> Result<TornDown, kube::Error> {
    let read = Api::<Namespace>::all(ctx.client.clone()).get_opt(namespace).await?;
    let definitions = [Database::crd_name(), Volume::crd_name(), Node::crd_name()];
    let torn_down = TornDown {
        namespace: is_ending(read.as_ref()),
        definitions: are_ending(&ctx.client, &definitions).await?,
    };
    ctx.standing.put(&key(namespace), (!torn_down.any()).then_some(()));
    Ok(torn_down)
}

fn key(namespace: &str) -> String {
    recent::key(Database::crd_name(), namespace)
}
