//! The EC2 that is asked: its calls, how time passes there, and what this run may do.

use std::{
    collections::BTreeSet,
    io::{self, Write as _},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    answer::{Checked, Stop},
    element::Element,
    place::Place,
    wire::{CallError, Wire},
};

/// The tag of everything that a run makes; its value is the run's id.
pub(super) const TAG: &str = "ec2sim-verify";

/// How long a check may wait without `--long`.
const SHORT: Duration = Duration::from_mins(20);

/// How long a check may wait with it.
const LONG: Duration = Duration::from_hours(3);

/// Codes that say nothing about the truth that was asked about.
const NOT_ABOUT_THE_TRUTH: [&str; 13] = [
    "AccessDenied",
    "AuthFailure",
    "InstanceLimitExceeded",
    "InsufficientInstanceCapacity",
    "InvalidClientTokenId",
    "MaxIOPSLimitExceeded",
    "OptInRequired",
    "PendingVerification",
    "RequestExpired",
    "SnapshotLimitExceeded",
    "UnauthorizedOperation",
    "VcpuLimitExceeded",
    "VolumeLimitExceeded",
];

/// How time passes for the EC2 that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// By itself.
    Real,
    /// By the simulator's control API.
    Stepped,
}

/// The EC2 that is asked.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) wire: Arc<Wire>,
    pub(super) time: Time,
    pub(super) place: Place,
    /// The run's id.
    pub(super) run: String,
    /// Whether what is made costs money.
    pub(super) is_paid: bool,
    /// Whether checks may take hours.
    pub(super) is_long: bool,
    /// Whether checks may use up the account's rates.
    pub(super) takes_rates: bool,
    /// How long a change of state may take.
    pub(super) patience: Duration,
    made: Mutex<BTreeSet<String>>,
    numbers: AtomicU64,
}

impl Target {
    pub(super) fn new(wire: Arc<Wire>, time: Time, place: Place, run: &str, patience: Duration) -> Self {
        Self {
            wire,
            time,
            place,
            run: run.to_owned(),
            is_paid: false,
            is_long: false,
            takes_rates: false,
            patience,
            made: Mutex::default(),
            numbers: AtomicU64::new(0),
        }
    }

    /// Makes a call, and again while EC2 asks for patience; what it has made is remembered.
    pub(super) async fn call<K: AsRef<str>, V: AsRef<str>>(
        &self,
        action: &str,
        params: &[(K, V)],
    ) -> Result<Element, CallError> {
        let mut waited = Duration::ZERO;
        loop {
            let answer = self.wire.send(action, params).await;
            let is_throttled = answer.as_ref().is_err_and(|error| error.code() == "RequestLimitExceeded");
            if is_throttled && waited < self.patience {
                let pause = Duration::from_secs(2);
                self.pause(pause).await.map_err(|stop| CallError::NoAnswer(format!("{stop:?}")))?;
                waited += pause;
                continue;
            }
            if let Ok(answer) = &answer {
                self.remember(action, answer);
            }
            return answer;
        }
    }

    /// The answer to a call that must succeed before the truth can be asked about.
    pub(super) async fn must<K: AsRef<str>, V: AsRef<str>>(
        &self,
        action: &str,
        params: &[(K, V)],
    ) -> Checked<Element> {
        self.call(action, params).await.map_err(|error| stopped(action, &error))
    }

    /// The code of the refusal, or `ok`.
    pub(super) async fn code<K: AsRef<str>, V: AsRef<str>>(
        &self,
        action: &str,
        params: &[(K, V)],
    ) -> Checked<String> {
        match self.call(action, params).await {
            Ok(_) => Ok("ok".to_owned()),
            Err(error @ CallError::NoAnswer(_)) => Err(stopped(action, &error)),
            Err(CallError::Refused { code, .. }) => Ok(code),
        }
    }

