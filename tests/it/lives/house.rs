//! The house of a life: an API server, an account, a cluster's own players, and the operator, which may
//! crash.

use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use clap::Parser;
use ec2sim::{Clock, Delays, Limits, Options, Simulator, World};
use freehold::controller::pass::context::Context;
use freehold::leadership::scope::Scope;
use freehold::leadership::{Leadership, gate};
use freehold::metrics::Metrics;
use freehold::settings::Settings;
use freehold::term::Term;
use freehold::{definitions, operator};
use freehold_box::cluster::shared::panic_message;
use freehold_rig::{Cluster, Controls, Server, Violations};
use jiff::Timestamp;
use kube::Client;
use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::chaos::Chaos;
use super::configured::Configured;
use super::disks::Disks;
use super::engines::{Checkpoints, Passwords, Reached, Suspended};
use super::lies::Lies;
use super::lies_of_ec2::PAST;
use super::operators::identity;
use super::panics;
use super::tally::Tally;
use crate::model_cloud::ModelCloud;
use crate::world::OPERATOR;

/// When every life begins.
const START: i64 = 1_767_225_600;

/// The database's namespace.
pub const NAMESPACE: &str = "team-a";

/// The cluster's id in tags.
pub const CLUSTER: &str = "rig";

/// Election at a tenth of its pace, for lives of many hours in which it is not what is looked at.
pub const SLOW_ELECTION: [&str; 6] = [
    "--leader-elect-lease-duration",
    "100",
    "--leader-elect-renew-deadline",
    "70",
    "--leader-elect-retry-period",
    "20",
];

/// The same, and the kubelets' Leases are looked at half as often, for lives of which there are hundreds: a
/// look every few seconds is a tenth of all that an operator requests.
pub const SLOW_HEARTBEATS: [&str; 10] = [
    "--leader-elect-lease-duration",
    "100",
    "--leader-elect-renew-deadline",
    "70",
    "--leader-elect-retry-period",
    "30",
    "--lease-poll-interval",
    "10",
    "--lease-stale-after",
    "25",
];

/// The resource definitions, which take a while to generate.
static DEFINITIONS: LazyLock<[Value; 7]> = LazyLock::new(|| definitions::all().map(|it| json!(it)));

/// How a life failed.
#[derive(Default)]
pub struct Failure {
    /// Why.
    pub why: String,
    /// What had happened.
    pub story: String,
}

thread_local! {
    /// The story of the life that failed on this thread.
    static STORY: RefCell<String> = const { RefCell::new(String::new()) };

    /// What the life that ended on this thread comes to.
    static TALLY: RefCell<Tally> = RefCell::default();
}

/// The stack of a life: a pass that is compiled without optimisation takes much of one.
const STACK: usize = 32 << 20;

/// See `nice(2)`.
const LOWEST_PRIORITY: i32 = 19;

/// How many lives run now.
static RUNNING: Mutex<usize> = Mutex::new(0);

/// One has ended.
static ENDED: Condvar = Condvar::new();

/// Lets a life run: as many as there are processors.
struct Permit;

impl Permit {
    fn wait() -> Self {
        let most = thread::available_parallelism().map_or(1, usize::from);
        let mut running = RUNNING.lock();
        ENDED.wait_while(&mut running, |running| *running >= most);
        *running += 1;
        Self
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *RUNNING.lock() -= 1;
        ENDED.notify_one();
    }
}

/// Runs a life when there is a processor for it.
pub fn run<F: Future<Output = ()>>(life: impl FnOnce() -> F + Send) -> Result<(), Failure> {
    let _permit = Permit::wait();
    run_at_once(life).0
}

/// Runs a life on a thread and in a runtime of its own, whose time stands still unless everyone waits.
pub fn run_at_once<F: Future<Output = ()>>(life: impl FnOnce() -> F + Send) -> (Result<(), Failure>, Tally) {
    let on_thread = || {
        // Of this thread alone, on Linux: a life takes what the scenarios beside it leave, which have limits
        // of time. Its own time is virtual.
        rustix::process::nice(LOWEST_PRIORITY).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        panics::note();
        let lived = catch_unwind(AssertUnwindSafe(|| runtime.unwrap().block_on(life())));
        let lived = lived.map_err(|panic| panic_message(panic.as_ref()).to_owned());
        let lived = lived.and_then(|()| panics::first().map_or(Ok(()), Err));
        (lived.map_err(|why| Failure { why, story: STORY.take() }), TALLY.take())
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, on_thread);
        thread.unwrap().join().unwrap()
    })
}

