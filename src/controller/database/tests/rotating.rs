//! The plan of a rotation of the password, and what is said of it.

use k8s_openapi::ByteString;
use kube::core::Status;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::ConditionType;
use crate::api::keys::{INPUTS_HASH_ANNOTATION, NEXT_PASSWORD, PASSWORD_GENERATION_ANNOTATION};
use crate::controller::conditions;
use crate::controller::database::act_password::starts_anyway;
use crate::controller::database::status::{Decided, status as status_of};
use crate::controller::pass::acted::{ActError, Acted};

const NEXT: &[u8] = b"the-next-password-of-the-engine";

fn postgresql() -> Value {
    json!({"engine": {"type": "postgresql", "version": "17.6"}})
}

fn questdb() -> Value {
    json!({})
}

/// A settled world whose spec asks for this password.
fn asking(engine: &Value, generation: i64) -> Observed {
    let mut spec = engine.clone();
    spec["access"] = json!({"passwordGeneration": generation});
    let mut world = settled_as(spec);
    if let Some(status) = world.pod.as_mut().and_then(|pod| pod.status.as_mut()) {
        status.pod_ip = Some("10.0.0.7".to_owned());
    }
    world
}

fn secret(world: &mut Observed) -> &mut Secret {
    let Credentials::Read(Child::Ours(held)) = &mut world.credentials else { panic!("no Secret") };
    &mut held.0
}

/// The same with the next password in the Secret.
fn prepared(engine: &Value) -> Observed {
    let mut world = asking(engine, 2);
    let data = secret(&mut world).data.get_or_insert_default();
    data.insert(NEXT_PASSWORD.to_owned(), ByteString(NEXT.to_vec()));
    world
}

fn done(world: &Observed) -> String {
    line(&plan(world, now()))
}

