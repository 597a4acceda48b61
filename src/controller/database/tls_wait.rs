//! Why the certificate of `spec.tls` is not in force, as data. Pure.

use crate::api::Reason;
use crate::engine::certificate::CertificateFault;

/// Why the certificate is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum TlsWait {
    /// The Secret of this name cannot be used: why.
    Unusable(String, TlsFault),
    /// The engine was not seen to show the certificate of the Secret of this name.
    Loading(String),
}

/// Why a Secret cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum TlsFault {
    /// There is none of its name.
    Absent,
    /// The API server does not let the operator read it: its answer.
    Forbidden(String),
    /// It has this type, and not that of certificates.
    Type(String),
    /// Its files are no certificate with its key.
    Certificate(CertificateFault),
    /// No connection can be bound to its certificate.
    NotBinding,
}

impl TlsWait {
    /// For the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Unusable(..) => Reason::CertificateUnusable,
            Self::Loading(_) => Reason::CertificateLoading,
        }
    }

    /// Whether nothing changes until a person acts. A Secret that is not there yet may be about to be made.
    pub fn is_stalled(&self) -> bool {
        matches!(self, Self::Unusable(_, fault) if *fault != TlsFault::Absent)
    }
}
