//! What is read of a kubelet's answer, and where it is asked.

mod tls;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;

fn said(answer: &Value) -> Result<DiskUsage, Unmeasured> {
    usage(answer.to_string().as_bytes(), "team-a", "orders-k3f9q")
}

fn volume(namespace: &str, claim: &str, capacity: Value, available: Value) -> Value {
    json!({"name": "data", "pvcRef": {"name": claim, "namespace": namespace}, "capacityBytes": capacity,
        "availableBytes": available, "usedBytes": 1, "inodes": 9, "time": "2026-01-01T00:00:00Z"})
}

fn of(volumes: &[Value]) -> Value {
    json!({"node": {"nodeName": "n"}, "pods": [{"podRef": {"name": "other"}}, {"volume": volumes}]})
}

#[test]
fn the_file_system_is_that_of_the_claim_of_this_name_and_namespace() {
    let answer = of(&[
        json!({"name": "tmp", "capacityBytes": 5, "availableBytes": 5}),
        volume("team-b", "orders-k3f9q", json!(7), json!(7)),
        volume("team-a", "orders-k3f9q", json!(1000), json!(145)),
    ]);
    assert_eq!(said(&answer), Ok(DiskUsage { capacity: 1000, available: 145 }));
    assert_eq!(said(&answer).map(DiskUsage::used_percent), Ok(85));
    assert_eq!(said(&of(&[])), Err(Unmeasured::NotMounted));
    assert_eq!(said(&json!({})), Err(Unmeasured::NotMounted));
}

#[test]
fn what_cannot_be_is_no_reading() {
    let cases = [
        (json!(0), json!(0)),
        (json!(100), json!(101)),
        (json!(-5), json!(-7)),
        (json!(1e30), json!(1)),
        (Value::Null, json!(5)),
        (json!(100), Value::Null),
        (json!("100"), json!("5")),
    ];
    for (capacity, available) in cases {
        let answer = of(&[volume("team-a", "orders-k3f9q", capacity, available)]);
        assert_eq!(said(&answer), Err(Unmeasured::Unreadable), "{answer}");
    }
    assert_eq!(usage(b"<html>", "team-a", "orders-k3f9q"), Err(Unmeasured::Unreadable));
}

#[test]
fn a_full_and_an_empty_file_system_have_percentages() {
    let percent = |capacity, available| DiskUsage { capacity, available }.used_percent();
    assert_eq!([percent(100, 0), percent(100, 100), percent(u64::MAX, 1)], [100, 0, 99]);
}

#[test]
fn the_kubelet_is_where_its_kubernetes_node_says() {
    let core_node = |address: &str| -> CoreNode {
        serde_json::from_value(json!({"status": {
            "addresses": [{"type": "Hostname", "address": "ip-10-0-0-1"},
                {"type": "InternalIP", "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}}))
        .unwrap()
    };
    let url = |address| url(&core_node(address)).map(|url| url.to_string());
    assert_eq!(url("10.0.0.1").as_deref(), Some("https://10.0.0.1:10250/"));
    assert_eq!(url("fd00::1").as_deref(), Some("https://[fd00::1]:10250/"));
    assert_eq!(url("evil.example/@10.0.0.1"), None);
    assert_eq!(super::url(&CoreNode::default()), None);
}
