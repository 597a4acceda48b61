//! A hundred databases at rest, the end and the restart of their operator, and its own endpoints.

use std::collections::BTreeMap;
use std::time::Duration;

use ec2sim::JournalEntry;
use freehold::api::{Database, Node, Volume};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::{Client, Config, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::permits::Share;
use crate::kit::tap::{LAUNCHED, Point, Seen};
use crate::kit::test_env::{Options, TestEnv, run};
use crate::kit::wait::{seen, until, within};

/// How many databases.
const FLEET: usize = 100;

/// How many sweeps the operator is watched at rest for.
const SWEEPS: usize = 10;

/// The most calls to EC2 in a minute at rest.
const CALLS_A_MINUTE: f64 = 5.0;

/// Where the events of elections are.
const ELECTIONS: &str = "/apis/events.k8s.io/v1/namespaces/kube-system/events";

/// The whole fleet's creation, on a machine that compiles meanwhile.
const LIMIT: Duration = Duration::from_mins(10);

/// Everything that must not change by a restart: each object with its version.
async fn versions(env: &TestEnv) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut add = |kind: &str, name: String, version: Option<String>| {
        all.insert(format!("{kind}/{name}"), version.unwrap_or_default())
    };
    for object in env.list::<Database>().await {
        add("database", object.name_any(), object.resource_version());
    }
    for object in env.list::<Node>().await {
        add("node", object.name_any(), object.resource_version());
    }
    for object in env.list::<Volume>().await {
        add("volume", object.name_any(), object.resource_version());
    }
    for object in env.list::<PersistentVolumeClaim>().await {
        add("claim", object.name_any(), object.resource_version());
    }
    all
}

/// Lists of all instances of the cluster: the sweeps.
fn sweeps(calls: &[JournalEntry]) -> usize {
    let is_sweep = |entry: &&JournalEntry| {
        entry.action == "DescribeInstances"
            && entry.parameters.values().any(|value| value == "tag:freehold.dev/cluster-id")
            && !entry.parameters.keys().any(|key| key.contains("NextToken"))
    };
    calls.iter().filter(is_sweep).count()
}

/// Waits until the operator has swept this often since the mark, and gives its calls.
async fn swept(env: &TestEnv, mark: u64, times: usize) -> Vec<JournalEntry> {
    within(LIMIT, "the operator's sweeps", || async {
        let calls = env.calls_since(mark);
        seen((sweeps(&calls) >= times).then(|| calls.clone()), || format!("{} sweeps", sweeps(&calls)))
    })
    .await
}

fn mutating(calls: &[JournalEntry]) -> Vec<&JournalEntry> {
    calls.iter().filter(|entry| !entry.action.starts_with("Describe")).collect()
}

#[test]
fn a_hundred_databases_at_rest_cost_five_reads_a_minute_and_a_restart_changes_nothing() {
    run(async {
        // The default proportions, but for how long a machine may take to join and to be well again: a
        // hundred of them join one after another, and neither plays a part at rest.
        let settings = BTreeMap::from([("registration-timeout", 7200), ("loss-grace-period", 7200)]);
        let mut env = TestEnv::start_with(
            "fleet",
            Options { scale: 20, settings, share: Share::Half, ..Options::default() },
        )
        .await;
        for number in 0..FLEET {
            env.create(&format!("db-{number:03}"), &json!({})).await;
        }
        within(LIMIT, "every database being Ready", || async {
            let databases = env.list::<Database>().await;
            let waiting: Vec<_> =
                databases.iter().filter(|database| database.condition("Ready").0 != "True").collect();
            let first = waiting.first().map(|database| (database.name_any(), database.condition("Ready")));
            seen(first.is_none().then_some(()), || format!("{} are not, such as {first:?}", waiting.len()))
        })
        .await;
        let made = env.mutations();
        assert_eq!(
            made,
            BTreeMap::from([("RunInstances".to_owned(), FLEET), ("CreateVolume".to_owned(), FLEET)])
        );

        // What followed the last Ready is over when a whole sweep's time brings no write.
        within(LIMIT, "the operator coming to rest", || async {
            let mark = env.tap.mark();
            swept(&env, env.mark(), 2).await;
            let writes = env.tap.writes_since(mark);
            seen(writes.is_empty().then_some(()), || format!("{writes:?}"))
        })
        .await;
        let (writes, mark, began) = (env.tap.mark(), env.mark(), env.ec2().now());
        let calls = swept(&env, mark, SWEEPS).await;
        let minutes = env.ec2().now().duration_since(began).as_secs_f64() / 60.0;
        assert_eq!(mutating(&calls), Vec::<&JournalEntry>::new());
        let written: Vec<_> = env
            .tap
            .writes_since(writes)
            .into_iter()
            .map(|seen| (seen.method, seen.path, seen.body))
            .collect();
        assert_eq!(written, []);
        let most = CALLS_A_MINUTE * minutes.ceil();
        let calls = u32::try_from(calls.len()).unwrap();
        assert!(f64::from(calls) <= most, "{calls} calls in {minutes:.1} min");

        let before = versions(&env).await;
        let (clean, log) = env.stop_operator().await;
        assert!(clean, "the operator's end was not 0: {log}");
        let (writes, mark) = (env.tap.mark(), env.mark());
        env.start_operator();
        let calls = swept(&env, mark, 4).await;
        assert_eq!(mutating(&calls), Vec::<&JournalEntry>::new());
        let is_election = |seen: &Seen| seen.path == ELECTIONS && seen.body.contains("\"LeaderElection\"");
        let (elections, others): (Vec<_>, Vec<_>) =
            env.tap.writes_since(writes).into_iter().partition(is_election);
        assert_eq!(elections.len(), 1, "that this operator leads now is told once: {elections:?}");
        let written: Vec<_> = others.into_iter().map(|seen| (seen.method, seen.path, seen.body)).collect();
        assert_eq!(written, []);
        assert_eq!(versions(&env).await, before);
        env.close().await;
    });
}

