//! Reads how much of the file system of a database's data is free.

use kube::runtime::reflector::ObjectRef;

use crate::cluster::kubelet::DiskUsage;
use crate::controller::pass::context::Context;

/// Where the data is mounted.
pub(super) struct Mounted {
    /// The Kubernetes node.
    pub(super) core_node: String,
    /// The claim.
    pub(super) claim: String,
}

impl Mounted {
    /// The file system, as the kubelet of its machine says; nothing where it gives no answer.
    pub(super) async fn disk(&self, namespace: &str, ctx: &Context) -> Option<DiskUsage> {
        let core_node = ctx.core_nodes.get(&ObjectRef::new(&self.core_node))?;
        let answer = ctx.kubelets.disk_usage(&core_node, namespace, &self.claim).await;
        answer.inspect_err(|failure| tracing::debug!(why = failure.why, "how much is free is not known")).ok()
    }
}
