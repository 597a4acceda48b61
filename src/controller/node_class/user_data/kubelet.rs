//! What user data of any form says of the kubelet.

use std::fmt;

/// What user data says of the kubelet, as far as Freehold depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kubelet {
    /// The fields without which it joins no cluster, and which are absent, by their paths.
    pub absent: Vec<String>,
    /// The labels that it registers with, in the order of the text.
    pub labels: Vec<(String, String)>,
    /// The taints that it registers with.
    pub taints: Vec<Taint>,
    /// The most pods that it takes.
    pub max_pods: Option<i64>,
}

/// A taint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// The key.
    pub key: String,
    /// The value; may be empty.
    pub value: String,
    /// The effect.
    pub effect: String,
}

impl Taint {
    /// From `value:effect` or, without a value, `effect` or `:effect`.
    pub fn new(key: &str, value_and_effect: &str) -> Self {
        let (value, effect) = value_and_effect.rsplit_once(':').unwrap_or(("", value_and_effect));
        Self { key: key.to_owned(), value: value.to_owned(), effect: effect.to_owned() }
    }

    /// From a kubelet's flag: `key=value:effect` or `key:effect`.
    pub fn of_flag(text: &str) -> Option<Self> {
        let (key_and_value, effect) = text.rsplit_once(':')?;
        let (key, value) = key_and_value.split_once('=').unwrap_or((key_and_value, ""));
        Some(Self { key: key.to_owned(), value: value.to_owned(), effect: effect.to_owned() })
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, effect } = self;
        if value.is_empty() { write!(f, "{key}:{effect}") } else { write!(f, "{key}={value}:{effect}") }
    }
}