/// What the operator answers at its endpoints.
async fn get(env: &TestEnv, path: &str) -> kube::Result<String> {
    let mut config = Config::new(env.operator().endpoints().await.parse().unwrap());
    // That it is not Ready is an answer.
    config.default_retry = false;
    let endpoints = Client::try_from(config).unwrap();
    endpoints.request_text(http::Request::get(path).body(Vec::new()).unwrap()).await
}

async fn until_measured(env: &TestEnv, line: &str) {
    until(line, || async {
        let metrics = get(env, "/metrics").await.map_err(|error| error.to_string())?;
        seen(metrics.contains(line).then_some(()), || metrics)
    })
    .await;
}

/// Without EC2 the operator is alive, and says that it is not ready.
async fn without_ec2(env: &mut TestEnv) {
    env.ec2().add_fault(ec2sim::Fault::always(ec2sim::Effect::Throttle));
    env.start_operator();
    until("the operator being alive", || async {
        get(env, "/livez").await.map_err(|error| error.to_string())
    })
    .await;
    let refused = get(env, "/readyz").await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 503));
    until_measured(env, "freehold_ec2_calls_total{action=\"DescribeInstances\",outcome=\"throttled\"}").await;
    env.ec2().clear_faults();
    until("the operator being ready", || async {
        get(env, "/readyz").await.map_err(|error| error.to_string())
    })
    .await;
}

#[test]
fn the_operator_answers_at_its_endpoints_and_ends_with_0_at_sigterm() {
    run(async {
        let mut env = TestEnv::build("endpoints", Options::default()).await;
        without_ec2(&mut env).await;
        crate::life::is_not_found(&env).await;
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        crate::life::is_found(&env).await;
        assert_eq!(get(&env, "/livez").await.unwrap(), "ok\n");
        assert_eq!(get(&env, "/readyz").await.unwrap(), "ok\n");
        let metrics = get(&env, "/metrics").await.unwrap();
        assert!(metrics.contains("freehold_passes_total") && metrics.ends_with("# EOF\n"), "{metrics}");
        let condition = "freehold_condition{kind=\"Database\",namespace=\"endpoints\",name=\"orders\"";
        until_measured(&env, &format!("{condition},type=\"Ready\",status=\"True\"")).await;

        // In the middle of a creation, so that there is something to end in good order.
        let reached = env.tap.stop_at(LAUNCHED, Point::After);
        env.create("second", &json!({})).await;
        env.reaches(LAUNCHED, reached).await;
        env.tap.thaw();
        let (clean, log) = env.stop_operator().await;
        assert!(clean, "the operator's end was not 0: {log}");
        env.start_operator();
        env.ready("second").await;
        assert_eq!((env.ec2().instances().len(), env.data_volumes().len()), (2, 2));
        env.close().await;
    });
}
