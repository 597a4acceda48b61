//! Builds the StatefulSet: one pod of the `restricted` Pod Security Standard, on the database's own machine,
//! with its own volume.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};
use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapVolumeSource, Container, ContainerPort, EmptyDirVolumeSource, EnvVar,
    EnvVarSource, ExecAction, HTTPGetAction, LocalObjectReference, PersistentVolumeClaimVolumeSource,
    PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile,
    SecretKeySelector, SecurityContext, TCPSocketAction, Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::pod_parts::{mount, secret, text};
use super::{inputs_hash, owned, recovery, tls};
use crate::api::Database;
use crate::api::database::{EngineType, ResourceQuantity, Resources};
use crate::api::keys::{
    DATABASE_NODE_LABEL, DEDICATED_TAINT, INPUTS_HASH_ANNOTATION, NOT_READY_TAINT, UNREACHABLE_TAINT,
};
use crate::api::names::Names;
use crate::controller::database::in_place;
use crate::controller::engine_container::CONTAINER;
use crate::engine::postgresql::{LOCK_USERS, NEW_CREDENTIALS};
use crate::engine::{self, Check, Profile, TLS_DIRECTORY, Value};

/// The name of the volume with the data, in the pod.
pub const DATA: &str = "data";

/// What is requested of what the spec does not name.
const LEAST: [(&str, &str); 2] = [("cpu", "100m"), ("memory", LEAST_MEMORY)];

/// The grace of a container that hangs.
const LONGEST_OF_PROBES: Duration = Duration::from_secs(300);

/// It fits every type.
pub(super) const LEAST_MEMORY: &str = "256Mi";

/// The StatefulSet, stopped (0 replicas) or running (1).
pub fn stateful_set(database: &Database, names: &Names, profile: &Profile, replicas: i32) -> StatefulSet {
    let annotations = BTreeMap::from([(INPUTS_HASH_ANNOTATION.to_owned(), inputs_hash(&database.spec))]);
    let mut metadata = owned(names, &names.stateful_set);
    metadata.annotations = Some(annotations.clone());
    StatefulSet {
        metadata,
        spec: Some(StatefulSetSpec {
            replicas: Some(replicas),
            service_name: Some(names.service.clone()),
            selector: LabelSelector { match_labels: Some(names.selector.clone()), match_expressions: None },
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("OnDelete".to_owned()),
                rolling_update: None,
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(names.labels.clone()),
                    annotations: Some(annotations),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod(database, names, profile)),
            },
            ..StatefulSetSpec::default()
        }),
        status: None,
    }
}

/// The same with its pod in this PriorityClass. It is no input of the hash: a class that is set later
/// restarts nothing.
pub fn in_priority_class(mut set: StatefulSet, class: Option<&str>) -> StatefulSet {
    if let Some(pod) = set.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()) {
        pod.priority_class_name = class.map(str::to_owned);
    }
    set
}

/// A pod that stays while its Kubernetes node does not report: Kubernetes would otherwise delete it after
/// five minutes ("Taint based Evictions" in its documentation), while a repair waits that must not begin yet,
/// or a longer grace period. Freehold deletes it, once nothing on a lost machine can write.
pub(super) fn unreachable() -> Vec<Toleration> {
    [NOT_READY_TAINT, UNREACHABLE_TAINT].map(endures).to_vec()
}

fn endures(taint: &str) -> Toleration {
    Toleration {
        key: Some(taint.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some("NoExecute".to_owned()),
        ..Toleration::default()
    }
}

fn pod(database: &Database, names: &Names, profile: &Profile) -> PodSpec {
    let (mut volumes, mut mounts) = mounts(names, profile);
    if let Some(tls) = &database.spec.tls {
        volumes.push(tls::volume(tls));
        mounts.push(mount(tls::VOLUME, TLS_DIRECTORY, Some(true)));
    }
    let data = mount(DATA, &profile.data_path, None);
    let recovery = recovery::container(database, profile, data, resources(database));
    PodSpec {
        service_account_name: Some(names.service_account.clone()),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        // A kubelet cannot give itself this label, so only the machine that the operator chose qualifies.
        node_selector: Some(BTreeMap::from([(DATABASE_NODE_LABEL.to_owned(), names.uid.clone())])),
        tolerations: Some([vec![endures(DEDICATED_TAINT)], unreachable()].concat()),
        termination_grace_period_seconds: i64::try_from(profile.termination_grace.as_secs()).ok(),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(profile.user_id),
            run_as_group: Some(profile.user_id),
            fs_group: Some(profile.user_id),
            // A large volume would otherwise be walked through at every start.
            fs_group_change_policy: Some("OnRootMismatch".to_owned()),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                localhost_profile: None,
            }),
            ..PodSecurityContext::default()
        }),
        image_pull_secrets: pull_secrets(profile),
        init_containers: recovery.map(|container| vec![container]),
        containers: vec![container(database, names, profile, mounts)],
        volumes: Some(volumes),
        ..PodSpec::default()
    }
}

