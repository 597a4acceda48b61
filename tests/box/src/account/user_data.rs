//! The user data of the box's machines: a script that calls the machine image's bootstrap, as the images for
//! EKS have it.
//!
//! ```sh
//! #!/bin/sh
//! /opt/freehold-box/bootstrap \
//!     --node-labels freehold.dev/dedicated=true \
//!     --register-with-taints freehold.dev/dedicated=:NoExecute \
//!     --node-status-update-frequency 1s
//! ```
//!
//! A real machine runs it. A virtual one runs nothing: it reads the options of that call, and how it
//! registers follows from them. One that finds no such call never joins, and its console says why.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What makes a machine a node.
pub const BOOTSTRAP: &str = "/opt/freehold-box/bootstrap";

/// User data of a machine that is a database's own: with Freehold's label and taint. A kubelet says which
/// volumes it uses in its Node's status only, and both ends of a move wait for that: every second, and not
/// every ten.
pub const DEDICATED: &str = "\
#!/bin/sh
/opt/freehold-box/bootstrap \\
    --node-labels freehold.dev/dedicated=true \\
    --register-with-taints freehold.dev/dedicated=:NoExecute \\
    --node-status-update-frequency 1s
";

/// The label domains in which a kubelet may set labels for itself, of those that belong to Kubernetes
/// (kubelet's `--node-labels`).
const OPEN_DOMAINS: [&str; 2] = ["node.kubernetes.io", "kubelet.kubernetes.io"];

/// How a machine registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserData {
    /// The Node's labels, beside those that every Node has.
    pub labels: BTreeMap<String, String>,
    /// The taints that it registers with.
    pub taints: Vec<Taint>,
}

/// A taint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// What it does: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// What a taint can do.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Why a machine can't read its user data.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing that an operating system would run.
    #[error("user data is no script: its first line must begin with `#!`")]
    NoScript,

    /// A script that does something else.
    #[error("user data does not call {BOOTSTRAP}")]
    NoBootstrap,

    /// An option that the bootstrap does not take.
    #[error(
        "user data calls {BOOTSTRAP} with `{0}`: it takes --node-labels KEY=VALUE,..., \
         --register-with-taints KEY=VALUE:EFFECT,... and --node-status-update-frequency DURATION"
    )]
    Option(String),

    /// A label that the API server would not take from a kubelet.
    #[error("user data sets the label {0}, which a kubelet must not set for itself")]
    Label(String),
}

impl UserData {
    /// Reads the call of the bootstrap.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if !text.starts_with("#!") {
            return Err(Error::NoScript);
        }
        let script = text.replace("\\\n", " ");
        let calls = script.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let call = calls
            .filter_map(|line| line.split_once(BOOTSTRAP))
            .map(|(_, options)| options)
            .next()
            .ok_or(Error::NoBootstrap)?;
        let mut words = call.split_ascii_whitespace().map(|word| word.trim_matches(['\'', '"']));
        let mut read = Self::default();
        while let Some(option) = words.next() {
            let value = words.next().ok_or_else(|| Error::Option(option.to_owned()))?;
            let items = value.split(',').filter(|item| !item.is_empty());
            match option {
                "--node-labels" => read.labels = items.map(label).collect::<Result<_, _>>()?,
                "--register-with-taints" => read.taints = items.map(taint).collect::<Result<_, _>>()?,
                // Pods of a virtual machine wait for no volume.
                "--node-status-update-frequency" => {}
                _ => return Err(Error::Option(option.to_owned())),
            }
        }
        match read.labels.keys().find(|label| is_reserved(label)) {
            Some(label) => Err(Error::Label(label.clone())),
            None => Ok(read),
        }
    }
}

fn label(text: &str) -> Result<(String, String), Error> {
    let (key, value) = text.split_once('=').ok_or_else(|| Error::Option(text.to_owned()))?;
    Ok((key.to_owned(), value.to_owned()))
}

fn taint(text: &str) -> Result<Taint, Error> {
    let unusable = || Error::Option(text.to_owned());
    let (pair, effect) = text.rsplit_once(':').ok_or_else(unusable)?;
    let (key, value) = pair.split_once('=').ok_or_else(unusable)?;
    if !EFFECTS.contains(&effect) {
        return Err(unusable());
    }
    Ok(Taint { key: key.to_owned(), value: value.to_owned(), effect: effect.to_owned() })
}

/// `NodeRestriction` and the kubelet refuse labels of Kubernetes' own domains,
/// `*.node-restriction.kubernetes.io` among them.
fn is_reserved(label: &str) -> bool {
    let Some((domain, _)) = label.split_once('/') else { return false };
    let is_in = |parent: &str| {
        domain == parent || domain.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.'))
    };
    (is_in("kubernetes.io") || is_in("k8s.io")) && !OPEN_DOMAINS.into_iter().any(is_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_taints_are_read_from_the_call_of_the_bootstrap() {
        let expected = UserData {
            labels: BTreeMap::from([("freehold.dev/dedicated".to_owned(), "true".to_owned())]),
            taints: vec![Taint {
                key: "freehold.dev/dedicated".to_owned(),
                value: String::new(),
                effect: "NoExecute".to_owned(),
            }],
        };
        assert_eq!(UserData::parse(DEDICATED), Ok(expected.clone()));
        let others = "#!/bin/bash\nset -e\n# /opt/freehold-box/bootstrap --node-labels a=b\necho hello\nexec \
                      /opt/freehold-box/bootstrap --node-labels 'freehold.dev/dedicated=true' \
                      --register-with-taints freehold.dev/dedicated=:NoExecute\n";
        assert_eq!(UserData::parse(others), Ok(expected));
    }

    #[test]
    fn a_machine_may_have_neither() {
        assert_eq!(UserData::parse("#!/bin/sh\n/opt/freehold-box/bootstrap\n"), Ok(UserData::default()));
    }

    #[test]
    fn everything_else_is_refused() {
        let call = |options: &str| {
            UserData::parse(&format!(
                "#!/bin/sh\n/opt/freehold-box/bootstrap \
            {options}\n"
            ))
        };
        assert_eq!(UserData::parse(""), Err(Error::NoScript));
        assert_eq!(UserData::parse("/opt/freehold-box/bootstrap\n"), Err(Error::NoScript));
        assert_eq!(UserData::parse("#!/bin/sh\necho hello\n"), Err(Error::NoBootstrap));
        assert_eq!(call("--script rm"), Err(Error::Option("--script".to_owned())));
        assert_eq!(call("--node-labels"), Err(Error::Option("--node-labels".to_owned())));
        assert_eq!(call("--register-with-taints a=b:Never"), Err(Error::Option("a=b:Never".to_owned())));
        for label in
            ["freehold.dev.node-restriction.kubernetes.io/database", "node-role.kubernetes.io/control-plane"]
        {
            assert_eq!(call(&format!("--node-labels {label}=mine")), Err(Error::Label(label.to_owned())));
        }
    }
}
