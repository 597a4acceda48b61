//! What became of launches, and when one that EC2 ended is reported.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::at;
use crate::api::node_class_status::EndedLaunch;
use crate::api::{InstanceId, Node};
use crate::controller::node_class::launches::{Launch, Outcome, ended, of};

pub(super) fn ended_launch(second: i64) -> EndedLaunch {
    EndedLaunch { instance_id: InstanceId("i-1".into()), launched_at: Time(at(second)) }
}

fn launch(second: i64, key: &str, outcome: Outcome) -> Launch {
    Launch {
        started_at: at(second),
        instance_type: "r7i.large".to_owned(),
        kms_key_id: Some(key.to_owned()),
        outcome,
    }
}

#[test]
fn a_launch_that_ec2_ended_is_reported_until_one_runs_or_the_key_changes() {
    let dead = || Outcome::Ended(InstanceId("i-1".into()));
    let rows = [
        ("nothing was launched", None, vec![], None),
        ("it ran", None, vec![launch(1, "key", Outcome::Ran)], None),
        ("it is starting", None, vec![launch(1, "key", Outcome::Unknown)], None),
        ("it was ended", None, vec![launch(1, "key", dead())], Some(ended_launch(1))),
        ("with another key", None, vec![launch(1, "other", dead())], None),
        ("the next one ran", None, vec![launch(1, "key", dead()), launch(2, "key", Outcome::Ran)], None),
        (
            "one ran before",
            None,
            vec![launch(2, "key", dead()), launch(1, "key", Outcome::Ran)],
            Some(ended_launch(2)),
        ),
        ("EC2 shows it no more", Some(ended_launch(1)), vec![], Some(ended_launch(1))),
        (
            "the next one is starting",
            Some(ended_launch(1)),
            vec![launch(2, "key", Outcome::Unknown)],
            Some(ended_launch(1)),
        ),
        (
            "another runs since long before",
            Some(ended_launch(2)),
            vec![launch(1, "key", Outcome::Ran)],
            Some(ended_launch(2)),
        ),
        ("a later one runs", Some(ended_launch(1)), vec![launch(2, "key", Outcome::Ran)], None),
    ];
    for (name, known, launches, expected) in rows {
        assert_eq!(ended(Some(&"key".to_owned()), known.as_ref(), &launches), expected, "{name}");
    }
}

#[test]
fn what_became_of_a_launch_is_read_of_the_node_and_of_ec2() {
    let node = |launched: &str| -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "orders-1"},
            "spec": {"nodeClassName": "default", "instanceTypes": ["r7i.large"]},
            "status": {
                "instanceID": "i-1",
                "conditions": [{
                    "type": "Launched", "status": launched, "reason": "AsExpected", "message": "",
                    "lastTransitionTime": "2027-01-01T00:00:00Z",
                }],
                "creation": {
                    "attempt": 1, "startedAt": "2027-01-01T00:00:00Z", "clientToken": "t", "tags": {},
                    "subnetID": "subnet-a", "instanceType": "r7i.large", "imageID": "ami-1",
                    "kmsKeyID": "key",
                    "rootVolume": {}, "zone": "us-east-1a", "userDataHash": "",
                },
            },
        }))
        .unwrap()
    };
    let outcome = |launched: &str, reason: Option<&str>| of(&node(launched), reason).unwrap().outcome;
    let dead = Outcome::Ended(InstanceId("i-1".into()));
    assert_eq!(outcome("False", Some("Client.InternalError: Client error on launch")), dead);
    assert_eq!(outcome("True", None), Outcome::Ran);
    assert_eq!(outcome("False", None), Outcome::Unknown);
    for other in ["Client.UserInitiatedShutdown", "Server.InsufficientInstanceCapacity: none"] {
        assert_eq!(outcome("False", Some(other)), Outcome::Unknown, "{other}");
    }
    assert_eq!(of(&node("True"), None).unwrap().kms_key_id.as_deref(), Some("key"));
    let mut unlaunched = node("False");
    unlaunched.status.as_mut().unwrap().creation = None;
    assert_eq!(of(&unlaunched, None), None);
}
