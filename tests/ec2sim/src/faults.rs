//! The faults that are set: which of them hit a call, and what that comes to.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::{Effect, Fault, OutsideAction, call_facts::CallFacts, model::Effects};

/// How an answer gets to the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Delivery {
    /// As it is.
    #[default]
    Whole,
    /// Not at all.
    Lost,
    /// Cut in the middle.
    Truncated,
    /// Whole, after this (virtual) time.
    After(Duration),
}

/// All that the faults which hit a call do to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hit {
    pub(crate) faults: Vec<String>,
    pub(crate) blocked: bool,
    pub(crate) late: Option<Duration>,
    pub(crate) refusal: Option<(String, String)>,
    pub(crate) delivery: Delivery,
    pub(crate) effects: Effects,
    pub(crate) then: Vec<(Duration, OutsideAction)>,
}

/// The faults that are set, each with how many calls have fitted and how many it has hit.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    set: Vec<(Fault, u64, u64)>,
    added: u64,
    drawn: u64,
}

impl Faults {
    /// Adds a fault and answers with its id.
    pub(crate) fn add(&mut self, mut fault: Fault) -> String {
        self.added += 1;
        if fault.id.is_empty() {
            fault.id = format!("fault-{}", self.added);
        }
        let id = fault.id.clone();
        self.set.push((fault, 0, 0));
        id
    }

    pub(crate) fn clear(&mut self, id: Option<&str>) {
        self.set.retain(|(fault, ..)| id.is_some_and(|id| id != fault.id));
    }

    pub(crate) fn all(&self) -> Vec<Fault> {
        self.set.iter().map(|(fault, ..)| fault.clone()).collect()
    }

    /// What happens to a call; counts it.
    pub(crate) fn hit(&mut self, call: &CallFacts, seed: u64) -> Hit {
        let mut hit = Hit::default();
        for (fault, fitted, done) in &mut self.set {
            if !fault.fits(call) {
                continue;
            }
            *fitted += 1;
            let most = fault.count.or_else(|| fault.nth.map(|_| 1)).unwrap_or(u64::MAX);
            if *fitted < fault.nth.unwrap_or(1) || *done >= most {
                continue;
            }
            if let Some(probability) = fault.probability {
                self.drawn += 1;
                if draw(seed, self.drawn) >= probability {
                    continue;
                }
            }
            *done += 1;
            hit.faults.push(fault.id.clone());
            hit.add(&fault.effect);
        }
        hit
    }
}

impl Hit {
    fn add(&mut self, effect: &Effect) {
        match effect.clone() {
            Effect::DropBefore => self.blocked = true,
            Effect::ApplyThenDrop => self.delivery = Delivery::Lost,
            Effect::ApplyLate { seconds: after } => self.late = Some(seconds(after)),
            Effect::Delay { seconds: by } => self.delivery = Delivery::After(seconds(by)),
            Effect::Error { code, message } => {
                let message = if message.is_empty() { "A fault was asked for.".to_owned() } else { message };
                self.refusal = Some((code, message));
            }
            Effect::Throttle => {
                self.refusal = Some(("RequestLimitExceeded".into(), "Request limit exceeded.".into()));
            }
            Effect::Invisible { sight, seconds: time } => self.effects.invisible.push((sight, seconds(time))),
            Effect::EmptyPage => self.effects.empty_page = true,
            Effect::TruncatedXml => self.delivery = Delivery::Truncated,
            Effect::CapacityOut { instance_type, zone } => {
                self.effects.capacity_out.push((instance_type, zone));
            }
            Effect::Quota { code } => self.effects.quota = Some(code),
            Effect::LaunchDies { code } => self.effects.launch_dies = Some(code),
            Effect::VolumeVanishes { seconds: after } => {
                self.effects.vanishes = Some(seconds(after));
            }
            Effect::Hangs => self.effects.hangs = true,
            Effect::Lingers { seconds: time } => self.effects.lingers = seconds(time),
            Effect::Stale { seconds: age } => self.effects.stale = Some(seconds(age)),
            Effect::Fails => self.effects.fails = true,
            Effect::ZoneDown { zone } => self.effects.zones_down.push(zone),
            Effect::Then { seconds: after, action } => self.then.push((seconds(after), action)),
        }
    }

    /// What is to happen after the call, to the resources that it made or changed.
    pub(crate) fn afterwards(&self, resources: &[String]) -> Vec<(Duration, OutsideAction)> {
        let mut all = Vec::new();
        for (delay, action) in &self.then {
            if action.id.is_empty() {
                all.extend(resources.iter().map(|id| (*delay, action.what.clone().to(id))));
            } else {
                all.push((*delay, action.clone()));
            }
        }
        all
    }
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or_default()
}

/// A number in [0, 1) that depends on the seed and the draw.
fn draw(seed: u64, number: u64) -> f64 {
    let mut digest = Sha256::new();
    digest.update(seed.to_be_bytes());
    digest.update(number.to_be_bytes());
    let bytes = digest.finalize();
    let high = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    f64::from(high) / (f64::from(u32::MAX) + 1.0)
}
