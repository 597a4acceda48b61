//! The status of a Database in each situation: every condition, always.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::api::DatabaseStatus;
use crate::controller::database::plan::plan;
use crate::controller::database::status::{Decided, changes, status};
use crate::controller::pass::acted::{ActError, Acted};

fn status_after(world: &Observed, error: Option<ActError>) -> DatabaseStatus {
    let acted = Acted { error, ..Acted::new(world.database.clone()) };
    status(world, &Decided::of(world, &plan(world, now()), &acted), &acted, now())
}

pub(super) fn status_of(world: &Observed) -> DatabaseStatus {
    status_after(world, None)
}

fn decided(world: &Observed) -> Decided {
    Decided::of(world, &plan(world, now()), &Acted::new(world.database.clone()))
}

/// The conditions, each as `Type=Status/Reason`.
fn conditions(status: &DatabaseStatus) -> Vec<String> {
    status
        .conditions
        .iter()
        .map(|condition| format!("{}={}/{}", condition.type_, condition.status, condition.reason))
        .collect()
}

fn refused(code: u16, reason: &str) -> ActError {
    let answer = kube::core::Status::failure("exceeded quota", reason).with_code(code);
    ActError::from(kube::Error::Api(answer.boxed()))
}

#[test]
fn the_version_that_was_started_is_recorded_and_never_goes_back() {
    let version = |spec: &str, started: bool, known: Option<&str>| {
        let mut world = settled_as(json!({"engine": {"type": "questdb", "version": spec}}));
        world.database.status.as_mut().unwrap().engine_version = known.map(str::to_owned);
        if !started {
            let state = json!({"waiting": {"reason": "ImagePullBackOff"}});
            let pending = json!({"phase": "Pending", "containerStatuses": [container_status(state)]});
            world.pod = world.pod.take().map(|pod| pod_with(pod, pending));
        }
        status_of(&world).engine_version
    };
    assert_eq!(version("9.3.5", true, Some("9.3.4")).as_deref(), Some("9.3.5"));
    assert_eq!(version("9.3.5", false, Some("9.3.4")).as_deref(), Some("9.3.4"), "it never started");
    assert_eq!(version("9.3.5", true, Some("9.4.0")).as_deref(), Some("9.4.0"));
    assert_eq!(version("9.3.5", false, None), None);
}

#[test]
fn a_database_is_available_while_its_engine_answers_at_its_service() {
    let of = |world: &Observed| {
        let shown = conditions(&status_of(world));
        let one = |kind: &str| shown.iter().find_map(|it| it.strip_prefix(kind)).unwrap().to_owned();
        (one("Ready="), one("Available="))
    };
    let is = |ready: &str, available: &str| (ready.to_owned(), available.to_owned());
    let serving = "True/AsExpected";
    assert_eq!(of(&settled()), is(serving, serving));
    // Whatever of the spec is not carried out.
    assert_eq!(of(&edited(json!({"engine": {"type": "questdb", "version": "9.3.5"}}))).1, serving);
    let invalid = edited(json!({"engine": {"type": "questdb"}}));
    assert_eq!(of(&invalid), is("False/InvalidSpec", serving));
    let mut taken = settled();
    taken.service = Child::Foreign;
    assert_eq!(of(&taken), is("False/NameConflict", "False/Pending"));
    let mut failing = settled();
    let state = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let status = json!({"phase": "Running", "containerStatuses": [container_status(state)]});
    failing.pod = failing.pod.take().map(|pod| pod_with(pod, status));
    assert_eq!(of(&failing), is("False/EngineFailing", "False/EngineFailing"));
    let mut paused = settled_as(json!({"running": false}));
    paused.pod = None;
    assert_eq!(of(&paused).1, "False/Paused");
}

#[test]
fn a_replacement_that_begins_again_within_the_same_second_stays_recorded() {
    let mut world = edited(json!({"instanceTypes": ["m7i.large"]}));
    let started = |world: &Observed| {
        let actions = plan(world, now()).actions;
        actions.into_iter().find_map(|action| {
            let Action::CreateNode(ordinal, _, replacement) = action else { return None };
            Some((ordinal, replacement))
        })
    };
    let (ordinal, replacement) = started(&world).expect("another machine is created");
    // The answer to the record was lost, and the pass ended there.
    let status = world.database.status.as_mut().unwrap();
    (status.node_ordinal, status.replacement) = (Some(ordinal), replacement.clone());
    assert_eq!(started(&world), Some((ordinal, replacement.clone())));
    assert_eq!(status_of(&world).replacement, replacement);
}

