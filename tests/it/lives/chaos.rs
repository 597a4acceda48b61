//! What lies, and when the operator crashes: drawn from one seed, so that a life can be lived again.

use std::sync::Arc;
use std::time::Duration;

use ec2sim::Simulator;
use freehold::term::Term;
use freehold_rig::{Call, Server, Verb};
use parking_lot::Mutex;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use strum::IntoEnumIterator as _;
use tokio_util::sync::CancellationToken;

use super::blow::{Blow, Strike};
use super::lies::Lies;
use super::lies_of_ec2;
use super::operators::{Operators, Passing, identity};
use super::tally::Tally;
use crate::model_cloud::{Passage, Way};

/// For how long AWS accepts a signed request (Signature Version 4).
const SIGNED: Duration = Duration::from_mins(15);

/// A time that never comes.
pub const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

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
    operators: Operators,
    /// How many requests that may change something were made.
    effects: Mutex<usize>,
    /// An operator is struck at the first request that begins like this, and is away for so long.
    struck_at: Mutex<Option<(&'static str, Blow, Duration)>>,
    /// Which operator was struck first, and when.
    struck: Mutex<Option<(jiff::Timestamp, String)>>,
    /// When which operator sent something that may change something.
    sends: Mutex<Vec<(jiff::Timestamp, String)>>,
    /// What the life comes to, but for EC2.
    tally: Mutex<Tally>,
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
            operators: Operators::default(),
            effects: Mutex::new(0),
            struck_at: Mutex::new(None),
            struck: Mutex::new(None),
            sends: Mutex::new(Vec::new()),
            tally: Mutex::default(),
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
        self.inner.operators.connect();
        self.note("calm".to_owned());
    }

    /// Notes what a person does.
    pub fn tell(&self, deed: &str) {
        self.note(format!("*** {deed}"));
    }

    /// What the life comes to so far, but for EC2.
    pub fn tally(&self) -> Tally {
        self.inner.tally.lock().clone()
    }

    fn count_lie(&self, name: &str) {
        *self.inner.tally.lock().lies.entry(name.to_owned()).or_default() += 1;
    }

    /// What was done so far.
    pub fn deeds(&self) -> Vec<(jiff::Timestamp, String)> {
        self.inner.deeds.lock().clone()
    }

    /// Starts the operator of this number. The name by which its requests are known.
    pub fn begin(&self, number: usize) -> String {
        let name = self.inner.operators.start(number);
        self.inner.tally.lock().starts += 1;
        self.note(format!("{name} starts"));
        name
    }

    /// Until this operator is to end.
    pub async fn ending(&self, number: usize) {
        self.inner.operators.ending(number).await;
    }

    /// Cancelled once the process of this operator that begins now is asked to end.
    pub fn asking(&self, number: usize) -> CancellationToken {
        self.inner.operators.asking(number)
    }

    /// Asks the process of this operator to end (SIGTERM); another one begins after so long.
    pub fn ask_to_end(&self, number: usize, away: Duration) {
        self.tell(&format!("operator {number} is asked to end"));
        self.inner.operators.ask_to_end(number, away);
    }

    /// Strikes the operator at the first request that begins like this, such as `RunInstances` or
    /// `Patch nodes`; it is away for so long.
    pub fn strike_at(&self, at: &'static str, blow: Blow, away: Duration) {
        *self.inner.struck_at.lock() = Some((at, blow, away));
    }

    /// Strikes the operator at the request after so many more that may change something.
    pub fn strike_later(&self, writes: usize, blow: Blow, away: Duration) {
        let number = self.effects() + writes + 1;
        self.inner.lies.lock().strike = Some(Strike { number, blow, away });
    }

    /// Kills the first operator now, while none of its requests is underway that changes something; it stays
    /// away for so long.
    pub fn kill(&self, away: Duration) {
        self.note("the operator is killed".to_owned());
        self.inner.operators.end(1, Duration::ZERO, Some(away));
    }

    /// How long an operator that has ended stays away.
    pub fn outage(&self, number: usize) -> Duration {
        self.inner.operators.away(number).unwrap_or_else(|| self.a_while())
    }

    /// Mostly seconds, sometimes long enough for what an operator knows to be old.
    fn a_while(&self) -> Duration {
        let mut rng = self.inner.rng.lock();
        let longest = [5, 60, 60, 1800][rng.random_range(0..4)];
        Duration::from_millis(rng.random_range(500..longest * 1000))
    }

    /// What happens to the calls of this start of an operator to EC2. Like the adapter that is shipped, it
    /// sends nothing after the end of the term.
    pub fn way(&self, name: String, term: Arc<Term>) -> Way {
        let chaos = self.clone();
        Box::new(move |action| {
            let is_sent = ec2sim::reads(action) || term.check().is_ok();
            if is_sent {
                chaos.passage(&name, action)
            } else {
                Passage { there: NEVER, ..Passage::default() }
            }
        })
    }

    fn passage(&self, name: &str, action: &str) -> Passage {
        let mut passage = Passage { there: self.moment(), back: self.moment(), is_on_its_way: false };
        let blow = match self.inner.operators.passing(name) {
            Passing::Never => {
                passage.there = NEVER;
                return passage;
            }
            Passing::Late(_) => None,
            Passing::Free | Passing::CutOff if ec2sim::reads(action) => None,
            Passing::Free | Passing::CutOff => self.struck(name, action),
        };
        if !ec2sim::reads(action) {
            self.sent(name);
        }
        match blow {
            Some(Blow::Before) => passage.there = NEVER,
            Some(Blow::Lost | Blow::Unanswered) => passage.back = NEVER,
            Some(Blow::After | Blow::Stopped | Blow::CutOff) | None => {}
        }
        if let Passing::Late(left) = self.inner.operators.passing(name) {
            passage.there = if left < SIGNED { left } else { NEVER };
            passage.is_on_its_way = true;
        }
        passage
    }

    fn decide(&self, call: &Call) -> Option<freehold_rig::Fault> {
        use freehold_rig::Fault;
        if !call.caller.starts_with("operator-") {
            return None;
        }
        // A Lease is written by an operator that may not act yet.
        let is_counted = call.verb.writes() && call.plural != "events" && call.plural != "leases";
        self.inner.tally.lock().requests += 1;
        self.inner.tally.lock().writes += u64::from(is_counted);
        let blow = match self.inner.operators.passing(&call.caller) {
            Passing::Never => return Some(Fault::DelayRequest(NEVER)),
            Passing::Free if is_counted => {
                self.struck(&call.caller, &format!("{:?} {}", call.verb, call.plural))
            }
            Passing::Free | Passing::Late(_) | Passing::CutOff => None,
        };
        if is_counted {
            self.sent(&call.caller);
        }
        match (blow, self.inner.operators.passing(&call.caller)) {
            (Some(Blow::Before), _) => Some(Fault::DelayRequest(NEVER)),
            (Some(Blow::Lost), _) => Some(Fault::DelayAnswer(NEVER)),
            (Some(Blow::After), _) => None,
            (Some(Blow::CutOff | Blow::Unanswered), _) => Some(Fault::LoseAnswer),
            (_, Passing::Late(left)) => Some(Fault::ArriveLate(left)),
            (_, Passing::CutOff) => Some(Fault::LoseRequest),
            (_, Passing::Free | Passing::Never) => self.lie(call),
        }
    }

    /// What is wrong with a request that nothing else meets.
    fn lie(&self, call: &Call) -> Option<freehold_rig::Fault> {
        use freehold_rig::Fault;
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
        self.count_lie(match fault {
            Fault::Refuse { code: 409, .. } => "API server: a conflict",
            Fault::Refuse { code: 429, .. } => "API server: too many requests",
            Fault::Refuse { .. } => "API server: a request fails",
            Fault::LoseRequest => "API server: a request is lost",
            Fault::LoseAnswer => "API server: an answer is lost",
            Fault::DelayRequest(_) | Fault::DelayAnswer(_) | Fault::ArriveLate(_) => {
                "API server: a request is slow"
            }
        });
        self.note(format!("{:?} {path}: {fault:?}", call.verb));
        Some(fault)
    }

    /// Whether an operator was killed and is not back yet.
    pub fn is_dead(&self) -> bool {
        self.inner.operators.has_any_ended()
    }

    /// Whether an operator runs.
    pub fn is_any_up(&self) -> bool {
        self.inner.operators.is_any_up()
    }

    /// Whether an operator's process is stopped, and goes on later.
    pub fn is_any_stopped(&self) -> bool {
        self.inner.operators.is_any_stopped()
    }

    /// How many requests were made that may change something.
    pub fn effects(&self) -> usize {
        *self.inner.effects.lock()
    }

    /// When which operator, by its name in the Lease, sent something that may change something.
    pub fn sends(&self) -> Vec<(jiff::Timestamp, String)> {
        self.inner.sends.lock().clone()
    }

    fn sent(&self, name: &str) {
        let identity = Operators::number(name).map(identity).unwrap_or_default();
        self.inner.sends.lock().push((self.inner.ec2.now(), identity));
    }

    /// Whether and how the operator is struck at this request; it is from then on.
    fn struck(&self, name: &str, at: &str) -> Option<Blow> {
        let number = {
            let mut effects = self.inner.effects.lock();
            *effects += 1;
            *effects
        };
        let Lies { blows, strike, .. } = *self.inner.lies.lock();
        let (blow, away) = match (self.is_named(at), strike) {
            (Some((blow, away)), _) => (blow, Some(away)),
            (None, Some(strike)) if strike.number == number => (strike.blow, Some(strike.away)),
            (None, None) if self.draws(blows) => {
                let all: Vec<Blow> = Blow::iter().collect();
                (all[self.inner.rng.lock().random_range(0..all.len())], None)
            }
            (None, _) => return None,
        };
        self.note(format!("{name} is struck at {at}: {blow:?}"));
        *self.inner.tally.lock().blows.entry(blow.to_string()).or_default() += 1;
        let number = Operators::number(name)?;
        self.inner.struck.lock().get_or_insert_with(|| (self.inner.ec2.now(), identity(number)));
        self.strike(number, blow, away);
        Some(blow)
    }

    fn strike(&self, number: usize, blow: Blow, away: Option<Duration>) {
        let operators = &self.inner.operators;
        let time = || away.unwrap_or_else(|| self.a_while());
        match blow {
            Blow::Before | Blow::Lost => operators.end(number, Duration::ZERO, away),
            // An answer that arrives is at most this long on its way.
            Blow::After => operators.end(number, Duration::from_millis(100), away),
            Blow::Unanswered => {}
            Blow::Stopped => operators.stop(number, time()),
            Blow::CutOff => {
                operators.cut_off(number, time());
                self.inner.server.drop_watches();
            }
        }
    }

    /// The first operator that was struck, by its name in the Lease, and when.
    pub fn struck_first(&self) -> Option<(jiff::Timestamp, String)> {
        self.inner.struck.lock().clone()
    }

    /// What becomes of the operator here and for how long, if this is the request that was named.
    fn is_named(&self, at: &str) -> Option<(Blow, Duration)> {
        let mut struck_at = self.inner.struck_at.lock();
        let (_, blow, away) = struck_at.take_if(|(prefix, ..)| at.starts_with(*prefix))?;
        Some((blow, away))
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
                    self.count_lie("API server: all watches are cut off");
                    self.inner.server.drop_watches();
                }
                1 => {
                    self.note("the API server forgets its history".to_owned());
                    self.count_lie("API server: the history is forgotten");
                    self.inner.server.compact();
                }
                _ => {
                    self.note(format!("the watches of {kind} say nothing for {seconds} s"));
                    self.count_lie("API server: the watches of a kind are silent");
                    self.inner.server.silence(kind, true);
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    self.inner.server.silence(kind, false);
                }
            }
        }
    }
}
