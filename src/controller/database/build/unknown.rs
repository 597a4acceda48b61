//! Keeps the fields of a StatefulSet that the types of this program do not know: a newer API server has them,
//! and a write of the whole spec would remove them. Pure.

use k8s_openapi::api::apps::v1::StatefulSetSpec;
use serde_json::{Map, Value, json};

/// This spec with what the types do not know of the spec as it was sent. Whatever the types know is as
/// wanted.
pub fn with_unknown(sent: &Value, wanted: &Value) -> Value {
    match serde_json::from_value::<StatefulSetSpec>(sent.clone()) {
        Ok(known) => carried(sent, &json!(known), wanted),
        Err(_) => wanted.clone(),
    }
}

/// `known` is what the types hold of `sent`.
fn carried(sent: &Value, known: &Value, wanted: &Value) -> Value {
    match (sent, known, wanted) {
        (sent, known, wanted) if known == wanted => sent.clone(),
        (Value::Object(sent), Value::Object(known), Value::Object(wanted)) => {
            Value::Object(object(sent, known, wanted))
        }
        (Value::Array(sent), Value::Array(known), Value::Array(wanted)) => {
            Value::Array(wanted.iter().map(|item| element(sent, known, item)).collect())
        }
        (_, _, wanted) => wanted.clone(),
    }
}

fn object(
    sent: &Map<String, Value>,
    known: &Map<String, Value>,
    wanted: &Map<String, Value>,
) -> Map<String, Value> {
    let unknown = sent.iter().filter(|(key, _)| !known.contains_key(*key));
    let mut whole: Map<String, Value> = unknown.map(|(key, value)| (key.clone(), value.clone())).collect();
    for (key, wanted) in wanted {
        let value = match (sent.get(key), known.get(key)) {
            (Some(sent), Some(known)) => carried(sent, known, wanted),
            (Some(_) | None, _) => wanted.clone(),
        };
        whole.insert(key.clone(), value);
    }
    whole
}

/// An element is the one that equals it, or the one of its name, as in lists of containers and volumes.
fn element(sent: &[Value], known: &[Value], wanted: &Value) -> Value {
    let is_same = |item: &&Value| *item == wanted;
    let has_name = |item: &&Value| wanted.get("name").is_some_and(|name| item.get("name") == Some(name));
    let place = |is_it: &dyn Fn(&&Value) -> bool| known.iter().position(|item| is_it(&item));
    let Some(place) = place(&is_same).or_else(|| place(&has_name)) else { return wanted.clone() };
    match (sent.get(place), known.get(place)) {
        (Some(sent), Some(known)) => carried(sent, known, wanted),
        (Some(_) | None, _) => wanted.clone(),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn fields_that_the_types_do_not_know_stay_and_all_others_are_as_wanted() {
        let sent = json!({
            "replicas": 1, "serviceName": "pg", "fieldOf1.99": "kept", "selector": {"matchLabels": {"app": "pg"}},
            "template": {
                "metadata": {"labels": {"app": "pg"}},
                "spec": {
                    "affinity": {"nodeAffinity": {}, "moonAffinity": "goes with its parent"},
                    "schedulingGroup": {"name": "kept"},
                    "tolerations": [{"key": "db", "operator": "Exists", "untilMoon": 3}],
                    "containers": [
                        {"name": "pg", "image": "pg:1", "restartRules": ["kept"]},
                        {"name": "exporter", "image": "exporter:1", "restartRules": ["kept, too"]},
                    ],
                },
            },
        });
        let mut wanted = json!(serde_json::from_value::<StatefulSetSpec>(sent.clone()).unwrap());
        assert_eq!(wanted.get("fieldOf1.99"), None, "the types do not know it");
        wanted["updateStrategy"] = json!({"type": "OnDelete"});
        let pod = &mut wanted["template"]["spec"];
        pod.as_object_mut().unwrap().remove("affinity");
        pod["nodeSelector"] = json!({"a": "b"});
        pod["tolerations"].as_array_mut().unwrap().push(json!({"key": "ours"}));
        pod["containers"][0]["image"] = json!("pg:2");

        let mut expected = sent.clone();
        expected["updateStrategy"] = json!({"type": "OnDelete"});
        let pod = &mut expected["template"]["spec"];
        pod.as_object_mut().unwrap().remove("affinity");
        pod["nodeSelector"] = json!({"a": "b"});
        pod["tolerations"].as_array_mut().unwrap().push(json!({"key": "ours"}));
        pod["containers"][0]["image"] = json!("pg:2");
        assert_eq!(with_unknown(&sent, &wanted), expected);
    }

    #[test]
    fn what_cannot_be_read_adds_nothing() {
        let wanted = json!({"serviceName": "pg"});
        assert_eq!(with_unknown(&json!("no object"), &wanted), wanted);
    }
}
