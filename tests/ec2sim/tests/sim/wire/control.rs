//! The control API, and the journal as others read it.

use super::http::{RUN, Server, options};

#[tokio::test]
async fn time_is_stepped_and_the_truth_is_shown() {
    let server = Server::start(options()).await;
    server.call(&RUN).await.unwrap();
    assert_eq!(server.control("GET", "/_sim/health", "").await.json()["ok"], true);
    let state = server.control("GET", "/_sim/state", "").await.json();
    assert_eq!(state["instances"][0]["state"], "pending");
    assert_eq!(server.control("POST", "/_sim/advance", r#"{"seconds": 1.5}"#).await.status, 200);
    let state = server.control("GET", "/_sim/state", "").await.json();
    assert_eq!(state["now"], "2026-03-01T00:00:01.5Z");
    assert_eq!(state["instances"][0]["state"], "running");
    assert_eq!(state["volumes"][0]["attachment"]["state"], "attached");
    server.stop().await;
}

#[tokio::test]
async fn faults_are_set_and_cleared() {
    let server = Server::start(options()).await;
    let fault = r#"[{"id": "away", "effect": {"error": {"code": "Unavailable"}}}, {"action": "RunInstances",
        "nth": 2, "effect": "drop-before"}]"#;
    assert_eq!(server.control("POST", "/_sim/faults", fault).await.json()["ids"][0], "away");
    assert_eq!(server.control("GET", "/_sim/faults", "").await.json().as_array().unwrap().len(), 2);
    assert_eq!(server.call(&RUN).await.unwrap().status, 503);
    assert_eq!(server.control("DELETE", "/_sim/faults?id=away", "").await.status, 204);
    server.call(&RUN).await.unwrap_err();
    assert_eq!(server.control("DELETE", "/_sim/faults", "").await.status, 204);
    assert_eq!(server.call(&RUN).await.unwrap().status, 200);
    let wrong = server.control("POST", "/_sim/faults", r#"{"effect": "drop-before", "colour": "red"}"#).await;
    assert_eq!(wrong.status, 422, "{}", wrong.body);
    server.stop().await;
}

#[tokio::test]
async fn things_happen_from_outside() {
    let server = Server::start(options()).await;
    server.call(&RUN).await.unwrap();
    server.control("POST", "/_sim/advance", r#"{"seconds": 1}"#).await;
    let id = server.sim.instances()[0].id.clone();
    let impair = format!(r#"{{"id": "{id}", "what": "impair"}}"#);
    assert_eq!(server.control("POST", "/_sim/outside", &impair).await.status, 204);
    let console = format!(r#"{{"id": "{id}", "what": {{"console": "kernel panic"}}}}"#);
    assert_eq!(server.control("POST", "/_sim/outside", &console).await.status, 204);
    let state = server.control("GET", "/_sim/state", "").await.json();
    assert_eq!(state["instances"][0]["instance_status"], "impaired");
    let output = server.call(&[("Action", "GetConsoleOutput"), ("InstanceId", &id)]).await.unwrap();
    assert_eq!(output.text("output"), Some("a2VybmVsIHBhbmljCg=="));
    let nobody = server.control("POST", "/_sim/outside", r#"{"id": "i-0", "what": "stop"}"#).await;
    assert_eq!(nobody.status, 404);
    server.stop().await;
}

#[tokio::test]
async fn the_journal_tells_each_call_and_never_the_user_data() {
    let server = Server::start(options()).await;
    let secret = [("UserData", "c2VjcmV0"), ("TagSpecification.1.ResourceType", "instance")];
    let tags = [("TagSpecification.1.Tag.1.Key", "owner"), ("TagSpecification.1.Tag.1.Value", "me")];
    server.call(&[&RUN[..], &secret, &tags].concat()).await.unwrap();
    server.call(&[("Action", "DescribeInstances")]).await.unwrap();
    let journal = server.control("GET", "/_sim/journal", "").await;
    assert!(!journal.body.contains("c2VjcmV0"));
    let first = &journal.json()[0];
    assert_eq!(first["action"], "RunInstances");
    assert_eq!(first["caller"], "tester");
    assert_eq!(first["token"], "token-1");
    assert_eq!(first["tags"]["owner"], "me");
    assert_eq!(first["answer"], "ok");
    assert_eq!(first["fate"], "committed");
    assert_eq!(first["resources"][0], server.sim.instances()[0].id.as_str());
    assert_eq!(first["parameters"]["InstanceType"], "r7i.large");
    let rest = server.control("GET", "/_sim/journal?since=1", "").await.json();
    assert_eq!((rest.as_array().unwrap().len(), &rest[0]["fate"]), (1, &"read".into()));
    server.stop().await;
}

#[tokio::test]
async fn those_who_watch_hear_of_what_calls_and_time_change() {
    let mut options = options();
    options.clock = ec2sim::Clock::Running { speed: 100.0 };
    let server = Server::start(options).await;
    let mut changes = server.sim.changes();
    server.call(&RUN).await.unwrap();
    changes.changed().await.unwrap();
    while server.sim.instances()[0].state != ec2sim::InstanceState::Running {
        changes.changed().await.unwrap();
    }
    server.stop().await;
}
