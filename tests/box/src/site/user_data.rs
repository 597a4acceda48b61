//! The user data that a machine of the box understands: a first line that names the format, then YAML.
//!
//! ```text
//! #freehold-box/v1
//! labels: {freehold.dev/dedicated: "true"}
//! taints:
//! - {key: freehold.dev/dedicated, effect: NoExecute}
//! ```
//!
//! It says how the kubelet registers, nothing else. A machine that is given anything else never joins, and its console says why.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The first line.
pub const FORMAT: &str = "#freehold-box/v1";

/// User data of a machine that is a database's own: with Freehold's label and taint.
pub const DEDICATED: &str = "\
#freehold-box/v1
labels: {freehold.dev/dedicated: \"true\"}
taints:
- {key: freehold.dev/dedicated, effect: NoExecute}
";

/// The same for a real machine: a script that calls the image's bootstrap, as it does on EKS.
pub const DEDICATED_SCRIPT: &str = "\
#!/bin/sh
/opt/freehold-box/bootstrap \\
    --node-labels freehold.dev/dedicated=true \\
    --register-with-taints freehold.dev/dedicated=:NoExecute
";

/// The label domains in which a kubelet may set labels for itself, of those that belong to Kubernetes (kubelet's `--node-labels`).
const OPEN_DOMAINS: [&str; 2] = ["node.kubernetes.io", "kubelet.kubernetes.io"];

/// How a machine registers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserData {
    /// The Node's labels, beside those that every Node has.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The taints that it registers with.
    #[serde(default)]
    pub taints: Vec<Taint>,
}

/// A taint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// What it does.
    pub effect: Effect,
}

/// What a taint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// New pods stay away.
    NoSchedule,
    /// New pods stay away if they can.
    PreferNoSchedule,
    /// Running pods go, too.
    NoExecute,
}

/// Why a machine can't read its user data.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not our format.
    #[error("user data does not begin with the line `{FORMAT}`")]
    Format,

    /// Not what the format allows.
    #[error("user data is not what {FORMAT} allows")]
    Content(#[source] serde_norway::Error),

    /// A label that the API server would not take from a kubelet.
    #[error("user data sets the label {0}, which a kubelet must not set for itself")]
    Label(String),
}

impl UserData {
    /// Reads user data.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        if first.trim_end() != FORMAT {
            return Err(Error::Format);
        }
        let is_empty = rest.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
        let read = if is_empty { Self::default() } else { serde_norway::from_str::<Self>(rest).map_err(Error::Content)? };
        match read.labels.keys().find(|label| is_reserved(label)) {
            Some(label) => Err(Error::Label(label.clone())),
            None => Ok(read),
        }
    }
}

/// `NodeRestriction` and the kubelet refuse labels of Kubernetes' own domains, `*.node-restriction.kubernetes.io` among them.
fn is_reserved(label: &str) -> bool {
    let Some((domain, _)) = label.split_once('/') else { return false };
    let is_in = |parent: &str| domain == parent || domain.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.'));
    (is_in("kubernetes.io") || is_in("k8s.io")) && !OPEN_DOMAINS.into_iter().any(is_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_taints_are_read() {
        let expected = UserData {
            labels: BTreeMap::from([("freehold.dev/dedicated".to_owned(), "true".to_owned())]),
            taints: vec![Taint { key: "freehold.dev/dedicated".to_owned(), value: String::new(), effect: Effect::NoExecute }],
        };
        assert_eq!(UserData::parse(DEDICATED).unwrap(), expected);
    }

    #[test]
    fn a_machine_may_have_neither() {
        assert_eq!(UserData::parse("#freehold-box/v1\n# nothing\n").unwrap(), UserData::default());
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "#!/bin/sh\necho hello\n",
            "#freehold-box/v2\nlabels: {}\n",
            "#freehold-box/v1\nscript: rm\n",
            "#freehold-box/v1\ntaints: [{key: a, effect: Never}]\n",
            "#freehold-box/v1\nlabels: {freehold.dev.node-restriction.kubernetes.io/database: mine}\n",
            "#freehold-box/v1\nlabels: {node-role.kubernetes.io/control-plane: \"\"}\n",
        ] {
            assert!(UserData::parse(text).is_err(), "{text}");
        }
    }
}
