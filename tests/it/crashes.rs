//! SIGKILL of the shipped binary during every effect that costs money or remembers it.

use freehold::api::Database;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::tap::{Point, Which};
use crate::kit::test_env::{Options, TestEnv, run};

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

/// The first write of a life.
const FINALIZER: Which = Which { method: "PATCH", path: "/databases/", body: &["\"finalizers\""] };

/// Whether the operator has put its finalizer on the Database.
async fn has_finalizer(env: &TestEnv) -> bool {
    env.api::<Database>().get("orders").await.unwrap().metadata.finalizers.is_some()
}

/// The rig kills at every write (`lives`); this shows that a process which is killed leaves what its last
/// requests did, and that one which it had not sent was never carried out.
#[test]
fn kills_whose_answers_are_lost_at_every_point_of_a_creation_leave_one_machine_and_one_disk() {
    run(async {
        let options = Options { tapped_ec2: true, ..Options::default() };
        let mut env = TestEnv::build("crashes", options).await;
        env.create("orders", &json!({})).await;
        for (point, is_there) in [(Point::Before, false), (Point::AnswerLost, true)] {
            let reached = env.tap.stop_at(FINALIZER, point);
            env.start_operator();
            env.kill_at(FINALIZER, reached).await;
            assert_eq!(has_finalizer(&env).await, is_there, "{point:?}");
        }
        for (effect, which) in EFFECTS {
            let reached = env.tap.stop_at(which, Point::AnswerLost);
            env.start_operator();
            env.kill_at(which, reached).await;
            eprintln!("killed at {effect}");
        }
        env.start_operator();
        env.ready("orders").await;
        assert_eq!((env.live_instances().len(), env.ec2().instances().len()), (1, 1));
        assert_eq!(env.data_volumes().len(), 1);
        env.close().await;
    });
}
