//! Each check, by what it says of a database with one thing amiss.

mod storage;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{INSTANCE, Wanted, from_json, postgresql, questdb, running, wanted};
use crate::adopt::found::Found;
use crate::adopt::preflight::check;
use crate::adopt::render;
use crate::api::database::EngineType;
use crate::api::node_class::NodeClassSpec;
use crate::cloud::InstanceState;
use crate::command::finding::{Finding, Level};

/// What is amiss, how bad that is, a part of what is said, and of the way out.
type Row = (fn(&mut Found, &mut Wanted), Level, &'static str, &'static str);

/// What is found of every database, by the first words.
const ALWAYS: [&str; 3] =
    ["its access mode is ReadWriteOnce", "its reclaim policy is Delete", "whether they may"];

fn findings(found: &Found, wanted: &Wanted) -> Vec<Finding> {
    let all = check(found, wanted).into_iter();
    all.filter(|finding| !ALWAYS.iter().any(|start| finding.message.starts_with(start))).collect()
}

/// Each row is found, and nothing else is.
fn each(rows: &[Row]) {
    for (change, level, message, way_out) in rows {
        let (mut found, mut wanted) = (running(&questdb()), wanted());
        change(&mut found, &mut wanted);
        let findings = findings(&found, &wanted);
        let [finding] = findings.as_slice() else { panic!("{message}: {findings:#?}") };
        assert_eq!(finding.level, *level, "{finding:?}");
        assert!(finding.message.contains(message), "{message}: {finding:?}");
        assert!(finding.way_out.clone().unwrap_or_default().contains(way_out), "{way_out}: {finding:?}");
    }
}

fn set(found: &mut Found) -> &mut k8s_openapi::api::apps::v1::StatefulSetSpec {
    found.stateful_set.spec.as_mut().unwrap()
}

fn template(found: &mut Found) -> &mut k8s_openapi::api::core::v1::PodSpec {
    set(found).template.spec.as_mut().unwrap()
}

fn label(found: &mut Found, key: &str, value: &str) {
    found.stateful_set.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
}

fn tag(found: &mut Found, key: &str, value: &str) {
    found.instance.as_mut().unwrap().tags.insert(key.to_owned(), value.to_owned());
}

fn record(found: &mut Found) -> &mut k8s_openapi::api::core::v1::PersistentVolumeSpec {
    found.claims[0].persistent_volume.as_mut().unwrap().spec.as_mut().unwrap()
}

fn class(found: &mut Found) -> &mut NodeClassSpec {
    &mut found.node_class.as_mut().unwrap().spec
}

fn image(found: &mut Found, image: &str) {
    template(found).containers[0].image = Some(image.to_owned());
}

#[test]
fn of_a_database_with_nothing_amiss_there_are_notes_only() {
    let (found, wanted) = (running(&questdb()), wanted());
    let all = check(&found, &wanted);
    assert_eq!(all.len(), ALWAYS.len(), "{all:#?}");
    assert!(all.iter().all(|finding| finding.level == Level::Note));
}

#[test]
fn the_workload_is_checked() {
    use Level::{Blocker, Note, Warning};
    each(&[
        (|found, _| set(found).replicas = Some(3), Blocker, "it has 3 replicas", "outside Freehold"),
        (|found, _| set(found).replicas = Some(0), Blocker, "it has 0 replicas", "start it first"),
        (
            |found, _| {
                found.stateful_set.metadata.owner_references =
                    Some(vec![from_json(json!({"kind": "Postgres",
                    "name": "pg", "uid": "1", "apiVersion": "example.com/v1", "controller": true}))]);
            },
            Blocker,
            "Postgres pg controls it",
            "--cascade=orphan",
        ),
        (
            |found, _| {
                found.stateful_set.metadata.owner_references = Some(vec![from_json(
                    json!({"kind": "Database",
                    "name": "orders", "uid": "1", "apiVersion": "freehold.dev/v1alpha1", "controller": true}),
                )]);
            },
            Note,
            "this Database has adopted it already",
            "",
        ),
        (
            |found, _| {
                set(found).persistent_volume_claim_retention_policy =
                    Some(from_json(json!({"whenScaled": "Delete"})));
            },
            Blocker,
            "its claim is deleted when it is scaled down",
            "kubectl patch statefulset orders --namespace team-a --patch '{\"spec\":{\"persistentVolumeClaim\
                RetentionPolicy\":{\"whenScaled\":\"Retain\"",
        ),
        (|found, _| found.pod.as_mut().unwrap().status = None, Blocker, "it is not ready", "wait until"),
        (
            |found, _| {
                found.stateful_set.status.as_mut().unwrap().update_revision = Some("orders-2".to_owned());
            },
            Blocker,
            "was created from an older template",
            "",
        ),
        (
            |found, _| {
                let pod = |name: &str, kind: &str| {
                    from_json(json!({"metadata": {"name": name, "namespace": "web", "uid": name,
                        "ownerReferences": [{"kind": kind, "name": "o", "uid": "o", "apiVersion": "v1",
                            "controller": true}]}}))
                };
                found.pods.extend([
                    pod("proxy", "DaemonSet"),
                    pod("kubelets", "Node"),
                    pod("shop", "ReplicaSet"),
                ]);
            },
            Warning,
            "1 more pod runs on this machine: web/shop.",
            "kubectl cordon",
        ),
        (
            |found, _| template(found).containers.push(from_json(json!({"name": "exporter"}))),
            Note,
            "has the containers questdb, exporter; questdb is taken for the engine",
            "",
        ),
        (
            |found, _| template(found).init_containers = Some(vec![from_json(json!({"name": "chown"}))]),
            Note,
            "its init containers stay",
            "",
        ),
        (|found, _| template(found).host_network = Some(true), Warning, "the machine's network", ""),
    ]);
}

