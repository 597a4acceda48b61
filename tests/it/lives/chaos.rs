//! What lies, and when the operator crashes: drawn from one seed, so that a life can be lived again.

use std::sync::Arc;
use std::time::Duration;

use ec2sim::{Simulator, Visibility};
use freehold_rig::{Call, Server, Verb};
use parking_lot::Mutex;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use strum::IntoEnumIterator as _;
use tokio::sync::Notify;

use super::lies_of_ec2;
use crate::model_cloud::{Passage, Way};

/// A time that never comes.
pub const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Where a kill meets a request that may change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter)]
pub enum Kill {
    /// The request is not sent any more.
    Before,
    /// It is carried out, and its answer is lost.
    Lost,
    /// The answer arrives, and nothing is sent any more.
    After,
}

/// A kill that is planned.
#[derive(Clone, Copy, Debug)]
pub struct Killed {
    /// At which of the operator's requests that may change something, from 1.
    pub number: usize,
    /// Where it meets the request.
    pub how: Kill,
    /// How long the operator stays away.
    pub away: Duration,
}

/// How much is wrong with the world: each figure is a probability for one request, unless it says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Lies {
    /// A request to the API server is refused, lost, or its answer is.
    pub api: f64,
    /// A call to EC2 is refused, lost, late, or its answer is lost.
    pub ec2: f64,
    /// The operator is killed at a write: before it, after it, or with its answer on the way.
    pub crash: f64,
    /// How often the watches are disturbed, in times an hour.
    pub watches: f64,
    /// How late EC2 shows what is new.
    pub visibility: Visibility,
    /// A read of EC2 is answered as it would have been: by each of three ages.
    pub stale: f64,
    /// The tags of instances that have ended vanish.
    pub tags_vanish: bool,
    /// The operator is killed once, here.
    pub kill: Option<Killed>,
}

impl Lies {
    /// A world as one would wish it.
    pub fn none() -> Self {
        let visibility = Visibility::default();
        Self {
            api: 0.0,
            ec2: 0.0,
            crash: 0.0,
            watches: 0.0,
            visibility,
            stale: 0.0,
            tags_vanish: false,
            kill: None,
        }
    }

    /// What a seed draws: each kind of lie is absent in some seeds and common in others.
    pub fn of(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x11e5);
        let mut one_of = |values: &[f64]| values[rng.random_range(0..values.len())];
        let (api, ec2) = (one_of(&[0.0, 0.01, 0.05, 0.15]), one_of(&[0.0, 0.02, 0.1, 0.25]));
        let (crash, watches) = (one_of(&[0.0, 0.01, 0.05, 0.1]), one_of(&[0.0, 5.0, 60.0]));
        let mut lag = |most: u64| Duration::from_secs([0, 0, 2, most][rng.random_range(0..4)]);
        let visibility = Visibility { by_id: lag(10), by_filter: lag(60), tags: lag(120) };
        let stale = [0.0, 0.02, 0.1][rng.random_range(0..3)];
        let tags_vanish = rng.random_bool(0.7);
        Self { api, ec2, crash, watches, visibility, stale, tags_vanish, kill: None }
    }
}

/// The seed's decisions. Copies are the same.
#[derive(Clone)]
pub struct Chaos {
    inner: Arc<Inner>,
}

struct Inner {
    lies: Mutex<Lies>,
    rng: Mutex<ChaCha8Rng>,
    server: Server,
    ec2: Simulator,
    crash: Notify,
    starts: Mutex<usize>,
    /// How many requests that may change something were made.
    effects: Mutex<usize>,
    /// Nothing of this start is sent any more.
    is_dead: Mutex<bool>,
    /// How long the operator stays away after this crash, if that is not drawn.
    away: Mutex<Option<Duration>>,
    /// The operator is killed at the first request that begins like this, and stays away for so long.
    killed_at: Mutex<Option<(&'static str, Kill, Duration)>>,
    /// What was done, for the story.
    deeds: Mutex<Vec<(jiff::Timestamp, String)>>,
}

impl Chaos {
    /// Lies to the operator on this API server and at this EC2.
    pub fn new(seed: u64, lies: Lies, server: &Server, ec2: &Simulator) -> Self {
        let rng = Mutex::new(ChaCha8Rng::seed_from_u64(seed ^ 0xc4a0));
        let inner = Inner {
            lies: Mutex::new(lies),
            rng,
            server: server.clone(),
            ec2: ec2.clone(),
            crash: Notify::new(),
            starts: Mutex::new(0),
            effects: Mutex::new(0),
            is_dead: Mutex::new(false),
            away: Mutex::new(None),
            killed_at: Mutex::new(None),
            deeds: Mutex::new(Vec::new()),
        };
        let chaos = Self { inner: Arc::new(inner) };
        for fault in lies_of_ec2::faults(lies.ec2).into_iter().chain(lies_of_ec2::stale_reads(lies.stale)) {
            ec2.add_fault(fault);
        }
        let decider = chaos.clone();
        server.decide(Some(Box::new(move |call| decider.decide(call))));
        chaos
    }

