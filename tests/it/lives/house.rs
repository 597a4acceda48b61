//! The house of a life: an API server, an account, a cluster's own players, and the operator, which may
//! crash.

use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};
use std::thread;

use clap::Parser;
use ec2sim::{Clock, Delays, Limits, Options, Simulator};
use freehold::api::{Database, Node, NodeClass, Volume};
use freehold::metrics::Metrics;
use freehold::operator;
use freehold::settings::Settings;
use freehold::term::Term;
use freehold_rig::{Cluster, Controls, Server, Violations};
use jiff::Timestamp;
use kube::{Client, CustomResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::chaos::{Chaos, Lies, NEVER};
use super::lies_of_ec2::PAST;
use crate::model_cloud::ModelCloud;
use crate::world::OPERATOR;

/// When every life begins.
const START: i64 = 1_767_225_600;

/// The database's namespace.
pub const NAMESPACE: &str = "team-a";

/// The resource definitions, which take a while to generate.
static DEFINITIONS: LazyLock<[Value; 4]> =
    LazyLock::new(|| [Database::crd(), Node::crd(), Volume::crd(), NodeClass::crd()].map(|it| json!(it)));

/// How a life failed.
pub struct Failure {
    /// Why.
    pub why: String,
    /// What had happened.
    pub story: String,
}

thread_local! {
    /// The story of the life that failed on this thread.
    static STORY: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The stack of a life: a pass that is compiled without optimisation takes much of one.
const STACK: usize = 32 << 20;

/// Runs a life on a thread and in a runtime of its own, whose time stands still unless everyone waits.
pub fn run<F: Future<Output = ()>>(life: impl FnOnce() -> F + Send) -> Result<(), Failure> {
    let on_thread = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let lived = catch_unwind(AssertUnwindSafe(|| runtime.unwrap().block_on(life())));
        lived.map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let why = text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
            Failure { why: why.unwrap_or_default(), story: STORY.take() }
        })
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, on_thread);
        thread.unwrap().join().unwrap()
    })
}

/// Virtual time, as the operator reads it.
struct VirtualClock(Instant);

impl freehold::clock::Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(START).unwrap() + self.0.elapsed()
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
    clock: Arc<VirtualClock>,
    players: Vec<JoinHandle<()>>,
}

impl House {
    /// A house without an operator yet.
    pub async fn build(seed: u64, lies: Lies) -> Self {
        let start = Timestamp::from_second(START).unwrap();
        let clock = Arc::new(VirtualClock(Instant::now()));
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
            limits: Limits { rate: None, ..Limits::default() },
            ..Options::default()
        })
        .unwrap();
        let cluster = Cluster::new(server.clone(), ec2.clone(), seed);
        let (controls, violations) = (cluster.controls(), cluster.violations());
        let chaos = Chaos::new(seed, lies, &server, &ec2);
        let person = server.client("person");
        let players = vec![tokio::spawn(cluster.run()), tokio::spawn(chaos.clone().disturb())];
        let house = Self { seed, server, ec2, controls, chaos, person, violations, clock, players };
        house.furnish().await;
        house
    }

    /// Starts the operator, and keeps starting it when it crashes.
    pub fn start(&mut self) {
        self.start_with(&[]);
    }

    /// The same, with these flags.
    pub fn start_with(&mut self, flags: &'static [&'static str]) {
        let (server, ec2) = (self.server.clone(), self.ec2.clone());
        let (chaos, clock) = (self.chaos.clone(), Arc::clone(&self.clock));
        self.players.push(tokio::spawn(async move {
            loop {
                let incarnation = chaos.begin();
                let client = server.client(&incarnation);
                let way = chaos.way(incarnation.clone());
                let cloud = Arc::new(ModelCloud::over(ec2.clone(), OPERATOR, way));
                let line = ["rig", "--cluster-id", "rig"].iter().chain(flags);
                let settings = Line::parse_from(line).settings;
                let clock: Arc<dyn freehold::clock::Clock> = clock.clone();
                let metrics = Metrics::new();
                let term = Arc::new(Term::new(Arc::clone(&clock)));
                // No other operator acts in this house.
                term.renewed(term.about_to_renew(), NEVER);
                let ctx = operator::context(&settings, client, cloud, clock, "rig".to_owned(), metrics, term);
                let stop = CancellationToken::new();
                let mut tasks = operator::start(&Arc::new(ctx), &settings, &stop);
                tokio::select! {
                    () = chaos.crash() => {}
                    ended = tasks.join_next() => panic!("a task of the operator ended: {ended:?}"),
                }
                drop(tasks);
                tokio::time::sleep(chaos.outage()).await;
            }
        }));
    }
}

impl Drop for House {
    fn drop(&mut self) {
        for player in &self.players {
            player.abort();
        }
        if std::thread::panicking() {
            STORY.set(self.story());
        }
    }
}
