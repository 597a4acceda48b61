//! Names the fields in which two templates of a pod differ. Values of variables, arguments and files are
//! never among them: they may hold passwords. Pure.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, PodTemplateSpec};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The fields that differ, each by a short path; the image and the resources of a container with their
/// values.
pub fn changed_fields(before: &PodTemplateSpec, after: &PodTemplateSpec) -> Vec<String> {
    let of_metadata = fields(&before.metadata, &after.metadata);
    let mut changed: Vec<String> = of_metadata.into_iter().map(|field| format!("metadata.{field}")).collect();
    let containers = |template: &PodTemplateSpec| -> Vec<Container> {
        template.spec.as_ref().map(|pod| pod.containers.clone()).unwrap_or_default()
    };
    let is_listed = |field: &String| field != "containers";
    let of_pod = fields(&before.spec, &after.spec).into_iter().filter(is_listed);
    changed.extend(of_pod.map(|field| format!("spec.{field}")));
    changed.extend(changed_containers(&containers(before), &containers(after)));
    changed
}

/// The names of the fields that differ.
fn fields<T: Serialize>(before: &T, after: &T) -> Vec<String> {
    let (before, after) = (object(before), object(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    names.into_iter().filter(|name| before.get(*name) != after.get(*name)).cloned().collect()
}

fn object<T: Serialize>(value: &T) -> Map<String, Value> {
    match json!(value) {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

fn changed_containers(before: &[Container], after: &[Container]) -> Vec<String> {
    let named = |containers: &[Container], name: &str| {
        containers.iter().find(|container| container.name == name).cloned()
    };
    let all: BTreeSet<&str> = before.iter().chain(after).map(|it| it.name.as_str()).collect();
    let mut changed = Vec::new();
    for name in all {
        let path = format!("containers[{name}]");
        let (Some(before), Some(after)) = (named(before, name), named(after, name)) else {
            changed.push(path);
            continue;
        };
        for field in fields(&before, &after) {
            changed.push(match field.as_str() {
                "image" => {
                    format!("{path}.image: {} → {}", shown(&json!(before.image)), shown(&json!(after.image)))
                }
                "resources" => format!(
                    "{path}.resources: {} → {}",
                    shown(&json!(before.resources)),
                    shown(&json!(after.resources))
                ),
                _ => format!("{path}.{field}"),
            });
        }
    }
    changed
}

/// A value that is no secret.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn template(value: Value) -> PodTemplateSpec {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn fields_that_differ_are_named_and_no_value_that_may_be_a_secret_is_shown() {
        let before = template(json!({
            "metadata": {"labels": {"app": "pg"}},
            "spec": {
                "affinity": {}, "hostNetwork": true,
                "containers": [
                    {"name": "pg", "image": "pg:1", "args": ["--password=one"],
                        "env": [{"name": "PASSWORD", "value": "one"}]},
                    {"name": "old"},
                ],
            },
        }));
        let after = template(json!({
            "metadata": {"labels": {"app": "pg"}, "annotations": {"a": "b"}},
            "spec": {
                "nodeSelector": {"a": "b"}, "hostNetwork": true,
                "containers": [
                    {"name": "pg", "image": "pg:2", "args": ["--password=two"],
                        "env": [{"name": "PASSWORD", "value": "two"}],
                        "resources": {"limits": {"memory": "2Gi"}}},
                    {"name": "new"},
                ],
            },
        }));
        let expected = [
            "metadata.annotations",
            "spec.affinity",
            "spec.nodeSelector",
            "containers[new]",
            "containers[old]",
            "containers[pg].args",
            "containers[pg].env",
            "containers[pg].image: pg:1 → pg:2",
            r#"containers[pg].resources: none → {"limits":{"memory":"2Gi"}}"#,
        ];
        assert_eq!(changed_fields(&before, &after), expected);
        assert_eq!(changed_fields(&after, &after), [] as [&str; 0]);
    }
}
