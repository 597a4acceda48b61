//! Reads the pod that pulls the engine's next image.

use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use kube::runtime::reflector::ObjectRef;

use super::child::{Child, child};
use super::class;
use crate::api::names::Names;
use crate::api::{Database, NodeClass};
use crate::cluster::mirror::Reads;
use crate::controller::copies::Copies;
use crate::controller::database::pod::engine_container;
use crate::controller::pass::context::Context;

/// The pod, from its copy. That there is none is read from the API server only where one is to be there: a
/// database at rest costs no request for it.
pub(super) async fn observe(
    database: &Database,
    names: &Names,
    pod: Option<&Pod>,
    kind: Option<&NodeClass>,
    copies: &Copies,
    reads: Reads,
    ctx: &Context,
) -> Result<Child<Pod>, kube::Error> {
    let name = names.pull_pod();
    let before = pod.and_then(|pod| engine_container(pod, names.container.as_deref())?.image.as_ref());
    let profile = class::profile(database, kind);
    let differs = before.is_some_and(|before| profile.is_ok_and(|it| it.image != *before));
    let may_pull = differs && database.spec.running && database.spec.adopt.is_none();
    let found = if may_pull {
        let pods = Api::namespaced(ctx.client.clone(), &names.namespace);
        copies.pods.current(&pods, &name, reads).await?
    } else {
        copies.pods.get(&ObjectRef::new(&name).within(&names.namespace))
    };
    Ok(child(found, database))
}
