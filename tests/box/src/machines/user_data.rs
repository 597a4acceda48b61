//! The forms of user data that a machine understands: a script, or a MIME message of scripts and a
//! NodeConfig, as Amazon Linux 2023 for EKS takes it.
//!
//! `https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html#launch-template-user-data`

use mail_parser::{MessageParser, MessagePart, MimeHeaders as _};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What makes a machine a Kubernetes node.
pub const BOOTSTRAP: &str = "/opt/freehold-box/bootstrap";

/// The type of a part that nodeadm reads.
const NODE_CONFIG: &str = "application/node.eks.aws";

/// One part of user data.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// What cloud-init runs.
    Script(String),
    /// What nodeadm configures the kubelet with.
    NodeConfig(NodeConfig),
}

/// The part of nodeadm's configuration that concerns the kubelet. Which cluster it names decides nothing: a
/// machine joins the control plane of its box. Fields that nodeadm does not have are refused, as nodeadm
/// refuses them.
///
/// `https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    spec: Spec,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    cluster: Cluster,
    #[serde(default)]
    kubelet: Kubelet,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Cluster {
    name: String,
    api_server_endpoint: String,
    certificate_authority: String,
    cidr: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kubelet {
    #[serde(default)]
    config: Map<String, Value>,
    #[serde(default)]
    flags: Vec<String>,
}

/// Why a machine does not understand its user data.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing that cloud-init would run.
    #[error("user data is neither a script, whose first line begins with `#!`, nor a MIME message")]
    Unknown,

    /// A part of another type.
    #[error("user data has a part of type {0}: machines of a box take text/x-shellscript and {NODE_CONFIG}")]
    Type(String),

    /// A NodeConfig that nodeadm would refuse.
    #[error("user data has an invalid NodeConfig")]
    NodeConfig(#[from] serde_norway::Error),

    /// A NodeConfig without what nodeadm needs.
    #[error("user data has a NodeConfig without {0}")]
    Missing(&'static str),
}

/// Reads user data. The parts are in the order in which they take effect: scripts, then what starts the
/// kubelet.
pub fn parts(text: &str) -> Result<Vec<Part>, Error> {
    if text.starts_with("#!") {
        return Ok(vec![Part::Script(text.to_owned())]);
    }
    let message = MessageParser::new().with_mime_headers().parse(text).ok_or(Error::Unknown)?;
    let Some(ids) = message.root_part().sub_parts() else { return Err(Error::Unknown) };
    let parts = ids.iter().filter_map(|id| message.part(*id)).map(part);
    let mut parts = parts.collect::<Result<Vec<_>, _>>()?;
    parts.sort_by_key(|part| matches!(part, Part::NodeConfig(_)));
    Ok(parts)
}

fn part(part: &MessagePart<'_>) -> Result<Part, Error> {
    let content = part.content_type();
    let kind = content.map(|kind| format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or_default()));
    let body = String::from_utf8_lossy(part.contents()).into_owned();
    match kind.as_deref().unwrap_or_default() {
        "text/x-shellscript" => Ok(Part::Script(body)),
        NODE_CONFIG => Ok(Part::NodeConfig(NodeConfig::parse(&body)?)),
        other => Err(Error::Type(other.to_owned())),
    }
}

impl NodeConfig {
    fn parse(text: &str) -> Result<Self, Error> {
        let config: Self = serde_norway::from_str(text)?;
        let Cluster { name, api_server_endpoint, certificate_authority, cidr } = &config.spec.cluster;
        let facts = [
            (config.api_version == "node.eks.aws/v1alpha1", "apiVersion node.eks.aws/v1alpha1"),
            (config.kind == "NodeConfig", "kind NodeConfig"),
            (!name.is_empty(), "spec.cluster.name"),
            (!api_server_endpoint.is_empty(), "spec.cluster.apiServerEndpoint"),
            (!certificate_authority.is_empty(), "spec.cluster.certificateAuthority"),
            (!cidr.is_empty(), "spec.cluster.cidr"),
        ];
        match facts.into_iter().find(|(is_there, _)| !is_there) {
            Some((_, missing)) => Err(Error::Missing(missing)),
            None => Ok(config),
        }
    }

    /// The further fields of the kubelet's configuration.
    pub fn kubelet_config(&self) -> &Map<String, Value> {
        &self.spec.kubelet.config
    }

    /// The further flags of the kubelet.
    pub fn kubelet_flags(&self) -> &[String] {
        &self.spec.kubelet.flags
    }

    /// What does to a machine of a box what nodeadm does to an instance: the fields become a file that the
    /// kubelet reads after its own configuration, the flags go to the end of its command line.
    pub fn as_script(&self) -> String {
        let mut config = self.spec.kubelet.config.clone();
        config.insert("apiVersion".to_owned(), json!("kubelet.config.k8s.io/v1beta1"));
        config.insert("kind".to_owned(), json!("KubeletConfiguration"));
        let flags: Vec<String> = self.kubelet_flags().iter().map(|flag| quoted(flag)).collect();
        format!(
            "#!/bin/sh\nmkdir -p /etc/kubernetes/kubelet.d\nprintf %s {} \
             >/etc/kubernetes/kubelet.d/40-nodeadm.conf\nexec {BOOTSTRAP} --kubelet-flags {}\n",
            quoted(&Value::Object(config).to_string()),
            quoted(&flags.join(" ")),
        )
    }
}

/// As one word of the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: &str = "cluster: {name: c, apiServerEndpoint: https://e, certificateAuthority: bm9uZQ==, \
                           cidr: 10.100.0.0/16}";

    fn message(parts: &[(&str, &str)]) -> String {
        let part = |(kind, body): &(&str, &str)| format!("--//\nContent-Type: {kind}\n\n{body}\n");
        let parts = parts.iter().map(part).collect::<Vec<_>>().concat();
        format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n{parts}--//--\n")
    }

    fn node_config(spec: &str) -> String {
        format!("---\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  {CLUSTER}\n{spec}")
    }

    #[test]
    fn a_script_is_one_part() {
        let script = "#!/bin/sh\necho hello\n";
        assert_eq!(parts(script).unwrap(), [Part::Script(script.to_owned())]);
    }

    #[test]
    fn the_scripts_of_a_message_come_before_its_node_config() {
        let spec = "  kubelet:\n    config: {podPidsLimit: 4096}\n    flags: ['--node-labels=a=b']\n";
        let shell = "text/x-shellscript; charset=\"us-ascii\"";
        let read = parts(&message(&[(NODE_CONFIG, &node_config(spec)), (shell, "#!/bin/sh\ntrue")])).unwrap();
        let [Part::Script(script), Part::NodeConfig(config)] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!(script.trim_end(), "#!/bin/sh\ntrue");
        assert_eq!(config.kubelet_flags(), ["--node-labels=a=b"]);
        assert_eq!(config.kubelet_config()["podPidsLimit"], 4096);
        assert_eq!(
            config.as_script(),
            "#!/bin/sh\nmkdir -p /etc/kubernetes/kubelet.d\nprintf %s \
             '{\"apiVersion\":\"kubelet.config.k8s.io/v1beta1\",\"kind\":\"KubeletConfiguration\",\
             \"podPidsLimit\":4096}' >/etc/kubernetes/kubelet.d/40-nodeadm.conf\nexec \
             /opt/freehold-box/bootstrap --kubelet-flags ''\\''--node-labels=a=b'\\'''\n"
        );
    }

    #[test]
    fn everything_else_is_refused() {
        let refused = |text: &str| parts(text).unwrap_err().to_string();
        for text in ["", "echo hello", "[settings.kubernetes]\n"] {
            assert!(refused(text).contains("neither a script"), "{text}");
        }
        assert!(refused(&message(&[("text/cloud-config", "{}")])).contains("text/cloud-config"));
        for unknown in ["  kubelets: {}\n", "  kubelet: {flag: []}\n"] {
            assert!(refused(&message(&[(NODE_CONFIG, &node_config(unknown))])).contains("invalid"));
        }
        let no_cidr = node_config("").replace("10.100.0.0/16", "''");
        assert!(refused(&message(&[(NODE_CONFIG, &no_cidr)])).ends_with("without spec.cluster.cidr"));
    }
}
