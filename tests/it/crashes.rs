//! SIGKILL of the shipped binary during every effect that costs money or remembers it.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::tap::{Point, Which};
use crate::kit::test_env::{Options, TestEnv, run};
use crate::kit::wait::each;

/// The effects of the two creations, in their order.
const EFFECTS: [(&str, Which); 6] = [
    ("node-intent", Which { method: "PATCH", path: "/nodes/", body: &["\"creation\"", "\"clientToken\""] }),
    ("run-instances", Which { method: "POST", path: "/", body: &["Action=RunInstances"] }),
    ("node-id", Which { method: "PATCH", path: "/nodes/", body: &["\"instanceID\""] }),
    (
        "volume-intent",
        Which { method: "PATCH", path: "/volumes/", body: &["\"creation\"", "\"clientToken\""] },
    ),
    ("create-volume", Which { method: "POST", path: "/", body: &["Action=CreateVolume"] }),
    ("volume-id", Which { method: "PATCH", path: "/volumes/", body: &["\"volumeID\""] }),
];

/// The rig kills at every write (`lives`); this shows that a process which is killed leaves what its last
/// requests did.
#[test]
fn a_kill_whose_answer_is_lost_at_any_point_of_a_creation_leaves_one_machine_and_one_disk() {
    let cases = EFFECTS.map(|(effect, which)| (format!("kill-{effect}"), which)).to_vec();
    run(each(cases, |name, which| async move {
        let mut env = TestEnv::build(&name, Options { tapped_ec2: true, ..Options::default() }).await;
        let reached = env.tap.stop_at(which, Point::AnswerLost);
        env.start_operator();
        env.create("orders", &json!({})).await;
        env.kill_at(which, reached).await;
        env.start_operator();
        env.ready("orders").await;
        assert_eq!((env.live_instances().len(), env.ec2().instances().len()), (1, 1));
        assert_eq!(env.data_volumes().len(), 1);
        env.close().await;
    }));
}
