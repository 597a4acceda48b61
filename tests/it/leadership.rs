//! Two operators: one acts, and another one follows when it ends, hangs, or is cut off; what must not run
//! beside it refuses to act and says why.

use ec2sim::{Fate, JournalEntry};
use freehold::leadership::scope::Scope;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client, Config};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::process::Operator;
use crate::kit::tap::{LAUNCHED, Point};
use crate::kit::test_env::{Beside, Options, TestEnv, run, short_terms};
use crate::kit::wait::{each, seen, until};

/// The numbers of the calls among these that would change something in EC2.
fn changes(calls: &[JournalEntry]) -> Vec<u64> {
    let changes = calls.iter().filter(|entry| !entry.action.starts_with("Describe") && !entry.dry_run);
    changes.map(|entry| entry.seq).collect()
}

/// A test environment whose operator may be followed by another one.
async fn env(name: &str) -> TestEnv {
    TestEnv::start_with(name, Options::with(short_terms())).await
}

/// What an operator answers on `/readyz`.
async fn readiness(operator: &Operator) -> Result<String, String> {
    let mut config = Config::new(operator.endpoints().await.parse().unwrap());
    // That it is not Ready is an answer.
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
    client.request_text(request).await.map_err(|error| error.to_string())
}

async fn stands_by(env: &TestEnv, beside: &Beside) {
    until("the second operator standing by", || async {
        let answer = readiness(&beside.operator).await?;
        seen((answer == format!("ok: standing by, {} leads\n", env.name)).then_some(()), || answer.clone())
    })
    .await;
}

async fn refuses(beside: &Beside, why: &str) {
    until("the second operator refusing to act", || async {
        let log = beside.operator.log();
        let says = log.lines().any(|line| line.contains("this operator does not act") && line.contains(why));
        seen(says.then_some(()), || log.clone())
    })
    .await;
    assert!(readiness(&beside.operator).await.is_err(), "it is not Ready");
}

/// An event on the Lease names this operator.
async fn announced(env: &TestEnv, leader: &str) {
    let events: Api<Event> = Api::namespaced(env.client.clone(), "kube-system");
    let (lease, expected) =
        (Scope::new([env.name.as_str()]).lease_name(), format!("operator {leader} leads from now on"));
    until("the announcement of the leader", || async {
        let all = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let of_lease = all
            .items
            .iter()
            .filter(|it| it.regarding.as_ref().and_then(|it| it.name.as_ref()) == Some(&lease));
        let notes: Vec<_> = of_lease.filter_map(|it| it.note.clone()).collect();
        seen(notes.contains(&expected).then_some(()), || notes.join("; "))
    })
    .await;
}

/// The first operator has made its last call before the second one made its first.
fn took_turns(env: &TestEnv, beside: &Beside) {
    let (first, second) = (env.calls_since(0), beside.calls(env));
    let (last, next) = (changes(&first).pop().unwrap(), changes(&second)[0]);
    assert!(last < next, "call {last} of the first operator is later than call {next} of the second");
}

async fn has_ended(env: &mut TestEnv) {
    let mut ended = None;
    for _ in 0..3000 {
        ended = env.operator_mut().ended();
        if ended.is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(ended, Some(false), "it ends with an error");
    let log = env.operator().log();
    assert!(log.contains("this operator does not lead any more, and ends"), "{log}");
}

#[test]
fn a_second_operator_calls_nothing_while_the_first_renews_and_follows_at_once_unless_it_must_not_run_beside()
{
    run(async {
        let mut env = env("second").await;
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        others_refuse(&env).await;
        let beside = env.start_beside("follower", &[]).await;
        stands_by(&env, &beside).await;
        env.create("ledger", &json!({})).await;
        env.ready("ledger").await;
        assert_eq!(beside.calls(&env), [], "it lists nothing, either");
        assert_eq!(beside.tap.writes_since(0).len(), 0);
        let (well, log) = env.stop_operator().await;
        assert!(well, "{log}");
        // A host that stalls for longer than passes are waited for: the Lease ends by itself then.
        let former = if log.contains("released the Lease") { String::new() } else { env.name.clone() };
        env.create("events", &json!({})).await;
        env.ready("events").await;
        took_turns(&env, &beside);
        for leader in [env.name.as_str(), "follower"] {
            announced(&env, leader).await;
        }
        let log = beside.operator.log();
        assert!(
            log.contains(&format!("\"former\":\"{former}\"")),
            "the former leader is not {former:?}: {log}"
        );
        drop(beside);
        env.close().await;
    });
}

/// What becomes of the first operator, in the middle of a launch.
#[derive(Clone, Copy, Debug)]
enum Blow {
    Killed,
    Stopped,
    CutOff,
}

#[test]
fn whatever_becomes_of_the_first_operator_in_the_middle_of_a_launch_the_second_ends_it_with_one_machine() {
    let cases = [("killed", Blow::Killed), ("stopped", Blow::Stopped), ("cut-off", Blow::CutOff)];
    let cases = cases.map(|(name, blow)| (format!("leader-{name}"), blow)).to_vec();
    run(each(cases, |name, blow| async move {
        let mut env = env(&name).await;
        let reached = env.tap.stop_at(LAUNCHED, Point::Before);
        // EC2 has launched it, and the id is not written.
        env.create("orders", &json!({})).await;
        env.reaches(LAUNCHED, reached).await;
        let beside = env.start_beside("follower", &[]).await;
        stands_by(&env, &beside).await;
        match blow {
            Blow::Killed => {
                env.kill_operator();
                env.tap.thaw();
            }
            Blow::Stopped => env.operator().pause(true),
            Blow::CutOff => {
                env.tap.cut(true);
                env.tap.thaw();
            }
        }
        env.ready("orders").await;
        took_turns(&env, &beside);
        match blow {
            Blow::Killed => {}
            Blow::Stopped => {
                // All that it had in hand goes on in the same moment.
                env.tap.thaw();
                env.operator().pause(false);
                has_ended(&mut env).await;
            }
            Blow::CutOff => {
                has_ended(&mut env).await;
                env.tap.cut(false);
            }
        }
        env.create("events", &json!({})).await;
        env.ready("events").await;
        took_turns(&env, &beside);
        assert_eq!((env.live_instances().len(), env.ec2().instances().len()), (2, 2), "one each");
        assert_eq!(env.data_volumes().len(), 2);
        drop(beside);
        env.close().await;
    }));
}

/// What must not run beside an operator refuses to act, and says why.
async fn others_refuse(env: &TestEnv) {
    let two = format!("{},refused-too", env.name);
    let cases = [
        ("release", [("installation", "elsewhere/freehold")], "uninstall one of the two"),
        ("scope", [("namespace", &two)], "let them watch different namespaces"),
        ("id", [("cluster-id", "another")], "with the cluster id"),
    ];
    for (identity, changes, why) in cases {
        let beside = env.start_beside(identity, &changes).await;
        refuses(&beside, why).await;
        assert_eq!((beside.calls(env), beside.tap.writes_since(0).len()), (vec![], 0), "{identity}");
    }
    assert!(env.calls_since(0).iter().all(|entry| entry.fate != Fate::Lost));
}
