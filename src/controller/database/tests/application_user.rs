//! The user that the application connects as: its DatabaseUser, what is awaited of it, and which Secret the
//! status names.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::api::database::DatabaseStatus;
use crate::api::database_user::{Binding, DatabaseUserStatus, UserRole};
use crate::api::{ConditionType, DatabaseUser, DeletionPolicy};
use crate::controller::conditions;
use crate::controller::database::status::{Decided, status};
use crate::controller::pass::acted::Acted;

const SECRET: &str = "orders-application-user";

/// A settled world whose spec requests the user, with a DatabaseUser of this status.
fn with_user(of_user: &Value) -> Observed {
    let mut world = settled_as(json!({"engine": {"type": "postgresql", "version": "17.6"},
        "applicationUser": {"username": "shop", "role": "Write"}}));
    let wanted = world.database.spec.application_user.clone().unwrap();
    let mut user = with_uid(build::application_user(&world.names, &wanted), "user-uid");
    user.metadata.generation = Some(1);
    user.status = Some(serde_json::from_value::<DatabaseUserStatus>(of_user.clone()).unwrap());
    world.application_user = ours(user);
    world
}

fn let_in() -> Value {
    json!({"observedGeneration": 1, "role": "Write", "conditions": good(&["Ready"])})
}

fn awaiting_engine() -> Value {
    let waits = condition("Ready", "False", "AwaitingDatabase", "the engine does not accept connections");
    json!({"observedGeneration": 1, "conditions": [waits]})
}

/// A DatabaseUser whose user the engine had let in, and that a person must look at now.
fn refused_later() -> Value {
    json!({"observedGeneration": 1, "role": "Write", "conditions": [
        condition("Ready", "False", "UserRefused", "the user is locked"),
        condition("Stalled", "True", "UserRefused", "the user is locked")]})
}

fn bound(mut world: Observed) -> Observed {
    world.database.status.as_mut().unwrap().binding = Some(Binding { name: SECRET.to_owned() });
    world
}

fn line_of(world: &Observed) -> String {
    line(&plan(world, now()))
}

fn status_of(world: &Observed) -> DatabaseStatus {
    let acted = Acted::new(world.database.clone());
    status(world, &Decided::of(world, &plan(world, now()), &acted), &acted, now())
}

fn bound_to(world: &Observed) -> Option<String> {
    status_of(world).binding.map(|binding| binding.name)
}

#[test]
fn a_user_is_created_last_with_the_role_of_the_spec_in_the_database_of_the_application() {
    let mut world = with_user(&let_in());
    world.application_user = Child::Absent;
    assert_eq!(line_of(&world), "[create user orders-application] Progressing");
    let asked = world.database.spec.application_user.clone().unwrap();
    let user = build::application_user(&world.names, &asked);
    assert_eq!((user.spec.username.as_str(), user.spec.role), ("shop", UserRole::Write));
    assert_eq!((user.spec.database_name.as_str(), user.databases()), ("orders", vec!["app"]));
    assert_eq!(user.secret_name(), SECRET);
    (world.nodes, world.pod) = (Vec::new(), None);
    let line = line_of(&world);
    assert!(
        line.starts_with("[create node 2 "),
        "a refusal of it keeps no machine from being replaced: {line}"
    );
    assert!(line.contains(", create user orders-application] "), "{line}");
    world.database.metadata.finalizers = None;
    assert_eq!(line_of(&world), "[add finalizer] Progressing");
}

#[test]
fn without_a_name_and_a_role_it_is_an_owner_named_app() {
    let world = empty(json!({"applicationUser": {}}), json!({}));
    let asked = world.database.spec.application_user.unwrap();
    assert_eq!((asked.username.as_str(), asked.role), ("app", UserRole::Owner));
}

#[test]
fn the_database_is_ready_once_the_engine_lets_the_user_in_and_the_status_names_its_secret() {
    let world = with_user(&awaiting_engine());
    assert_eq!(line_of(&world), "[] AwaitingDatabase");
    let status = status_of(&world);
    assert!(!conditions::is_true(&status.conditions, ConditionType::Ready));
    assert!(conditions::is_true(&status.conditions, ConditionType::EngineReady), "the engine serves");
    let ready = conditions::find(&status.conditions, ConditionType::Ready).unwrap();
    let expected = "DatabaseUser orders-application: the engine does not accept connections";
    assert_eq!((ready.message.as_str(), status.binding), (expected, None));

    let world = with_user(&let_in());
    assert_eq!(line_of(&world), "[] as wanted");
    assert!(conditions::is_true(&status_of(&world).conditions, ConditionType::Ready));
    assert_eq!(bound_to(&world).as_deref(), Some(SECRET));
}

#[test]
fn a_user_that_was_let_in_once_is_not_awaited_again() {
    let world = bound(with_user(&refused_later()));
    assert_eq!(line_of(&world), "[] as wanted");
    assert_eq!(bound_to(&world).as_deref(), Some(SECRET));
}

#[test]
fn a_database_user_that_was_deleted_by_hand_is_created_and_awaited_again() {
    let mut world = bound(with_user(&let_in()));
    world.application_user = Child::Absent;
    assert_eq!(line_of(&world), "[create user orders-application] Progressing");
    let world = bound(with_user(&awaiting_engine()));
    assert_eq!(line_of(&world), "[] AwaitingDatabase");
    assert_eq!(bound_to(&world).as_deref(), Some(SECRET), "clients read it again");
}

