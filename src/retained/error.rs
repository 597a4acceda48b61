//! Why there is no list, or why no retention record was written.

use crate::api::VolumeId;
use crate::cloud::CloudError;

/// Why there is no list, or why no retention record was written.
#[derive(Debug, thiserror::Error)]
pub enum RetainedError {
    /// No cluster is configured.
    #[error("failed to find a cluster: set KUBECONFIG, or run this inside a cluster")]
    Configuration(#[source] kube::config::InferConfigError),
    /// The client could not be created.
    #[error("failed to create a client of the API server at {address}")]
    Client {
        /// Where.
        address: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
    /// The API server refused.
    #[error(
        "the API server does not let you list PersistentVolumes, which have no namespace: request the \
            right to list persistentvolumes"
    )]
    Forbidden(#[source] kube::Error),
    /// The API server did not answer.
    #[error(
        "failed to list PersistentVolumes of the API server at {address}: check that it runs and that \
        KUBECONFIG names it"
    )]
    List {
        /// Where.
        address: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
    /// The API server, beside EC2.
    #[error("the API server refused or did not answer")]
    Kubernetes(#[from] kube::Error),
    /// EC2.
    #[error("EC2 refused or did not answer")]
    Ec2(#[from] CloudError),
    /// The volume has a record, belongs to a Volume, is in another namespace, or is none of this cluster's.
    #[error("EBS volume {0} is not among those that are listed; no record was written")]
    NotListed(VolumeId),
    /// No record can be written for it.
    #[error("{why}; no record was written")]
    Hindered {
        /// Why.
        why: String,
    },
    /// JSON.
    #[error("failed to write the list as JSON")]
    Json(#[from] serde_json::Error),
}