#[test]
fn a_settled_database_is_ready_and_says_where_it_is() {
    let new = status_of(&settled());
    let expected = [
        "Ready=True/AsExpected",
        "Available=True/AsExpected",
        "NodeReady=True/AsExpected",
        "VolumeReady=True/AsExpected",
        "EngineReady=True/AsExpected",
        "Stalled=False/Progressing",
    ];
    assert_eq!(conditions(&new), expected);
    assert!(new.conditions.iter().all(|condition| condition.observed_generation == Some(3)));
    let DatabaseStatus {
        observed_generation,
        conditions: _,
        zone,
        instance_type,
        node_ordinal,
        node_name,
        volume_name,
        endpoint,
        credentials_secret_name,
        binding: Some(_),
        password_generation: None,
        config: None,
        tls: None,
        wal_archive: None,
        auto_grow: None,
        served: Some(served),
        replacement,
        run,
        engine_version,
        volume_deletion_policy: None,
        not_starting: None,
        first_ready_at,
        applied,
        adoption: None,
        release: None,
        restored: None,
        restored_in_place: None,
        upgrade: None,
        initialization: None,
        history,
    } = new
    else {
        panic!("nothing was adopted or is released");
    };
    assert_eq!(first_ready_at.map(|at| at.0), Some(now()));
    assert_eq!((served.pod_uid.as_str(), &served.went_back), ("pod-uid", &None));
    let applied = applied.unwrap().stateful_set.map(|set| (set.uid, set.generation));
    assert_eq!(applied, Some(("set-uid".into(), 5)));
    assert_eq!((replacement, history, run.unwrap().pod_uid.as_str()), (None, Vec::new(), "pod-uid"));
    assert_eq!((observed_generation, engine_version.as_deref()), (Some(3), Some("9.3.4")));
    assert_eq!((zone.as_deref(), instance_type.as_deref()), (Some(ZONE), Some("r7i.large")));
    assert_eq!(
        (node_ordinal, node_name.as_deref(), volume_name.as_deref()),
        (Some(1), Some("orders-gqmgm-1"), Some("orders-gqmgm"))
    );
    let endpoint = endpoint.unwrap();
    assert_eq!(endpoint.host, "orders.team-a.svc");
    assert_eq!(
        endpoint.ports.into_iter().collect::<Vec<_>>(),
        [("http".to_owned(), 9000), ("pgwire".to_owned(), 8812)]
    );
    assert_eq!(credentials_secret_name.as_deref(), Some("orders-admin"));
}

#[test]
fn a_status_that_was_written_is_not_written_again() {
    let mut world = settled();
    world.database.status = Some(status_of(&world));
    let later = at(now().as_second() + 3600);
    let acted = Acted::new(world.database.clone());
    assert_eq!(
        Some(status(&world, &Decided::of(&world, &plan(&world, later), &acted), &acted, later)),
        world.database.status
    );
}

#[test]
fn the_time_at_which_it_was_ready_first_is_kept() {
    let mut world = settled();
    let first = Some(Time(at(1)));
    world.database.status.as_mut().unwrap().first_ready_at.clone_from(&first);
    assert_eq!(status_of(&world).first_ready_at, first);
    let mut never = settled();
    never.pod = None;
    assert_eq!(status_of(&never).first_ready_at, None);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn every_condition_is_told_in_every_situation() {
    let mut deleted = settled();
    deleting(&mut deleted.database, 1);
    let mut paused = edited(json!({"running": false}));
    (paused.nodes, paused.pod) = (Vec::new(), None);
    let mut failing = settled();
    let state = json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}});
    failing.pod = failing.pod.map(|pod| {
        pod_with(
            pod,
            json!({"phase": "Pending",
    "containerStatuses": [container_status(state)]}),
        )
    });
    let mut conflict = settled();
    conflict.service = Child::Foreign;
    let mut unreadable = settled();
    unreadable.credentials = Credentials::Unreadable("forbidden".to_owned());
    let rows: Vec<(&str, Observed, [&str; 6])> = vec![
        (
            "new",
            empty(json!({}), json!({})),
            [
                "False/AwaitingNode",
                "False/AwaitingPod",
                "False/AwaitingNode",
                "False/AwaitingVolume",
                "False/AwaitingPod",
                "False/Progressing",
            ],
        ),
        (
            "being deleted",
            deleted,
            [
                "False/Deleting",
                "True/AsExpected",
                "True/AsExpected",
                "True/AsExpected",
                "True/AsExpected",
                "False/Progressing",
            ],
        ),
        (
            "paused",
            paused,
            [
                "False/Paused",
                "False/Paused",
                "False/Paused",
                "True/AsExpected",
                "False/Paused",
                "False/Progressing",
            ],
        ),
        (
            "invalid",
            edited(json!({"storage": {"size": "50Gi"}})),
            [
                "False/InvalidSpec",
                "True/AsExpected",
                "True/AsExpected",
                "True/AsExpected",
                "True/AsExpected",
                "True/InvalidSpec",
            ],
        ),
        (
            "the engine fails",
            failing,
            [
                "False/EngineFailing",
                "False/EngineFailing",
                "True/AsExpected",
                "True/AsExpected",
                "False/EngineFailing",
                "False/Progressing",
            ],
        ),
        (
            "a changed version",
            edited(json!({"engine": {"type": "questdb", "version": "9.3.5"}})),
            [
                "False/RestartPending",
                "True/AsExpected",
                "True/AsExpected",
                "True/AsExpected",
                "False/RestartPending",
                "False/Progressing",
            ],
        ),
        (
            "a name is taken",
            conflict,
            [
                "False/NameConflict",
                "False/Pending",
                "True/AsExpected",
                "True/AsExpected",
                "True/AsExpected",
                "True/NameConflict",
            ],
        ),
        (
            "no credentials",
            unreadable,
            [
                "False/CredentialsUnreadable",
                "True/AsExpected",
                "True/AsExpected",
                "True/AsExpected",
                "True/AsExpected",
                "True/CredentialsUnreadable",
            ],
        ),
    ];
    for (name, world, expected) in rows {
        let new = status_of(&world);
        let kinds = ["Ready", "Available", "NodeReady", "VolumeReady", "EngineReady", "Stalled"];
        let expected: Vec<String> =
            kinds.into_iter().zip(expected).map(|(kind, rest)| format!("{kind}={rest}")).collect();
        assert_eq!(conditions(&new), expected, "{name}");
        assert!(new.conditions.iter().all(|condition| !condition.message.is_empty()), "{name}: {new:?}");
    }
}

