//! The operator's connections to a PostgreSQL that takes TLS only, that offers none, and that is not the one
//! which ends the TLS.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use freehold::engine::client::{Access, ClientError, Engines as _, PgWire, Tls};
use freehold::engine::users::Login;
use freehold_box::writer::local_postgresql::{LIMIT, LocalPostgresql};
use pretty_assertions::assert_eq;
use rcgen::{CertificateParams, KeyPair, SigningKey as _, date_time_ymd};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_util::task::AbortOnDropHandle;
use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::der::asn1::BitString;
use x509_cert::der::{Decode as _, Encode as _};

use super::{at, change, connected, on_each_major, sql};

const PAUSE: Duration = Duration::from_millis(50);

/// A certificate that its key has signed, and the key.
pub struct SelfSigned {
    certificate: CertificateDer<'static>,
    pub key: KeyPair,
}

impl SelfSigned {
    pub fn of(name: &str) -> Self {
        Self::with(&CertificateParams::new(vec![name.to_owned()]).unwrap())
    }

    fn with(params: &CertificateParams) -> Self {
        let key = KeyPair::generate().unwrap();
        Self { certificate: params.self_signed(&key).unwrap().der().clone(), key }
    }

    /// As the commands of PostgreSQL's documentation make it.
    fn of_version_1() -> Self {
        let Self { certificate, key } = Self::of("localhost");
        let mut made = Certificate::from_der(&certificate).unwrap();
        made.tbs_certificate.version = Version::V1;
        made.tbs_certificate.extensions = None;
        let signature = key.sign(&made.tbs_certificate.to_der().unwrap()).unwrap();
        made.signature = BitString::from_bytes(&signature).unwrap();
        Self { certificate: made.to_der().unwrap().into(), key }
    }

    pub fn pem(&self) -> String {
        let text = BASE64.encode(&self.certificate);
        let lines = text.as_bytes().chunks(64).map(|line| format!("{}\n", String::from_utf8_lossy(line)));
        format!("-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n", lines.collect::<String>())
    }

    fn signs_with(&self, key: &KeyPair, version: &'static SupportedProtocolVersion) -> TlsAcceptor {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let key = provider.key_provider.load_private_key(key).unwrap();
        let shown = Shown(Arc::new(CertifiedKey::new(vec![self.certificate.clone()], key)));
        let config = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[version]);
        Arc::new(config.unwrap().with_no_client_auth().with_cert_resolver(Arc::new(shown))).into()
    }
}

/// A certificate that is shown whether or not the key is its own.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// Has the server take TLS only.
pub async fn take_tls_only(server: &LocalPostgresql, access: &Access, certificate: &SelfSigned) {
    let lines = "hostssl all all 127.0.0.1/32 scram-sha-256\n";
    server.offer_tls(&certificate.pem(), &certificate.key.serialize_pem(), lines).unwrap();
    sql(access, "SELECT pg_reload_conf()").await;
    let began = Instant::now();
    while connected(access).await.is_ok() {
        assert!(began.elapsed() < LIMIT, "it takes connections without TLS");
        tokio::time::sleep(PAUSE).await;
    }
}

#[tokio::test]
async fn a_server_that_takes_its_administrator_without_tls_only_lets_the_operator_in() {
    // What a user wrote for one that connects in the cluster, and for others that have a certificate.
    for lines in [
        "hostnossl all all 127.0.0.1/32 scram-sha-256\n",
        "hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-full\n\
         host all all 127.0.0.1/32 scram-sha-256\n",
    ] {
        on_each_major(async |server, access| {
            let certificate = SelfSigned::of("localhost");
            std::fs::write(server.data().join("root.crt"), certificate.pem()).unwrap();
            let authority = "ALTER SYSTEM SET ssl_ca_file = 'root.crt'";
            sql(&access, authority).await;
            server.offer_tls(&certificate.pem(), &certificate.key.serialize_pem(), lines).unwrap();
            sql(&access, "SELECT pg_reload_conf()").await;
            let began = Instant::now();
            while PgWire.login(&required(&access)).await.is_err_and(|it| it.to_string().contains("not offer"))
            {
                assert!(began.elapsed() < LIMIT, "it does not offer TLS");
                tokio::time::sleep(PAUSE).await;
            }
            assert_eq!(PgWire.login(&access).await.unwrap(), Login::In, "{lines}");
            PgWire.flush(&access, "CHECKPOINT", LIMIT).await.unwrap();
            assert_ne!(PgWire.login(&required(&access)).await.ok(), Some(Login::In), "{lines}");
        })
        .await;
    }
}