/// Virtual time, as the operator reads it: by a clock that may be set.
struct VirtualClock {
    began: Instant,
    set_by: Mutex<Duration>,
}

impl freehold::clock::Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(START).unwrap() + self.began.elapsed() + *self.set_by.lock()
    }
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    settings: Settings,
}

/// The house.
pub struct House {
    /// The seed.
    pub seed: u64,
    /// The API server.
    pub server: Server,
    /// The account.
    pub ec2: Simulator,
    /// What can be done to the machines.
    pub controls: Controls,
    /// What lies.
    pub chaos: Chaos,
    /// A person's client.
    pub person: Client,
    /// What must never happen on a machine, and did.
    pub violations: Violations,
    /// What the engines hold.
    pub checkpoints: Checkpoints,
    /// What the engines say of their tables.
    pub suspended: Suspended,
    /// The password that the engine takes.
    pub engine_password: Passwords,
    /// Of the operator that began last.
    pub metrics: Arc<Mutex<Arc<Metrics>>>,
    /// The settings that the engines run with.
    pub configured: Configured,
    /// The file systems that kubelets read.
    pub disks: Disks,
    clock: Arc<VirtualClock>,
    players: Vec<JoinHandle<()>>,
}

impl House {
    /// A house without an operator yet.
    pub async fn build(seed: u64, lies: Lies) -> Self {
        Self::build_in(seed, lies, Limits::NONE).await
    }

    /// The same in an account with these limits.
    pub async fn build_in(seed: u64, lies: Lies, limits: Limits) -> Self {
        Self::build_on(seed, lies, limits, World::default()).await
    }

    /// The same with these zones, subnets and types.
    pub async fn build_on(seed: u64, lies: Lies, limits: Limits, world: World) -> Self {
        Self::build_as(seed, lies, Options { limits, world, ..Options::default() }).await
    }

    /// The same in an account with these limits, this world and these policies.
    pub async fn build_as(seed: u64, lies: Lies, account: Options) -> Self {
        let start = Timestamp::from_second(START).unwrap();
        let clock = Arc::new(VirtualClock { began: Instant::now(), set_by: Mutex::default() });
        let server = Server::new(freehold_rig::Clock::of_tokio(start));
        for definition in DEFINITIONS.iter() {
            server.define(definition);
        }
        let ec2 = Simulator::new(Options {
            clock: Clock::Running { speed: 1.0 },
            start: Some(start),
            seed,
            delays: Delays::realistic(),
            visibility: lies.visibility,
            past: PAST,
            ..account
        })
        .unwrap();
        let cluster = Cluster::new(server.clone(), ec2.clone(), seed);
        let (controls, violations) = (cluster.controls(), cluster.violations());
        let chaos = Chaos::new(seed, lies, &server, &ec2);
        let (person, disks) = (server.client("person"), Disks::of(&server));
        let players = vec![tokio::spawn(cluster.run()), tokio::spawn(chaos.clone().disturb())];
        let house = Self {
            seed,
            server,
            ec2,
            controls,
            chaos,
            person,
            violations,
            checkpoints: Checkpoints::default(),
            suspended: Suspended::default(),
            engine_password: Passwords::default(),
            metrics: Arc::new(Mutex::new(Metrics::new())),
            configured: Configured::default(),
            disks,
            clock,
            players,
        };
        house.furnish().await;
        house
    }

    /// For how long it has been lived in, in virtual time.
    pub fn age(&self) -> Duration {
        self.clock.began.elapsed()
    }

    /// Sets the operator's clock forward.
    pub fn set_clock_forward(&self, by: Duration) {
        self.chaos.tell(&format!("the clock of the operator is set forward by {by:?}"));
        *self.clock.set_by.lock() += by;
    }

    /// Starts one operator, and keeps starting it when it has ended.
    pub fn start(&mut self) {
        self.start_with(1, &SLOW_HEARTBEATS);
    }

    /// Starts so many operators with these flags, of which one leads, and keeps starting each.
    pub fn start_with(&mut self, operators: usize, flags: &[&str]) {
        let flags: Arc<[String]> = flags.iter().copied().map(str::to_owned).collect();
        for number in 1..=operators {
            let host = Host {
                number,
                server: self.server.clone(),
                ec2: self.ec2.clone(),
                chaos: self.chaos.clone(),
                checkpoints: self.checkpoints.clone(),
                suspended: self.suspended.clone(),
                passwords: self.engine_password.clone(),
                metrics: Arc::clone(&self.metrics),
                configured: self.configured.clone(),
                disks: self.disks.clone(),
                clock: Arc::clone(&self.clock),
                flags: Arc::clone(&flags),
            };
            self.players.push(tokio::spawn(host.run()));
        }
    }
}

