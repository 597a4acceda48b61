//! The plan of the certificate of `spec.tls`, and what is said of it.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;
use rcgen::{CertificateParams, KeyPair};

use super::moving::with_successor;
use super::*;
use crate::api::ConditionType;
use crate::api::database::TlsStatus;
use crate::api::keys::{TLS_CERT, TLS_KEY};
use crate::controller::database::observe::tls::TlsSecret;
use crate::controller::database::plan::tls as of_tls;
use crate::controller::database::tls_wait::TlsFault;
use crate::engine::certificate::{self, Certificate};
use crate::engine::client::Tls;

const DAY: i64 = 24 * 3600;

fn certificate_of(name: &str, key: &KeyPair) -> Certificate {
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(key).unwrap();
    certificate::read(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap()
}

fn certificate() -> Certificate {
    certificate_of("orders.shop.svc", &KeyPair::generate().unwrap())
}

fn usable() -> TlsSecret {
    TlsSecret::Usable(Box::new(certificate()))
}

fn absent() -> TlsSecret {
    TlsSecret::Unusable(TlsFault::Absent)
}

fn with_tls(engine: &Value, required: bool) -> Value {
    json!({"engine": engine, "tls": {"secretName": "orders-tls", "required": required}})
}

fn postgresql() -> Value {
    json!({"type": "postgresql", "version": "17.6"})
}

fn custom() -> Value {
    json!({"type": "custom", "custom": {"image": "db:1", "port": 7000, "dataPath": "/data"}})
}

/// A settled world whose engine was started with the certificate.
fn started(secret: TlsSecret) -> Observed {
    let mut world = settled_as(with_tls(&postgresql(), true));
    world.tls = secret;
    if let Some(status) = world.pod.as_mut().and_then(|pod| pod.status.as_mut()) {
        status.pod_ip = Some("10.0.0.7".to_owned());
    }
    world
}

/// The same, with what is known of the engine of this pod.
fn known(world: &mut Observed, pod: &str, certificate: Option<&Certificate>) {
    world.database.status.as_mut().unwrap().tls = Some(TlsStatus {
        pod_uid: pod.to_owned(),
        certificate: certificate.map(Certificate::fingerprint),
        ..TlsStatus::default()
    });
}

/// A settled world before its spec requested TLS.
fn requested(engine: &Value, secret: TlsSecret) -> Observed {
    let mut world = settled_as(json!({"engine": engine}));
    let status = world.database.status.clone();
    world.database = database(with_tls(engine, false), settled_status());
    world.database.status = status;
    world.tls = secret;
    world
}

fn done(world: &Observed) -> String {
    line(&plan(world, now()))
}

#[test]
fn no_template_has_a_certificate_that_is_not_there() {
    for engine in [postgresql(), custom()] {
        let waits = done(&requested(&engine, absent()));
        assert_eq!(waits, "[] CertificateUnusable", "the engine goes on without: {engine}");
        let applied = done(&requested(&engine, usable()));
        assert!(applied.contains("apply set set-uid x1] RestartPending"), "{applied}: {engine}");
        let mut new = requested(&engine, absent());
        new.stateful_set = Child::Absent;
        new.pod = None;
        assert_eq!(done(&new), "[] CertificateUnusable", "nothing is started without: {engine}");
        new.tls = usable();
        assert!(done(&new).ends_with("apply set new x1] AwaitingPod"), "{engine}");
    }
}

#[test]
fn what_has_the_certificate_is_repaired_and_moved_though_its_secret_is_gone() {
    let mut world = started(absent());
    known(&mut world, "pod-uid", None);
    assert_eq!(done(&world), "[] as wanted");
    let mut edited = world.clone();
    edited.database.spec.config = serde_json::from_value(json!({"max_connections": "50"})).unwrap();
    edited.profile = engine::profile(&edited.database.spec.engine, &edited.database.spec.config);
    assert_eq!(done(&edited), "[] CertificateUnusable", "what serves is not restarted: it would not start");
    let set = build::stateful_set(&edited.database, &edited.names, edited.profile.as_ref().unwrap(), 1);
    edited.stateful_set = ours(seen(with_uid(set, "set-uid")));
    as_applied(&mut edited);
    assert!(!done(&edited).contains("replace"), "nor where its template is applied: {}", done(&edited));
    change(&mut world.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
    world.pod = None;
    assert!(done(&world).contains("apply set set-uid x1"), "{}", done(&world));
    let mut starting = started(absent());
    let creating = json!({"phase": "Pending", "containerStatuses": [
        container_status(json!({"waiting": {"reason": "ContainerCreating"}}))]});
    starting.pod = starting.pod.map(|pod| pod_with(pod, creating));
    assert_eq!(done(&starting), "[] CertificateUnusable", "why the pod does not start");
}

#[test]
fn an_engine_that_serves_is_asked_which_certificate_it_shows_before_the_database_is_ready() {
    let mut world = started(usable());
    let asked = "[load certificate orders-tls of admin@10.0.0.7:5432] CertificateLoading";
    assert_eq!(done(&world), asked);
    let TlsSecret::Usable(certificate) = world.tls.clone() else { panic!("not usable") };
    known(&mut world, "another-pod", Some(&certificate));
    assert_eq!(done(&world), asked, "what another pod showed says nothing");
    known(&mut world, "pod-uid", Some(&certificate));
    assert_eq!(done(&world), "[] as wanted");
    assert_eq!(plan(&world, now()).requeue, None);
}

#[test]
fn a_renewed_certificate_is_loaded_while_the_database_stays_ready() {
    let mut world = started(usable());
    known(&mut world, "pod-uid", Some(&certificate()));
    assert_eq!(done(&world), "[load certificate orders-tls of admin@10.0.0.7:5432] as wanted");
    assert_eq!(plan(&world, now()).requeue, Some(Duration::from_secs(20)), "a kubelet is not watched");
    let TlsSecret::Usable(certificate) = world.tls.clone() else { panic!("not usable") };
    world.database.status.as_mut().unwrap().tls.as_mut().unwrap().refused = Some(certificate.fingerprint());
    assert_eq!(done(&world), "[load certificate orders-tls of admin@10.0.0.7:5432] as wanted");
    assert_eq!(plan(&world, now()).requeue, Some(Duration::from_secs(60)), "the engine may take it later");
}

#[test]
fn an_adopted_pod_with_a_variable_of_that_name_is_no_pod_with_a_certificate() {
    let mut pod = started(usable()).pod.unwrap().spec.unwrap();
    pod.volumes = None;
    assert_eq!(build::tls_of_connections(&pod), Tls::IfOffered);
}

#[test]
fn a_renewed_certificate_is_loaded_whatever_else_is_awaited() {
    let mut world = started(usable());
    known(&mut world, "pod-uid", Some(&certificate()));
    world.database.spec.instance_types = vec!["m7i.large".to_owned()];
    assert!(done(&world).contains("load certificate orders-tls"), "{}", done(&world));
}

#[test]
fn what_serves_is_moved_only_where_it_can_start() {
    let mut world = started(absent());
    known(&mut world, "pod-uid", Some(&certificate()));
    world.database.spec.instance_types = vec!["m7i.large".to_owned()];
    let mut world = with_successor(world);
    assert_eq!(done(&world), "[] CertificateUnusable");
    world.tls = usable();
    assert!(done(&world).ends_with("] Moving"), "{}", done(&world));
}

#[test]
fn no_certificate_is_loaded_in_a_custom_engine_nor_by_a_pod_that_has_none() {
    let mut world = settled_as(with_tls(&custom(), false));
    world.tls = usable();
    assert_eq!(done(&world), "[] as wanted");
    assert_eq!(of_tls::reported(&world, now()), None);
    let mut world = started(usable());
    world.pod.as_mut().unwrap().spec.as_mut().unwrap().volumes = None;
    assert!(!done(&world).contains("load certificate"));
}

#[test]
fn no_connection_is_made_while_another_password_is_given() {
    let mut world = started(usable());
    let Credentials::Read(Child::Ours(held)) = &mut world.credentials else { panic!("no Secret") };
    let next = ByteString(b"the-next-password-of-the-engine".to_vec());
    held.0.data.get_or_insert_default().insert(crate::api::keys::NEXT_PASSWORD.to_owned(), next);
    assert!(!done(&world).contains("load certificate"), "{}", done(&world));
}

#[test]
fn a_certificate_that_no_connection_can_be_bound_to_is_for_custom_engines_only() {
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let secret = TlsSecret::Usable(Box::new(certificate_of("orders.shop.svc", &key)));
    assert_eq!(done(&requested(&postgresql(), secret.clone())), "[] stalled CertificateUnusable");
    assert!(done(&requested(&custom(), secret)).contains("apply set set-uid x1"));
}

#[test]
fn the_condition_says_what_the_engine_shows() {
    let entry = |world: &Observed| {
        let entry = of_tls::reported(world, now()).unwrap();
        let is_true = entry.is_true();
        (entry.kind, is_true, entry.reason.as_str(), entry.message)
    };
    let shown = |world: &Observed| {
        let (kind, is_true, reason, _) = entry(world);
        assert_eq!(kind, ConditionType::CertificateLoaded);
        (is_true, reason)
    };
    let mut world = started(usable());
    assert_eq!(shown(&world), (false, "CertificateLoading"));
    let mut paused = world.clone();
    paused.database.spec.running = false;
    assert_eq!(shown(&paused), (false, "Paused"));
    let TlsSecret::Usable(certificate) = world.tls.clone() else { panic!("not usable") };
    known(&mut world, "pod-uid", Some(&certificate));
    assert_eq!(shown(&world), (true, "AsExpected"));
    world.tls = TlsSecret::NotRead;
    assert_eq!(shown(&world), (true, "AsExpected"), "it was not read, and is what it was");
    let tls = |world: &mut Observed, change: &dyn Fn(&mut TlsStatus)| {
        change(world.database.status.as_mut().unwrap().tls.as_mut().unwrap());
    };
    tls(&mut world, &|tls| tls.missing_name = Some("orders.shop.svc".to_owned()));
    assert!(entry(&world).3.contains("does not name orders.shop.svc"));
    // A week before the end of a long life, a tenth before that of a short one.
    for (lasts, left, expected) in [
        (90 * DAY, 8 * DAY, (true, "AsExpected")),
        (90 * DAY, 7 * DAY, (false, "CertificateExpiring")),
        (DAY, DAY / 10 + 1, (true, "AsExpected")),
        (DAY, DAY / 10, (false, "CertificateExpiring")),
        (DAY, 0, (false, "CertificateExpired")),
        (0, -1, (false, "CertificateExpired")),
    ] {
        let until = now().as_second() + left;
        let time = |second| Some(Time(Timestamp::from_second(second).unwrap()));
        tls(&mut world, &|tls| (tls.not_before, tls.not_after) = (time(until - lasts), time(until)));
        assert_eq!(shown(&world), expected, "{lasts} {left}");
    }
    world.tls = absent();
    assert_eq!(shown(&world), (false, "CertificateExpired"), "that is what clients notice");
    tls(&mut world, &|tls| tls.not_after = None);
    world.tls = usable();
    assert_eq!(shown(&world), (false, "CertificateLoading"), "another one");
    let TlsSecret::Usable(renewed) = world.tls.clone() else { panic!("not usable") };
    tls(&mut world, &|tls| tls.refused = Some(renewed.fingerprint()));
    assert_eq!(shown(&world), (false, "CertificateRefused"));
    world.tls = absent();
    assert_eq!(shown(&world), (false, "CertificateUnusable"));
}

#[test]
fn what_was_seen_of_a_certificate_goes_with_its_pod_and_with_the_wish() {
    let mut world = started(usable());
    known(&mut world, "pod-uid", Some(&certificate()));
    let status = world.database.status.as_ref().unwrap().tls.clone();
    assert_eq!(of_tls::shown(&world, status.clone()), status);
    let mut other = world.clone();
    other.pod.as_mut().unwrap().metadata.uid = Some("another-pod".to_owned());
    assert_eq!(of_tls::shown(&other, status.clone()), None);
    other.pod = None;
    assert_eq!(of_tls::shown(&other, status.clone()), status, "until there is another one");
    world.database.spec.tls = None;
    assert_eq!(of_tls::shown(&world, status), None);
}

#[test]
fn the_pod_has_the_two_files_and_nothing_else_of_the_secret() {
    for (engine, variables) in [(postgresql(), 1), (custom(), 0)] {
        let world = settled_as(with_tls(&engine, false));
        let pod = world.pod.unwrap().spec.unwrap();
        let volume = pod.volumes.iter().flatten().find(|volume| volume.name == "tls").unwrap();
        let secret = volume.secret.as_ref().unwrap();
        let keys: Vec<&str> = secret.items.iter().flatten().map(|item| item.key.as_str()).collect();
        assert_eq!((secret.secret_name.as_deref(), keys), (Some("orders-tls"), vec![TLS_CERT, TLS_KEY]));
        assert_eq!(secret.default_mode, Some(0o440), "PostgreSQL takes no key that others can read");
        let mounts = pod.containers[0].volume_mounts.iter().flatten();
        let mount = mounts.into_iter().find(|mount| mount.name == "tls").unwrap();
        assert_eq!((mount.mount_path.as_str(), mount.read_only), ("/run/freehold/tls", Some(true)));
        let set = pod.containers[0].env.iter().flatten().filter(|it| it.name == "POSTGRES_TLS");
        assert_eq!(set.count(), variables, "{engine}");
    }
}

#[test]
fn connections_to_a_pod_with_the_certificate_are_encrypted() {
    let tls = |spec: Value| build::tls_of_connections(&settled_as(spec).pod.unwrap().spec.unwrap());
    assert_eq!(tls(with_tls(&postgresql(), false)), Tls::Required);
    assert_eq!(tls(json!({"engine": postgresql()})), Tls::IfOffered);
    assert_eq!(tls(with_tls(&custom(), false)), Tls::IfOffered, "what it does with it is not known");
}

#[test]
fn tls_that_freehold_cannot_give_is_refused_in_the_controller_too() {
    let refused = |spec: Value| {
        let mut world = settled_as(spec);
        world.tls = usable();
        assert!(done(&world).ends_with("] stalled InvalidSpec"), "{}", done(&world));
        plan(&world, now()).waiting.unwrap().message()
    };
    let questdb = json!({"tls": {"secretName": "orders-tls"}});
    assert!(refused(questdb).starts_with("spec.tls must be absent with QuestDB"));
    assert!(refused(with_tls(&custom(), true)).starts_with("spec.tls.required must be false"));
}

#[test]
fn a_database_without_tls_has_the_hash_that_it_had_before_there_was_any() {
    let hash = |spec: Value| build::inputs_hash(&database(spec, json!({})).spec);
    assert_eq!(hash(json!({"engine": postgresql()})), "98e68635c97f15aa");
    assert_ne!(hash(with_tls(&postgresql(), false)), hash(with_tls(&postgresql(), true)));
}