fn required(access: &Access) -> Access {
    Access { tls: Tls::Required, ..access.clone() }
}

async fn lets_in(certificate: &SelfSigned) {
    on_each_major(async |server, access| {
        take_tls_only(&server, &access, certificate).await;
        assert_eq!(PgWire.login(&access).await.unwrap(), Login::In);
        assert_eq!(PgWire.login(&required(&access)).await.unwrap(), Login::In);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_takes_tls_only_lets_the_operator_in() {
    lets_in(&SelfSigned::of("localhost")).await;
}

#[tokio::test]
async fn an_expired_certificate_of_another_name_is_taken() {
    let mut params = CertificateParams::new(vec!["db.elsewhere.example".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
    lets_in(&SelfSigned::with(&params)).await;
}

#[tokio::test]
async fn a_certificate_of_version_1_is_taken() {
    lets_in(&SelfSigned::of_version_1()).await;
}

#[tokio::test]
async fn the_log_of_a_server_with_tls_has_no_line_on_the_end_of_the_operators_connections() {
    on_each_major(async |server, access| {
        let (client, _connection) = connected(&access).await.unwrap();
        take_tls_only(&server, &access, &SelfSigned::of("localhost")).await;
        for _ in 0..5 {
            assert_eq!(PgWire.login(&access).await.unwrap(), Login::In);
            PgWire.judge_settings(&access, &change("work_mem", Some("16MB"))).await.unwrap();
        }
        let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'freehold'";
        let began = Instant::now();
        while client.query_one(open, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            assert!(began.elapsed() < LIMIT, "the operator's connections do not end");
            tokio::time::sleep(PAUSE).await;
        }
        let log = std::fs::read_to_string(server.data().with_file_name("postgres.log")).unwrap();
        let of_ends = |line: &&str| line.contains("could not receive data") || line.contains("SSL error");
        assert_eq!(log.lines().find(of_ends), None);
    })
    .await;
}

#[tokio::test]
async fn a_server_without_tls_lets_in_who_does_not_require_it_and_nobody_else() {
    on_each_major(async |_server, access| {
        assert_eq!(PgWire.login(&access).await.unwrap(), Login::In);
        let refused = PgWire.login(&required(&access)).await.unwrap_err().to_string();
        let expected =
            "no connection to the engine at 127.0.0.1: the engine does not offer TLS, which is required";
        assert_eq!(refused, expected);
    })
    .await;
}

/// A program that listens, and does this with every client.
pub async fn listening<F>(
    each: impl Fn(TcpStream) -> F + Send + 'static,
) -> (SocketAddr, AbortOnDropHandle<()>)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = async move {
        // What one ends with is what its client sees.
        let mut clients = JoinSet::new();
        while let Ok((client, _)) = listener.accept().await {
            clients.spawn(each(client));
        }
    };
    (address, AbortOnDropHandle::new(tokio::spawn(task)))
}

/// Reads the request for TLS.
pub async fn requested(client: &mut TcpStream) -> io::Result<[u8; 8]> {
    let mut request = [0; 8];
    client.read_exact(&mut request).await?;
    Ok(request)
}

/// Stands in between: ends the client's TLS with this, and passes everything on, by TLS of its own if the
/// server's certificate is given.
async fn in_between(
    access: &Access,
    acceptor: TlsAcceptor,
    of_server: Option<&SelfSigned>,
) -> (Access, AbortOnDropHandle<()>) {
    let server = SocketAddr::from((access.address, access.port));
    let onward = of_server.map(|it| {
        let mut roots = RootCertStore::empty();
        roots.add(it.certificate.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        TlsConnector::from(Arc::new(config.with_no_client_auth()))
    });
    let (address, task) =
        listening(move |client| pass_on(client, acceptor.clone(), server, onward.clone())).await;
    (Access { address: address.ip(), port: address.port(), ..access.clone() }, task)
}

async fn pass_on(
    mut client: TcpStream,
    acceptor: TlsAcceptor,
    server: SocketAddr,
    onward: Option<TlsConnector>,
) -> io::Result<()> {
    let request = requested(&mut client).await?;
    client.write_all(b"S").await?;
    let mut client = acceptor.accept(client).await?;
    let mut server = TcpStream::connect(server).await?;
    if let Some(onward) = onward {
        server.write_all(&request).await?;
        server.read_u8().await?;
        let name = ServerName::try_from("localhost").unwrap();
        copy_bidirectional(&mut client, &mut onward.connect(name, server).await?).await?;
    } else {
        copy_bidirectional(&mut client, &mut server).await?;
    }
    Ok(())
}

/// The statement that would arrive gives the administrator another password.
async fn sent(access: &Access) -> Result<(), ClientError> {
    PgWire.change_password(access, "another-password").await
}

async fn refused(access: &Access) -> String {
    sent(access).await.unwrap_err().to_string()
}

#[tokio::test]
async fn who_ends_the_tls_in_between_is_refused_by_the_server_and_no_statement_arrives() {
    let (of_server, other) = (SelfSigned::of("localhost"), SelfSigned::of("localhost"));
    on_each_major(async |server, access| {
        take_tls_only(&server, &access, &of_server).await;
        let acceptor = other.signs_with(&other.key, &TLS13);
        let (through, _between) = in_between(&access, acceptor, Some(&of_server)).await;
        for through in [required(&through), through] {
            let refused = refused(&through).await;
            assert!(refused.ends_with("SCRAM channel binding check failed"), "{refused}");
        }
        assert_eq!(PgWire.login(&access).await.unwrap(), Login::In, "with the password of before");
    })
    .await;
}

#[tokio::test]
async fn who_ends_the_tls_before_a_server_without_is_refused_where_tls_is_required() {
    let other = SelfSigned::of("localhost");
    on_each_major(async |_server, access| {
        let (through, _between) = in_between(&access, other.signs_with(&other.key, &TLS13), None).await;
        let refused = refused(&required(&through)).await;
        assert!(refused.contains("the engine did not use channel binding"), "{refused}");
        assert_eq!(PgWire.login(&access).await.unwrap(), Login::In, "with the password of before");
        // Where TLS is not required, an engine may have none: nothing shows that another one answers.
        sent(&through).await.unwrap();
        assert_eq!(PgWire.login(&access).await.unwrap(), Login::WrongPassword);
    })
    .await;
}

#[tokio::test]
async fn who_shows_the_servers_certificate_without_its_key_is_refused() {
    let (of_server, other) = (SelfSigned::of("localhost"), SelfSigned::of("localhost"));
    on_each_major(async |server, access| {
        take_tls_only(&server, &access, &of_server).await;
        for version in [&TLS12, &TLS13] {
            let acceptor = of_server.signs_with(&other.key, version);
            let (through, _between) = in_between(&access, acceptor, Some(&of_server)).await;
            for through in [required(&through), through] {
                let refused = refused(&through).await;
                assert!(refused.contains("the engine offers TLS, and the handshake failed"), "{refused}");
            }
        }
        assert_eq!(PgWire.login(&access).await.unwrap(), Login::In, "with the password of before");
    })
    .await;
}

#[tokio::test]
async fn a_server_whose_handshake_breaks_is_an_error_that_says_so() {
    let (address, _task) = listening(|mut client| async move {
        requested(&mut client).await?;
        client.write_all(b"SNo TLS follows.").await
    })
    .await;
    let access = at(address);
    let error = PgWire.login(&access).await.unwrap_err().to_string();
    assert!(error.contains("the engine offers TLS, and the handshake failed: "), "{error}");
}
