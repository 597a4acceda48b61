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
//! registers follows from them. A NodeConfig, as images of Amazon Linux 2023 take it, does as well. A machine
//! that finds neither never joins, and its console says why.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::machines::user_data::{self, BOOTSTRAP, NodeConfig, Part};

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
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// None of the forms that a machine knows.
    #[error(transparent)]
    Form(#[from] user_data::Error),

    /// Scripts that do something else.
    #[error("user data neither calls {BOOTSTRAP} nor has a NodeConfig")]
    NoBootstrap,

    /// An option that the bootstrap does not take.
    #[error(
        "user data calls {BOOTSTRAP} with `{0}`: it takes --node-labels KEY=VALUE,..., \
         --register-with-taints KEY=VALUE:EFFECT,... and --node-status-update-frequency DURATION"
    )]
    Option(String),

    /// Taints of a NodeConfig that the kubelet would refuse.
    #[error("user data has a NodeConfig with unusable spec.kubelet.config.registerWithTaints")]
    Taints(#[source] serde_json::Error),

    /// A label that the API server would not take from a kubelet.
    #[error("user data sets the label {0}, which a kubelet must not set for itself")]
    Label(String),
}

impl UserData {
    /// Reads the NodeConfig, or the call of the bootstrap.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut read = None;
        for part in user_data::parts(text)? {
            match part {
                Part::Script(script) => {
                    if let Some(options) = call(&script) {
                        read = Some(Self::of_options(&options)?);
                    }
                }
                Part::NodeConfig(config) => read = Some(Self::of_node_config(&config)?),
            }
        }
        let read = read.ok_or(Error::NoBootstrap)?;
        match read.labels.keys().find(|label| is_reserved(label)) {
            Some(label) => Err(Error::Label(label.clone())),
            None => Ok(read),
        }
    }

    fn of_options(options: &str) -> Result<Self, Error> {
        let mut words = options.split_ascii_whitespace().map(|word| word.trim_matches(['\'', '"']));
        let mut read = Self::default();
        while let Some(option) = words.next() {
            let value = words.next().ok_or_else(|| Error::Option(option.to_owned()))?;
            match option {
                "--node-labels" => read.labels = labels(value)?,
                "--register-with-taints" => {
                    let items = value.split(',').filter(|item| !item.is_empty());
                    read.taints = items.map(taint).collect::<Result<_, _>>()?;
                }
                // Pods of a virtual machine wait for no volume.
                "--node-status-update-frequency" => {}
                _ => return Err(Error::Option(option.to_owned())),
            }
        }
        Ok(read)
    }

    fn of_node_config(config: &NodeConfig) -> Result<Self, Error> {
        let taints = config.kubelet_config().get("registerWithTaints").cloned();
        let taints = serde_json::from_value(taints.unwrap_or_else(|| Value::Array(Vec::new())))
            .map_err(Error::Taints)?;
        let mut read = Self { labels: BTreeMap::new(), taints };
        for value in config.kubelet_flags().iter().filter_map(|flag| flag.strip_prefix("--node-labels=")) {
            read.labels.extend(labels(value)?);
        }
        Ok(read)
    }
}

/// The options of a script's call of the bootstrap, if it calls it.
fn call(script: &str) -> Option<String> {
    let script = script.replace("\\\n", " ");
    let mut calls = script.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    calls.find_map(|line| line.split_once(BOOTSTRAP)).map(|(_, options)| options.to_owned())
}

fn labels(text: &str) -> Result<BTreeMap<String, String>, Error> {
    text.split(',').filter(|item| !item.is_empty()).map(label).collect()
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
        assert_eq!(UserData::parse(DEDICATED).unwrap(), expected);
        let others = "#!/bin/bash\nset -e\n# /opt/freehold-box/bootstrap --node-labels a=b\necho hello\nexec \
                      /opt/freehold-box/bootstrap --node-labels 'freehold.dev/dedicated=true' \
                      --register-with-taints freehold.dev/dedicated=:NoExecute\n";
        assert_eq!(UserData::parse(others).unwrap(), expected);
    }

    #[test]
    fn a_machine_may_have_neither() {
        assert_eq!(UserData::parse("#!/bin/sh\n/opt/freehold-box/bootstrap\n").unwrap(), UserData::default());
    }

    #[test]
    fn a_node_config_says_the_same() {
        let text = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: \
                    application/node.eks.aws\n\n---\napiVersion: node.eks.aws/v1alpha1\nkind: \
                    NodeConfig\nspec:\n  cluster: {name: c, apiServerEndpoint: https://e, \
                    certificateAuthority: bm9uZQ==, cidr: 10.100.0.0/16}\n  kubelet:\n    config: \
                    {registerWithTaints: [{key: a, value: b, effect: NoExecute}]}\n    flags: \
                    ['--node-labels=c=d,e=f']\n--//--\n";
        let text_of = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let expected = UserData {
            labels: BTreeMap::from([text_of("c", "d"), text_of("e", "f")]),
            taints: vec![Taint {
                key: "a".to_owned(),
                value: "b".to_owned(),
                effect: "NoExecute".to_owned(),
            }],
        };
        assert_eq!(UserData::parse(text).unwrap(), expected);
        let refused = UserData::parse(&text.replace("effect: NoExecute", "effects: NoExecute"));
        assert!(matches!(refused, Err(Error::Taints(_))), "{refused:?}");
    }

    #[test]
    fn everything_else_is_refused() {
        let refused = |text: &str| UserData::parse(text).unwrap_err().to_string();
        let call = |options: &str| refused(&format!("#!/bin/sh\n/opt/freehold-box/bootstrap {options}\n"));
        assert!(refused("").contains("neither a script"));
        assert!(refused("/opt/freehold-box/bootstrap\n").contains("neither a script"));
        assert!(refused("#!/bin/sh\necho hello\n").contains("neither calls"));
        for (options, named) in [
            ("--script rm", "`--script`"),
            ("--node-labels", "`--node-labels`"),
            ("--register-with-taints a=b:Never", "`a=b:Never`"),
        ] {
            assert!(call(options).contains(named), "{options}");
        }
        for label in
            ["freehold.dev.node-restriction.kubernetes.io/database", "node-role.kubernetes.io/control-plane"]
        {
            assert!(call(&format!("--node-labels {label}=mine")).contains(&format!("the label {label},")));
        }
    }
}
