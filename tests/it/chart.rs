//! The chart, without installing it: what it renders, what it refuses, which rights it gives to whom, and what its alerts stand on.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use clap::{CommandFactory as _, Parser};
use freehold::api::{Database, Reason};
use freehold::definitions;
use freehold::metrics::Metrics;
use freehold::settings::Settings;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::PostParams;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use kube::{Api, Client, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::chart::{CHART, documents, helm, of_kind, template};
use crate::kit::house::{self, House, Options, run};
use crate::kit::objects;
use crate::kit::rights;
use crate::kit::wait::{seen, until};

/// Every value, set to what is not its default.
const EVERY_VALUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/chart/every-value.yaml");

fn file(path: &str) -> String {
    std::fs::read_to_string(Path::new(CHART).join(path)).unwrap()
}

async fn rendered(args: &[&str]) -> Vec<Value> {
    template("freehold-system", args).await.unwrap()
}

/// The paths of everything that is not a table itself, or is an empty one.
fn leaves(value: &Value, path: &str, all: &mut Vec<(String, Value)>) {
    match value.as_object().filter(|fields| !fields.is_empty()) {
        Some(fields) => {
            for (key, field) in fields {
                leaves(field, &format!("{path}/{key}"), all);
            }
        }
        None => all.push((path.to_owned(), value.clone())),
    }
}

fn leaves_of(value: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    leaves(value, "", &mut all);
    all
}

#[test]
fn helm_finds_no_fault_with_the_chart() {
    run(async {
        helm(&["lint", "--strict", CHART]).await.unwrap();
        helm(&["lint", "--strict", CHART, "--values", EVERY_VALUE]).await.unwrap();
    });
}

#[test]
fn the_definitions_are_the_generated_ones_and_stay_when_the_chart_goes() {
    run(async {
        let rendered = rendered(&[]).await;
        let mut found = Vec::new();
        for definition in of_kind(&rendered, "CustomResourceDefinition") {
            let mut definition = definition.clone();
            let metadata = definition["metadata"].as_object_mut().unwrap();
            assert_eq!(metadata.remove("annotations"), Some(json!({"helm.sh/resource-policy": "keep"})));
            found.push(definition);
        }
        let generated = definitions::all().map(|definition| (definition.name_any(), serde_json::to_value(definition).unwrap()));
        for (name, definition) in generated {
            let same = found.iter().find(|found| found["metadata"]["name"] == name.as_str());
            assert_eq!(same, Some(&definition), "{name}");
        }
        assert_eq!(found.len(), 4);
    });
}

#[test]
fn no_right_is_a_wildcard_and_no_secret_is_listed() {
    run(async {
        for args in [&[][..], &["--set", "namespace=team-a"][..]] {
            let granted = rights::granted(&rendered(args).await);
            assert!(!granted.iter().any(|right| right.contains('*')), "{granted:?}");
            for right in ["list core secrets", "watch core secrets", "create core pods", "create core pods/exec", "patch core secrets/*"] {
                assert!(!granted.contains(right), "{right}");
            }
            for (verb, place) in granted.iter().filter_map(|right| right.split_once(' ')) {
                let is_power = ["escalate", "bind", "impersonate"].contains(&verb) || place.starts_with("rbac.");
                assert!(!is_power && place != "core nodes/proxy", "{verb} {place}");
            }
        }
    });
}

#[test]
fn with_one_namespace_the_rights_to_what_lies_in_namespaces_are_for_that_one() {
    run(async {
        let all = rendered(&["--set", "rbac.aggregate=false"]).await;
        let one = rendered(&["--set", "rbac.aggregate=false", "--set", "namespace=team-a"]).await;
        assert_eq!(rights::granted(&all), rights::granted(&one));
        let across: Vec<Value> = of_kind(&one, "ClusterRole").into_iter().cloned().collect();
        for right in rights::granted(&across) {
            let resource = right.rsplit(' ').next().unwrap();
            // Across namespaces nothing is read but which pods a machine has, and nothing done but to evict them.
            let of_the_cluster =
                ["nodeclasses", "nodes", "persistentvolumes", "namespaces", "csinodes", "volumeattachments", "customresourcedefinitions"];
            assert!(of_the_cluster.contains(&resource) || ["list core pods", "delete core pods"].contains(&right.as_str()), "{right}");
        }
        let roles: BTreeSet<_> = of_kind(&one, "Role").iter().map(|role| role["metadata"]["namespace"].as_str().unwrap()).collect();
        assert_eq!(roles, BTreeSet::from(["kube-node-lease", "team-a"]));
    });
}

#[test]
fn the_operators_pod_meets_the_restricted_standard() {
    run(async {
        let client = house::control_plane().await.client();
        let name = "restricted-operator";
        let namespace = json!({"metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
        let rendered = template(name, &[]).await.unwrap();
        let account = serde_json::from_value(of_kind(&rendered, "ServiceAccount")[0].clone()).unwrap();
        Api::<ServiceAccount>::namespaced(client.clone(), name).create(&PostParams::default(), &account).await.unwrap();
        let mut pod = of_kind(&rendered, "Deployment")[0]["spec"]["template"].clone();
        pod["metadata"]["name"] = json!("freehold");
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let trial = PostParams { dry_run: true, ..PostParams::default() };
        Api::<Pod>::namespaced(client, name).create(&trial, &pod).await.unwrap();

        let spec = pod.spec.unwrap();
        assert_eq!((spec.automount_service_account_token, account.automount_service_account_token), (Some(true), Some(false)));
        let security = spec.containers[0].security_context.clone().unwrap();
        assert_eq!(security.read_only_root_filesystem, Some(true));
        let deployment = &of_kind(&rendered, "Deployment")[0]["spec"];
        assert_eq!((&deployment["replicas"], &deployment["strategy"]), (&json!(1), &json!({"type": "Recreate"})));
    });
}

#[test]
fn every_value_is_in_the_schema_and_has_its_effect() {
    run(async {
        let defaults = documents(&file("values.yaml")).remove(0);
        let every = documents(&std::fs::read_to_string(EVERY_VALUE).unwrap()).remove(0);
        let schema: Value = serde_json::from_str(&file("values.schema.json")).unwrap();
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        let mut known = keys(&schema["properties"]);
        known.remove("global");
        assert_eq!((&keys(&defaults), &keys(&every)), (&known, &known));
        for (path, default) in leaves_of(&defaults) {
            let set = every.pointer(&path).unwrap_or_else(|| panic!("{path} is not set"));
            // What is on and makes more of the chart stays on.
            let is_kept = ["/rbac/create", "/networkPolicy/enabled"].contains(&path.as_str());
            assert!(set != &default || is_kept, "{path} has its default");
        }

        // The same with what a switch takes away.
        let kept = ["--set", "serviceAccount.create=true", "--values", EVERY_VALUE, "--set", "rbac.aggregate=true"];
        let text = helm(&[&["template", "freehold", CHART, "--namespace", "here"][..], &kept].concat()).await.unwrap();
        for (path, value) in leaves_of(&every) {
            let texts: Vec<String> = match &value {
                Value::String(text) => vec![text.clone()],
                Value::Number(number) => vec![number.to_string()],
                Value::Array(items) => items.iter().flat_map(leaves_of).filter_map(|(_, leaf)| leaf.as_str().map(str::to_owned)).collect(),
                Value::Object(_) | Value::Bool(_) | Value::Null => Vec::new(),
            };
            for value in texts {
                assert!(text.contains(&value), "{path}: {value} is nowhere in\n{text}");
            }
        }

        let without = rendered(&["--values", EVERY_VALUE, "--set", "networkPolicy.enabled=false", "--set", "rbac.create=false"]).await;
        let kinds: BTreeSet<_> = without.iter().map(|document| document["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, BTreeSet::from(["ConfigMap", "Deployment", "PrometheusRule", "Service", "ServiceMonitor"]));
    });
}

#[test]
fn a_value_that_is_not_known_is_refused() {
    run(async {
        for wrong in
            ["replicas=2", "image.repo=x", "settings.sweep=1", "settings.recheck=soon", "image.pullPolicy=Sometimes", "extraArgs[0]=run"]
        {
            let said = template("here", &["--set", wrong]).await.unwrap_err();
            assert!(said.contains("values don't meet the specifications of the schema"), "{wrong}: {said}");
        }
    });
}

#[test]
fn the_settings_of_the_chart_are_the_operators_flags() {
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }
    let schema: Value = serde_json::from_str(&file("values.schema.json")).unwrap();
    let known: BTreeSet<String> = schema["properties"]["settings"]["properties"].as_object().unwrap().keys().cloned().collect();
    let line = Line::command();
    // These are values of their own, or for tests.
    let apart = ["cluster-id", "namespace", "listen", "time-scale"];
    let flags = line.get_arguments().filter_map(|argument| argument.get_long()).filter(|flag| !apart.contains(flag));
    assert_eq!(known, flags.map(str::to_owned).collect(), "charts/freehold/values.schema.json lists the operator's settings");
}

#[test]
fn the_chart_has_the_operators_version() {
    let chart = documents(&file("Chart.yaml")).remove(0);
    assert_eq!((&chart["version"], &chart["appVersion"]), (&json!(env!("CARGO_PKG_VERSION")), &json!(env!("CARGO_PKG_VERSION"))));
}

#[test]
fn another_version_changes_nothing_that_cannot_be_edited() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().display().to_string();
        helm(&["package", CHART, "--version", "9.8.7", "--app-version", "9.8.7", "--destination", &to]).await.unwrap();
        let next = helm(&["template", "freehold", &format!("{to}/freehold-9.8.7.tgz"), "--namespace", "here"]).await.unwrap();
        let fixed = |documents: &[Value]| -> Vec<Value> {
            let parts = |document: &Value| {
                json!([
                    document["kind"],
                    document["metadata"]["name"],
                    document["roleRef"],
                    document["spec"]["selector"],
                    document["spec"]["clusterIP"]
                ])
            };
            documents.iter().filter(|document| document["kind"] != "CustomResourceDefinition").map(parts).collect()
        };
        let next = documents(&next);
        assert_eq!(fixed(&template("here", &[]).await.unwrap()), fixed(&next));
        assert_eq!(of_kind(&next, "CustomResourceDefinition").len(), 4, "a packaged chart has the definitions, too");
        let image = of_kind(&next, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]["image"].clone();
        assert!(image.as_str().is_some_and(|image| image.ends_with(":9.8.7")), "{image}");
    });
}

#[test]
fn alerts_and_dashboard_stand_on_metrics_that_the_operator_has() {
    let metrics = Metrics::new();
    metrics.pass("node", "ok", Duration::from_millis(1));
    metrics.ec2_call("RunInstances".to_owned(), "ok");
    metrics.inventory_age("instances", 1);
    metrics.repairs_underway(1);
    metrics.machine_lost("InstanceTerminated");
    metrics.fenced(Duration::from_secs(1));
    let mut copy = Writer::default();
    metrics.show_conditions(copy.as_reader(), |database: &Database| database.conditions());
    let mut database = objects::database("team-a", "default", "orders", &json!({}));
    let condition =
        json!({"type": "Ready", "status": "True", "reason": "AsExpected", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    database["status"] = json!({"conditions": [condition]});
    copy.apply_watcher_event(&Event::Apply(serde_json::from_value(database).unwrap()));
    let text = metrics.text().unwrap();
    let exist: BTreeSet<String> = text.lines().filter_map(|line| Some(line.split_once(['{', ' '])?.0.to_owned())).collect();
    for name in ["files/rules.yaml", "files/dashboard.json"] {
        let text = file(name);
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let named: BTreeSet<_> = words.filter(|word| word.starts_with("freehold_")).collect();
        assert!(named.len() > 3, "{named:?}");
        for metric in named {
            assert!(exist.contains(metric), "{name} names {metric}, and there are {exist:?}");
        }
        for (_, rest) in text.match_indices("reason").map(|(place, word)| text.split_at(place + word.len())) {
            // A selector of a label: `reason="X"`, `reason!~"X|Y"`.
            let Some((operator, rest)) = rest.split_once('"').filter(|(operator, _)| ["=", "=~", "!=", "!~"].contains(operator)) else {
                continue;
            };
            for reason in rest.split('"').next().unwrap().split('|') {
                assert!(Reason::named(reason).is_some(), "{name} selects the reason{operator}{reason}, which there is not");
            }
        }
    }
    serde_json::from_str::<Value>(&file("files/dashboard.json")).unwrap();
}

/// Whether this user may do that in this namespace.
async fn may(client: &Client, user: &str, verb: &str, resource: &str, namespace: &str) -> bool {
    let attributes = json!({"group": "freehold.dev", "verb": verb, "resource": resource, "namespace": namespace});
    let review = serde_json::from_value(json!({"spec": {"user": user, "resourceAttributes": attributes}})).unwrap();
    let reviewed = Api::<SubjectAccessReview>::all(client.clone()).create(&PostParams::default(), &review).await.unwrap();
    reviewed.status.unwrap().allowed
}

#[test]
fn tenants_write_databases_and_never_what_they_are_made_of() {
    run(async {
        let client = house::control_plane().await.client();
        let name = "tenants";
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        let aggregated = template(name, &["--set", "rbac.create=false"]).await.unwrap();
        rights::give(&client, aggregated, &json!([])).await;
        for role in ["admin", "edit", "view"] {
            let binding = json!({
                "metadata": {"name": role}, "subjects": [{"kind": "User", "name": role}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            });
            let bindings = Api::<RoleBinding>::namespaced(client.clone(), name);
            bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
        }
        until("the built-in roles being added to", || async {
            let is_added = may(&client, "view", "get", "databases", name).await && may(&client, "edit", "create", "databases", name).await;
            seen((is_added && may(&client, "admin", "delete", "databases", name).await).then_some(()), || "not yet".to_owned())
        })
        .await;
        let writes = ["create", "update", "patch", "delete", "deletecollection"];
        for user in ["admin", "edit", "view"] {
            for resource in ["databases", "nodes", "volumes"] {
                assert!(may(&client, user, "list", resource, name).await, "{user} reads {resource}");
                for verb in writes {
                    let expected = resource == "databases" && user != "view";
                    assert_eq!(may(&client, user, verb, resource, name).await, expected, "{user} {verb} {resource}");
                }
            }
            for resource in ["databases/status", "nodes/status", "volumes/status", "nodeclasses"] {
                for verb in writes {
                    assert!(!may(&client, user, verb, resource, name).await, "{user} {verb} {resource}");
                }
            }
        }
    });
}

#[test]
fn an_operator_of_one_namespace_needs_no_rights_in_others() {
    run(async {
        let mut house = House::start_with("alone", Options { has_one_namespace: true, ..Options::default() }).await;
        house.create("orders", &json!({"deletionPolicy": "Snapshot"})).await;
        house.ready("orders").await;
        house.edit("orders", &json!({"running": false})).await;
        house.told("orders", "Ready", "False", "Paused").await;
        house.delete("orders").await;
        house.gone("orders").await;
        house.close().await;
    });
}

#[test]
#[ignore = "it judges a whole run of the other tests: .ci/run runs it after them"]
fn the_operator_has_no_right_that_it_does_not_use() {
    run(async {
        let granted = rights::granted(&rendered(&["--set", "rbac.aggregate=false"]).await);
        let used = rights::used();
        assert!(!used.is_empty(), "nothing was noted: run `cargo test` first");
        let unused: Vec<_> = granted.difference(&used).collect();
        assert!(unused.is_empty(), "no test made the operator use these rights of the chart (templates/_rules.tpl): {unused:#?}");
    });
}