    /// Ends all lies: from now on the world is as one would wish it.
    pub fn calm(&self) {
        *self.inner.lies.lock() = Lies::none();
        self.inner.ec2.clear_faults();
        self.note("calm".to_owned());
    }

    /// Notes what a person does.
    pub fn tell(&self, deed: &str) {
        self.note(format!("*** {deed}"));
    }

    /// What was done so far.
    pub fn deeds(&self) -> Vec<(jiff::Timestamp, String)> {
        self.inner.deeds.lock().clone()
    }

    /// The name of the operator's next start.
    pub fn begin(&self) -> String {
        let mut starts = self.inner.starts.lock();
        *starts += 1;
        *self.inner.is_dead.lock() = false;
        self.note(format!("the operator starts for the {starts}. time"));
        format!("operator-{starts}")
    }

    /// Until the operator is to be killed.
    pub async fn crash(&self) {
        self.inner.crash.notified().await;
    }

    /// Kills the operator at the first request that begins like this, such as `RunInstances` or
    /// `Patch nodes`; it stays away for so long.
    pub fn kill_at(&self, at: &'static str, how: Kill, away: Duration) {
        *self.inner.killed_at.lock() = Some((at, how, away));
    }

    /// How long the operator stays away: mostly seconds, sometimes long enough for what it knows to be old.
    pub fn outage(&self) -> Duration {
        if let Some(away) = self.inner.away.lock().take() {
            return away;
        }
        let mut rng = self.inner.rng.lock();
        let longest = [5, 60, 60, 1800][rng.random_range(0..4)];
        Duration::from_millis(rng.random_range(500..longest * 1000))
    }

    /// What happens to the calls of this start of the operator to EC2.
    pub fn way(&self, incarnation: String) -> Way {
        let chaos = self.clone();
        Box::new(move |action| chaos.passage(&incarnation, action))
    }

    fn is_over(&self, incarnation: &str) -> bool {
        *self.inner.is_dead.lock() || incarnation != format!("operator-{}", self.inner.starts.lock())
    }

    fn passage(&self, incarnation: &str, action: &str) -> Passage {
        let mut passage = Passage { there: self.moment(), back: self.moment() };
        if self.is_over(incarnation) {
            passage.there = NEVER;
        } else if !ec2sim::reads(action) {
            match self.kills(action) {
                Some(Kill::Before) => passage.there = NEVER,
                Some(Kill::Lost) => passage.back = NEVER,
                Some(Kill::After) | None => {}
            }
        }
        passage
    }

