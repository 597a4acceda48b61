//! What a driver can do to the rig's API server: refuse, lose and delay requests, cut and silence watches,
//! and read afterwards what was written.

use std::time::Duration;

use freehold_rig::{Call, Clock, Fault, Server, Verb};
use futures::{Stream, StreamExt as _};
use http::header::RETRY_AFTER;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::kit::test_env::run;

/// The time of these servers, which stands still.
const NOW: i64 = 1_767_225_600;

/// How long a watch may take to say what it knows already.
const LIMIT: Duration = Duration::from_secs(60);

fn server() -> Server {
    Server::new(Clock::new(|| Timestamp::from_second(NOW).unwrap()))
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

async fn create(api: &Api<ConfigMap>, name: &str) -> Result<ConfigMap, kube::Error> {
    api.create(&PostParams::default(), &map(name)).await
}

/// Does this to every creation.
fn at_creations(server: &Server, fault: Fault) {
    let decide = move |call: &Call| (call.verb == Verb::Create).then(|| fault.clone());
    server.decide(Some(Box::new(decide)));
}

#[test]
fn a_refused_request_is_not_carried_out() {
    run(async {
        for code in [409, 410, 429, 500, 503, 504] {
            let server = server();
            let api = maps(&server.client("test"));
            at_creations(&server, Fault::Refuse { code, retry_after: None });
            let error = create(&api, "a").await.unwrap_err();
            assert!(matches!(error, kube::Error::Api(status) if status.code == code), "{code}");
            assert!(server.object("configmaps", "default", "a").is_none());
            assert!(server.journal().is_empty());
            server.decide(None);
            create(&api, "a").await.unwrap();
        }
    });
}

#[test]
fn a_refusal_can_say_when_to_come_again() {
    run(async {
        let server = server();
        at_creations(&server, Fault::Refuse { code: 429, retry_after: Some(7) });
        let request = http::Request::post("/api/v1/namespaces/default/configmaps").body(Body::empty());
        let response = server.client("test").send(request.unwrap()).await.unwrap();
        assert_eq!(response.headers()[RETRY_AFTER], "7");
    });
}

#[test]
fn a_request_that_is_lost_is_not_carried_out_and_one_whose_answer_is_lost_is() {
    run(async {
        for (fault, is_done) in [(Fault::LoseRequest, false), (Fault::LoseAnswer, true)] {
            let server = server();
            let api = maps(&server.client("test"));
            at_creations(&server, fault);
            let error = create(&api, "a").await.unwrap_err();
            assert!(!matches!(error, kube::Error::Api(_)), "{error}");
            assert_eq!(server.object("configmaps", "default", "a").is_some(), is_done);
            assert_eq!(server.journal().len(), usize::from(is_done));
        }
    });
}

#[test]
fn a_delayed_request_is_carried_out_and_answered() {
    run(async {
        for fault in
            [Fault::DelayRequest(Duration::from_millis(1)), Fault::DelayAnswer(Duration::from_millis(1))]
        {
            let server = server();
            at_creations(&server, fault);
            create(&maps(&server.client("test")), "a").await.unwrap();
        }
    });
}

#[test]
fn the_journal_says_who_wrote_what_in_which_order() {
    run(async {
        let server = server();
        let (one, two) = (maps(&server.client("one")), maps(&server.client("two")));
        create(&one, "a").await.unwrap();
        let patch = json!({"data": {"k": "v"}});
        let params = PatchParams { field_manager: Some("x".to_owned()), ..PatchParams::default() };
        two.patch("a", &params, &Patch::Merge(&patch)).await.unwrap();
        two.patch("a", &params, &Patch::Merge(&patch)).await.unwrap();
        one.get("a").await.unwrap();
        one.delete("none", &DeleteParams::default()).await.unwrap_err();
        let journal = server.journal();
        let seen: Vec<_> = journal
            .iter()
            .map(|it| (it.caller.as_str(), it.verb, it.name.as_str(), it.code, it.after - it.before))
            .collect();
        let wanted = [
            ("one", Verb::Create, "a", 201, 1),
            ("two", Verb::Patch, "a", 200, 1),
            ("two", Verb::Patch, "a", 200, 0),
            ("one", Verb::Delete, "none", 404, 0),
        ];
        assert_eq!(seen, wanted);
        let second = &journal[1];
        assert_eq!(
            (second.content_type.as_str(), second.manager.as_str()),
            ("application/merge-patch+json", "x")
        );
        assert_eq!((&second.body, second.at), (&patch, Timestamp::from_second(NOW).unwrap()));
    });
}

#[test]
fn the_same_requests_get_the_same_answers() {
    run(async {
        let mut answers = Vec::new();
        for _ in 0..2 {
            let api = maps(&server().client("test"));
            let mut made = map("");
            made.metadata.generate_name = Some("a-".to_owned());
            answers.push(api.create(&PostParams::default(), &made).await.unwrap());
        }
        assert_eq!(answers[0], answers[1]);
    });
}

/// The next event of a watcher, in short.
async fn next(
    events: &mut (impl Stream<Item = watcher::Result<watcher::Event<ConfigMap>>> + Unpin),
) -> String {
    let event = tokio::time::timeout(LIMIT, events.next()).await.expect("an event").unwrap();
    match event {
        Ok(watcher::Event::Init) => "init".to_owned(),
        Ok(watcher::Event::InitApply(it)) => format!("known {}", it.name_any()),
        Ok(watcher::Event::InitDone) => "done".to_owned(),
        Ok(watcher::Event::Apply(it)) => format!("changed {}", it.name_any()),
        Ok(watcher::Event::Delete(it)) => format!("gone {}", it.name_any()),
        Err(error) => format!("error {error}"),
    }
}

/// A watcher of no ConfigMap yet, which has said so.
async fn watching(
    api: &Api<ConfigMap>,
) -> impl Stream<Item = watcher::Result<watcher::Event<ConfigMap>>> + Unpin + use<> {
    let mut events = Box::pin(watcher(api.clone(), watcher::Config::default()));
    assert_eq!(next(&mut events).await, "init");
    assert_eq!(next(&mut events).await, "done");
    events
}

#[test]
fn a_watcher_goes_on_where_it_was_when_it_is_cut_off() {
    run(async {
        for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
            let server = server();
            let api = maps(&server.client("test"));
            create(&api, "a").await.unwrap();
            let mut events = Box::pin(watcher(api.clone(), config));
            for wanted in ["init", "known a", "done"] {
                assert_eq!(next(&mut events).await, wanted);
            }
            create(&api, "b").await.unwrap();
            assert_eq!(next(&mut events).await, "changed b");
            server.drop_watches();
            api.delete("a", &DeleteParams::default()).await.unwrap();
            assert_eq!(next(&mut events).await, "gone a");
        }
    });
}

#[test]
fn a_watcher_whose_past_is_forgotten_lists_anew() {
    run(async {
        let server = server();
        let api = maps(&server.client("test"));
        let mut events = watching(&api).await;
        server.silence("configmaps", true);
        create(&api, "a").await.unwrap();
        create(&api, "b").await.unwrap();
        api.delete("a", &DeleteParams::default()).await.unwrap();
        server.compact();
        server.drop_watches();
        server.silence("configmaps", false);
        assert!(next(&mut events).await.contains("too old resource version"), "the watch ends with 410");
        for wanted in ["init", "known b", "done"] {
            assert_eq!(next(&mut events).await, wanted);
        }
    });
}

#[test]
fn a_silent_watch_says_afterwards_what_was_missed() {
    run(async {
        let server = server();
        let api = maps(&server.client("test"));
        let mut events = watching(&api).await;
        server.silence("configmaps", true);
        create(&api, "a").await.unwrap();
        assert!(futures::poll!(events.next()).is_pending());
        server.silence("configmaps", false);
        assert_eq!(next(&mut events).await, "changed a");
    });
}
