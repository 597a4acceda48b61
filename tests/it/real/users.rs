//! The page on users is followed with a real PostgreSQL.

use std::time::Duration;

use freehold::api::DatabaseUser;
use freehold_box::writer::local_postgresql::connect;
use freehold_box::writer::{Access, Dialect, Source, Target};
use k8s_openapi::api::core::v1::Secret;
use pretty_assertions::{assert_eq, assert_ne};
use serde_json::json;

use super::backup;
use crate::kit::env::Env as _;
use crate::kit::page;
use crate::kit::real::{LIMIT, RealEnv, on_real_machines};
use crate::kit::wait::within;

/// How long a connection is tried that is to be refused.
const TRIED: Duration = Duration::from_secs(5);

const PAGE: &str = "docs/users.md";

/// The Secret of the user of the application.
const APPLICATION: &str = "orders-application-user";

/// The Secret of the user that is created and dropped.
const SHOP: &str = "orders-shop-user";

async fn of_administrator(env: &RealEnv) -> Access {
    let source = Source::Database {
        client: env.client.clone(),
        namespace: env.name.clone(),
        name: "orders".to_owned(),
    };
    source.access().await.unwrap()
}

/// What this Secret has, at the address of the database.
async fn access(env: &RealEnv, secret: &str) -> Access {
    let secret = env.api::<Secret>().get(secret).await.unwrap().data.unwrap();
    let value = |key: &str| String::from_utf8(secret[key].0.clone()).unwrap();
    let (username, password, database) = (value("username"), value("password"), value("database"));
    Access { username, password, database, ..of_administrator(env).await }
}

async fn opens(with: &Access, limit: Duration) -> bool {
    let (dialect, source) = (Dialect::Postgresql, Source::Given(with.clone()));
    Target { dialect, source, table: "of_shop" }.count("of_shop", limit).await.is_ok()
}

#[test]
fn the_page_on_users_can_be_followed_and_what_a_user_owned_stays() {
    on_real_machines("users-of-postgresql", |mut env| async move {
        env.env.start_operator();
        env.create("orders", &env.postgresql()).await;
        env.serves("orders").await;
        let blocks = page::blocks(PAGE);
        let [application, manifest, wait, rotation, deletion] = &blocks[..] else {
            panic!("{} blocks", blocks.len())
        };
        page::run(&env, PAGE, application).await;
        let of_application = access(&env, APPLICATION).await;
        let (client, _of_application) = connect(&of_application).await.unwrap();
        let asked = "SELECT current_setting('is_superuser'), session_user::text";
        let told = client.query_one(asked, &[]).await.unwrap();
        assert_eq!((told.get::<_, &str>(0), told.get::<_, &str>(1)), ("off", "app"));
        client.batch_execute("CREATE TABLE of_app (id int)").await.unwrap();
        page::run(&env, PAGE, manifest).await;
        assert!(page::run(&env, PAGE, wait).await.ends_with("orders-shop-user"));
        let first = access(&env, SHOP).await;
        let (client, _connection) = connect(&first).await.unwrap();
        let table = "CREATE TABLE of_shop (id int); INSERT INTO of_shop VALUES (1)";
        client.batch_execute(table).await.unwrap();
        page::run(&env, PAGE, rotation).await;
        client.batch_execute("SELECT 1").await.unwrap();
        let second = access(&env, SHOP).await;
        assert_ne!(second.password, first.password);
        assert!(opens(&second, LIMIT).await && !opens(&first, TRIED).await, "the new password only");
        let backups = env.api();
        backup::request(&backups, "with-the-user", "orders").await;
        backup::complete(&backups, "with-the-user").await;
        page::run(&env, PAGE, deletion).await;
        assert!(env.api::<DatabaseUser>().get_opt("orders-shop").await.unwrap().is_none());
        // Kubernetes' garbage collector deletes it.
        within(LIMIT, "the Secret being gone", || async {
            let left = env.api::<Secret>().get_opt(SHOP).await.map_err(|it| it.to_string())?;
            left.map_or(Ok(()), |_| Err("it is there".to_owned()))
        })
        .await;
        assert!(!opens(&second, TRIED).await, "it is dropped");
        let (admin, _of_admin) = connect(&of_administrator(&env).await).await.unwrap();
        let kept: i64 = admin.query_one("SELECT count(*) FROM of_shop", &[]).await.unwrap().get(0);
        assert_eq!(kept, 1, "what the user owned stays");
        let request = json!({"generation": 1, "backupName": "with-the-user"});
        env.edit("orders", &json!({"restoreInPlace": request})).await;
        backup::in_place(&env, 1, true).await;
        env.serves("orders").await;
        assert!(!opens(&second, TRIED).await, "it does not come back with the data");
        let again = access(&env, APPLICATION).await;
        assert_eq!(again.password, of_application.password);
        assert!(opens(&again, LIMIT).await, "the application is let in again");
        page::run(&env, PAGE, manifest).await;
        page::run(&env, PAGE, wait).await;
        let third = access(&env, SHOP).await;
        assert_ne!(third.password, second.password);
        assert!(opens(&third, LIMIT).await && !opens(&second, TRIED).await, "it is let in with its table");
        env.edit("orders", &json!({"deletionPolicy": "Delete"})).await;
        env.env.delete("orders").await;
        env.is_gone("orders").await;
        backup::former_is_retained(&env).await;
        env
    });
}
