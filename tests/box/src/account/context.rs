//! What the tasks of a site share.

use ec2sim::Simulator;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What the parts of a site share.
#[derive(Clone)]
pub struct Context {
    /// EC2.
    pub simulator: Simulator,
    /// A client of the API server.
    pub client: kube::Client,
    /// A client of EC2 over HTTP.
    pub cloud: aws_sdk_ec2::Client,
    /// Where its tasks run.
    pub tasks: TaskTracker,
    /// When they end.
    pub stop: CancellationToken,
}
