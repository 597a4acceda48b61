//! The garbage collector: what no owner is left of goes, and what is deleted in the foreground waits for what
//! it owns.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::hand::{Hand, text};
use super::seen::{is_going, without};
use crate::server::Server;
use crate::store::Key;

/// One look.
pub fn collect(server: &Server) {
    let hand = Hand::of(server, "generic-garbage-collector");
    let all = server.everything();
    let uids: BTreeSet<&str> = all.iter().map(|(_, it)| text(&it["metadata"]["uid"])).collect();
    for (key, object) in &all {
        let owners = owners(object);
        let is_orphan = !owners.is_empty() && owners.iter().all(|it| !uids.contains(text(&it["uid"])));
        if is_orphan && !is_going(object) {
            hand.delete(&key.0, object, &json!({"propagationPolicy": "Background"}));
        }
        if is_going(object) {
            finish(&hand, &all, key, object);
        }
    }
}

fn owners(object: &Value) -> Vec<Value> {
    object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default()
}

/// Deletes or orphans what an object owns, and takes the finalizer off that waited for it.
fn finish(hand: &Hand<'_>, all: &[(Key, Arc<Value>)], key: &Key, object: &Value) {
    let uid = &object["metadata"]["uid"];
    let owned = || all.iter().filter(|(_, it)| owners(it).iter().any(|owner| owner["uid"] == *uid));
    let release = |finalizers: Vec<Value>| {
        let patch = json!({"metadata": {"resourceVersion": object["metadata"]["resourceVersion"],
            "finalizers": finalizers}});
        hand.merge(&key.0, object, "", &patch);
    };
    if let Some(finalizers) = without(object, "orphan") {
        for (kind, dependent) in owned() {
            let left: Vec<Value> = owners(dependent).into_iter().filter(|it| it["uid"] != *uid).collect();
            hand.merge(&kind.0, dependent, "", &json!({"metadata": {"ownerReferences": left}}));
        }
        release(finalizers);
    } else if let Some(finalizers) = without(object, "foregroundDeletion") {
        for (kind, dependent) in owned().filter(|(_, it)| !is_going(it)) {
            hand.delete(&kind.0, dependent, &json!({"propagationPolicy": "Foreground"}));
        }
        let is_waited_for = |dependent: &Value| {
            owners(dependent).iter().any(|it| it["uid"] == *uid && it["blockOwnerDeletion"] == true)
        };
        if !owned().any(|(_, it)| is_waited_for(it)) {
            release(finalizers);
        }
    }
}