#[test]
fn an_edit_is_not_ready_until_the_child_has_seen_it() {
    let new = status_of(&edited(json!({"storage": {"size": "200Gi"}})));
    assert_eq!(conditions(&new)[0], "Ready=False/Progressing");
}

#[test]
fn a_child_that_the_api_server_refuses_is_told_from_a_failed_call() {
    let world = empty(json!({}), json!({}));
    let new = status_after(&world, Some(refused(403, "Forbidden")));
    assert_eq!(conditions(&new)[0], "Ready=False/ChildRefused");
    assert!(new.conditions[0].message.contains("exceeded quota"), "{:?}", new.conditions[0]);
    assert_eq!(
        conditions(&status_after(&world, Some(refused(500, "InternalError"))))[0],
        "Ready=False/Progressing"
    );
}

#[test]
fn an_answer_that_the_view_is_old_or_the_name_taken_means_to_look_again() {
    for (code, reason, expected) in
        [(409, "Conflict", true), (409, "AlreadyExists", true), (403, "Forbidden", false), (500, "x", false)]
    {
        assert_eq!(refused(code, reason).is_conflict(), expected, "{code} {reason}");
    }
}

#[test]
fn a_paused_database_remembers_its_last_node_for_the_next_ordinal() {
    let mut world = edited(json!({"running": false}));
    (world.nodes, world.pod) = (Vec::new(), None);
    let new = status_of(&world);
    assert_eq!((new.node_name.as_deref(), new.instance_type), (Some("orders-gqmgm-1"), None));
}

#[test]
fn a_person_is_told_of_each_change_once() {
    let worlds = || {
        let mut paused = edited(json!({"running": false}));
        (paused.nodes, paused.pod) = (Vec::new(), None);
        let mut failing = settled();
        let state = json!({"waiting": {"reason": "ErrImagePull", "message": "m"}});
        failing.pod = failing.pod.map(|pod| {
            pod_with(
                pod,
                json!({"phase": "Pending",
        "containerStatuses": [container_status(state)]}),
            )
        });
        (
            empty(json!({}), json!({})),
            settled(),
            paused,
            failing,
            edited(json!({"storage": {"size": "50Gi"}})),
        )
    };
    let (new, ready, paused, failing, invalid) = worlds();
    let rows = [
        ("it became ready", &new, &ready, vec!["Ready"]),
        ("it stays ready", &ready, &ready, vec![]),
        ("it was paused", &ready, &paused, vec!["MachineReleased"]),
        ("it stays paused", &paused, &paused, vec![]),
        ("it was resumed", &paused, &ready, vec!["Ready"]),
        ("its engine fails", &ready, &failing, vec!["NotReady", "EngineFailing"]),
        ("its engine still fails", &failing, &failing, vec![]),
        ("its spec cannot be", &ready, &invalid, vec!["NotReady", "Stalled"]),
        ("it is taken up again", &invalid, &ready, vec!["Ready"]),
    ];
    for (name, old, new, expected) in rows {
        let happened = changes(&status_of(old), &status_of(new), &decided(new));
        assert_eq!(
            happened.iter().map(|happened| happened.reason.as_str()).collect::<Vec<_>>(),
            expected,
            "{name}"
        );
    }
}