#[test]
fn a_user_that_is_added_later_leaves_the_secret_of_the_administrator_until_it_is_let_in() {
    let mut world = with_user(&awaiting_engine());
    world.database.status.as_mut().unwrap().binding = Some(Binding { name: "orders-admin".to_owned() });
    assert_eq!(line_of(&world), "[] AwaitingDatabase");
    assert_eq!(bound_to(&world).as_deref(), Some("orders-admin"));
    assert_eq!(bound_to(&settled()).as_deref(), Some("orders-admin"), "without a user it is that one");
}

#[test]
fn only_the_role_of_the_user_is_kept_and_its_password_and_its_databases_are_its_own() {
    let changed = |change: fn(&mut DatabaseUser)| {
        let mut world = with_user(&let_in());
        self::change(&mut world.application_user, change);
        line_of(&world)
    };
    let expected = "[update user user-uid {\"role\":\"Write\"}] as wanted";
    assert_eq!(changed(|user| user.spec.role = UserRole::Owner), expected, "the engine has it so");
    assert_eq!(changed(|user| user.spec.password_generation = 4), "[] as wanted");
    assert_eq!(changed(|user| user.spec.databases.push("reports".to_owned())), "[] as wanted");
}

#[test]
fn a_database_is_ready_for_another_role_once_the_engine_has_it() {
    let mut world = bound(with_user(&let_in()));
    world.database.spec.application_user.as_mut().unwrap().role = UserRole::Read;
    assert_eq!(line_of(&world), "[update user user-uid {\"role\":\"Read\"}] Progressing");
    change(&mut world.application_user, |user| {
        (user.spec.role, user.metadata.generation) = (UserRole::Read, Some(2));
    });
    assert_eq!(line_of(&world), "[] Progressing");
    change(&mut world.application_user, |user| user.status.as_mut().unwrap().role = Some(UserRole::Read));
    assert_eq!(line_of(&world), "[] as wanted");
}

#[test]
fn a_database_user_of_another_owner_is_left_alone_and_told_once_the_database_serves() {
    let mut world = with_user(&let_in());
    world.application_user = Child::Foreign;
    let decided = plan(&world, now());
    assert_eq!(line(&decided), "[] stalled NameConflict");
    assert!(decided.requeue.is_some(), "it is not watched");
    assert_eq!(bound_to(&world), None);
    (world.nodes, world.pod) = (Vec::new(), None);
    assert!(line_of(&world).starts_with("[create node 2 "), "its deletion asks the engine");
}

#[test]
fn a_user_that_needs_a_person_stalls_a_new_database_which_is_backed_up_all_the_same() {
    let refused = json!({"observedGeneration": 1, "conditions": [
        condition("Ready", "False", "UserRefused", "the role exists"),
        condition("Stalled", "True", "UserRefused", "the role exists")]});
    let mut world = with_user(&refused);
    let status = status_of(&world);
    assert!(conditions::is_true(&status.conditions, ConditionType::Stalled));
    assert!(conditions::is_true(&status.conditions, ConditionType::Available));
    assert!(!conditions::is_true(&status.conditions, ConditionType::Ready));
    assert!(status.first_ready_at.is_some(), "Backups wait for it");
    world.nodes.clear();
    assert!(line_of(&world).starts_with("[create node 2 "), "its machine is replaced all the same");
}

#[test]
fn a_database_whose_user_the_api_server_refuses_is_backed_up_all_the_same() {
    let mut world = with_user(&let_in());
    world.application_user = Child::Absent;
    let after = |world: &Observed| {
        let answer = kube::core::Status::failure("exceeded quota", "Forbidden").with_code(403);
        let mut acted = Acted::new(world.database.clone());
        acted.error = Some(kube::Error::Api(answer.boxed()).into());
        let status = status(world, &Decided::of(world, &plan(world, now()), &acted), &acted, now());
        let ready = conditions::find(&status.conditions, ConditionType::Ready).unwrap().clone();
        (ready.reason, status.first_ready_at.is_some())
    };
    assert_eq!(after(&world), ("ChildRefused".to_owned(), true));
    world.service = Child::Absent;
    assert_eq!(after(&world), ("ChildRefused".to_owned(), false), "it may have been the Service");
}

#[test]
fn a_user_that_is_not_requested_any_more_or_by_another_name_is_deleted() {
    let mut world = with_user(&awaiting_engine());
    world.database.spec.application_user.as_mut().unwrap().username = "store".to_owned();
    assert_eq!(line_of(&world), "[delete DatabaseUser orders-application] Progressing");
    world.database.spec.application_user = None;
    assert_eq!(line_of(&world), "[delete DatabaseUser orders-application] as wanted");
    assert_eq!(bound_to(&world).as_deref(), Some("orders-admin"));
    change(&mut world.application_user, |user| deleting(user, 1));
    assert_eq!(line_of(&world), "[] as wanted", "once");
}

#[test]
fn the_user_goes_with_its_database_and_stays_where_that_is_released() {
    let mut world = with_user(&let_in());
    deleting(&mut world.database, 1);
    world.database.spec.deletion_policy = DeletionPolicy::Delete;
    let mut released = world.clone();
    (world.nodes, world.core_nodes, world.labelled, world.pod) = (vec![], vec![], vec![], None);
    change(&mut world.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
    world.volume = Child::Absent;
    assert_eq!(line_of(&world), "[delete DatabaseUser orders-application] Progressing");
    change(&mut world.application_user, |user| deleting(user, 1));
    assert_eq!(line_of(&world), "[] Progressing", "another Database of the name would find it");
    world.application_user = Child::Absent;
    assert!(line_of(&world).ends_with("delete PodDisruptionBudget orders, remove finalizer] Deleting"));

    released.database.spec.release = true;
    released.nodes[0].spec.release = true;
    change(&mut released.volume, |volume| volume.spec.release = true);
    let line = line_of(&released);
    assert!(line.contains(", release DatabaseUser orders-application"), "{line}");
}
