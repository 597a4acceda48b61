//! What a running engine says of a change of its settings, as data: the engine decides, and no table of ours
//! says which setting needs a restart. Pure.

pub mod postgresql;
pub mod questdb;

use std::collections::BTreeMap;

use crate::api::database::{ConfigValue, EngineType, RejectedSetting};

/// How many characters of a value are repeated.
const LONGEST_VALUE: usize = 100;

/// How many characters of an engine's words are repeated.
const LONGEST_MESSAGE: usize = 300;

/// How many rejected settings are named.
pub const MOST_REJECTED: usize = 10;

/// A change of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The engine.
    pub engine: EngineType,
    /// The settings of spec.config that it runs with, as far as is known.
    pub from: BTreeMap<String, ConfigValue>,
    /// Those that it is to run with, which its file has, or will soon.
    pub to: BTreeMap<String, ConfigValue>,
    /// The keys whose values in the engine may differ from those, in order.
    pub keys: Vec<String>,
}

impl Change {
    /// From these settings to those, of an engine that may have loaded other values of the keys in `loading`.
    pub fn new(
        engine: EngineType,
        from: BTreeMap<String, ConfigValue>,
        to: BTreeMap<String, ConfigValue>,
        loading: &[String],
    ) -> Self {
        let mut keys = changed(&from, &to);
        keys.extend_from_slice(loading);
        keys.sort_unstable();
        keys.dedup();
        Self { engine, from, to, keys }
    }
}

/// The keys whose values differ, in order.
pub fn changed(from: &BTreeMap<String, ConfigValue>, to: &BTreeMap<String, ConfigValue>) -> Vec<String> {
    let differs = |key: &&String| from.get(*key) != to.get(*key);
    let mut keys: Vec<String> = from.keys().chain(to.keys()).filter(differs).cloned().collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// What an engine says of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What becomes of it.
    pub verdict: Verdict,
    /// The keys that it takes from elsewhere, whatever its file has.
    pub overridden: Vec<String>,
}

impl From<Verdict> for Answer {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, overridden: Vec::new() }
    }
}

/// What becomes of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The engine does not see the file with it yet.
    NotSeen,
    /// It rejects these.
    Rejected(Vec<RejectedSetting>),
    /// It takes it at its next start only.
    AtStart,
    /// It takes all of it while it runs.
    Taken {
        /// It has read the file, and finds nothing wrong; otherwise it says so only by what it runs with.
        is_seen: bool,
    },
}

/// A setting that is rejected for this reason.
pub fn rejected(key: &str, value: &str, why: &str) -> RejectedSetting {
    RejectedSetting {
        key: key.to_owned(),
        value: value.chars().take(LONGEST_VALUE).collect(),
        message: why.chars().take(LONGEST_MESSAGE).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_is_new_gone_or_another_is_changed() {
        let settings = |entries: &[(&str, &str)]| -> BTreeMap<String, ConfigValue> {
            entries.iter().map(|(key, value)| ((*key).to_owned(), ConfigValue((*value).to_owned()))).collect()
        };
        let from = settings(&[("same", "1"), ("gone", "1"), ("other", "1")]);
        let to = settings(&[("same", "1"), ("new", "1"), ("other", "2")]);
        assert_eq!(changed(&from, &to), ["gone", "new", "other"]);
        assert_eq!(changed(&from, &from), [] as [&str; 0]);
        let of = |loading: &[&str]| {
            let loading: Vec<String> = loading.iter().map(|key| (*key).to_owned()).collect();
            Change::new(EngineType::Postgresql, from.clone(), to.clone(), &loading).keys
        };
        assert_eq!(of(&["loaded", "new"]), ["gone", "loaded", "new", "other"]);
    }

    #[test]
    fn what_is_repeated_of_a_rejected_setting_is_bounded() {
        let long = "ä".repeat(5000);
        let rejected = rejected("a", &long, &long);
        assert_eq!((rejected.value.chars().count(), rejected.message.chars().count()), (100, 300));
    }
}