impl House {
    /// What every pass of an operator would be given that leads nothing and only looks.
    pub fn looker(&self) -> Context {
        let settings = Line::parse_from(["rig", "--cluster-id", CLUSTER]).settings;
        let clock: Arc<dyn freehold::clock::Clock> = self.clock.clone();
        let cloud = Arc::new(ModelCloud::new(self.ec2.clone(), OPERATOR));
        let (metrics, term) = (Metrics::new(), Arc::new(Term::new(Arc::clone(&clock))));
        let client = self.server.client("looker");
        operator::context(&settings, client, cloud, clock, CLUSTER.to_owned(), metrics, term)
    }
}

/// What one operator runs on.
struct Host {
    number: usize,
    server: Server,
    ec2: Simulator,
    chaos: Chaos,
    checkpoints: Checkpoints,
    suspended: Suspended,
    passwords: Passwords,
    metrics: Arc<Mutex<Arc<Metrics>>>,
    configured: Configured,
    disks: Disks,
    clock: Arc<VirtualClock>,
    flags: Arc<[String]>,
}

impl Host {
    /// Starts its process again whenever it has ended.
    async fn run(self) {
        loop {
            tokio::select! {
                () = self.chaos.ending(self.number) => {}
                why = self.process() => self.chaos.tell(&format!("operator {} ends: {why}", self.number)),
            }
            tokio::time::sleep(self.chaos.outage(self.number)).await;
        }
    }

    /// One process, as `freehold run` is but for its endpoints: it stands by, leads, and ends with its term
    /// or when it is asked to. Why it ends.
    async fn process(&self) -> String {
        let name = self.chaos.begin(self.number);
        let identity = identity(self.number);
        let line = ["rig", "--cluster-id", CLUSTER, "--leader-elect-identity", identity.as_str()];
        let settings =
            Line::parse_from(line.into_iter().chain(self.flags.iter().map(String::as_str))).settings;
        let clock: Arc<dyn freehold::clock::Clock> = self.clock.clone();
        let (metrics, term) = (Metrics::new(), Arc::new(Term::new(Arc::clone(&clock))));
        *self.metrics.lock() = Arc::clone(&metrics);
        let way = self.chaos.way(name.clone(), Arc::clone(&term));
        let cloud = Arc::new(ModelCloud::over(self.ec2.clone(), OPERATOR, way));
        let client = self.server.client(&name);
        let scope = Scope::new(settings.namespace.iter().map(String::as_str));
        let election = &settings.election;
        let (ours, of_metrics) = (Arc::clone(&term), Arc::clone(&metrics));
        let mut leadership = Leadership::new(client.clone(), election, CLUSTER, scope, ours, of_metrics);
        let held = leadership.take().await;
        let client = gate::within(Arc::clone(&term), &client);
        let engines = self.engines(&name, &term);
        let ctx = operator::context(&settings, client, cloud, clock, CLUSTER.to_owned(), metrics, term);
        let kubelets = Arc::new(self.disks.clone());
        let ctx = Context { engines, kubelets, ..ctx };
        let stop = self.chaos.asking(self.number);
        let tasks = operator::start(&Arc::new(ctx), &settings, &stop);
        let ended = operator::lead(&leadership, held, tasks, stop).await;
        ended.map_or_else(|lost| lost.to_string(), |()| "it was asked to".to_owned())
    }
}

impl Host {
    /// The engines, as this start of the operator reaches them.
    fn engines(&self, name: &str, term: &Arc<Term>) -> Arc<Reached> {
        let ec2 = self.ec2.clone();
        Arc::new(Reached {
            server: self.server.clone(),
            checkpoints: self.checkpoints.clone(),
            suspended: self.suspended.clone(),
            passwords: self.passwords.clone(),
            configured: self.configured.clone(),
            way: self.chaos.way(name.to_owned(), Arc::clone(term)),
            now: Box::new(move || ec2.now()),
        })
    }
}

impl Drop for House {
    fn drop(&mut self) {
        for player in &self.players {
            player.abort();
        }
        TALLY.set(self.tally());
        if std::thread::panicking() {
            STORY.set(self.story());
        }
    }
}
