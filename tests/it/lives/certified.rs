//! Lives in which the certificate of a PostgreSQL is created, renewed, lost and taken off; and what its
//! engine shows, and has in its files, which the kubelet updates a while after the Secret.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use freehold::engine::certificate::Certificate;
use freehold::engine::client::{Access, Loaded, Tls};
use freehold_rig::Server;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use parking_lot::Mutex;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use super::blow::Strike;
use super::house::{House, NAMESPACE};
use super::lies::Lies;

/// Longer than an attempt in doubt takes to be proven absent.
const LONG: Duration = Duration::from_secs(4 * 3600);

/// How long the kubelet takes.
const LAG: Duration = Duration::from_secs(40);

const SECRET: &str = "orders-tls";

/// What the engines of a house show. A house has one database, and one Secret with a certificate.
#[derive(Clone, Default)]
pub struct Certificates(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The certificate that each process shows, by its address.
    shown: BTreeMap<IpAddr, String>,
    /// Each certificate of the Secret, and when it was first seen.
    written: Vec<(Timestamp, String)>,
}

impl Certificates {
    /// What is there now is seen: each process begins with the newest certificate.
    fn look(&self, server: &Server, now: Timestamp) {
        let mut state = self.0.lock();
        for secret in server.objects("secrets") {
            let Some(text) = secret["data"]["tls.crt"].as_str() else { continue };
            let text = String::from_utf8(STANDARD.decode(text).unwrap()).unwrap();
            if state.written.last().is_none_or(|(_, last)| *last != text) {
                state.written.push((now, text));
            }
        }
        let Some((_, newest)) = state.written.last().cloned() else { return };
        for pod in server.objects("pods") {
            let address = pod["status"]["podIP"].as_str().and_then(|address| address.parse().ok());
            let has_files =
                pod["spec"]["volumes"].as_array().into_iter().flatten().any(|it| it["name"] == "tls");
            if let Some(address) = address.filter(|_| has_files) {
                state.shown.entry(address).or_insert_with(|| newest.clone());
            }
        }
    }

    /// The engine is to show this certificate.
    pub fn load(
        &self,
        access: &Access,
        certificate: &Certificate,
        server: &Server,
        now: Timestamp,
    ) -> Loaded {
        self.look(server, now);
        assert_eq!(access.tls, Tls::Required, "a password goes to no engine without TLS");
        let mut state = self.0.lock();
        let is_there = |(at, _): &&(Timestamp, String)| now >= *at + LAG;
        let mounted = state.written.iter().rfind(is_there).or_else(|| state.written.first()).cloned();
        let shown = state.shown.get_mut(&access.address).expect("a pod with the files");
        if *shown == certificate.text {
            return Loaded::Shown;
        }
        match mounted {
            Some((_, mounted)) if mounted == certificate.text => {
                *shown = mounted;
                Loaded::Shown
            }
            Some(_) | None => Loaded::NotInFiles,
        }
    }
}

/// A database waits for its certificate, gets it, and a second one, loses the Secret, gets it back, and goes
/// on without TLS in the end; an operator is struck at one of its writes or calls. How many of these there
/// were from the first certificate on.
pub async fn renewed(strike: Option<Strike>) -> (usize, usize) {
    let mut house = House::build(1, Lies { strike, ..Lies::none() }).await;
    house.start();
    let (engine, tls) = (json!({"type": "postgresql", "version": "17.6"}), json!({"secretName": SECRET}));
    house.create(&json!({"deletionPolicy": "Delete", "engine": engine, "tls": tls})).await;
    let awaits =
        |it: &House| it.certificate_is("False", "CertificateUnusable") && it.waits_for("CertificateUnusable");
    house.until("the certificate is awaited", LONG, awaits).await;
    assert!(house.server.objects("statefulsets.apps").is_empty(), "nothing is started without it");
    let before = house.chaos.effects();
    let first = house.put_certificate().await;
    house.until_shown(&first).await;
    let pod = house.uid_of_pod();
    let second = house.put_certificate().await;
    house.until_shown(&second).await;
    house.delete_certificate().await;
    let is_lost = |it: &House| it.certificate_is("False", "CertificateUnusable") && it.is_ready();
    house.until("the lost Secret is reported", LONG, is_lost).await;
    house.chaos.kill(Duration::from_secs(60));
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(house.certificate_is("False", "CertificateUnusable"), "the next operator does not forget it");
    let third = house.put_certificate().await;
    house.until_shown(&third).await;
    assert_eq!(house.uid_of_pod(), pod, "nothing restarts");
    house.patch(&json!({"tls": {"secretName": "another"}})).await;
    let is_refused =
        |it: &House| it.certificate_is("False", "CertificateUnusable") && it.waits_for("CertificateUnusable");
    house.until("another Secret is awaited", LONG, is_refused).await;
    assert_eq!(house.uid_of_pod(), pod, "the engine goes on with the certificate that it has");
    house.patch(&json!({"tls": null})).await;
    let is_plain = |it: &House| it.is_ready() && it.database().unwrap_or_default()["status"]["tls"].is_null();
    house.until("the engine runs without TLS", LONG, is_plain).await;
    let after = house.chaos.effects();
    assert_ne!(house.uid_of_pod(), pod);
    house.delete_certificate().await;
    house.end_at_rest(LONG).await;
    (before, after)
}

impl House {
    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.person.clone(), NAMESPACE)
    }

    /// A person, or cert-manager, puts a new certificate into the Secret: its text.
    async fn put_certificate(&self) -> String {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![format!("orders.{NAMESPACE}.svc")]).unwrap();
        let text = params.self_signed(&key).unwrap().pem();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "type": "kubernetes.io/tls",
            "data": {"tls.crt": STANDARD.encode(&text), "tls.key": STANDARD.encode(key.serialize_pem())},
        });
        let by_person = PatchParams::apply("person").force();
        self.secrets().patch(SECRET, &by_person, &Patch::Apply(&secret)).await.unwrap();
        self.engine_password.certificates.look(&self.server, self.ec2.now());
        text
    }

    async fn delete_certificate(&self) {
        self.secrets().delete(SECRET, &DeleteParams::default()).await.unwrap();
    }

    /// Whether the condition of the certificate has this status for this reason.
    fn certificate_is(&self, status: &str, reason: &str) -> bool {
        let database = self.database().unwrap_or_default();
        let conditions = database["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_it = |it: &Value| {
            it["type"] == "CertificateLoaded"
                && it["status"] == status
                && it["reason"] == reason
                && it["observedGeneration"] == database["metadata"]["generation"]
        };
        conditions.iter().any(is_it)
    }

    /// Waits until the engine shows this certificate, and the Database says so.
    async fn until_shown(&self, text: &str) {
        let is_shown = |it: &Self| {
            it.engine_password.certificates.look(&it.server, it.ec2.now());
            let address = it.pod()["status"]["podIP"].as_str().and_then(|address| address.parse().ok());
            let state = it.engine_password.certificates.0.lock();
            let shown = address.and_then(|address: IpAddr| state.shown.get(&address));
            shown.is_some_and(|shown| shown == text)
                && it.certificate_is("True", "AsExpected")
                && it.is_ready()
        };
        self.until("the engine shows the certificate", LONG, is_shown).await;
    }
}
