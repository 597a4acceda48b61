//! The certificate that a `Database` shows to its clients, and what is known of it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// With which certificate the engine encrypts its connections.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// The Secret with the certificate and its key: of the type kubernetes.io/tls, in the namespace of the
    /// Database, as cert-manager and `kubectl create secret tls` make it. PostgreSQL takes a renewed
    /// certificate while it serves; another Secret restarts the database. A custom engine finds the two files
    /// in /run/freehold/tls (tls.crt, tls.key), and loads a renewed one by itself.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')")
        .message("spec.tls.secretName must be the name of a Secret: a-z, 0-9, '-' and '.', with a letter or \
            a digit first and last"))]
    pub secret_name: String,

    /// True lets no client in without TLS. A change restarts the database. Default: false.
    #[serde(default)]
    pub required: bool,
}

/// Which certificate the engine was seen to show.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TlsStatus {
    /// The UID of the pod whose engine was asked.
    #[serde(rename = "podUID")]
    pub pod_uid: String,

    /// The SHA-256 of the certificate that it shows and of those of its issuers, one after the other in DER,
    /// in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,

    /// When that certificate began to be good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,

    /// When that certificate expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,

    /// The name in status.endpoint, where that certificate does not have it: a client that checks the name
    /// refuses the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_name: Option<String>,

    /// The SHA-256 of a certificate that this engine was to load, and does not show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}