    /// The call must be refused with `code` (`ok`: it must be carried out); `what` says what is asked.
    pub(super) async fn answers<K: AsRef<str>, V: AsRef<str>>(
        &self,
        code: &str,
        what: &str,
        action: &str,
        params: &[(K, V)],
    ) -> Checked {
        let mut got = self.code(action, params).await?;
        // A resource that is new is not seen by every call at once.
        for _ in 0..5 {
            if !got.ends_with(".NotFound") || got == code || self.time == Time::Stepped {
                break;
            }
            self.pause(Duration::from_secs(1)).await?;
            got = self.code(action, params).await?;
        }
        if got == code {
            Ok(())
        } else if NOT_ABOUT_THE_TRUTH.contains(&got.as_str()) {
            Err(Stop::NotAsked(format!("{action} was refused: {got}")))
        } else {
            Err(Stop::Differs(format!("{action} ({what}): `{got}` instead of `{code}`")))
        }
    }

    /// A number that no other has in this run.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// A client token that no other run uses.
    pub(super) fn token(&self) -> String {
        format!("{}-{}", self.run, self.number())
    }

    /// The ids of everything that was made so far and was not taken.
    pub(super) fn take_made(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.made.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks again and again until `look` has found what it looks for, which `what` names.
    pub(super) async fn until<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> Checked<Option<T>>,
    ) -> Checked<T> {
        let mut waited = Duration::ZERO;
        let mut told = Duration::from_secs(2);
        let mut pause = Duration::from_millis(if self.time == Time::Stepped { 100 } else { 500 });
        loop {
            if let Some(found) = look().await? {
                return Ok(found);
            }
            if waited >= self.patience {
                let seconds = self.patience.as_secs();
                return Err(Stop::Differs(format!("{what}: not seen within {seconds} s")));
            }
            self.pause(pause).await?;
            waited += pause;
            pause = (pause * 6 / 5).min(Duration::from_secs(5));
            if self.time == Time::Real && waited >= told {
                told = waited + Duration::from_secs(10);
                say(&format!("  waiting for {what} ({} s)", waited.as_secs()));
            }
        }
    }

    /// Ends the check if it may not take as long as this.
    pub(super) fn takes(&self, time: Duration) -> Checked {
        let most = if self.is_long { LONG } else { SHORT };
        if self.time == Time::Stepped || time <= most {
            return Ok(());
        }
        let hours = time.as_secs().div_ceil(3600);
        let way_out = if time <= LONG { "; `--long` allows it" } else { "" };
        Err(Stop::NotAsked(format!("takes up to {hours} h{way_out}")))
    }

    /// Lets time pass.
    pub(super) async fn pass(&self, time: Duration) -> Checked {
        self.takes(time)?;
        let mut left = time;
        while self.time == Time::Real && !left.is_zero() {
            let part = left.min(Duration::from_mins(1));
            say(&format!("  {} s to wait", left.as_secs()));
            self.pause(part).await?;
            left -= part;
        }
        if self.time == Time::Stepped { self.pause(time).await } else { Ok(()) }
    }

    async fn pause(&self, time: Duration) -> Checked {
        match self.time {
            Time::Real => tokio::time::sleep(time).await,
            Time::Stepped => {
                let step = format!(r#"{{"seconds": {}}}"#, time.as_secs_f64());
                let stepped = self.wire.post("/_sim/advance", step).await;
                if !stepped.as_ref().is_ok_and(|status| *status == 200) {
                    return Err(Stop::NotAsked(format!("the simulator's time did not pass: {stepped:?}")));
                }
            }
        }
        Ok(())
    }

    fn remember(&self, action: &str, answer: &Element) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        match action {
            "RunInstances" => {
                made.extend(answer.items("instancesSet").map(|item| item.text("instanceId").to_owned()));
            }
            "CreateVolume" => {
                made.insert(answer.text("volumeId").to_owned());
            }
            "CreateSnapshot" => {
                made.insert(answer.text("snapshotId").to_owned());
            }
            _ => {}
        }
    }
}

/// What an error means for a check that needed the call.
pub(super) fn stopped(action: &str, error: &CallError) -> Stop {
    let seen = format!("{action} was refused: {error}");
    match error {
        CallError::NoAnswer(_) => Stop::NotAsked(format!("{action}: {error}")),
        CallError::Refused { code, .. } if NOT_ABOUT_THE_TRUTH.contains(&code.as_str()) => {
            Stop::NotAsked(seen)
        }
        CallError::Refused { .. } => Stop::Differs(seen),
    }
}

/// Tells the person who waits. Where the error output is closed, as by a pipe whose reader has ended, the run
/// goes on: what it made must be removed.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
