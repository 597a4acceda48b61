//! Lives of a user of a database: created, given another password and other rights, and dropped. At no time
//! does the Secret have no password that the engine takes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use freehold::api::DatabaseUser;
use freehold::api::database_user::UserRole;
use freehold::engine::client::{Access, ClientError};
use freehold::engine::users::{Login, Mark, ShownRole, ShownUser, WantedUser};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::blow::Strike;
use super::house::{House, NAMESPACE};
use super::lies::Lies;
use super::person::NAME;
use super::{SAMPLE, each, judge, struck_in_a_part};
use crate::properties::facts::USERS;

/// The Secret of the user of the application.
const APPLICATION: &str = "orders-application-user";

/// Longer than an attempt in doubt takes to be proven absent.
const LONG: Duration = Duration::from_secs(4 * 3600);

/// The users of the one engine of a house, in its data.
#[derive(Clone, Default)]
pub struct Users(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    roles: BTreeMap<String, EngineUser>,
    granted: BTreeSet<String>,
}

/// One of them.
#[derive(Clone, Debug)]
struct EngineUser {
    mark: Mark,
    password: String,
}

impl Users {
    pub fn shown(&self, username: &str, databases: &[String]) -> ShownUser {
        let kept = self.0.lock();
        let role = kept.roles.get(username);
        let role = role.map(|it| ShownRole { mark: Some(it.mark.clone()), is_privileged: false });
        let lacking = databases.iter().filter(|it| !kept.granted.contains(*it)).cloned().collect();
        ShownUser { role, missing: Vec::new(), lacking }
    }

    pub fn put(&self, user: &WantedUser, password: &str) -> Result<(), ClientError> {
        let mut kept = self.0.lock();
        kept.granted.extend(user.to_grant.iter().cloned());
        if kept.roles.get(&user.username).map(|it| &it.mark) != user.before.as_ref() {
            return Err(changed());
        }
        let databases = &user.mark.rights.databases;
        assert!(databases.iter().all(|it| kept.granted.contains(it)), "it has rights that are there");
        let made = EngineUser { mark: user.mark.clone(), password: password.to_owned() };
        kept.roles.insert(user.username.clone(), made);
        Ok(())
    }

    pub fn end(&self, username: &str, mark: &Mark) -> Result<(), ClientError> {
        let mut kept = self.0.lock();
        if kept.roles.get(username).map(|it| &it.mark) != Some(mark) {
            return Err(changed());
        }
        kept.roles.remove(username);
        Ok(())
    }

    pub fn login(&self, access: &Access) -> Login {
        match self.of(&access.username) {
            Some(user) if user.password == access.password => Login::In,
            Some(_) | None => Login::WrongPassword,
        }
    }

    fn of(&self, username: &str) -> Option<EngineUser> {
        self.0.lock().roles.get(username).cloned()
    }
}

fn changed() -> ClientError {
    let reason = "the user was changed meanwhile".to_owned();
    ClientError::Refused { what: "ALTER ROLE", reason }
}

#[test]
fn a_user_is_created_changed_and_dropped_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE, 5, of_a_database);
}

/// A user is applied before its database, and is Ready once that serves; it is given another password and
/// another role, and is dropped. An operator is struck at one of its writes or calls. How many of these there
/// were before the database served, and after the end of the user.
async fn of_a_database(strike: Option<Strike>) -> (usize, usize) {
    let mut house = House::build(1, Lies { strike, ..Lies::none() }).await;
    house.start();
    house.create_user().await;
    let engine = json!({"type": "postgresql", "version": "17.6"});
    house.create(&json!({"deletionPolicy": "Delete", "engine": engine})).await;
    house.until_ready(LONG).await;
    let before = house.chaos.effects();
    let is_so = |it: &House, role| {
        it.is_user_ready() && it.engine_user().is_some_and(|it| it.mark.rights.role == role)
    };
    house.until_known("the user is Ready", |it| is_so(it, UserRole::Write)).await;
    let first = house.engine_user().unwrap().password;
    assert_eq!(house.user_secret("password").as_ref(), Some(&first));
    house.patch_user(&json!({"passwordGeneration": 2})).await;
    house.until_known("another password is in force", House::is_user_ready).await;
    assert_ne!(house.engine_user().unwrap().password, first);
    assert_eq!(house.user_secret("next-password"), None);
    house.patch_user(&json!({"role": "Read"})).await;
    house.until_known("the user may only read", |it| is_so(it, UserRole::Read)).await;
    assert_eq!(house.user_secret("password"), house.engine_user().map(|it| it.password));
    house.users_api().delete("shop", &DeleteParams::default()).await.unwrap();
    house
        .until("the user is gone", LONG, |it| it.user().is_none() && it.user_secret("password").is_none())
        .await;
    assert!(house.engine_user().is_none(), "it is dropped");
    let after = house.chaos.effects();
    house.end_at_rest(LONG).await;
    (before, after)
}

#[test]
fn a_database_that_is_ready_has_the_user_of_its_application_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE, 5, of_an_application);
}

