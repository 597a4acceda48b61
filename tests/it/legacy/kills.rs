//! The adopter and the operator die after each of their writes: a database is adopted and released all the
//! same, and until then its deletion leaves it as it was found.

use std::process::Stdio;

use freehold::api::Database;
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio::process::{Child, Command};

use super::{Found, as_found, calls_that_matter, found, permit, pod_run, spec};
use crate::kit::adopter::environment;
use crate::kit::env::Env;
use crate::kit::objects::Told as _;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::tap::{ANY_CHANGE, Point, Which};
use crate::kit::test_env::{Options, TestEnv, run};
use crate::kit::wait::{seen, until, within};
use crate::lives::life::CALM;

/// More writes than an adoption or a release has: one that makes no progress ends here.
const MOST: usize = 120;

/// What the command does in EC2, in its order.
const ADOPTER: [Which; 3] = [
    Which { method: "POST", path: "/", body: &["Action=CreateSnapshot"] },
    Which { method: "POST", path: "/", body: &["Action=CreateTags", "vol-"] },
    Which { method: "POST", path: "/", body: &["Action=CreateTags", "i-"] },
];

/// `freehold adopt --write`, with EC2 behind the tap.
fn adopter(env: &TestEnv, found: &Found) -> Child {
    Command::new(env!("CARGO_BIN_EXE_freehold"))
        .args(["adopt", "--write", "--timeout", "0", "--database", "orders", "--node-class", &env.name])
        .args(["--statefulset", &format!("{}/{}", env.name, found.legacy.name)])
        .args(["--instance-type", "m7i.large", "--cluster-id", &env.name])
        .envs(environment(env, env.tapped_ec2()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Runs the operator again and again, each time until its first or its second write, until the fact holds.
/// What a pass changes and then records in the status takes two: one that always dies between them repeats
/// the first, which changes nothing more.
async fn dying(env: &mut TestEnv, what: &str, fact: impl AsyncFn(&TestEnv) -> bool) {
    for round in 0..MOST {
        let mut reached = env.tap.stop_later(ANY_CHANGE, round % 2, Point::After);
        env.start_operator();
        let is_over = until(&format!("a write, or {what}"), || {
            let has_written = reached.try_recv().is_ok();
            let fact = fact(env);
            async move {
                let is_so = fact.await;
                seen((has_written || is_so).then_some(is_so), || "neither".to_owned())
            }
        })
        .await;
        env.kill_operator();
        env.tap.disarm();
        env.tap.thaw();
        if is_over {
            return;
        }
    }
    let writes = env.tap.writes_since(0);
    let last: Vec<String> =
        writes.iter().rev().take(8).map(|it| format!("{} {}", it.path, it.body)).collect();
    panic!("{MOST} runs, each of few writes, did not bring {what}; the newest first: {last:#?}");
}

async fn is_ready(env: &impl Env) -> bool {
    env.api::<Database>().get("orders").await.unwrap().condition("Ready").0 == "True"
}

async fn is_gone(env: &TestEnv) -> bool {
    env.api::<Database>().get_opt("orders").await.unwrap().is_none()
}

#[test]
fn an_adopter_and_an_operator_that_die_after_each_write_adopt_a_database_and_release_it() {
    run(async {
        let mut env =
            TestEnv::build("legacy-dying", Options { tapped_ec2: true, ..Options::default() }).await;
        let found = found(&env).await;
        for which in ADOPTER {
            let reached = env.tap.stop_at(which, Point::After);
            let mut adopter = adopter(&env, &found);
            env.reaches(which, reached).await;
            adopter.kill().await.unwrap();
            env.tap.thaw();
        }
        assert_eq!(adopter(&env, &found).wait().await.unwrap().code(), Some(1), "it is not Ready within 0 s");
        assert_eq!(env.list::<Database>().await.len(), 1);

        dying(&mut env, "the database being adopted", is_ready).await;
        assert_eq!(pod_run(&env, &found.legacy).await, found.run);
        let calls = calls_that_matter(&env, &found);
        assert!(
            matches!(calls.as_slice(), [it] if it.starts_with("CreateSnapshot by AKIAPERSON")),
            "{calls:?}"
        );

        env.edit("orders", &json!({"release": true})).await;
        env.delete("orders").await;
        dying(&mut env, "the database being released", is_gone).await;
        env.start_operator();
        as_found(&env, &found).await;
        assert_eq!(pod_run(&env, &found.legacy).await, found.run);
        let calls = calls_that_matter(&env, &found);
        assert!(
            matches!(calls.as_slice(), [it] if it.starts_with("CreateSnapshot by AKIAPERSON")),
            "{calls:?}"
        );
        env.close().await;
    });
}

#[test]
fn an_adoption_that_is_given_up_after_any_of_its_writes_leaves_the_database_as_it_was_found() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let found = found(&env).await;
        permit(&env, &found, "orders");
        let mut is_adopted = false;
        for writes in 0..MOST {
            env.kill_operator_after(writes);
            env.create("orders", &spec(&found)).await;
            is_adopted = within(CALM, "another write, or the adoption", || async {
                let is_dead = env.house.chaos.is_dead();
                let is_adopted = !is_dead && is_ready(&env).await;
                seen((is_dead || is_adopted).then_some(is_adopted), || "neither".to_owned())
            })
            .await;
            env.edit("orders", &json!({"release": true})).await;
            env.delete("orders").await;
            env.gone("orders").await;
            as_found(&env, &found).await;
            assert_eq!(pod_run(&env, &found.legacy).await, found.run, "after {writes} writes");
            assert_eq!(calls_that_matter(&env, &found), Vec::<String>::new(), "after {writes} writes");
            if is_adopted {
                break;
            }
        }
        assert!(is_adopted, "the last round is a whole adoption");
        env.close().await;
    });
}
