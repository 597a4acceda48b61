//! Houses on real machines, two at a time, each with a control plane, an account and machines of its own.

use crate::kit::env::Env as _;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_ec2::config::{BehaviorVersion, Credentials, Region};
use ec2sim::World;
use freehold::api::Database;
use freehold_box::account::node_kind;
use freehold_box::account::{Real, Site, SiteOptions};
use freehold_box::base::cache::Cache;
use freehold_box::base::progress::Progress;
use freehold_box::cluster::control_plane::{ControlPlane, ControlPlaneOptions};
use freehold_box::machines::machine::Machine;
use freehold_box::writer::{Dialect, PACE, Source, Target, Writer};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::objects::Told as _;
use super::permits;
use super::statements;
use super::test_env::{self, Options, TestEnv};
use super::wait::within;

/// As for machines in name: a pod starts, an engine too, and a machine of two cores runs all of it.
pub const LIMIT: Duration = Duration::from_mins(20);

/// The table that the writers of these tests write to.
const TABLE: &str = "numbered";

async fn real() -> &'static Real {
    static REAL: OnceCell<Real> = OnceCell::const_new();
    REAL.get_or_init(|| async {
        Real::ensure(&Cache::from_environment(), &Progress::on_stderr()).await.unwrap()
    })
    .await
}

/// Runs a scenario in a test environment with real machines and closes the test environment; on a host that
/// cannot have them it says so and passes.
pub fn on_real_machines<F: Future<Output = RealEnv>>(name: &str, scenario: impl FnOnce(RealEnv) -> F) {
    on_machines_of(name, World::default(), &[], scenario);
}

/// The same in an account with these surroundings.
pub fn on_real_machines_of<F: Future<Output = RealEnv>>(
    name: &str,
    world: World,
    scenario: impl FnOnce(RealEnv) -> F,
) {
    on_machines_of(name, world, &[], scenario);
}