/// A database with a user of its application is created, the user's role is changed, and the database is
/// deleted. When it is Ready for the first time, the engine takes the password of the Secret that its status
/// names. How many writes and calls of the operator there were before its Service, and after its end.
async fn of_an_application(strike: Option<Strike>) -> (usize, usize) {
    let mut house = House::build(1, Lies { strike, ..Lies::none() }).await;
    house.start();
    let engine = json!({"type": "postgresql", "version": "17.6"});
    let user = json!({"username": "shop", "role": "Owner"});
    house.create(&json!({"deletionPolicy": "Delete", "engine": engine, "applicationUser": user})).await;
    house.until("the Secret of the user", LONG, |it| it.secret_of(APPLICATION, "password").is_some()).await;
    let before = house.chaos.effects();
    let knows = |it: &House| {
        let bound = it.database().unwrap_or_default()["status"]["binding"]["name"].clone();
        let password = it.secret_of(bound.as_str().unwrap_or_default(), "password");
        bound == APPLICATION && password.is_some() && password == it.engine_user().map(|it| it.password)
    };
    let ready = |it: &House| {
        assert!(!it.is_ready() || knows(it), "it is Ready without a user that the engine takes");
        it.is_ready()
    };
    house.until("the database is Ready", LONG, ready).await;
    house.patch(&json!({"applicationUser": {"role": "Write"}})).await;
    let may_write = |it: &House| it.engine_user().is_some_and(|it| it.mark.rights.role == UserRole::Write);
    house.until("the user may write", LONG, may_write).await;
    house.until_ready(LONG).await;
    let after = house.chaos.effects();
    house.end_at_rest(LONG).await;
    assert_eq!(house.secret_of(APPLICATION, "password"), None, "the Secret goes with the user");
    (before, after)
}

#[test]
fn a_database_ends_with_its_user_whatever_other_pod_has_the_name_of_its_own() {
    judge(each(&[(1, ())], |()| ended_under_another_pod()));
}

async fn ended_under_another_pod() {
    let mut house = House::build(1, Lies::none()).await;
    house.start();
    let engine = json!({"type": "postgresql", "version": "17.6"});
    house.create(&json!({"deletionPolicy": "Delete", "engine": engine, "applicationUser": {}})).await;
    house.until_ready(LONG).await;
    house.delete().await;
    let pod = |it: &House| it.server.object("pods", NAMESPACE, "orders-0");
    house.until("its pod is gone", LONG, |it| pod(it).is_none()).await;
    house.create_pod("orders-0").await;
    house.until_gone(LONG).await;
    assert!(pod(&house).is_some(), "it is left alone");
    assert!(house.engine_password.users.of("app").is_some(), "the engine in it is not asked");
}

impl House {
    /// A pod of another owner, in which an engine accepts connections.
    async fn create_pod(&self, name: &str) {
        let pods = Api::<Pod>::namespaced(self.server.client("person"), NAMESPACE);
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "postgresql", "image": "postgres"}]}});
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        let status = json!({"status": {"phase": "Running", "podIP": "10.0.9.9",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "postgresql", "image": "postgres", "imageID": "", "ready": true,
                "restartCount": 0, "state": {"running": {}}}]}});
        pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    fn users_api(&self) -> Api<DatabaseUser> {
        Api::namespaced(self.server.client("person"), NAMESPACE)
    }

    async fn create_user(&self) {
        let user = json!({
            "apiVersion": "freehold.dev/v1alpha1", "kind": "DatabaseUser", "metadata": {"name": "shop"},
            "spec": {"databaseName": NAME, "username": "shop", "role": "Write"},
        });
        let user = serde_json::from_value(user).unwrap();
        self.users_api().create(&PostParams::default(), &user).await.unwrap();
    }

    async fn patch_user(&self, spec: &Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.users_api().patch("shop", &PatchParams::default(), &patch).await.unwrap();
    }

    fn user(&self) -> Option<Value> {
        self.server.object(USERS, NAMESPACE, "shop")
    }

    fn is_user_ready(&self) -> bool {
        let user = self.user().unwrap_or_default();
        let is_ready = |it: &Value| {
            it["type"] == "Ready"
                && it["status"] == "True"
                && it["observedGeneration"] == user["metadata"]["generation"]
        };
        user["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(is_ready))
            && user["status"]["passwordGeneration"] == user["spec"]["passwordGeneration"]
    }

    /// What the user's Secret has under this key.
    fn user_secret(&self, key: &str) -> Option<String> {
        self.secret_of("shop-user", key)
    }

    /// What the Secret of this name has under this key.
    fn secret_of(&self, name: &str, key: &str) -> Option<String> {
        let secret = self.server.object("secrets", NAMESPACE, name)?;
        let text = STANDARD.decode(secret["data"][key].as_str()?).unwrap();
        Some(String::from_utf8(text).unwrap())
    }

    fn engine_user(&self) -> Option<EngineUser> {
        self.engine_password.users.of("shop")
    }

    /// Waits until this is so; at each moment before, the engine takes a password that the Secret has.
    async fn until_known(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let look = |it: &Self| {
            let known = [it.user_secret("password"), it.user_secret("next-password")];
            let taken = it.engine_user().map(|it| it.password);
            assert!(taken.is_none() || known.contains(&taken), "the Secret has no password that is taken");
            is_so(it)
        };
        self.until(what, LONG, look).await;
    }
}
