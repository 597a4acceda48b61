//! Tables of the DatabaseUser controller: one obvious world, and what is planned when something in it is
//! otherwise.

mod messages;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::build::{mark, secret};
use super::observe::{EngineView, Observed};
use super::plan::action::{Action, Plan};
use super::plan::plan;
use super::status::status;
use super::wait::UserWait;
use crate::api::database_user::UserRole;
use crate::api::keys::{NEXT_PASSWORD, NEXT_PASSWORD_GENERATION_ANNOTATION};
use crate::api::{Database, DatabaseUser};
use crate::controller::database::observe::child::{Child, Credentials, HeldSecret};
use crate::controller::database::password::Password;
use crate::controller::engine_access::{Address, EnginePod};
use crate::controller::pass::acted::Acted;
use crate::engine::client::{Access, Tls};
use crate::engine::profile;
use crate::engine::users::{Login, Mark, Rights, ShownRole, ShownUser};
use crate::settings::Timing;

fn user(changes: &Value) -> DatabaseUser {
    let mut object = json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "DatabaseUser",
        "metadata": {"name": "shop", "namespace": "team-a", "uid": "user-uid", "generation": 1,
            "finalizers": ["freehold.dev/finalizer"]},
        "spec": {"databaseName": "orders", "username": "shop", "role": "Write"},
    });
    json_patch::merge(&mut object, changes);
    serde_json::from_value(object).unwrap()
}

fn database(changes: &Value) -> Database {
    let mut object = json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
        "metadata": {"name": "orders", "namespace": "team-a", "uid": "database-uid"},
        "spec": {"engine": {"type": "postgresql", "version": "17.6"}, "storage": {"size": "200Gi"}},
    });
    json_patch::merge(&mut object, changes);
    serde_json::from_value(object).unwrap()
}

fn access() -> Access {
    Access {
        address: [10, 0, 0, 1].into(),
        port: 5432,
        username: "admin".to_owned(),
        password: "secret".to_owned(),
        database: "postgres".to_owned(),
        tls: Tls::IfOffered,
        slowness: 1,
    }
}

/// The user has its Secret, and the engine has it as it is to be.
fn as_wanted(changes: &Value) -> Observed {
    let (user, database) = (user(changes), database(&json!({})));
    let profile = profile(&database.spec.engine, &database.spec.config).unwrap();
    let mut secret = secret(&user, &database, &profile, &Password::fixed());
    secret.metadata.uid = Some("secret-uid".to_owned());
    let mark = mark(&user, &secret, &[]);
    let mut world = Observed {
        user,
        database: Some(database),
        secret: held(secret),
        pod: EnginePod::Running {
            uid: "pod-uid".to_owned(),
            address: Some(Address { ip: [10, 0, 0, 1].into(), tls: Tls::IfOffered }),
            is_ready: true,
            image: None,
        },
        engine: EngineView::NotRead,
        login: Some(Login::In),
        rival: None,
        timing: Timing::default(),
    };
    shows(&mut world, Some(mark), false, &[]);
    world
}

fn held(secret: Secret) -> Credentials {
    Credentials::Read(Child::Ours(Box::new(HeldSecret(secret))))
}

fn shows(world: &mut Observed, mark: Option<Mark>, is_privileged: bool, lacking: &[&str]) {
    let role = Some(ShownRole { mark, is_privileged });
    let lacking = lacking.iter().map(|name| (*name).to_owned()).collect();
    world.engine = EngineView::Shown(Box::new(access()), ShownUser { role, missing: Vec::new(), lacking });
}

/// The engine has no such user.
fn new() -> Observed {
    let mut world = as_wanted(&json!({}));
    let lacking = vec!["app".to_owned()];
    world.engine = EngineView::Shown(Box::new(access()), ShownUser { lacking, ..ShownUser::default() });
    world.login = None;
    world
}

fn of_world(world: &mut Observed) -> (&mut Secret, &mut ShownUser) {
    let Credentials::Read(Child::Ours(secret)) = &mut world.secret else { panic!("no Secret") };
    let EngineView::Shown(_, shown) = &mut world.engine else { panic!("not shown") };
    (&mut secret.0, shown)
}

