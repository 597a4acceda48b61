//! Compares what is with what is wanted, in the wanted fields only: what a server's defaults or a webhook
//! added is no difference.

use serde::Serialize;
use serde_json::Value;

/// Whether `live` holds everything that `wanted` asks for. Lists must have the same length, and each element
/// what is requested of it.
pub fn holds<T: Serialize>(live: &T, wanted: &T) -> bool {
    match (serde_json::to_value(live), serde_json::to_value(wanted)) {
        (Ok(live), Ok(wanted)) => value_holds(&live, &wanted),
        (Ok(_) | Err(_), _) => false,
    }
}

fn value_holds(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| live.get(key).is_some_and(|live| value_holds(live, wanted)))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len()
                && live.iter().zip(wanted).all(|(live, wanted)| value_holds(live, wanted))
        }
        (live, wanted) => live == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_others_add_is_no_difference_and_what_we_want_otherwise_is() {
        let live = json!({"a": 1, "list": [{"x": 1, "default": true}], "added": "by a webhook"});
        for (wanted, expected) in [
            (json!({"a": 1}), true),
            (json!({"list": [{"x": 1}]}), true),
            (json!({"a": 2}), false),
            (json!({"b": 1}), false),
            (json!({"list": []}), false),
            (json!({"list": [{"x": 1}, {"x": 2}]}), false),
            (json!({"list": [{"x": 2}]}), false),
        ] {
            assert_eq!(holds(&live, &wanted), expected, "{wanted}");
        }
    }
}