fn stopped(mut world: Observed) -> Observed {
    change(&mut world.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
    world.pod = None;
    world
}

#[test]
fn the_next_password_is_in_the_secret_before_the_engine_has_it() {
    for engine in [questdb(), postgresql()] {
        let expected = "[prepare password 2] Rotating";
        assert_eq!(done(&asking(&engine, 2)), expected, "{engine}");
        assert_eq!(done(&asking(&engine, 1)), "[] as wanted", "the first one counts as 1: {engine}");
    }
}

#[test]
fn an_engine_that_serves_is_given_it_and_tried_before_the_secret_says_so() {
    let given = "[give admin@10.0.0.7:5432 the next password, put the next password in force] Rotating";
    assert_eq!(done(&prepared(&postgresql())), given);
}

#[test]
fn an_engine_that_reads_its_password_at_its_start_is_stopped_before_the_secret_says_so() {
    let world = prepared(&questdb());
    assert_eq!(done(&world), "[stop set-uid for the next password] Rotating");
    let mut stopping = world.clone();
    change(&mut stopping.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
    assert_eq!(done(&stopping), "[] Rotating", "its pod is there");
    let started = "[put the next password in force, scale set-uid to 1] AwaitingPod";
    assert_eq!(done(&stopped(world.clone())), started, "in this order, and from the template that it had");
    let mut resumed = stopped(world);
    change(&mut resumed.stateful_set, |set| {
        set.annotations_mut().insert(INPUTS_HASH_ANNOTATION.to_owned(), "of-an-older-spec".to_owned());
    });
    let started = "[put the next password in force, apply set set-uid x1] AwaitingPod";
    assert_eq!(done(&resumed), started, "the spec was changed while it was paused");
}

#[test]
fn a_stop_that_kubernetes_has_not_seen_is_none() {
    let mut world = stopped(prepared(&questdb()));
    change(&mut world.stateful_set, |set| set.metadata.generation = Some(6));
    assert_eq!(done(&world), "[] Rotating", "it may start a pod yet");
}

#[test]
fn a_database_that_is_resumed_begins_with_the_password_that_the_spec_asks_for() {
    assert_eq!(done(&stopped(asking(&questdb(), 2))), "[prepare password 2] Rotating");
}

#[test]
fn what_the_former_database_had_begun_goes_on_though_the_spec_asks_for_nothing() {
    let mut world = prepared(&postgresql());
    world.database.spec.access.password_generation = None;
    assert!(done(&world).starts_with("[give admin@10.0.0.7:5432 the next password, "));
}

#[test]
fn nothing_is_rotated_while_the_engine_does_not_answer_or_its_machine_is_replaced() {
    for engine in [questdb(), postgresql()] {
        let rotates = |world: &Observed| done(world).contains("password");
        let mut starting = prepared(&engine);
        let not_ready =
            json!({"phase": "Running", "containerStatuses": [container_status(json!({"running": {}}))]});
        starting.pod = starting.pod.map(|pod| pod_with(pod, not_ready));
        assert!(!rotates(&starting), "{engine}");
        let mut replaced = prepared(&engine);
        replaced.database.spec.instance_types = vec!["m7i.large".to_owned()];
        let second = ready_node(&replaced, 2);
        replaced.nodes.push(second);
        assert!(!rotates(&replaced), "{engine}");
        let mut paused = prepared(&engine);
        paused.database.spec.running = false;
        assert!(!rotates(&paused), "{engine}");
    }
}

#[test]
fn an_engine_that_was_stopped_is_started_again_if_the_spec_cannot_be_carried_out_any_more() {
    let mut world = stopped(prepared(&questdb()));
    world.profile = Err(crate::engine::EngineError::ConfigUnsupported);
    let restarted = "[scale set-uid to 1] stalled InvalidSpec";
    assert_eq!(line(&plan(&world, now())), restarted);
    let mut paused = world.clone();
    paused.labelled.clear();
    assert!(!line(&plan(&paused, now())).contains("scale"), "it was paused, and no machine is its own");
    let mut resumed = world.clone();
    deleting(&mut resumed.nodes[0], 1);
    assert!(!line(&plan(&resumed, now())).contains("scale"), "it was paused, and its machine goes");
    world.credentials = Credentials::Unreadable("no".to_owned());
    assert_eq!(line(&plan(&world, now())), restarted, "whatever has become of the Secret");
    for credentials in [
        Credentials::Unreadable("no".to_owned()),
        Credentials::Read(Child::Foreign),
        Credentials::Read(ours(HeldSecret(with_uid(secret_with(b"too-short"), "secret-uid")))),
    ] {
        let mut world = stopped(prepared(&questdb()));
        world.credentials = credentials;
        let planned = line(&plan(&world, now()));
        assert!(planned.starts_with("[scale set-uid to 1] "), "{planned}");
    }
}

#[test]
fn nothing_is_rotated_while_what_was_changed_outside_freehold_is_to_be_restored() {
    for engine in [questdb(), postgresql()] {
        for found in [true, false] {
            let mut world = prepared(&engine);
            let status = world.database.status.as_mut().unwrap();
            if found {
                change(&mut world.stateful_set, |set| {
                    let pod = set.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
                    pod.host_network = Some(true);
                    set.metadata.generation = Some(9);
                    set.status.as_mut().unwrap().observed_generation = Some(9);
                });
            } else {
                status.applied = None;
            }
            let planned = done(&world);
            assert!(planned.contains("restore set set-uid x1"), "{planned}");
            assert!(!planned.contains("password"), "{planned}");
        }
    }
}

#[test]
fn a_refusal_hides_no_replacement_of_the_machine() {
    let mut world = asking(&postgresql(), 2);
    secret(&mut world).immutable = Some(true);
    world.database.spec.instance_types = vec!["m7i.large".to_owned()];
    let planned = done(&world);
    assert!(planned.starts_with("[create node 2 orders-gqmgm-2 "), "{planned}");
    assert!(planned.ends_with("] AwaitingNode"), "{planned}");
    assert_eq!(said(&world), (false, "RotationRefused".to_owned()), "that is said beside it");
}

#[test]
fn the_engine_is_given_it_in_a_database_that_users_do_not_drop() {
    let given = plan(&prepared(&postgresql()), now()).actions.into_iter().find_map(|action| {
        if let Action::GiveNextPassword(access, _) = action { Some(access.database) } else { None }
    });
    assert_eq!(given.as_deref(), Some("postgres"));
}

#[test]
fn an_engine_that_is_stopped_is_started_though_the_secret_is_refused_and_not_without_an_answer() {
    let world = prepared(&questdb());
    let put = plan(&stopped(world), now()).actions.remove(0);
    let answer = |code: u16| {
        let status = Status { code, ..Status::default() };
        Err(ActError::Kube(kube::Error::Api(Box::new(status))))
    };
    for (code, goes_on) in [(403, true), (422, true), (400, true), (409, false), (500, false), (504, false)] {
        assert_eq!(starts_anyway(&put, &answer(code)), goes_on, "{code}");
    }
    assert!(!starts_anyway(&put, &Err(ActError::Conflict)));
    assert!(!starts_anyway(&Action::AddFinalizer, &answer(403)));
}

#[test]
fn a_database_whose_engine_may_have_the_next_password_is_not_released_before_the_secret_has_it() {
    let released = |mut world: Observed| {
        world.database.spec.release = true;
        deleting(&mut world.database, 1);
        done(&world)
    };
    let given = "[give admin@10.0.0.7:5432 the next password, put the next password in force] Deleting";
    assert_eq!(released(prepared(&postgresql())), given);
    assert!(released(prepared(&questdb())).starts_with("[record release"), "it has the one in force");
    assert!(released(asking(&postgresql(), 1)).starts_with("[record release"));
    let mut refused = prepared(&postgresql());
    secret(&mut refused).immutable = Some(true);
    assert!(released(refused).starts_with("[record release"), "it would never be given one");
}

#[test]
fn a_password_that_cannot_be_rotated_is_refused_and_the_database_goes_on() {
    let mut immutable = asking(&postgresql(), 2);
    secret(&mut immutable).immutable = Some(true);
    assert_eq!(done(&immutable), "[] stalled RotationRefused");
    assert_eq!(said(&immutable), (false, "RotationRefused".to_owned()));
    let image = json!({"type": "custom", "custom": {"image": "db:1", "port": 5000, "dataPath": "/data"}});
    let custom = asking(&json!({"engine": image}), 2);
    assert_eq!(done(&custom), "[] stalled RotationRefused");
}

/// Whether the condition PasswordRotated is true, and its reason.
fn said(world: &Observed) -> (bool, String) {
    let acted = Acted::new(world.database.clone());
    let decided = Decided::of(world, &plan(world, now()), &acted);
    let status = status_of(world, &decided, &acted, now());
    let condition = conditions::find(&status.conditions, ConditionType::PasswordRotated).unwrap();
    (condition.status == "True", condition.reason.clone())
}

#[test]
fn the_condition_says_which_password_is_in_force_and_what_is_awaited() {
    assert_eq!(said(&asking(&questdb(), 1)), (true, "AsExpected".to_owned()));
    assert_eq!(said(&asking(&questdb(), 2)), (false, "Rotating".to_owned()));
    assert_eq!(said(&prepared(&postgresql())), (false, "Rotating".to_owned()));
    let mut rotated = asking(&postgresql(), 2);
    let annotations = secret(&mut rotated).metadata.annotations.get_or_insert_default();
    annotations.insert(PASSWORD_GENERATION_ANNOTATION.to_owned(), "2".to_owned());
    assert_eq!(said(&rotated), (true, "AsExpected".to_owned()));
    assert_eq!(done(&rotated), "[] as wanted");
    let mut unread = rotated;
    unread.credentials = Credentials::Unreadable("no".to_owned());
    assert_eq!(said(&unread), (false, "Rotating".to_owned()));
}

#[test]
fn the_secret_changes_in_one_write_with_everything_that_holds_the_password() {
    let mut world = prepared(&postgresql());
    secret(&mut world).metadata.resource_version = Some("7".to_owned());
    let (names, profile) = (world.names.clone(), world.profile.clone().unwrap());
    let before = secret(&mut world).clone();
    let patch = build::with_next_in_force(&names, &profile, &before).unwrap();
    let encoded = |text: &str| data_encoding::BASE64.encode(text.as_bytes());
    let next = String::from_utf8(NEXT.to_vec()).unwrap();
    let uri = format!("postgresql://admin:{next}@orders.team-a.svc:5432/app");
    let expected = json!({
        "metadata": {
            "uid": "secret-uid", "resourceVersion": "7",
            "annotations": {
                "freehold.dev/password-generation": "1",
                "freehold.dev/next-password-generation": null,
            },
        },
        "data": {"password": encoded(&next), "uri": encoded(&uri), "next-password": null},
    });
    assert_eq!(patch, expected, "without a number the next one counts as the one in force");
    let prepared = build::with_next(&before, &Password::fixed(), 2);
    assert_eq!(prepared["metadata"]["resourceVersion"], "7", "nothing that was changed meanwhile");
    assert_eq!(prepared["metadata"]["annotations"], json!({"freehold.dev/next-password-generation": "2"}));
    assert_eq!(build::with_next_in_force(&names, &profile, secret(&mut asking(&postgresql(), 2))), None);
}

#[test]
fn a_plan_that_is_printed_shows_no_password() {
    let world = prepared(&postgresql());
    let shown = format!("{:?} {world:?}", plan(&world, now()));
    for password in [String::from_utf8(NEXT.to_vec()).unwrap(), Password::fixed().expose().to_owned()] {
        assert!(!shown.contains(&password), "a password is shown");
    }
}