fn line(plan: &Plan) -> String {
    let actions: Vec<String> = plan
        .actions
        .iter()
        .map(|action| match action {
            Action::AddFinalizer => "add finalizer".to_owned(),
            Action::CreateSecret(..) => "create Secret".to_owned(),
            Action::WriteSecret(_, patch) => {
                let data = patch["data"].as_object().unwrap();
                format!("write {} keys", data.len())
            }
            Action::PrepareNext(_, generation) => format!("prepare {generation}"),
            Action::Put(access, user, _) => {
                format!("put {} over {} granting {:?}", user.username, access.database, user.to_grant)
            }
            Action::PutNextInForce(..) => "put next in force".to_owned(),
            Action::LeaveSecret(..) => "leave Secret".to_owned(),
            Action::Drop(_, mark) => format!("drop of {}", mark.uid),
            Action::RemoveFinalizer => "remove finalizer".to_owned(),
        })
        .collect();
    let stalled = if plan.waiting.as_ref().is_some_and(UserWait::is_stalled) { "stalled " } else { "" };
    let waiting = plan.waiting.as_ref().map_or("as wanted", |wait| wait.reason().as_str());
    format!("[{}] {stalled}{waiting}", actions.join(", "))
}

fn done(world: &Observed) -> String {
    line(&plan(world))
}

const AGAIN: &str = "put shop over postgres granting []";

const PUT: &str = "put shop over postgres granting [\"app\"]";

#[test]
fn a_user_is_given_a_secret_first_and_then_to_the_engine() {
    let mut world = new();
    assert_eq!(done(&world), format!("[{PUT}] Progressing"));
    world.user.metadata.finalizers = None;
    world.secret = Credentials::Read(Child::Absent);
    assert_eq!(done(&world), "[add finalizer, create Secret] Progressing", "no password is given before");
    assert_eq!(done(&as_wanted(&json!({}))), "[] as wanted");
}

#[test]
fn one_waits_for_its_database_and_for_nothing_else() {
    let mut world = new();
    world.engine = EngineView::NotRead;
    assert_eq!(done(&world), "[] AwaitingDatabase");
    world.engine = EngineView::Unreadable("no connection".to_owned());
    assert_eq!(done(&world), "[] AwaitingDatabase");
    world.database = None;
    assert_eq!(done(&world), "[] AwaitingDatabase");
    assert!(plan(&world).requeue.is_some(), "nothing but time shows what an engine says");
}

#[test]
fn an_engine_without_users_is_refused() {
    for (engine, kind) in [
        (json!({"type": "questdb", "version": "9.3.4"}), "questdb"),
        (
            json!({"type": "custom", "version": null,
            "custom": {"image": "db:1", "port": 5000, "dataPath": "/data"}}),
            "custom",
        ),
    ] {
        let mut world = new();
        world.database = Some(database(&json!({"spec": {"engine": engine}})));
        assert_eq!(plan(&world).waiting, Some(UserWait::NoUsers(kind)));
        assert_eq!(done(&world), "[] stalled UserRefused");
    }
}

#[test]
fn what_is_not_the_users_own_is_left_alone() {
    let mut world = as_wanted(&json!({}));
    shows(&mut world, None, false, &[]);
    assert_eq!(done(&world), "[] stalled UserRefused", "Freehold has not created it");
    let mut world = new();
    world.secret = Credentials::Read(Child::Foreign);
    assert_eq!(done(&world), "[] stalled NameConflict");
    let mut world = as_wanted(&json!({}));
    let (_, shown) = of_world(&mut world);
    shown.role.as_mut().unwrap().is_privileged = true;
    assert_eq!(done(&world), "[] stalled UserRefused", "another has made it a superuser");
}

#[test]
fn a_user_of_another_one_is_taken_over_once_that_is_gone() {
    let mut world = as_wanted(&json!({}));
    let rights = Rights { role: UserRole::Read, databases: [].into() };
    let other = Mark { uid: "other".to_owned(), rights, password: "x/1".to_owned(), change: None };
    shows(&mut world, Some(other), false, &[]);
    world.rival = Some("store".to_owned());
    assert_eq!(done(&world), "[] stalled UserRefused");
    world.rival = None;
    assert_eq!(done(&world), format!("[{AGAIN}] Progressing"), "it is of a backup, or was created anew");
}

