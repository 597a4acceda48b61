//! A database that a provisioner made, on a real machine with a client that writes to it: adopted, released
//! and adopted again without an error at the client; it loses no row with its machine.

use ec2sim::Outside;
use freehold_box::legacy::{Account, Disk, FileSystem, Legacy, Order};
use freehold_box::writer::{Dialect, PACE, Target, Writer};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::adopter::adopt;
use crate::kit::env::Env as _;
use crate::kit::real::{LIMIT, RealEnv, on_real_machines};
use crate::kit::wait::{seen, within};

/// The database, and who writes to it.
struct Served {
    legacy: Legacy,
    version: String,
    writer: Writer,
    /// How often the writer failed until the database served.
    failures: u64,
    run: (String, i32),
}

impl Served {
    async fn by(env: &RealEnv) -> Self {
        let order = Order {
            engine: Dialect::Postgresql,
            namespace: &env.name,
            name: "orders",
            file_system: FileSystem::Ext4,
            disk: Disk::Claimed,
        };
        let legacy = Legacy::create(&env.client, &Account::of(&env.site), order).await.unwrap();
        legacy.serves(LIMIT).await.unwrap();
        let target = Target { dialect: legacy.engine, source: legacy.source(), table: "numbered" };
        let writer = Writer::start(target, PACE);
        writer.is_served(LIMIT).await.unwrap();
        let version = env.postgresql()["engine"]["version"].as_str().unwrap().to_owned();
        Self { legacy, version, failures: writer.failures(), run: env.run_of("orders").await, writer }
    }

    /// A person adopts it, and its client notices nothing.
    async fn is_adopted(&self, env: &RealEnv) {
        let (code, said) = adopt(env, &["--engine-version", &self.version, "--write"]).await;
        assert_eq!(code, Some(0), "{said}");
        self.is_undisturbed(env).await;
    }

    /// Nothing was restarted, detached or launched, and its client had no error.
    async fn is_undisturbed(&self, env: &RealEnv) {
        self.writer.is_served(LIMIT).await.unwrap();
        assert_eq!(self.writer.failures(), self.failures, "{:?}", self.writer.last_failure());
        assert_eq!(env.run_of("orders").await, self.run);
        assert_eq!(Self::holder(env), Some(self.legacy.instance.clone()));
        assert_eq!(env.ec2().instances().len(), 1);
    }

    /// The instance that the volume is attached to: the one that the CSI driver made.
    fn holder(env: &RealEnv) -> Option<String> {
        let mut volumes = env.ec2().volumes().into_iter();
        let disk = volumes.find(|volume| volume.tags.contains_key("CSIVolumeName"))?;
        Some(disk.attachment?.instance_id)
    }
}

#[test]
fn a_database_that_serves_is_adopted_released_and_adopted_again_without_an_error_at_its_client() {
    on_real_machines("legacy-served", |mut env| async move {
        let served = Served::by(&env).await;
        let found = served.legacy.manifests().await.unwrap();
        env.env.start_operator();
        served.is_adopted(&env).await;

        env.edit("orders", &json!({"release": true})).await;
        env.env.delete("orders").await;
        env.is_gone("orders").await;
        // The provisioner's finalizer follows the reclaim policy a little later.
        within(LIMIT, "everything as it was found", || async {
            let now = served.legacy.manifests().await.map_err(|error| error.to_string())?;
            seen((now == found).then_some(()), || format!("{now:#?}"))
        })
        .await;
        served.is_undisturbed(&env).await;

        served.is_adopted(&env).await;
        // The image's entry point leaves pg_hba.conf to the page cache when it makes the database, which a
        // power cut empties: one that has run for half a minute has it on the disk.
        env.exec("orders", "sync -f /var/lib/postgresql/data/pgdata/pg_hba.conf").unwrap();
        env.ec2().outside(&Outside::Terminate.to(&served.legacy.instance)).unwrap();
        within(LIMIT, "the volume on another machine", || async {
            let holder = Served::holder(&env);
            let has_moved = holder.as_ref().is_some_and(|holder| *holder != served.legacy.instance);
            seen(has_moved.then_some(()), || format!("{holder:?}"))
        })
        .await;
        env.serves("orders").await;
        served.writer.is_served(LIMIT).await.unwrap();
        served.writer.verify(LIMIT).await.unwrap().check().unwrap();
        served.writer.stop().await;
        env
    });
}
