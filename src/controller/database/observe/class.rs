//! The NodeClass of a Database, and what its contract is judged by. Only reads.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;

use crate::api::{Database, NodeClass};
use crate::cluster;
use crate::controller::pass::context::Context;
use crate::engine::{self, EngineError, Profile};

/// The class that the Database names.
pub(super) async fn of(database: &Database, ctx: &Context) -> Result<Option<NodeClass>, kube::Error> {
    cluster::node_class(&ctx.node_classes, &ctx.client, &database.spec.node_class_name).await
}

/// The labels of the namespace, where the class admits namespaces by them.
pub(super) async fn namespace_labels(
    name: &str,
    class: Option<&NodeClass>,
    ctx: &Context,
) -> Result<BTreeMap<String, String>, kube::Error> {
    if class.is_none_or(|class| class.spec.namespace_selector.is_none()) {
        return Ok(BTreeMap::new());
    }
    let namespace = Api::<Namespace>::all(ctx.client.clone()).get_opt(name).await?;
    Ok(namespace.and_then(|namespace| namespace.metadata.labels).unwrap_or_default())
}

/// What the engine needs, with its image from where the NodeClass says.
pub(super) fn profile(database: &Database, class: Option<&NodeClass>) -> Result<Profile, EngineError> {
    let images = class.map(|class| &class.spec.images);
    engine::profile_from(&database.spec.engine, &database.spec.config, images)
}
