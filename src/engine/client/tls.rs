//! TLS of the connections to engines, in which no authority vouches for the certificate.
//!
//! The operator dials a pod's address. Who answers there proves itself by SCRAM: it must know the verifier of
//! this password. With TLS the proof is bound to the certificate that this connection shows
//! (SCRAM-SHA-256-PLUS with `tls-server-end-point`, RFC 5929): no program in between can pass it on. So a
//! certificate may be a person's own, expired, or of another name. What is checked is the signature of the
//! handshake: without it, anyone could show the engine's certificate. Only where TLS is required, that proof
//! is, too: else who answers may also ask for the password in clear text.

use std::sync::{Arc, LazyLock, OnceLock};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres_rustls::MakeRustlsConnect;
use x509_cert::Certificate;
use x509_cert::der::{Decode as _, Encode as _};

use super::access::{Access, Tls};

/// What the library says of an engine without TLS, and of one that bound its proof to no certificate.
const NOT_OFFERED: &str = "server does not support TLS";
const NOT_BOUND: &str = "server did not use channel binding";

/// The function of PostgreSQL that compares a connection with `pg_hba.conf` (src/backend/libpq/auth.c).
const OF_RULES: &str = "ClientAuthentication";

/// How the library calls every failure on the way to an encrypted connection.
const HANDSHAKE: &str = "error performing TLS handshake";

/// Has a connection use TLS as this access says.
pub(super) fn configure(config: &mut Config, access: &Access) {
    // The library begins no handshake without a name. An address is none that is sent to the engine.
    config.host(access.address.to_string());
    match access.tls {
        // It binds to the certificate where the engine can.
        Tls::IfOffered => config.ssl_mode(SslMode::Prefer),
        Tls::Required => config.ssl_mode(SslMode::Require).channel_binding(ChannelBinding::Require),
    };
}

/// Whether the rules of the engine refuse this connection over TLS, or demand a certificate of the client.
/// The operator then connects without TLS, unless that is required, as PostgreSQL's own clients do
/// (`sslmode=prefer`); not after a handshake that failed, since another program may be in between.
pub(super) fn is_refused(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|refusal| {
        *refusal.code() == SqlState::INVALID_AUTHORIZATION_SPECIFICATION
            && refusal.routine() == Some(OF_RULES)
    })
}

/// What makes the handshakes.
pub(super) fn connector() -> Result<MakeRustlsConnect, Error> {
    static CONNECTOR: LazyLock<Result<MakeRustlsConnect, Error>> = LazyLock::new(|| made(None));
    CONNECTOR.clone()
}

/// The certificate that an engine shows, and those of its issuers.
pub(super) type Shown = Arc<OnceLock<Vec<CertificateDer<'static>>>>;

/// What makes one handshake, and says which certificate was shown.
pub(super) fn showing() -> Result<(MakeRustlsConnect, Shown), Error> {
    let shown = Shown::default();
    Ok((made(Some(Arc::clone(&shown)))?, shown))
}

fn made(shown: Option<Shown>) -> Result<MakeRustlsConnect, Error> {
    let provider = aws_lc_rs::default_provider();
    let verifier = AnyCertificate { algorithms: provider.signature_verification_algorithms, shown };
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    // A session is known by its address, which another pod may have by then.
    config.resumption = Resumption::disabled();
    Ok(MakeRustlsConnect::new(config))
}

/// What people read of an error, if it is one of TLS: the library's kind, and its cause.
pub(super) fn explained(kind: &str, cause: &str) -> Option<String> {
    match (kind, cause) {
        (_, NOT_OFFERED) => Some("the engine does not offer TLS, which is required".to_owned()),
        (_, NOT_BOUND) => Some(
            "the engine did not use channel binding (SCRAM-SHA-256-PLUS), which is required: another program \
             may answer in its place, or its certificate or the stored password does not allow channel binding"
                .to_owned(),
        ),
        (HANDSHAKE, _) => Some(format!("the engine offers TLS, and the handshake failed: {cause}")),
        _ => None,
    }
}

/// Takes every certificate whose key signs the handshake.
#[derive(Debug)]
struct AnyCertificate {
    algorithms: WebPkiSupportedAlgorithms,
    shown: Option<Shown>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(shown) = &self.shown {
            let all = [certificate].into_iter().chain(intermediates);
            shown.get_or_init(|| all.map(|it| it.clone().into_owned()).collect());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    /// By the certificate's key alone where it can be read: the commands in PostgreSQL's documentation
    /// ("Creating Certificates") make certificates of X.509's version 1 with OpenSSL 3.0, which the other
    /// check does not read.
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match public_key(certificate) {
            Some(key) => verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms),
            None => verify_tls13_signature(message, certificate, signed, &self.algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn public_key(certificate: &CertificateDer<'_>) -> Option<SubjectPublicKeyInfoDer<'static>> {
    let certificate = Certificate::from_der(certificate).ok()?;
    certificate.tbs_certificate.subject_public_key_info.to_der().ok().map(Into::into)
}
