//! The page on TLS is followed with a real PostgreSQL, under a writer that goes on while the certificate is
//! renewed.

use freehold::api::Database;
use freehold_box::writer::Dialect;
use pretty_assertions::{assert_eq, assert_ne};
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::page;
use crate::kit::real::{LIMIT, RealEnv, on_real_machines};
use crate::kit::wait::within;

const PAGE: &str = "docs/tls.md";

/// The certificate that the engine shows, by its record.
async fn shown(env: &RealEnv) -> String {
    let database: Database = env.api().get("orders").await.unwrap();
    database.status.and_then(|it| it.tls?.certificate).unwrap_or_default()
}

/// What `psql` in the pod says over the network, with these words of the connection.
fn connects(env: &RealEnv, words: &str) -> Result<String, String> {
    let ask = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    env.psql("orders", &format!("host=orders.{}.svc {words}", env.name), ask)
}

/// Who verifies the name, with the certificate as the authority that has signed it.
const VERIFIED: &str = "sslmode=verify-full sslrootcert=/run/freehold/tls/tls.crt channel_binding=require";

#[test]
fn the_page_on_tls_can_be_followed_and_a_renewal_ends_no_connection() {
    on_real_machines("tls-of-postgresql", |mut env| async move {
        env.env.start_operator();
        let blocks = page::blocks(PAGE);
        let [make, _of_cert_manager, _manifest, wait, require, renew] = &blocks[..] else {
            panic!("{} blocks", blocks.len())
        };
        let mut spec = env.postgresql();
        spec["tls"] = json!({"secretName": "orders-tls"});
        env.create("orders", &spec).await;
        within(LIMIT, "the certificate being awaited", || async {
            let database: Database = env.api().get("orders").await.map_err(|it| it.to_string())?;
            let (status, reason, _) = database.condition("CertificateLoaded");
            if reason == "CertificateUnusable" { Ok(()) } else { Err(format!("{status} {reason}")) }
        })
        .await;
        page::run(&env, PAGE, make).await;
        assert!(page::run(&env, PAGE, wait).await.contains('T'), "when it expires");
        let database = env.serves("orders").await;
        assert_eq!(database.condition("CertificateLoaded").0, "True");
        let tls = database.status.unwrap_or_default().tls.unwrap_or_default();
        assert_eq!(tls.missing_name, None);
        let writer = env.writer("orders", Dialect::Postgresql);
        writer.is_served(LIMIT).await.unwrap();
        assert_eq!(connects(&env, VERIFIED).unwrap(), "t");
        assert_eq!(connects(&env, "sslmode=disable").unwrap(), "f", "it is not required");
        let (first, run) = (shown(&env).await, env.run_of("orders").await);
        page::run(&env, PAGE, renew).await;
        within(LIMIT, "the renewed certificate being shown", || async {
            let now = shown(&env).await;
            if now == first { Err(now) } else { Ok(()) }
        })
        .await;
        assert_ne!(shown(&env).await, "");
        assert_eq!(connects(&env, VERIFIED).unwrap(), "t", "the files are those of the new one");
        assert_eq!(env.run_of("orders").await, run, "nothing restarts");
        assert_eq!(writer.failures(), 0, "{:?}", writer.last_failure());
        writer.verify(LIMIT).await.unwrap().check().unwrap();
        page::run(&env, PAGE, require).await;
        env.serves("orders").await;
        assert_eq!(connects(&env, VERIFIED).unwrap(), "t");
        let refused = connects(&env, "sslmode=disable").unwrap_err();
        assert!(refused.contains("no encryption"), "{refused}");
        env
    });
}
