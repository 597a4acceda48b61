//! Users on a real API server: what is refused at admission, what a user waits for, and its end. No engine
//! runs on a virtual machine; what one does is in `postgresql/users.rs` and `real/users.rs`.

use std::fmt::Debug;

use freehold::api::database_user::UserRole;
use freehold::api::{Database, DatabaseUser};
use k8s_openapi::api::core::v1::Secret;
use kube::Resource;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use pretty_assertions::assert_eq;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::kit::env::Env as _;
use crate::kit::objects::{Told as _, merge};
use crate::kit::test_env::{TestEnv, run};
use crate::kit::wait::{seen, within};

fn user(name: &str, spec: &Value) -> Value {
    let mut user = json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "DatabaseUser", "metadata": {"name": name},
        "spec": {"databaseName": "orders", "username": "shop", "role": "Write"},
    });
    merge(&mut user["spec"], spec);
    user
}

async fn create(env: &TestEnv, object: &Value) -> Result<DatabaseUser, kube::Error> {
    env.api::<DatabaseUser>()
        .create(&PostParams::default(), &serde_json::from_value(object.clone()).unwrap())
        .await
}

/// Waits until the user waits for this.
async fn awaits(env: &TestEnv, name: &str, reason: &str) -> String {
    within(env.limit(), &format!("{name} being {reason}"), || async {
        let user = env.api::<DatabaseUser>().get(name).await.map_err(|error| error.to_string())?;
        let (status, found, message) = user.condition("Ready");
        let is_it = status == "False" && found == reason;
        seen(is_it.then(|| message.clone()), || format!("{status} {found}: {message}"))
    })
    .await
}

async fn is_gone<K>(env: &TestEnv, name: &str)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    within(env.limit(), &format!("{name} being gone"), || async {
        let left = env.api::<K>().get_opt(name).await.map_err(|error| error.to_string())?;
        seen(left.is_none().then_some(()), || format!("{left:?}"))
    })
    .await;
}