#[test]
fn rights_are_given_where_they_are_lacking() {
    let mut world = as_wanted(&json!({"spec": {"databases": ["app", "audit", "app"]}}));
    let (_, shown) = of_world(&mut world);
    shown.lacking = vec!["audit".to_owned()];
    assert_eq!(done(&world), "[put shop over postgres granting [\"audit\"]] Progressing");
    let (_, shown) = of_world(&mut world);
    shown.lacking = Vec::new();
    shown.missing = vec!["audit".to_owned()];
    assert_eq!(done(&world), format!("[{AGAIN}] stalled AwaitingDatabase"), "those of one that is gone");
    let (_, shown) = of_world(&mut world);
    shown.role.as_mut().unwrap().mark.as_mut().unwrap().rights.databases.remove("audit");
    assert_eq!(done(&world), "[] stalled AwaitingDatabase", "it does not exist");
    world.user.spec.role = UserRole::Read;
    assert_eq!(done(&world), format!("[{AGAIN}] stalled AwaitingDatabase"), "what is there is changed");
}

#[test]
fn a_password_is_rotated_by_a_next_one_that_the_secret_has_before_the_engine() {
    let mut world = as_wanted(&json!({}));
    world.user.spec.password_generation = 2;
    assert_eq!(done(&world), "[prepare 2] Rotating");
    let (secret, _) = of_world(&mut world);
    secret.data.get_or_insert_default().insert(NEXT_PASSWORD.to_owned(), ByteString(b"n".repeat(32)));
    let generation = (NEXT_PASSWORD_GENERATION_ANNOTATION.to_owned(), "2".to_owned());
    secret.metadata.annotations.get_or_insert_default().extend([generation]);
    let given = format!("{AGAIN}, put next in force");
    assert_eq!(done(&world), format!("[{given}] Rotating"));
    let planned = plan(&world);
    let Action::PutNextInForce(_, patch) = &planned.actions[1] else { panic!("{planned:?}") };
    assert_eq!(patch["metadata"]["annotations"]["freehold.dev/password-generation"], "2");
    let (secret, shown) = of_world(&mut world);
    let next = mark(&user(&json!({})), secret, &[]);
    assert_eq!(next.password, "secret-uid/2");
    shown.role.as_mut().unwrap().mark = Some(next);
    assert_eq!(done(&world), "[put next in force] Rotating", "the engine has it already");
    let (_, shown) = of_world(&mut world);
    shown.role.as_mut().unwrap().mark.as_mut().unwrap().change = Some("pending-1a".to_owned());
    assert_eq!(done(&world), "[put next in force] Rotating", "though it is not tried yet");
}

#[test]
fn restored_data_and_a_new_secret_have_the_engine_given_the_password_of_the_secret() {
    let mut world = as_wanted(&json!({}));
    let (_, shown) = of_world(&mut world);
    shown.role.as_mut().unwrap().mark.as_mut().unwrap().password = "secret-uid/0".to_owned();
    assert_eq!(done(&world), format!("[{AGAIN}] Progressing"));
}

#[test]
fn a_password_that_the_engine_does_not_take_is_given_again_and_what_a_person_locked_stays_locked() {
    let mut world = as_wanted(&json!({}));
    world.login = Some(Login::WrongPassword);
    assert_eq!(done(&world), format!("[{AGAIN}] Progressing"), "the user has changed it");
    world.login = Some(Login::Refused("role \"shop\" is not permitted to log in".to_owned()));
    assert_eq!(done(&world), "[] stalled UserRefused");
    world.login = None;
    assert_eq!(done(&world), "[] as wanted", "no connection was free");
}

#[test]
fn the_secret_follows_what_it_describes() {
    let mut world = as_wanted(&json!({}));
    world.user.spec.databases = vec!["audit".to_owned(), "app".to_owned()];
    let (_, shown) = of_world(&mut world);
    shown.missing = vec!["audit".to_owned()];
    assert_eq!(done(&world), "[] stalled AwaitingDatabase", "clients are not led to what is not there");
    let (_, shown) = of_world(&mut world);
    shown.missing = Vec::new();
    assert_eq!(done(&world), format!("[{AGAIN}, write 8 keys] Progressing"), "all but the next password");
    let mut world = as_wanted(&json!({}));
    let (secret, _) = of_world(&mut world);
    secret.data.get_or_insert_default().insert("password".to_owned(), ByteString(b"short".to_vec()));
    assert_eq!(done(&world), "[] stalled CredentialsUnreadable");
}

