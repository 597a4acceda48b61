//! The namespace controller: what is in a namespace that is being deleted is deleted, each by its own
//! finalizers, and when nothing is left the namespace goes.

use serde_json::json;

use super::hand::{Hand, text};
use super::seen::is_going;
use crate::server::Server;

/// One look.
pub fn empty(server: &Server) {
    let going = server.objects("namespaces").into_iter().filter(|it| is_going(it));
    for namespace in going {
        let hand = Hand::of(server, "namespace-controller");
        let mut is_empty = true;
        for (key, object) in server.everything() {
            if key.1 != text(&namespace["metadata"]["name"]) {
                continue;
            }
            is_empty = false;
            if !is_going(&object) {
                hand.delete(&key.0, &object, &json!({"propagationPolicy": "Background"}));
            }
        }
        if is_empty {
            hand.finalize(&namespace);
        }
    }
}
