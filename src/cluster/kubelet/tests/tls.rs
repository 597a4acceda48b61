//! Who is given the token: a kubelet with a certificate of the cluster's authority, for its address.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use kube::config::AuthInfo;
use parking_lot::Mutex;
use pretty_assertions::assert_eq;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;

struct Authority {
    der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let der = params.self_signed(&key).unwrap().der().to_vec();
        Self { der, issuer: Issuer::new(params, key) }
    }

    /// A server's configuration with a certificate for this address.
    fn server(&self, address: &str) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![address.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth();
        Arc::new(config.with_single_cert(vec![certificate], key).unwrap())
    }
}

/// A kubelet that answers each request with this, and what it was sent.
fn listen(config: Arc<ServerConfig>, answer: String) -> (CoreNode, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Arc::new(Mutex::new(String::new()));
    let log = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            serve(StreamOwned::new(connection, stream.unwrap()), &answer, &log);
        }
    });
    let core_node = serde_json::from_value(json!({"status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}))
    .unwrap();
    (core_node, heard)
}

/// A client that does not trust the certificate ends the connection: there is nothing to read then.
fn serve(mut stream: StreamOwned<ServerConnection, TcpStream>, answer: &str, heard: &Mutex<String>) {
    let mut buffer = [0; 4096];
    while let Ok(1..) = stream.read(&mut buffer).inspect(|read| {
        heard.lock().push_str(&String::from_utf8_lossy(&buffer[..*read]));
    }) {
        if heard.lock().ends_with("\r\n\r\n") {
            _ = stream.write_all(answer.as_bytes());
            return;
        }
    }
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

/// What the operator knows in a cluster: its token, and this authority.
fn config(authority: Option<&Authority>) -> Config {
    _ = aws_lc_rs::default_provider().install_default();
    let mut config = Config::new("https://api.example".parse().unwrap());
    config.root_cert = authority.map(|it| vec![it.der.clone()]);
    config.auth_info = serde_json::from_value::<AuthInfo>(json!({"token": "t0ken"})).unwrap();
    config
}

#[tokio::test]
async fn a_kubelet_of_this_cluster_is_asked_with_the_token() {
    let cluster = Authority::new();
    for status in ["200 OK", "403 Forbidden"] {
        let (core_node, heard) = listen(cluster.server("127.0.0.1"), answer(status, "{}"));
        let (got, body) = ask(config(Some(&cluster)), &core_node).await.unwrap();
        assert!(status.starts_with(got.as_str()), "{got}");
        assert_eq!(body, b"{}");
        let heard = heard.lock().to_ascii_lowercase();
        assert!(heard.starts_with("get /stats/summary http/1.1\r\n"), "{heard}");
        assert!(heard.contains("authorization: bearer t0ken\r\n"), "{heard}");
    }
}

#[tokio::test]
async fn no_endpoint_without_a_certificate_of_this_cluster_for_its_address_is_sent_anything() {
    let (cluster, other) = (Authority::new(), Authority::new());
    let lax = |mut config: Config| {
        config.accept_invalid_certs = true;
        config.tls_server_name = Some("kubernetes.default".to_owned());
        config
    };
    for (name, server, config) in [
        ("another authority", other.server("127.0.0.1"), config(Some(&cluster))),
        ("another address", cluster.server("127.0.0.2"), config(Some(&cluster))),
        ("an API server that is not verified", other.server("127.0.0.1"), lax(config(Some(&cluster)))),
        ("the API server's name", cluster.server("kubernetes.default"), lax(config(Some(&cluster)))),
        ("no authority", cluster.server("127.0.0.1"), config(None)),
    ] {
        let (core_node, heard) = listen(server, answer("200 OK", "{}"));
        let asked = ask(config, &core_node).await;
        assert!(asked.is_err(), "{name}: {asked:?}");
        assert_eq!(*heard.lock(), "", "{name}");
    }
}

#[tokio::test]
async fn a_kubelet_is_sent_nowhere_else_and_says_no_more_than_is_read() {
    let cluster = Authority::new();
    let (elsewhere, heard) = listen(cluster.server("127.0.0.1"), answer("200 OK", "{}"));
    let to =
        format!("HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", url(&elsewhere).unwrap());
    let (core_node, _) = listen(cluster.server("127.0.0.1"), to);
    let (status, _) = ask(config(Some(&cluster)), &core_node).await.unwrap();
    assert_eq!((status, heard.lock().as_str()), (StatusCode::FOUND, ""));

    let (core_node, _) = listen(cluster.server("127.0.0.1"), answer("200 OK", &" ".repeat(LARGEST + 1)));
    assert!(ask(config(Some(&cluster)), &core_node).await.is_err());
}