#[test]
fn a_deleted_one_is_dropped_and_leaves_what_is_not_its_own() {
    let deleted = |policy: &str| {
        as_wanted(&json!({
            "metadata": {"deletionTimestamp": "2026-06-01T00:00:00Z"},
            "spec": {"deletionPolicy": policy},
        }))
    };
    let ends = "[remove finalizer] as wanted";
    assert_eq!(done(&deleted("Delete")), "[drop of user-uid, remove finalizer] Deleting");
    assert_eq!(done(&deleted("Retain")), "[leave Secret, remove finalizer] as wanted");
    let mut unreadable = deleted("Retain");
    unreadable.secret = Credentials::Unreadable("forbidden".to_owned());
    assert_eq!(done(&unreadable), "[] Deleting", "the Secret would go with it");
    let mut foreign = deleted("Delete");
    shows(&mut foreign, None, false, &[]);
    assert_eq!(done(&foreign), ends, "it is another client's");
    let mut gone = deleted("Delete");
    gone.database = None;
    assert_eq!(done(&gone), ends);
    let mut silent = deleted("Delete");
    silent.engine = EngineView::Unreadable("no connection".to_owned());
    assert_eq!(done(&silent), "[] Deleting", "it waits for the engine");
    silent.pod = EnginePod::NotRunning;
    silent.engine = EngineView::NotRead;
    assert_eq!(done(&silent), "[] Deleting", "its Database is paused");
    let timestamp = json!({"metadata": {"deletionTimestamp": "2026-06-01T00:00:00Z"}});
    silent.database = Some(database(&timestamp));
    assert_eq!(done(&silent), ends, "its Database is deleted, too");
}

#[test]
fn the_user_of_an_application_ends_at_once_where_another_database_has_the_name_of_its_own() {
    let owned_by = |name: &str, owner: &str| {
        let mut world = as_wanted(&json!({"metadata": {
            "deletionTimestamp": "2026-06-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "freehold.dev/v1alpha1", "kind": "Database", "name": name,
                "uid": owner, "controller": true}]}}));
        (world.pod, world.engine) = (EnginePod::Absent, EngineView::NotRead);
        done(&world)
    };
    assert_eq!(owned_by("orders", "database-uid"), "[] Deleting");
    assert_eq!(owned_by("orders", "uid-of-a-former-one"), "[remove finalizer] as wanted");
    assert_eq!(owned_by("invoices", "uid-of-another"), "[] Deleting", "it is dropped in the engine it names");
}

#[test]
fn the_status_keeps_the_role_that_the_engine_had_last() {
    let role = |world: &Observed| {
        let acted = Acted::new(world.user.clone());
        status(world, &plan(world), &acted, "2026-06-01T00:00:00Z".parse().unwrap()).role
    };
    assert_eq!(role(&new()), None);
    assert_eq!(role(&as_wanted(&json!({}))), Some(UserRole::Write));
    let mut world = as_wanted(&json!({"status": {"role": "Write", "conditions": []}}));
    world.user.spec.role = UserRole::Read;
    assert_eq!(role(&world), Some(UserRole::Write), "until the engine has taken the rights");
}

#[test]
fn the_status_names_the_secret_and_what_is_waited_for() {
    let said = |world: &Observed| {
        let acted = Acted::new(world.user.clone());
        let status = status(world, &plan(world), &acted, "2026-06-01T00:00:00Z".parse().unwrap());
        let ready = status.conditions.iter().find(|it| it.type_ == "Ready").unwrap();
        (ready.status.clone(), status.binding.map(|it| it.name), status.password_generation)
    };
    let secret = || Some("shop-user".to_owned());
    assert_eq!(said(&as_wanted(&json!({}))), ("True".to_owned(), secret(), Some(1)));
    assert_eq!(said(&new()), ("False".to_owned(), secret(), Some(1)));
    let mut world = new();
    world.secret = Credentials::Read(Child::Absent);
    assert_eq!(said(&world), ("False".to_owned(), None, None));
}