/// What no user may be, and what the API server says of it.
const REFUSED: [(&str, &str); 8] = [
    (r#"{"username": "admin"}"#, "reserved"),
    (r#"{"username": "pg_monitor"}"#, "reserved"),
    (r#"{"username": "freehold_owner_app"}"#, "reserved"),
    (r#"{"username": "Shop"}"#, "lower-case"),
    (r#"{"databases": ["app\"; DROP TABLE x; --"]}"#, "lower-case"),
    (r#"{"databases": ["template1"]}"#, "the engine's own"),
    (r#"{"databases": []}"#, "at least 1"),
    (r#"{"role": "Superuser"}"#, "Unsupported value"),
];

async fn admission(env: &TestEnv) {
    for (spec, expected) in REFUSED {
        let object = user("refused", &serde_json::from_str(spec).unwrap());
        let api = env.api::<DatabaseUser>();
        let applied = api.patch("refused", &PatchParams::apply("person"), &Patch::Apply(&object)).await;
        let refused = applied.unwrap_err().to_string();
        assert!(refused.contains(expected), "{spec}: {refused}");
    }
    let created = create(env, &user("shop", &json!({"passwordGeneration": 2}))).await.unwrap();
    assert_eq!(created.spec.databases, ["app"]);
    for (spec, expected) in [
        (json!({"username": "store"}), "spec.username cannot change"),
        (json!({"databaseName": "others"}), "spec.databaseName cannot change"),
        (json!({"passwordGeneration": 1}), "only raised"),
    ] {
        let patch = Patch::Merge(json!({"spec": spec}));
        let changed = env.api::<DatabaseUser>().patch("shop", &PatchParams::default(), &patch).await;
        let refused = changed.unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn a_user_waits_for_its_database_has_a_secret_before_the_engine_has_it_and_goes_with_its_database() {
    run(async {
        let mut env = TestEnv::start("users").await;
        admission(&env).await;
        let message = awaits(&env, "shop", "AwaitingDatabase").await;
        assert_eq!(message, "Database orders does not exist yet: waiting until it is created");
        let engine = json!({"type": "postgresql", "version": "17.6"});
        env.create("orders", &json!({"engine": engine, "deletionPolicy": "Delete"})).await;
        env.ready("orders").await;
        within(env.limit(), "the Secret", || async {
            let secret = env.api::<Secret>().get_opt("shop-user").await.map_err(|error| error.to_string())?;
            let secret = secret.ok_or_else(|| "it is not there".to_owned())?;
            let data = secret.data.unwrap_or_default();
            let value = |key: &str| String::from_utf8_lossy(&data[key].0).into_owned();
            assert_eq!((value("username"), value("database")), ("shop".to_owned(), "app".to_owned()));
            assert!(value("uri").starts_with("postgresql://shop:"), "it is of the user");
            Ok(())
        })
        .await;
        within(env.limit(), "shop waiting for the engine", || async {
            let user = env.api::<DatabaseUser>().get("shop").await.map_err(|error| error.to_string())?;
            let message = user.condition("Ready").2;
            let is_it = message.starts_with("the engine cannot be asked for the user");
            seen(is_it.then_some(()), || message.clone())
        })
        .await;
        let held = env.api::<DatabaseUser>().get("shop").await.unwrap().metadata.finalizers;
        assert_eq!(held, Some(vec!["freehold.dev/finalizer".to_owned()]));

        env.create("ticks", &json!({"deletionPolicy": "Delete"})).await;
        create(&env, &user("reader", &json!({"databaseName": "ticks"}))).await.unwrap();
        let message = awaits(&env, "reader", "UserRefused").await;
        assert!(message.starts_with("QuestDB's open source edition"), "{message}");
        env.api::<DatabaseUser>().delete("reader", &DeleteParams::default()).await.unwrap();
        is_gone::<DatabaseUser>(&env, "reader").await;
        env.delete("ticks").await;
        is_gone::<Database>(&env, "ticks").await;

        env.api::<DatabaseUser>().delete("shop", &DeleteParams::default()).await.unwrap();
        let message = awaits(&env, "shop", "Deleting").await;
        assert!(message.contains("spec.deletionPolicy Retain"), "{message}");
        env.delete("orders").await;
        env.gone("orders").await;
        is_gone::<DatabaseUser>(&env, "shop").await;
        env.close().await;
    });
}

#[test]
fn the_user_of_an_application_is_made_kept_and_deleted_with_its_database_which_awaits_it() {
    run(async {
        let mut env = TestEnv::start("application").await;
        let engine = json!({"type": "postgresql", "version": "17.6"});
        let spec = json!({"engine": engine, "deletionPolicy": "Delete", "applicationUser": {}});
        env.create("orders", &spec).await;
        within(env.limit(), "orders waiting for the user of its application", || async {
            let database = env.api::<Database>().get("orders").await.map_err(|error| error.to_string())?;
            let message = database.condition("Ready").2;
            let expected = "DatabaseUser orders-application: the engine cannot be asked for the user";
            seen(message.starts_with(expected).then_some(()), || message.clone())
        })
        .await;
        let user = env.api::<DatabaseUser>().get("orders-application").await.unwrap().spec;
        assert_eq!((user.username.as_str(), user.role), ("app", UserRole::Owner));
        let of_user = env.api::<Secret>().get("orders-application-user").await.unwrap();
        assert!(of_user.data.unwrap().contains_key("uri"));

        let others = [json!({"applicationUser": null}), json!({"applicationUser": {"username": "shop"}})];
        for is_bound in [false, true] {
            if is_bound {
                let bound = Patch::Merge(json!({"status": {"binding": {"name": "orders-application-user"}}}));
                let databases = env.api::<Database>();
                databases.patch_status("orders", &PatchParams::default(), &bound).await.unwrap();
            }
            for other in &others {
                let patch = Patch::Merge(json!({"spec": other}));
                let dry = PatchParams { dry_run: true, ..PatchParams::default() };
                let changed = env.api::<Database>().patch("orders", &dry, &patch).await;
                let refused = changed.err().map(|error| error.to_string()).unwrap_or_default();
                assert_eq!(refused.contains("once the application can connect"), is_bound, "{refused}");
            }
        }
        env.edit("orders", &json!({"applicationUser": {"role": "Read"}})).await;
        within(env.limit(), "the user having the role of the spec", || async {
            let user = env.api::<DatabaseUser>().get("orders-application").await;
            let role = user.map_err(|error| error.to_string())?.spec.role;
            seen((role == UserRole::Read).then_some(()), || format!("{role:?}"))
        })
        .await;

        env.delete("orders").await;
        env.gone("orders").await;
        is_gone::<DatabaseUser>(&env, "orders-application").await;
        is_gone::<Secret>(&env, "orders-application-user").await;
        env.close().await;
    });
}