fn pull_secrets(profile: &Profile) -> Option<Vec<LocalObjectReference>> {
    let secrets = || profile.pull_secrets.iter().map(|name| LocalObjectReference { name: name.clone() });
    (!profile.pull_secrets.is_empty()).then(|| secrets().collect())
}

/// The StatefulSet with its image from where this profile pulls it, and nothing else changed; `None` when it
/// is so.
pub fn with_image_of(live: &StatefulSet, profile: &Profile) -> Option<StatefulSet> {
    let mut spec = live.spec.clone()?;
    let pod = spec.template.spec.as_mut()?;
    // A merge patch leaves what it does not name: an empty list takes the Secrets out.
    let none = || pod.image_pull_secrets.is_some().then(Vec::new);
    pod.image_pull_secrets = pull_secrets(profile).or_else(none);
    let engine = pod.containers.iter_mut().find(|container| container.name == CONTAINER)?;
    engine.image = Some(profile.image.clone());
    engine.image_pull_policy = Some(profile.pull_policy.as_str().to_owned());
    for before in pod.init_containers.iter_mut().flatten().filter(|it| it.name == recovery::CONTAINER) {
        before.image = Some(profile.image.clone());
        before.image_pull_policy = Some(profile.pull_policy.as_str().to_owned());
    }
    let metadata = ObjectMeta {
        name: live.metadata.name.clone(),
        namespace: live.metadata.namespace.clone(),
        // What else is in it was read, and must not be older than what is there.
        resource_version: live.metadata.resource_version.clone(),
        ..ObjectMeta::default()
    };
    let differs = live.spec.as_ref() != Some(&spec);
    differs.then_some(StatefulSet { metadata, spec: Some(spec), status: None })
}

fn container(database: &Database, names: &Names, profile: &Profile, mounts: Vec<VolumeMount>) -> Container {
    Container {
        name: CONTAINER.to_owned(),
        image: Some(profile.image.clone()),
        image_pull_policy: Some(profile.pull_policy.as_str().to_owned()),
        command: (!profile.command.is_empty()).then(|| texts(&profile.command)),
        ports: Some(
            profile
                .ports
                .iter()
                .map(|port| ContainerPort {
                    name: Some(port.name.to_owned()),
                    container_port: port.number,
                    protocol: Some("TCP".to_owned()),
                    ..ContainerPort::default()
                })
                .collect(),
        ),
        env: Some(environment(database, names, profile)).filter(|variables| !variables.is_empty()),
        startup_probe: Some(ending(probe(&profile.startup), profile)),
        readiness_probe: Some(probe(&profile.readiness)),
        liveness_probe: Some(ending(probe(&profile.liveness), profile)),
        resources: Some(resources(database)),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
            ..SecurityContext::default()
        }),
        // The end of the log is in the pod's status when the engine fails, and from there in a condition.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        volume_mounts: Some(mounts),
        ..Container::default()
    }
}

/// The pod's volumes and where they are mounted: the disk first, since others are mounted inside it.
fn mounts(names: &Names, profile: &Profile) -> (Vec<Volume>, Vec<VolumeMount>) {
    let mut volumes = vec![Volume {
        name: DATA.to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: names.volume.clone(),
            read_only: None,
        }),
        ..Volume::default()
    }];
    let mut mounts = vec![mount(DATA, &profile.data_path, None)];
    if let Some(config) = &profile.config {
        volumes.push(Volume {
            name: "config".to_owned(),
            config_map: Some(ConfigMapVolumeSource {
                name: names.config_map.clone(),
                ..ConfigMapVolumeSource::default()
            }),
            ..Volume::default()
        });
        mounts.push(mount("config", config.path, Some(true)));
    }
    if let Some(directory) = profile.password_directory {
        volumes.push(secret("credentials", &names.credentials_secret, &["password"], None));
        mounts.push(mount("credentials", directory, Some(true)));
    }
    for (number, scratch) in profile.scratch.iter().enumerate() {
        let name = format!("scratch-{number}");
        let empty =
            EmptyDirVolumeSource { medium: scratch.in_memory.then(|| "Memory".to_owned()), size_limit: None };
        volumes.push(Volume { name: name.clone(), empty_dir: Some(empty), ..Volume::default() });
        mounts.push(mount(&name, scratch.path, None));
    }
    (volumes, mounts)
}

