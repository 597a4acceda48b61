//! Reads the Secret with the certificate of `spec.tls`, which no watch shows.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;

use super::child::{Child, Credentials, secret};
use crate::api::Database;
use crate::api::keys::{TLS_CERT, TLS_KEY, TLS_SECRET_TYPE};
use crate::api::names::Names;
use crate::cluster::mirror::Reads;
use crate::cluster::recent;
use crate::controller::database::tls_wait::TlsFault;
use crate::controller::pass::context::Context;
use crate::engine::certificate::{self, Certificate};

/// What the Secret of `spec.tls` holds, without the key.
#[derive(Clone, Debug, PartialEq)]
pub enum TlsSecret {
    /// The spec names none, or it was not read in this pass.
    NotRead,
    /// A certificate that fits its key.
    Usable(Box<Certificate>),
    /// Nothing that an engine can be started with.
    Unusable(TlsFault),
}

/// Reads the Secret of this Database, if it is to be read.
pub(super) async fn observe(
    database: &Database,
    names: &Names,
    is_read: bool,
    reads: Reads,
    ctx: &Context,
) -> Result<TlsSecret, kube::Error> {
    let Some(tls) = database.spec.tls.as_ref().filter(|_| is_read) else { return Ok(TlsSecret::NotRead) };
    let (namespace, name) = (&names.namespace, &tls.secret_name);
    let key = recent::key(namespace, name);
    if let Some(Some(secret)) = ctx.secrets.get(&key).filter(|_| reads == Reads::Cached) {
        return Ok(of(Some(&secret)));
    }
    // It is its user's, whoever that is.
    let secret = match secret(&Api::namespaced(ctx.client.clone(), namespace), name, |_| true).await? {
        Credentials::Unreadable(answer) => return Ok(TlsSecret::Unusable(TlsFault::Forbidden(answer))),
        Credentials::Read(Child::Ours(held)) => Some(held.0),
        Credentials::Read(Child::Absent | Child::Foreign) => None,
    };
    let held = of(secret.as_ref());
    // One that a person mends is read again at once.
    let is_usable = matches!(held, TlsSecret::Usable(_));
    ctx.secrets.put(&key, secret.filter(|_| is_usable).map(Some));
    Ok(held)
}

fn of(secret: Option<&Secret>) -> TlsSecret {
    let Some(secret) = secret else { return TlsSecret::Unusable(TlsFault::Absent) };
    let kind = secret.type_.as_deref().unwrap_or("Opaque");
    if kind != TLS_SECRET_TYPE {
        return TlsSecret::Unusable(TlsFault::Type(kind.to_owned()));
    }
    let data = secret.data.as_ref();
    let file = |name: &str| data.and_then(|data| data.get(name)).map_or(&[][..], |ByteString(bytes)| bytes);
    match certificate::read(file(TLS_CERT), file(TLS_KEY)) {
        Ok(certificate) => TlsSecret::Usable(Box::new(certificate)),
        Err(fault) => TlsSecret::Unusable(TlsFault::Certificate(fault)),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use rcgen::{CertificateParams, KeyPair};
    use serde_json::{Value, json};

    use super::*;
    use crate::engine::certificate::CertificateFault;

    fn held(kind: &str, files: &Value) -> TlsSecret {
        of(Some(&serde_json::from_value(json!({"type": kind, "stringData": {}, "data": files})).unwrap()))
    }

    #[test]
    fn only_a_pair_in_a_secret_of_the_type_of_certificates_is_used() {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["orders.shop.svc".to_owned()]).unwrap();
        let certificate = certificate.self_signed(&key).unwrap().pem();
        let encoded = |text: &str| data_encoding::BASE64.encode(text.as_bytes());
        let pair = json!({TLS_CERT: encoded(&certificate), TLS_KEY: encoded(&key.serialize_pem())});
        assert!(matches!(held(TLS_SECRET_TYPE, &pair), TlsSecret::Usable(_)));
        let unusable = |fault| TlsSecret::Unusable(fault);
        assert_eq!(held("Opaque", &pair), unusable(TlsFault::Type("Opaque".to_owned())));
        let faulty = unusable(TlsFault::Certificate(CertificateFault::Certificate));
        assert_eq!(held(TLS_SECRET_TYPE, &json!({})), faulty);
        assert_eq!(of(None), unusable(TlsFault::Absent));
    }
}
