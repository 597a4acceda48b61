//! The chart, without installing it: what it renders, what it refuses, and what its alerts stand on.

mod admission;
mod every_object;
mod monitoring;
mod pod;
mod priority_class;
mod readme;
mod rights;
mod storage_class;
mod versions;

use std::collections::BTreeSet;
use std::path::Path;

use clap::{CommandFactory as _, Parser};
use freehold::api::Reason;
use freehold::definitions;
use freehold::settings::Settings;
use kube::ResourceExt as _;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::chart::{CHART, documents, helm, of_kind, template};
use crate::kit::metrics;
use crate::kit::test_env::run;

/// Every value, set to what is not its default.
const EVERY_VALUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/chart/every-value.yaml");

fn file(path: &str) -> String {
    std::fs::read_to_string(Path::new(CHART).join(path)).unwrap()
}

async fn rendered(args: &[&str]) -> Vec<Value> {
    template("freehold-system", args).await.unwrap()
}

/// The JSON pointers of everything that is not a table itself, or is an empty one.
fn leaves(value: &Value, path: &str, all: &mut Vec<(String, Value)>) {
    match value.as_object().filter(|fields| !fields.is_empty()) {
        Some(fields) => {
            for (key, field) in fields {
                leaves(field, &format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), all);
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
        let generated = definitions::all()
            .map(|definition| (definition.name_any(), serde_json::to_value(definition).unwrap()));
        for (name, definition) in generated {
            let same = found.iter().find(|found| found["metadata"]["name"] == name.as_str());
            assert_eq!(same, Some(&definition), "{name}");
        }
        assert_eq!(found.len(), 7);
    });
}

/// A copy of a folder as GitOps tools have it: without links.
fn copy_without_links(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (kind, to) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy_without_links(&entry.path(), &to);
        } else if kind.is_file() {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// fluxcd/flux2#4088: a GitRepository drops links, and a chart whose definitions are one installs none.
#[test]
fn the_chart_renders_the_same_without_links_and_fails_without_its_definitions() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        copy_without_links(Path::new(CHART), folder.path());
        let copy = folder.path().to_str().unwrap();
        let rendered = helm(&["template", "freehold", copy, "--namespace", "freehold-system"]).await.unwrap();
        assert_eq!(documents(&rendered), self::rendered(&[]).await);
        std::fs::remove_dir_all(folder.path().join("files/crds")).unwrap();
        let error = helm(&["template", "freehold", copy]).await.unwrap_err();
        assert!(error.contains("files/crds does not hold the seven resource definitions"), "{error}");
    });
}

/// Those of `every-value.yaml` with what its switches take away.
async fn everything() -> String {
    let switches = "storageClass.create=true,serviceAccount.create=true,rbac.aggregate=true,\
        databasePriorityClass.create=true,admissionPolicies.enabled=true,podDisruptionBudget.enabled=true";
    let args = ["template", "freehold", CHART, "--namespace", "here", "--values", EVERY_VALUE];
    helm(&[&args[..], &["--set", switches]].concat()).await.unwrap()
}

/// The texts and numbers in a value; a switch and an empty table have none.
fn texts_of(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Array(items) => items
            .iter()
            .flat_map(leaves_of)
            .filter_map(|(_, leaf)| leaf.as_str().map(str::to_owned))
            .collect(),
        Value::Object(_) | Value::Bool(_) | Value::Null => Vec::new(),
    }
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
        let text = everything().await;
        for (path, value) in leaves_of(&every) {
            for value in texts_of(&value) {
                assert!(text.contains(&value), "{path}: {value} is nowhere in\n{text}");
            }
        }
        let off = "networkPolicy.enabled=false,rbac.create=false";
        let without = rendered(&["--values", EVERY_VALUE, "--set", off]).await;
        let kinds: BTreeSet<_> = without.iter().map(|document| document["kind"].as_str().unwrap()).collect();
        let kept =
            ["ConfigMap", "Deployment", "ExternalSecret", "PrometheusRule", "Service", "ServiceMonitor"];
        assert_eq!(kinds, BTreeSet::from(kept));
    });
}

#[test]
fn every_switch_has_its_effect() {
    run(async {
        let every = documents(&std::fs::read_to_string(EVERY_VALUE).unwrap()).remove(0);
        let as_set = rendered(&["--values", EVERY_VALUE]).await;
        let mut switches = 0;
        for (path, value) in leaves_of(&every) {
            let Some(is_on) = value.as_bool() else { continue };
            let other = format!("{}={}", path.trim_start_matches('/').replace('/', "."), !is_on);
            assert!(
                rendered(&["--values", EVERY_VALUE, "--set", &other]).await != as_set,
                "{other} changes nothing"
            );
            switches += 1;
        }
        assert!(switches > 8, "{switches}");
    });
}

#[test]
fn a_value_that_is_not_known_is_refused() {
    run(async {
        for wrong in [
            "replicas=0",
            "podDisruptionBudget.minAvailable=1",
            "image.repo=x",
            "settings.sweep=1",
            "settings.requeue-interval=soon",
            "image.pullPolicy=Sometimes",
            "extraArgs[0]=run",
            "extraVolumeMounts[0].name=x",
            "storageClass.reclaimPolicy=Delete",
            "databasePriorityClass.value=2000000000",
            "admissionPolicies.enabled=maybe",
            "dnsPolicy=Cluster",
            "prometheusRule.alerts.FreeholdUp.enabled=false",
            "prometheusRule.runbookUrl=docs/runbooks.md",
            "serviceMonitor.scrapeTimeout=soon",
        ] {
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
    let known: BTreeSet<String> =
        schema["properties"]["settings"]["properties"].as_object().unwrap().keys().cloned().collect();
    let line = Line::command();
    // These are values of their own, or for tests.
    let apart = [
        "cluster-id",
        "database-priority-class",
        "installation",
        "kubelet-account",
        "leader-elect-identity",
        "namespace",
        "log-format",
        "listen",
        "time-scale",
        "metrics-from",
        "operator-from",
        "wal-archive-to",
        "dns",
    ];
    let flags =
        line.get_arguments().filter_map(|argument| argument.get_long()).filter(|flag| !apart.contains(flag));
    assert_eq!(
        known,
        flags.map(str::to_owned).collect(),
        "charts/freehold/values.schema.json lists the operator's settings"
    );
}

#[test]
fn alerts_and_dashboard_stand_on_metrics_that_the_operator_has() {
    let text = metrics::text();
    let exist: BTreeSet<String> =
        text.lines().filter_map(|line| Some(line.split_once(['{', ' '])?.0.to_owned())).collect();
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
            let Some((operator, rest)) =
                rest.split_once('"').filter(|(operator, _)| ["=", "=~", "!=", "!~"].contains(operator))
            else {
                continue;
            };
            for reason in rest.split('"').next().unwrap().split('|') {
                assert!(
                    Reason::named(reason).is_some(),
                    "{name} selects the reason{operator}{reason}, which there is not"
                );
            }
        }
    }
    serde_json::from_str::<Value>(&file("files/dashboard.json")).unwrap();
}