/// What the engine reads, and for data with lost credentials that it gets new ones.
fn environment(database: &Database, names: &Names, profile: &Profile) -> Vec<EnvVar> {
    // The data of a backup has the password of the Database that it was taken of, or of that time.
    let restored = database.status.as_ref().and_then(|status| status.restored.as_ref());
    let is_recovered = restored.is_some_and(|restored| restored.recovery.is_some());
    let is_of_other =
        database.spec.storage.new_credentials || database.spec.restore.is_some() || is_recovered;
    let mark = in_place::credentials_mark(database).or_else(|| is_of_other.then(|| names.uid.clone()));
    let mark = mark.filter(|_| database.spec.engine.kind == EngineType::Postgresql);
    let is_locked = mark.is_some() && in_place::is_of_backup(database);
    let renewed = mark.map(|mark| text(NEW_CREDENTIALS, mark));
    let locked = is_locked.then(|| text(LOCK_USERS, "true".to_owned()));
    let tls = tls::variable(database).map(|(name, value)| text(name, value.to_owned()));
    let variables = profile.environment.iter().map(|variable| variable_of(names, variable));
    variables.chain(renewed).chain(locked).chain(tls).collect()
}

fn variable_of(names: &Names, variable: &engine::Variable) -> EnvVar {
    let from_secret = |key: &str| {
        Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: names.credentials_secret.clone(),
                key: key.to_owned(),
                optional: None,
            }),
            ..EnvVarSource::default()
        })
    };
    let (value, value_from) = match &variable.value {
        Value::Text(text) => (Some(text.clone()), None),
        Value::Username => (None, from_secret("username")),
        Value::Password => (None, from_secret("password")),
    };
    EnvVar { name: variable.name.clone(), value, value_from }
}

/// The probe that ends a container which hangs: that writes nothing any more, and has no longer grace than
/// any other engine.
fn ending(probe: Probe, profile: &Profile) -> Probe {
    let is_longer = profile.termination_grace > LONGEST_OF_PROBES;
    let grace = i64::try_from(LONGEST_OF_PROBES.as_secs()).ok().filter(|_| is_longer);
    Probe { termination_grace_period_seconds: grace, ..probe }
}

fn probe(probe: &engine::Probe) -> Probe {
    let port = |name: &str| IntOrString::String(name.to_owned());
    let asked = match &probe.check {
        Check::Http { path, port: name } => {
            let get = HTTPGetAction {
                path: Some((*path).to_owned()),
                port: port(name),
                ..HTTPGetAction::default()
            };
            Probe { http_get: Some(get), ..Probe::default() }
        }
        Check::Command(command) => {
            Probe { exec: Some(ExecAction { command: Some(texts(command)) }), ..Probe::default() }
        }
        Check::Tcp { port: name } => {
            Probe { tcp_socket: Some(TCPSocketAction { port: port(name), host: None }), ..Probe::default() }
        }
    };
    Probe {
        period_seconds: Some(probe.period),
        timeout_seconds: Some(probe.timeout),
        failure_threshold: Some(probe.failures),
        ..asked
    }
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The machine is the database's own: a small request that fits every type, and no limit, unless the spec
/// says otherwise. The memory of the machine is requested once that is known (`memory.rs`).
pub(super) fn resources(database: &Database) -> ResourceRequirements {
    let Resources { mut requests, limits } = database.spec.resources.clone().unwrap_or_default();
    for (name, least) in LEAST {
        // Kubernetes requests the limit where there is no request.
        if !limits.contains_key(name) {
            requests.entry(name.to_owned()).or_insert_with(|| ResourceQuantity(least.to_owned()));
        }
    }
    ResourceRequirements { requests: quantities(&requests), limits: quantities(&limits), claims: None }
}

fn quantities(asked: &BTreeMap<String, ResourceQuantity>) -> Option<BTreeMap<String, Quantity>> {
    let quantities =
        || asked.iter().map(|(name, quantity)| (name.clone(), Quantity(quantity.0.clone()))).collect();
    (!asked.is_empty()).then(quantities)
}