#[test]
fn what_would_write_the_statefulset_back_is_named_and_a_person_may_vouch_that_it_does_not() {
    for (key, value, kind) in [
        ("meta.helm.sh/release-name", "orders", "the Helm release"),
        ("app.kubernetes.io/managed-by", "Helm", "the Helm release"),
        ("argocd.argoproj.io/instance", "orders", "the Argo CD application"),
        ("argocd.argoproj.io/tracking-id", "orders", "the Argo CD application"),
        ("kustomize.toolkit.fluxcd.io/name", "orders", "the Flux Kustomization"),
        ("helm.toolkit.fluxcd.io/name", "orders", "the Flux HelmRelease"),
    ] {
        let (mut found, mut wanted) = (running(&questdb()), wanted());
        label(&mut found, key, value);
        for (unmanaged, level) in [(false, Level::Blocker), (true, Level::Warning)] {
            wanted.unmanaged = unmanaged;
            let findings = findings(&found, &wanted);
            assert_eq!(findings.len(), 1, "{key}: {findings:#?}");
            assert_eq!(findings[0].level, level, "{key}");
            assert!(findings[0].message.contains(kind), "{findings:#?}");
            assert!(findings[0].way_out.as_ref().unwrap().contains("--unmanaged"));
        }
    }
    let mut found = running(&questdb());
    label(&mut found, "kustomize.toolkit.fluxcd.io/name", "orders");
    label(&mut found, "kustomize.toolkit.fluxcd.io/reconcile", "disabled");
    label(&mut found, "app.kubernetes.io/managed-by", "provisioner");
    assert_eq!(findings(&found, &wanted()), []);
}

#[test]
fn the_machine_is_checked() {
    use Level::{Blocker, Note, Warning};
    each(&[
        (|found, _| found.instance = None, Blocker, "EC2 does not list it", "get-caller-identity"),
        (
            |found, _| found.instance.as_mut().unwrap().state = InstanceState::Stopping,
            Blocker,
            "it is not running",
            "start",
        ),
        (
            |_, wanted| wanted.instance_types.clear(),
            Note,
            "r5.large would be the only type",
            "--instance-type",
        ),
        (
            |found, _| tag(found, "aws:autoscaling:groupName", "databases"),
            Blocker,
            "Auto Scaling group databases may terminate it",
            "aws autoscaling detach-instances --instance-ids i-0123456789abcdef0 --auto-scaling-group-name \
                databases --should-decrement-desired-capacity",
        ),
        (
            |found, _| tag(found, "eks:nodegroup-name", "databases"),
            Warning,
            "managed node group",
            "access entry",
        ),
        (
            |found, _| tag(found, "karpenter.sh/nodeclaim", "default-x"),
            Blocker,
            "Karpenter launched it",
            "kubectl annotate node ip-10-0-0-1 karpenter.sh/do-not-disrupt=true",
        ),
        (
            |found, _| {
                tag(found, "karpenter.sh/nodeclaim", "default-x");
                let annotations = &mut found.core_node.as_mut().unwrap().metadata.annotations;
                let held = ("karpenter.sh/do-not-disrupt".to_owned(), "true".to_owned());
                annotations.get_or_insert_default().extend([held]);
            },
            Warning,
            "Karpenter launched it, and still ends it",
            "expireAfter",
        ),
        (
            |found, _| "us-east-1a".clone_into(&mut found.instance.as_mut().unwrap().zone),
            Blocker,
            "us-east-1a (instance i-0123456789abcdef0); us-east-1b (",
            "same machine",
        ),
        (
            |found, _| {
                let labels = found.core_node.as_mut().unwrap().metadata.labels.as_mut().unwrap();
                labels.remove("topology.kubernetes.io/zone");
            },
            Blocker,
            "it has no label topology.kubernetes.io/zone",
            "cloud controller manager",
        ),
        (
            |found, _| {
                let labels = found.core_node.as_mut().unwrap().metadata.labels.as_mut().unwrap();
                labels.remove("node.kubernetes.io/instance-type");
            },
            Blocker,
            "its label node.kubernetes.io/instance-type is not r5.large",
            "cloud controller manager",
        ),
        (
            |found, _| {
                found.core_node.as_mut().unwrap().spec.as_mut().unwrap().provider_id =
                    Some(format!("aws://us-east-1b/{INSTANCE}"));
            },
            Blocker,
            "and not aws:///us-east-1b/i-0123456789abcdef0",
            "--provider-id",
        ),
    ]);
}

