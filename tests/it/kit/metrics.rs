//! What the operator serves on `/metrics`, with a value in every metric: those with labels are served once
//! they have one.

use std::time::Duration;

use freehold::api::Database;
use freehold::metrics::Metrics;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use serde_json::json;

use super::objects;

/// The text.
pub fn text() -> String {
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
    let condition = json!({"type": "Ready", "status": "True", "reason": "AsExpected", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    database["status"] = json!({"conditions": [condition]});
    copy.apply_watcher_event(&Event::Apply(serde_json::from_value(database).unwrap()));
    metrics.text().unwrap()
}