    fn decide(&self, call: &Call) -> Option<freehold_rig::Fault> {
        use freehold_rig::Fault;
        if !call.caller.starts_with("operator-") {
            return None;
        }
        if self.is_over(&call.caller) {
            return Some(Fault::DelayRequest(NEVER));
        }
        if call.verb.writes() && call.plural != "events" {
            match self.kills(&format!("{:?} {}", call.verb, call.plural)) {
                Some(Kill::Before) => return Some(Fault::DelayRequest(NEVER)),
                Some(Kill::Lost) => return Some(Fault::DelayAnswer(NEVER)),
                Some(Kill::After) => return None,
                None => {}
            }
        }
        let rate = self.inner.lies.lock().api;
        if !self.draws(rate) {
            let is_watch = call.verb == Verb::Watch;
            return (!is_watch).then(|| Fault::DelayRequest(self.moment()));
        }
        let choice = self.inner.rng.lock().random_range(0..8);
        let fault = match choice {
            0 if call.verb.writes() => Fault::Refuse { code: 409, retry_after: None },
            1 => Fault::Refuse { code: 429, retry_after: Some(1) },
            2 => Fault::Refuse { code: 503, retry_after: None },
            3 => Fault::LoseRequest,
            4 | 5 if call.verb.writes() => Fault::LoseAnswer,
            6 => Fault::DelayRequest(Duration::from_secs(3)),
            _ => Fault::Refuse { code: 500, retry_after: None },
        };
        let path = format!("{} {}/{}", call.plural, call.namespace, call.name);
        self.note(format!("{:?} {path}: {fault:?}", call.verb));
        Some(fault)
    }

    /// Whether the operator was killed and is not back yet.
    pub fn is_dead(&self) -> bool {
        *self.inner.is_dead.lock()
    }

    /// How many requests were made that may change something.
    pub fn effects(&self) -> usize {
        *self.inner.effects.lock()
    }

    /// Whether and how the operator is killed at this request.
    fn kills(&self, at: &str) -> Option<Kill> {
        let number = {
            let mut effects = self.inner.effects.lock();
            *effects += 1;
            *effects
        };
        let Lies { crash, kill, .. } = *self.inner.lies.lock();
        let (how, away) = match (self.is_named(at), kill) {
            (Some((how, away)), _) => (how, Some(away)),
            (None, Some(kill)) => (kill.number == number).then_some((kill.how, Some(kill.away)))?,
            (None, None) if self.draws(crash) => {
                let all: Vec<Kill> = Kill::iter().collect();
                (all[self.inner.rng.lock().random_range(0..all.len())], None)
            }
            (None, None) => return None,
        };
        self.note(format!("the operator is killed at {at}: {how:?}"));
        *self.inner.away.lock() = away;
        let crash = self.clone();
        // An answer that arrives is at most this long on its way.
        let wait = Duration::from_millis(if how == Kill::After { 100 } else { 0 });
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            crash.inner.crash.notify_one();
        });
        *self.inner.is_dead.lock() = true;
        Some(how)
    }

    /// How the operator is killed here and for how long, if this is the request that was named.
    fn is_named(&self, at: &str) -> Option<(Kill, Duration)> {
        let mut killed_at = self.inner.killed_at.lock();
        let (_, how, away) = killed_at.take_if(|(prefix, ..)| at.starts_with(*prefix))?;
        Some((how, away))
    }

    fn draws(&self, probability: f64) -> bool {
        probability > 0.0 && self.inner.rng.lock().random_bool(probability)
    }

    /// How long a message takes on its way.
    fn moment(&self) -> Duration {
        Duration::from_millis(self.inner.rng.lock().random_range(1..40))
    }

    fn note(&self, deed: String) {
        self.inner.deeds.lock().push((self.inner.ec2.now(), deed));
    }

    /// Cuts watches off, makes them silent, and lets the API server forget, again and again.
    pub async fn disturb(self) {
        let kinds = ["databases.freehold.dev", "nodes.freehold.dev", "volumes.freehold.dev", "pods", "nodes"];
        loop {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let Lies { watches: rate, tags_vanish, .. } = *self.inner.lies.lock();
            if tags_vanish {
                lies_of_ec2::hide_tags(&self.inner.ec2);
            }
            if !self.draws(rate / 60.0) {
                continue;
            }
            let (choice, kind, seconds) = {
                let mut rng = self.inner.rng.lock();
                (rng.random_range(0..3), kinds[rng.random_range(0..kinds.len())], rng.random_range(1..120))
            };
            match choice {
                0 => {
                    self.note("all watches are cut off".to_owned());
                    self.inner.server.drop_watches();
                }
                1 => {
                    self.note("the API server forgets its history".to_owned());
                    self.inner.server.compact();
                }
                _ => {
                    self.note(format!("the watches of {kind} say nothing for {seconds} s"));
                    self.inner.server.silence(kind, true);
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    self.inner.server.silence(kind, false);
                }
            }
        }
    }
}
