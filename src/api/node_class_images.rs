//! The images of a `NodeClass`: where its machines pull the engines from, and which images of tenants run.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumIter, IntoStaticStr};

/// Where the machines of this class pull images from. A change restarts nothing: each pod that starts from
/// then on, after a restart, a move or a loss, pulls from there.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Images {
    /// The registry of the images of QuestDB and PostgreSQL, with a path if need be:
    /// `123456789012.dkr.ecr.eu-west-1.amazonaws.com/docker-hub`. Default: docker.io. Images of tenants (the
    /// engine `custom`) name their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    #[x_kube(validation = Rule::new("self.matches('^[a-zA-Z0-9]([a-zA-Z0-9.:/_-]*[a-zA-Z0-9])?$') && \
        !self.contains('//')")
        .message("spec.images.registry must be the host of a registry, with a port and a path if need be, \
            such as registry.example:5000/mirror: no https:// before it and no '/' at its end"))]
    pub registry: Option<String>,

    /// The image of QuestDB. Default: the repository questdb/questdb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questdb: Option<EngineImage>,

    /// The image of PostgreSQL. Default: the repository library/postgres.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postgresql: Option<EngineImage>,

    /// The names of Secrets of the type `kubernetes.io/dockerconfigjson` for the registries, in the namespace
    /// of each Database; the platform team creates them there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(min = 1, max = 253)))]
    #[x_kube(validation = Rule::new("self.all(name, name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$'))")
        .message("spec.images.pullSecrets: each must be the name of a Secret: a-z, 0-9, '-' and '.'"))]
    pub pull_secrets: Vec<String>,

    /// When a machine pulls an image that it has: IfNotPresent (never) or Always (at each start, so that the
    /// registry must answer for a database to start). Default: IfNotPresent.
    #[serde(default)]
    pub pull_policy: PullPolicy,
}

/// The image of one engine.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineImage {
    /// The repository below the registry, without a tag: the tag is the version that a Database names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([a-z0-9._/-]*[a-z0-9])?$')")
        .message("spec.images: a repository is a path below the registry such as mirror/postgres: without a \
            host, a tag or a digest, which have fields of their own"))]
    pub repository: Option<String>,

    /// The digest of the image of a version, by version: `17.6: sha256:…`. A version without one is pulled by
    /// its tag, which a registry may point elsewhere.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100))]
    #[x_kube(validation = Rule::new("self.all(v, v.size() <= 32 && \
        self[v].matches('^sha256:[0-9a-f]{64}$'))")
        .message("spec.images: each digest is written as version: sha256:<64 hexadecimal digits>"))]
    pub digests: BTreeMap<String, ImageDigest>,
}

/// The digest of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ImageDigest(#[schemars(length(max = 71))] pub String);

/// When a machine pulls an image that it has.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumIter,
    IntoStaticStr
)]
pub enum PullPolicy {
    /// Never.
    #[default]
    IfNotPresent,
    /// At each start.
    Always,
}

impl PullPolicy {
    /// The name as Kubernetes knows it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Whether Databases may run images of their own (the engine `custom`), and which.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.enabled || self.allowedImages.size() == 0")
    .message("spec.custom.allowedImages is only for enabled: true: remove it, or set spec.custom.enabled to \
        true"))]
pub struct CustomImages {
    /// False refuses the engine `custom`. A database that runs goes on running. Default: true.
    #[serde(default = "default_enabled")]
    pub enabled: bool,

    /// The images that are allowed, as patterns with `*`: `registry.example/databases/*`. Empty allows every
    /// image.
    #[serde(default)]
    #[schemars(length(max = 50), inner(length(min = 1, max = 512)))]
    pub allowed_images: Vec<String>,
}

impl Default for CustomImages {
    fn default() -> Self {
        Self { enabled: default_enabled(), allowed_images: Vec::new() }
    }
}

fn default_enabled() -> bool {
    true
}
