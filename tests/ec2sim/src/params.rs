//! A request's parameters as EC2's Query protocol names them, read one by one; what nobody read is refused.

use std::{collections::BTreeMap, str::FromStr};

use sha2::{Digest, Sha256};

use crate::{Refusal, Truth, Truths};

/// The parameters of one request, consumed by reading.
#[derive(Debug)]
pub(crate) struct Reader {
    action: String,
    left: BTreeMap<String, String>,
    lenient: bool,
    takes_any_token: bool,
}

impl Reader {
    pub(crate) fn new(params: &[(String, String)], truths: &Truths) -> Result<Self, Refusal> {
        let mut left: BTreeMap<String, String> = params.iter().cloned().collect();
        let action = left.remove("Action").ok_or_else(|| Refusal::missing("Action"))?;
        left.remove("Version");
        Ok(Self {
            action,
            left,
            lenient: !truths.holds(Truth::UnknownRefused),
            takes_any_token: !truths.holds(Truth::TokenOnlyWhereDefined),
        })
    }

    pub(crate) fn action(&self) -> &str {
        &self.action
    }

    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        self.left.remove(key)
    }

    pub(crate) fn required(&mut self, key: &str) -> Result<String, Refusal> {
        self.text(key).filter(|value| !value.is_empty()).ok_or_else(|| Refusal::missing(key))
    }

    pub(crate) fn number<N: FromStr>(&mut self, key: &str) -> Result<Option<N>, Refusal> {
        self.text(key).map(|value| value.parse().map_err(|_| invalid(key, &value))).transpose()
    }

    pub(crate) fn flag(&mut self, key: &str) -> Result<bool, Refusal> {
        Ok(self.optional_flag(key)?.unwrap_or(false))
    }

    pub(crate) fn optional_flag(&mut self, key: &str) -> Result<Option<bool>, Refusal> {
        match self.text(key).as_deref() {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(invalid(key, other)),
        }
    }

    /// The values of `key.1`, `key.2` …, in the order of their numbers.
    pub(crate) fn list(&mut self, key: &str) -> Vec<String> {
        self.indexes(key)
            .into_iter()
            .filter_map(|index| self.left.remove(&format!("{key}.{index}")))
            .collect()
    }

    /// The numbers that are used after `key.`, in order.
    pub(crate) fn indexes(&self, key: &str) -> Vec<u32> {
        let prefix = format!("{key}.");
        let mut indexes: Vec<u32> = self
            .left
            .keys()
            .filter_map(|name| name.strip_prefix(&prefix)?.split('.').next()?.parse().ok())
            .collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes
    }

    /// Whether any parameter is, or begins with, `key`.
    pub(crate) fn has(&self, key: &str) -> bool {
        let prefix = format!("{key}.");
        self.left.keys().any(|name| name == key || name.starts_with(&prefix))
    }

    /// How many instances the request is about.
    pub(crate) fn resource_count(&self) -> u32 {
        let named = u32::try_from(self.indexes("InstanceId").len()).unwrap_or(u32::MAX);
        let launched = self.left.get("MaxCount").and_then(|count| count.parse().ok()).unwrap_or(0);
        named.max(launched)
    }

    /// Refuses what is left: a parameter that the model does not know could change the outcome.
    pub(crate) fn finish(&self) -> Result<(), Refusal> {
        if self.lenient {
            return Ok(());
        }
        let mut unread = self.left.keys().filter(|name| !(self.takes_any_token && *name == "ClientToken"));
        match unread.next().map(String::as_str) {
            None => Ok(()),
            Some("ClientToken") => {
                Err(Refusal::new("UnknownParameter", "The parameter ClientToken is not recognized"))
            }
            Some(name) => {
                Err(Refusal::unsupported(format!("The parameter {name} of {} is not modelled", self.action)))
            }
        }
    }
}

pub(crate) fn invalid(key: &str, value: &str) -> Refusal {
    Refusal::value(format!("Value ({value}) for parameter {key} is invalid."))
}

/// A hash of the parameters that decide what a request makes: all but the token, the dry run and the
/// protocol's own.
pub(crate) fn hash(params: &[(String, String)]) -> String {
    let sorted: BTreeMap<&str, &str> = params
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .filter(|(key, _)| !matches!(*key, "ClientToken" | "DryRun" | "Version"))
        .collect();
    let mut digest = Sha256::new();
    for (key, value) in sorted {
        for part in [key, value] {
            digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(part);
        }
    }
    data_encoding::HEXLOWER.encode(&digest.finalize())[..32].to_owned()
}
