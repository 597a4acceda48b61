//! The sentences of the certificate of `spec.tls`. Pure.

use jiff::Timestamp;

use crate::api::keys::TLS_SECRET_TYPE;
use crate::controller::database::tls_wait::{TlsFault, TlsWait};

/// The condition CertificateLoaded is true. `missing_name`: a name that clients connect to, and that the
/// certificate does not have.
pub fn loaded(secret: &str, missing_name: Option<&str>) -> String {
    let loaded = format!("the engine shows the certificate of Secret {secret}");
    match missing_name {
        None => loaded,
        Some(name) => format!(
            "{loaded}, which does not name {name}: a client that checks the name refuses the connection; add \
             the name to the certificate"
        ),
    }
}

/// The event on another certificate.
pub fn renewed(secret: &str, not_after: Timestamp) -> String {
    format!("the engine shows the certificate of Secret {secret} that expires at {not_after}")
}

/// The engine does not run with TLS yet.
pub fn at_start(secret: &str) -> String {
    format!("the engine is not running with the certificate of Secret {secret} yet")
}

/// The engine was to load the certificate, and shows another one.
pub fn refused(secret: &str) -> String {
    format!(
        "the engine does not load the certificate of Secret {secret}, and goes on with the one before: its \
         log says why; put another certificate into the Secret"
    )
}

/// The certificate expires soon.
pub fn expiring(secret: &str, not_after: Timestamp) -> String {
    format!(
        "the certificate of Secret {secret} expires at {not_after}, and was not renewed: put a new one into the \
         Secret, which the engine loads by itself"
    )
}

/// The certificate has expired.
pub fn expired(secret: &str, not_after: Timestamp) -> String {
    format!(
        "the certificate of Secret {secret} expired at {not_after}: a client that checks it refuses the \
         connection; put a new one into the Secret, which the engine loads by itself"
    )
}

impl TlsWait {
    /// For the conditions.
    pub(in crate::controller::database) fn message(&self) -> String {
        match self {
            Self::Unusable(secret, fault) => fault.message(secret),
            Self::Loading(secret) => format!(
                "the engine loads the certificate of Secret {secret} once the kubelet of its machine has \
                 updated the files, which takes up to two minutes"
            ),
        }
    }
}

impl TlsFault {
    fn message(&self, secret: &str) -> String {
        match self {
            Self::Absent => format!(
                "Secret {secret} of spec.tls does not exist: create it with tls.crt and tls.key, or correct \
                 spec.tls.secretName"
            ),
            Self::Forbidden(answer) => {
                format!("Secret {secret} of spec.tls cannot be read: {answer}")
            }
            Self::Type(kind) => format!(
                "Secret {secret} of spec.tls has the type {kind}, and must have {TLS_SECRET_TYPE}: create it \
                 again, as by kubectl create secret tls"
            ),
            Self::Certificate(fault) => {
                format!("Secret {secret} of spec.tls cannot be used: {fault}; correct the Secret")
            }
            Self::NotBinding => format!(
                "Secret {secret} of spec.tls cannot be used: clients cannot bind a connection to a \
                 certificate with its signature, as of Ed25519; have it signed by RSA with SHA-256, or by \
                 ECDSA with P-256 or P-384"
            ),
        }
    }
}