/// The same with these settings of the operator, in seconds of which one takes a tenth.
pub fn on_real_machines_with<F: Future<Output = RealEnv>>(
    name: &str,
    settings: &[(&'static str, u32)],
    scenario: impl FnOnce(RealEnv) -> F,
) {
    on_machines_of(name, World::default(), settings, scenario);
}

fn on_machines_of<F: Future<Output = RealEnv>>(
    name: &str,
    world: World,
    settings: &[(&'static str, u32)],
    scenario: impl FnOnce(RealEnv) -> F,
) {
    in_turn(name, |_| async {
        let env = RealEnv::build(name, world, settings).await;
        scenario(env).await.close().await;
    });
}

/// Runs this when its turn comes, with what real machines are made of; on a host that cannot have them it
/// says so and passes.
pub fn in_turn<F: Future<Output = ()>>(name: &str, scenario: impl FnOnce(&'static Real) -> F) {
    if !node_kind::can_be_real(name) {
        return;
    }
    test_env::run(async {
        let _permit = permits::of_real_machines().await;
        scenario(real().await).await;
    });
}

/// The spec of a PostgreSQL of the release that the machines have an image of, with a small disk.
pub fn postgresql(real: &Real) -> Value {
    let mut versions =
        real.template.names().iter().filter_map(|name| name.strip_prefix("docker.io/library/postgres:"));
    let version = versions.find(|version| version.starts_with("15.")).unwrap();
    json!({"engine": {"type": "postgresql", "version": version}, "storage": {"size": "2Gi"}})
}

/// A test environment whose machines are real.
pub struct RealEnv {
    /// Everything that a test environment has.
    pub env: TestEnv,
    /// Whether the operator's calls to the API server pass the test environment's tap, by which the
    /// invariants judge them.
    pub has_tap: bool,
    real: &'static Real,
}

impl std::ops::Deref for RealEnv {
    type Target = TestEnv;

    fn deref(&self) -> &TestEnv {
        &self.env
    }
}

impl RealEnv {
    async fn build(name: &str, world: World, more: &[(&'static str, u32)]) -> Self {
        let real = real().await;
        // The CSI driver acts on every object of its name, and Kubernetes knows machines by names that EC2
        // uses again.
        let control_plane =
            Arc::new(ControlPlane::start(ControlPlaneOptions::named("real-tests")).await.unwrap());
        test_env::install(&control_plane).await;
        // Ten times as fast as in production, the operator and EC2; the machines are as fast as they are, and
        // a busy host is not a loss.
        let mut settings = BTreeMap::from([("registration-timeout", 7200), ("loss-grace-period", 7200)]);
        settings.extend(more.iter().copied());
        let options = Options { scale: 10, settings, ..Options::default() };
        let clock = ec2sim::Clock::Running { speed: f64::from(options.scale) };
        let simulator = ec2sim::Options {
            clock,
            delays: ec2sim::Delays::realistic(),
            world,
            ..ec2sim::Options::default()
        };
        let simulator = statements::enforced(simulator, name);
        let site =
            SiteOptions { simulator, real: Some(real.clone()), boot: Duration::ZERO, ..SiteOptions::fast() };
        let site = Site::start(&control_plane, site).await.unwrap();
        Self { env: TestEnv::build_at(control_plane, site, name, options).await, has_tap: true, real }
    }

    /// The machine of the one database.
    pub fn machine(&self) -> Arc<Machine> {
        let instances = self.live_instances();
        let [instance] = instances.as_slice() else { panic!("not one instance: {instances:?}") };
        self.site.machines().unwrap().get(&instance.id).unwrap()
    }

    /// The host as its machines see it.
    pub fn gateway(&self) -> Ipv4Addr {
        self.site.machines().unwrap().gateway()
    }

    /// Waits until this generation of the Database is Ready, with a real engine.
    pub async fn serves(&self, name: &str) -> Database {
        self.ready_within(LIMIT, name).await
    }

    /// The pod of the Database.
    pub async fn pod(&self, name: &str) -> Pod {
        self.api::<Pod>().get(&format!("{name}-0")).await.unwrap()
    }

    /// The pod's UID and how often its container was started again.
    pub async fn run_of(&self, name: &str) -> (String, i32) {
        let pod = self.pod(name).await;
        let restarts = pod
            .status
            .iter()
            .flat_map(|status| status.container_statuses.iter().flatten())
            .map(|it| it.restart_count)
            .sum();
        (pod.uid().unwrap(), restarts)
    }

    /// Runs a command of the shell in the engine's container.
    pub fn exec(&self, name: &str, script: &str) -> Result<String, String> {
        let output =
            self.kubectl().args(["exec", &format!("{name}-0"), "--", "sh", "-c", script]).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr) + &text(&output.stdout))
        }
    }

    /// What `psql` in the engine's container says over the network, with these words of the connection.
    pub fn psql(&self, name: &str, words: &str, query: &str) -> Result<String, String> {
        let password = "export PGPASSWORD=$(cat /run/freehold/credentials/password)";
        let connection = format!("hostaddr=127.0.0.1 user=admin dbname=app {words}");
        let said = self.exec(name, &format!("{password}; psql -At \"{connection}\" -c '{query}'"))?;
        Ok(said.trim().to_owned())
    }

    /// The table of the Database that a client writes numbered rows to.
    pub fn numbered(&self, name: &str, dialect: Dialect) -> Target {
        let source = Source::Database {
            client: self.client.clone(),
            namespace: self.name.clone(),
            name: name.to_owned(),
        };
        Target { dialect, source, table: TABLE }
    }

    /// Starts a client that writes numbered rows to the Database.
    pub fn writer(&self, name: &str, dialect: Dialect) -> Writer {
        Writer::start(self.numbered(name, dialect), PACE)
    }

    /// Creates a database that has some rows, and starts the writer that goes on adding to them.
    pub async fn written(&self, spec: &Value, dialect: Dialect) -> Writer {
        self.create("orders", spec).await;
        self.serves("orders").await;
        let writer = self.writer("orders", dialect);
        writer.is_served(LIMIT).await.unwrap();
        writer
    }

    /// The spec of a PostgreSQL.
    pub fn postgresql(&self) -> Value {
        postgresql(self.real)
    }

    /// Waits until the Database is gone.
    pub async fn is_gone(&self, name: &str) {
        within(LIMIT, &format!("Database {name} being gone"), || async {
            let left = self.api::<Database>().get_opt(name).await.map_err(|error| error.to_string())?;
            left.map_or(Ok(()), |database| Err(format!("{:?}", database.condition("Ready"))))
        })
        .await;
    }

    /// A client of the simulated EC2 that is not the operator's.
    pub fn ec2_client(&self) -> aws_sdk_ec2::Client {
        let config = aws_sdk_ec2::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(self.site.endpoint())
            .region(Region::new(self.site.region().to_owned()))
            .credentials_provider(Credentials::new("platform", "of-nothing", None, None, "test"))
            .build();
        aws_sdk_ec2::Client::from_conf(config)
    }

    /// The end of a scenario: no disk was taken from under a machine, the databases are deleted with their
    /// disks, nothing is left, and everything that must always hold, holds.
    async fn close(mut self) {
        let databases = self.env.list::<Database>().await;
        for database in &databases {
            let patch = Patch::Merge(json!({"spec": {"deletionPolicy": "Delete"}}));
            self.api::<Database>()
                .patch(&database.name_any(), &PatchParams::default(), &patch)
                .await
                .unwrap();
            self.env.delete(&database.name_any()).await;
        }
        for database in &databases {
            self.is_gone(&database.name_any()).await;
        }
        let machines = self
            .live_instances()
            .into_iter()
            .filter(|instance| instance.tags.contains_key("freehold.dev/node-uid"))
            .count();
        assert_eq!((machines, self.data_volumes().len()), (0, 0), "something is left");
        assert!(self.site.violations().is_empty(), "{:?}", self.site.violations());
        if self.has_tap {
            self.env.close().await;
        } else {
            self.env.close_unchecked().await;
        }
    }
}

/// A Database of QuestDB with a small disk whose acknowledgements survive a power cut.
pub fn questdb() -> Value {
    json!({"storage": {"size": "2Gi"}, "config": {"cairo.commit.mode": "sync"}})
}
