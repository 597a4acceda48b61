//! What the chart gives the Prometheus operator: the alerts that promtool tests, how the metrics are read.

use std::collections::BTreeSet;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{EVERY_VALUE, file, rendered};
use crate::kit::chart::{documents, of_kind};
use crate::kit::test_env::run;

/// The alerts as promtool tests them.
fn tested() -> Value {
    documents(&file("files/rules.yaml")).remove(0)
}

/// The rules of all groups.
fn rules_of(spec: &Value) -> Vec<Value> {
    let groups = spec["groups"].as_array().unwrap().iter();
    groups.flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

#[test]
fn the_alerts_are_those_that_promtool_tests() {
    run(async {
        let rendered = rendered(&["--set", "prometheusRule.enabled=true"]).await;
        assert_eq!(of_kind(&rendered, "PrometheusRule")[0]["spec"], tested());
    });
}

#[test]
fn an_alert_can_be_changed_or_left_out_and_names_its_runbook() {
    run(async {
        let mut expected = Vec::new();
        for mut rule in rules_of(&tested()) {
            let name = rule["alert"].as_str().unwrap().to_owned();
            if name == "FreeholdEc2Throttled" {
                continue;
            }
            let runbook = format!("https://docs.test/runbooks#{}", name.to_lowercase());
            rule["annotations"]["runbook_url"] = json!(runbook);
            if name == "FreeholdDiskNearlyFull" {
                rule["expr"] = json!("free_share < 0.2");
                rule["for"] = json!("90s");
                rule["labels"]["severity"] = json!("page");
                rule["annotations"]["dashboard"] = json!("disks");
            }
            expected.push(rule);
        }
        let rendered = rendered(&["--values", EVERY_VALUE]).await;
        assert_eq!(rules_of(&of_kind(&rendered, "PrometheusRule")[0]["spec"]), expected);
    });
}

#[test]
fn the_schema_knows_every_alert() {
    let schema: Value = serde_json::from_str(&file("values.schema.json")).unwrap();
    let alerts = schema["properties"]["prometheusRule"]["properties"]["alerts"]["properties"].clone();
    let known: BTreeSet<String> = alerts.as_object().unwrap().keys().cloned().collect();
    let rules = rules_of(&tested());
    assert_eq!(known, rules.iter().map(|rule| rule["alert"].as_str().unwrap().to_owned()).collect());
}

#[test]
fn a_group_without_alerts_is_left_out() {
    run(async {
        let names = rules_of(&tested()).into_iter().map(|rule| rule["alert"].as_str().unwrap().to_owned());
        let off: Vec<String> =
            names.map(|name| format!("prometheusRule.alerts.{name}.enabled=false")).collect();
        let rendered = rendered(&["--set", "prometheusRule.enabled=true", "--set", &off.join(",")]).await;
        assert_eq!(of_kind(&rendered, "PrometheusRule")[0]["spec"], json!({"groups": []}));
    });
}

#[test]
fn the_metrics_are_read_as_the_values_say() {
    run(async {
        let endpoint = |rendered: &[Value]| {
            let monitor = of_kind(rendered, "ServiceMonitor")[0];
            (monitor["metadata"]["namespace"].clone(), monitor["spec"]["endpoints"].clone())
        };
        let default = rendered(&["--set", "serviceMonitor.enabled=true"]).await;
        assert_eq!(
            endpoint(&default),
            (json!("freehold-system"), json!([{"port": "metrics", "interval": "30s", "honorLabels": true}]))
        );
        let every = rendered(&["--values", EVERY_VALUE]).await;
        let expected = json!([{
            "port": "metrics", "interval": "15s", "scrapeTimeout": "7s", "honorLabels": true,
            "relabelings": [{"targetLabel": "cluster", "replacement": "production"}],
            "metricRelabelings": [{"action": "labeldrop", "regex": "pod_template_hash"}],
        }]);
        assert_eq!(endpoint(&every), (json!("of-the-monitors"), expected));
        let selected = &of_kind(&every, "ServiceMonitor")[0]["spec"]["namespaceSelector"];
        assert_eq!(selected, &json!({"matchNames": ["freehold-system"]}), "the Service stays where it is");
    });
}