#[test]
fn whose_the_machine_is_is_checked() {
    use Level::Blocker;
    each(&[
        (
            |found, _| tag(found, "freehold.dev/node-uid", "former"),
            Blocker,
            "its tag freehold.dev/node-uid names an object",
            "remove that tag",
        ),
        (
            |found, _| tag(found, "freehold.dev/adopt", "cluster-1/team-b/orders"),
            Blocker,
            "allows another Database to adopt it: cluster-1/team-b/orders",
            "left over",
        ),
        (
            |found, _| tag(found, "freehold.dev/cluster-id", "cluster-2"),
            Blocker,
            "another Database's",
            "release it",
        ),
    ]);
    let mut found = running(&questdb());
    tag(&mut found, "freehold.dev/adopt", "cluster-1/team-a/orders");
    tag(&mut found, "freehold.dev/database", "team-a/orders");
    assert_eq!(findings(&found, &wanted()), [], "an earlier run wrote them");
    found.core_node.as_mut().unwrap().spec.as_mut().unwrap().provider_id =
        Some("aws:///us-east-1b/fargate-1".to_owned());
    let findings = findings(&found, &wanted());
    assert!(findings[0].message.contains("which EC2 instance"), "{findings:#?} {INSTANCE}");
}

#[test]
fn the_database_is_checked() {
    use Level::{Blocker, Note, Warning};
    each(&[
        (
            |_, wanted| wanted.database = Some("Orders".to_owned()),
            Blocker,
            "the name must start",
            "--database",
        ),
        (|_, wanted| wanted.database = Some("o".repeat(41)), Blocker, "at most 40", "--database"),
        (|found, _| found.node_class = None, Blocker, "it is not there", "--node-class"),
        (
            |found, _| class(found).limits.engines = vec![EngineType::Postgresql],
            Blocker,
            "NodeClass default does not permit the engine questdb",
            "",
        ),
        (
            |found, _| {
                class(found).namespace_selector =
                    Some(from_json(json!({"matchLabels": {"databases": "yes"}})));
            },
            Blocker,
            "namespace team-a",
            "",
        ),
        (
            |found, wanted| found.database = render::database(found, wanted),
            Note,
            "there already, with the same spec.adopt",
            "",
        ),
        (
            |found, wanted| {
                found.database = render::database(found, wanted);
                found.database.as_mut().unwrap().spec.adopt = None;
            },
            Blocker,
            "there is one of this name",
            "--database",
        ),
        (|found, _| found.services.clear(), Blocker, "no Service selects the pod", "create a Service"),
        (|_, wanted| wanted.service = Some("web".to_owned()), Blocker, "Service web", "--service: orders"),
        (
            |found, _| {
                let mut second = found.services[0].clone();
                second.metadata.name = Some("orders-public".to_owned());
                found.services.push(second);
            },
            Blocker,
            "several Services",
            "--service: orders, orders-public",
        ),
        (
            |found, _| {
                let variables = template(found).containers[0].env.as_mut().unwrap();
                variables.push(from_json(json!({"name": "LICENCE",
                    "valueFrom": {"secretKeyRef": {"name": "licence", "key": "key"}}})));
            },
            Blocker,
            "several Secrets",
            "licence, orders-credentials",
        ),
        (|_, wanted| wanted.no_secret = true, Note, "no Secret is named", ""),
        (|found, _| image(found, "questdb/questdb:latest"), Blocker, "a whole release", "--engine-version"),
        (|found, _| image(found, "questdb/questdb:7.4.2"), Blocker, "does not offer", "--custom"),
        (|found, _| image(found, "timescale/timescaledb:2.11.0-pg15"), Warning, "image of your own", ""),
        (|found, _| image(found, "example.com/db:latest"), Blocker, "as it is", "by hand"),
    ]);
}

#[test]
fn a_headless_service_gives_way_to_one_with_an_address() {
    let mut found = running(&postgresql());
    let mut headless = found.services[0].clone();
    headless.metadata.name = Some("orders-headless".to_owned());
    headless.spec.as_mut().unwrap().cluster_ip = Some("None".to_owned());
    found.services.insert(0, headless);
    let wanted = Wanted { engine_version: Some("15.7".to_owned()), ..wanted() };
    assert_eq!(render::database(&found, &wanted).unwrap().spec.adopt.unwrap().service_name, "orders");
    found.services.truncate(1);
    assert_eq!(
        render::database(&found, &wanted).unwrap().spec.adopt.unwrap().service_name,
        "orders-headless"
    );
}
