//! A PostgreSQL shows another certificate once its files have it, and is seen to refuse one.

use freehold::engine::certificate::{self, Certificate};
use freehold::engine::client::{Access, Engines as _, Loaded, PgWire, Tls};
use freehold_box::writer::local_postgresql::LocalPostgresql;
use pretty_assertions::assert_eq;

use super::on_each_major;
use super::tls::{SelfSigned, take_tls_only};

/// The rules by which a server takes TLS only.
const TLS_ONLY: &str = "hostssl all all 127.0.0.1/32 scram-sha-256\n";

fn read(certificate: &SelfSigned) -> Certificate {
    certificate::read(certificate.pem().as_bytes(), certificate.key.serialize_pem().as_bytes()).unwrap()
}

async fn load(access: &Access, certificate: &SelfSigned) -> Loaded {
    PgWire.load_certificate(access, &read(certificate)).await.unwrap()
}

/// The files have this certificate, and this one's key.
fn put(server: &LocalPostgresql, certificate: &SelfSigned, key: &SelfSigned) {
    server.offer_tls(&certificate.pem(), &key.key.serialize_pem(), TLS_ONLY).unwrap();
}

#[tokio::test]
async fn a_renewed_certificate_is_loaded_once_the_files_have_it_and_connections_stay() {
    let (first, second) = (SelfSigned::of("localhost"), SelfSigned::of("localhost"));
    on_each_major(async |server, access| {
        take_tls_only(&server, &access, &first).await;
        assert_eq!(load(&access, &first).await, Loaded::Shown);
        assert_eq!(load(&access, &second).await, Loaded::NotInFiles);
        put(&server, &second, &second);
        assert_eq!(load(&access, &first).await, Loaded::Shown, "it has loaded nothing yet");
        assert_eq!(load(&access, &second).await, Loaded::Shown);
        assert_eq!(load(&access, &first).await, Loaded::NotInFiles);
    })
    .await;
}

#[tokio::test]
async fn another_chain_of_the_same_certificate_is_another_one() {
    let (first, issuer) = (SelfSigned::of("localhost"), SelfSigned::of("an issuer"));
    on_each_major(async |server, access| {
        take_tls_only(&server, &access, &first).await;
        let (text, key) = (format!("{}{}", first.pem(), issuer.pem()), first.key.serialize_pem());
        let chain = certificate::read(text.as_bytes(), key.as_bytes()).unwrap();
        assert_eq!(PgWire.load_certificate(&access, &chain).await.unwrap(), Loaded::NotInFiles);
        server.offer_tls(&text, &key, TLS_ONLY).unwrap();
        assert_eq!(PgWire.load_certificate(&access, &chain).await.unwrap(), Loaded::Shown);
        assert_eq!(load(&access, &first).await, Loaded::NotInFiles);
    })
    .await;
}

#[tokio::test]
async fn a_certificate_without_its_key_is_seen_to_be_refused_and_the_one_before_goes_on() {
    let (first, second) = (SelfSigned::of("localhost"), SelfSigned::of("localhost"));
    on_each_major(async |server, access| {
        take_tls_only(&server, &access, &first).await;
        put(&server, &second, &first);
        assert_eq!(load(&access, &second).await, Loaded::Refused);
        assert_eq!(load(&access, &first).await, Loaded::Shown);
    })
    .await;
}

#[tokio::test]
async fn no_certificate_is_loaded_over_a_connection_without_tls() {
    on_each_major(async |_server, access| {
        assert_eq!(access.tls, Tls::IfOffered);
        let error = PgWire.load_certificate(&access, &read(&SelfSigned::of("localhost"))).await.unwrap_err();
        assert!(error.to_string().contains("does not offer TLS, which is required"), "{error}");
    })
    .await;
}
