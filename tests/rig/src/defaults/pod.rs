//! The defaults of pods and of pod templates.

use serde_json::{Value, json};

use crate::json::{items, set};

/// What a template and a pod have.
pub fn fill(spec: &mut Value) {
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
    ] {
        set(spec, field, value);
    }
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        set(spec, "serviceAccount", account);
    }
    items(spec, "volumes").for_each(volume);
    items(spec, "initContainers").for_each(container);
    items(spec, "containers").for_each(container);
}

/// What only a pod has.
pub fn fill_pod(spec: &mut Value) {
    set(spec, "enableServiceLinks", json!(true));
    for list in ["initContainers", "containers"] {
        for container in items(spec, list) {
            let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
            for (resource, limit) in limits {
                set(&mut container["resources"], "requests", json!({}));
                set(&mut container["resources"]["requests"], &resource, limit);
            }
        }
    }
}

fn volume(volume: &mut Value) {
    let has_source = volume.as_object().is_some_and(|it| it.len() > 1);
    if !has_source {
        set(volume, "emptyDir", json!({}));
    }
    for source in ["configMap", "secret", "projected", "downwardAPI"] {
        if let Some(source) = volume.get_mut(source) {
            set(source, "defaultMode", json!(420));
            for part in items(source, "sources") {
                if let Some(token) = part.get_mut("serviceAccountToken") {
                    set(token, "expirationSeconds", json!(3600));
                }
            }
            items(source, "items").for_each(field_reference);
        }
    }
    if let Some(path) = volume.get_mut("hostPath") {
        set(path, "type", json!(""));
    }
}

fn field_reference(holder: &mut Value) {
    if let Some(reference) = holder.get_mut("fieldRef") {
        set(reference, "apiVersion", json!("v1"));
    }
}

fn container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let tag = image.rsplit('/').next().and_then(|name| name.split_once(':')).map_or("latest", |(_, tag)| tag);
    let is_fixed = tag != "latest" || image.contains('@');
    set(container, "imagePullPolicy", json!(if is_fixed { "IfNotPresent" } else { "Always" }));
    set(container, "terminationMessagePath", json!("/dev/termination-log"));
    set(container, "terminationMessagePolicy", json!("File"));
    set(container, "resources", json!({}));
    items(container, "ports").for_each(|port| set(port, "protocol", json!("TCP")));
    for variable in items(container, "env") {
        if let Some(from) = variable.get_mut("valueFrom") {
            field_reference(from);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            for (field, value) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                set(probe, field, json!(value));
            }
            http_get(probe);
            if let Some(grpc) = probe.get_mut("grpc") {
                set(grpc, "service", json!(""));
            }
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = container.get_mut("lifecycle").and_then(|it| it.get_mut(hook)) {
            http_get(hook);
        }
    }
}

fn http_get(holder: &mut Value) {
    if let Some(get) = holder.get_mut("httpGet") {
        set(get, "path", json!("/"));
        set(get, "scheme", json!("HTTP"));
    }
}
