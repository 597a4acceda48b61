//! Checks a database by the functions that the operator adopts by, so that what is begun is not refused then.
//! Pure.

use kube::ResourceExt;

use crate::adopt::found::Found;
use crate::adopt::render;
use crate::adopt::wanted::Wanted;
use crate::command::finding::Finding;
use crate::controller::database::observe::legacy::Legacy;
use crate::controller::database::plan::{adopt_running, permission};

/// What the operator would refuse.
pub(super) fn refusal(found: &Found, wanted: &Wanted) -> Option<Finding> {
    let database = render::database(found, wanted).filter(|_| !found.is_adopted(wanted.database()))?;
    let namespace = &wanted.stateful_set.namespace;
    let class = found.node_class.as_ref().map(|class| &class.spec);
    let not_permitted = || permission::of_spec(&database.spec, class, namespace, &found.namespace_labels);
    let message =
        adopt_running::refusal(&database, &legacy(found, &database.spec.adopt.as_ref()?.service_name))
            .map(|refusal| refusal.message())
            .or_else(|| not_permitted().map(|refusal| refusal.message()))?;
    Some(Finding::blocker(found.subject(), message))
}

/// The same as the operator would read it, but for the Secret, which the operator alone may read.
fn legacy(found: &Found, service: &str) -> Legacy {
    Legacy {
        stateful_set: Some(found.stateful_set.clone()),
        // Only what is recorded needs it.
        raw: None,
        pod: found.pod.clone(),
        core_node: found.core_node.clone(),
        claim: found.data().and_then(|data| data.claim.clone()),
        persistent_volume: found.data().and_then(|data| data.persistent_volume.clone()),
        service: found.services.iter().find(|it| it.name_any() == *service).cloned(),
        credentials: None,
    }
}
