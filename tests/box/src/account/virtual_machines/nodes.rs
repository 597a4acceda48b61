//! The machines: each running instance boots, joins as a Node as its user data says, and falls silent when it
//! stops.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ec2sim::{Health, InstanceState, InstanceView, Outside};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::CSINode;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::account::context::Context;
use crate::account::membership;
use crate::account::user_data::UserData;
use crate::base::error_chain::chain;
use crate::base::names::{BOOT_ANNOTATION, EBS_DRIVER, HEARTBEAT_LABEL, HEARTBEAT_VALUE};
use crate::base::watching::Watching;
use crate::cluster::control_plane::machine_status;

/// How long until a look without any change, for a write that failed.
const RESYNC: Duration = Duration::from_secs(1);

/// How many data volumes the driver says a machine takes: 28 attachments of a Nitro instance less the root
/// volume and one interface.
const ALLOCATABLE_VOLUMES: i32 = 26;

/// What is remembered of a machine beside what EC2 and the cluster show.
struct Machine {
    /// Which boot this is.
    boot: String,
    /// When it began.
    since: Instant,
    /// Whether it has registered, or never will. A kubelet registers once a boot: it does not make its Node
    /// again when that was deleted under it.
    has_registered: bool,
}

/// Runs until the site stops.
pub async fn run(context: Context, boot: Duration) {
    let watching = Watching::new(context.tasks.clone(), context.stop.clone());
    let nodes = watching.store(Api::<Node>::all(context.client.clone()));
    let mut machines: HashMap<String, Machine> = HashMap::new();
    let mut changes = context.simulator.changes();
    // An empty copy would say of every machine that it has no Node.
    tokio::select! {
        _ = nodes.wait_until_ready() => {}
        () = context.stop.cancelled() => {}
    }
    while !context.stop.is_cancelled() {
        let by_instance: HashMap<String, Arc<Node>> = nodes
            .state()
            .into_iter()
            .filter_map(|node| Some((membership::instance_id(&node)?.to_owned(), node)))
            .collect();
        let mut next = RESYNC;
        for instance in context.simulator.instances() {
            let node = by_instance.get(&instance.id).map(AsRef::as_ref);
            if let Some(left) = follow(&context, &mut machines, &instance, node, boot).await {
                next = next.min(left);
            }
        }
        tokio::select! {
            () = watching.changed(next) => {}
            _ = changes.changed() => {}
            () = context.stop.cancelled() => {}
        }
    }
}

/// Brings the Node to where its machine is in its boot. What is left of the boot, if it is awaited.
async fn follow(
    context: &Context,
    machines: &mut HashMap<String, Machine>,
    instance: &InstanceView,
    node: Option<&Node>,
    boot: Duration,
) -> Option<Duration> {
    if !lives(instance) {
        if instance.state != InstanceState::Running {
            machines.remove(&instance.id);
        }
        if let Some(node) = node.filter(|node| has_heartbeat(node)) {
            silence(context, node).await;
        }
        return None;
    }
    let current = boot_id(instance);
    let machine = machines.entry(instance.id.clone()).or_insert_with(|| Machine::booting(&current, node));
    if machine.boot != current {
        *machine = Machine::booting(&current, node);
    }
    let left = boot.saturating_sub(machine.since.elapsed());
    let is_known = node.is_some_and(|node| node.annotations().get(BOOT_ANNOTATION) == Some(&current));
    match node {
        // An impaired machine that recovers goes on where it was: no boot.
        Some(node) if is_known => {
            machine.has_registered = true;
            if !has_heartbeat(node) {
                wake(context, instance, node, &current).await;
            }
            None
        }
        Some(node) if !left.is_zero() => {
            if has_heartbeat(node) {
                silence(context, node).await;
            }
            Some(left)
        }
        Some(node) => {
            wake(context, instance, node, &current).await;
            machine.has_registered = true;
            None
        }
        None if machine.has_registered => None,
        None if left.is_zero() => {
            machine.has_registered = join(context, instance, &current).await;
            None
        }
        None => Some(left),
    }
}

impl Machine {
    /// A machine whose Node already shows this boot was there before the box looked.
    fn booting(boot: &str, node: Option<&Node>) -> Self {
        let is_known = node
            .is_some_and(|node| node.annotations().get(BOOT_ANNOTATION).is_some_and(|known| known == boot));
        Self { boot: boot.to_owned(), since: Instant::now(), has_registered: is_known }
    }
}

/// Running, and not hung as failing status checks say.
fn lives(instance: &InstanceView) -> bool {
    instance.state == InstanceState::Running
        && instance.instance_status != Health::Impaired
        && instance.system_status != Health::Impaired
}

/// Tells one boot from the next.
fn boot_id(instance: &InstanceView) -> String {
    let since = instance.running_at.map(Timestamp::as_millisecond).unwrap_or_default();
    format!("{since}-{}", instance.reboots)
}

fn has_heartbeat(node: &Node) -> bool {
    node.labels().get(HEARTBEAT_LABEL).is_some_and(|value| value == HEARTBEAT_VALUE)
}

/// The Node and the `CSINode` as the kubelet and the driver's node part would register them.
fn registration(instance: &InstanceView, user_data: &UserData, boot: &str, shape: (u32, u32)) -> Value {
    let mut labels: HashMap<String, String> = user_data.labels.clone().into_iter().collect();
    for (label, value) in [
        (HEARTBEAT_LABEL, HEARTBEAT_VALUE),
        ("topology.kubernetes.io/zone", &instance.zone),
        // The driver's own: the scheduler asks for it where it translates a volume of Kubernetes' own plugin.
        ("topology.ebs.csi.aws.com/zone", &instance.zone),
        (
            "topology.kubernetes.io/region",
            instance.zone.trim_end_matches(|letter: char| letter.is_ascii_lowercase()),
        ),
        ("node.kubernetes.io/instance-type", &instance.instance_type),
        ("kubernetes.io/hostname", &instance.private_dns),
        ("kubernetes.io/arch", if instance.architecture == "arm64" { "arm64" } else { "amd64" }),
        ("kubernetes.io/os", "linux"),
    ] {
        labels.insert(label.to_owned(), value.to_owned());
    }
    let driver_ids = json!({EBS_DRIVER: instance.id}).to_string();
    json!({
        "metadata": {
            "name": instance.private_dns,
            "labels": labels,
            "annotations": {
                BOOT_ANNOTATION: boot,
                "csi.volume.kubernetes.io/nodeid": driver_ids,
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
        },
        "spec": {"providerID": membership::provider_id(instance), "taints": user_data.taints},
        "status": machine_status(&instance.private_ip, &instance.private_dns, shape.0, shape.1),
    })
}

/// Registers the machine. Says whether that is settled for this boot.
async fn join(context: &Context, instance: &InstanceView, boot: &str) -> bool {
    let user_data = match UserData::parse(instance.user_data.as_deref().unwrap_or_default()) {
        Ok(user_data) => user_data,
        Err(error) => {
            let line = format!("freehold-box: this machine does not join: {}", chain(&error));
            tracing::warn!(instance = instance.id, line);
            let _ = context.simulator.outside(&Outside::Console(line).to(&instance.id));
            return true;
        }
    };
    let known = context.simulator.world();
    let shape =
        known.instance_type(&instance.instance_type).map_or((2, 8192), |found| (found.vcpus, found.memory));
    let nodes = Api::<Node>::all(context.client.clone());
    let node = serde_json::from_value::<Node>(registration(instance, &user_data, boot, shape))
        .map_err(kube::Error::SerdeError);
    let created = match node {
        Ok(node) => nodes.create(&PostParams::default(), &node).await,
        Err(error) => Err(error),
    };
    match created {
        Ok(node) => register_driver(context, instance, &node).await,
        // Another machine's Node of this name, of an address that was used before: the kubelet tries again
        // until it is gone.
        Err(kube::Error::Api(status)) if status.is_already_exists() => false,
        Err(error) => {
            tracing::warn!(instance = instance.id, %error, "the machine could not register");
            false
        }
    }
}

/// The `CSINode`, owned by its Node. Says whether it was written.
async fn register_driver(context: &Context, instance: &InstanceView, node: &Node) -> bool {
    let name = node.name_any();
    let object = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
        "metadata": {
            "name": name,
            // As the kubelet does: else the attach/detach controller looks for Kubernetes' own plugin.
            "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name,
            "uid": node.uid().unwrap_or_default()}],
        },
        "spec": {"drivers": [{
            "name": EBS_DRIVER, "nodeID": instance.id, "topologyKeys": ["topology.kubernetes.io/zone"],
            "allocatable": {"count": ALLOCATABLE_VOLUMES},
        }]},
    });
    let api = Api::<CSINode>::all(context.client.clone());
    let written = api.patch(&name, &PatchParams::apply("freehold-box").force(), &Patch::Apply(object)).await;
    if let Err(error) = &written {
        tracing::warn!(node = name, %error, "the driver could not register");
    }
    written.is_ok()
}

/// Gives the machine its heartbeat back, after a boot with a new boot id.
async fn wake(context: &Context, instance: &InstanceView, node: &Node, boot: &str) {
    register_driver(context, instance, node).await;
    let patch = json!({"metadata": {
        "uid": node.uid(), "labels": {HEARTBEAT_LABEL: HEARTBEAT_VALUE},
        "annotations": {BOOT_ANNOTATION: boot},
    }});
    patch_node(context, node, patch).await;
}

/// Takes the machine's heartbeat away: kwok stops renewing its lease, and the node controller will notice.
async fn silence(context: &Context, node: &Node) {
    patch_node(
        context,
        node,
        json!({"metadata": {"uid": node.uid(),
    "labels": {HEARTBEAT_LABEL: null}}}),
    )
    .await;
}

async fn patch_node(context: &Context, node: &Node, patch: Value) {
    let nodes = Api::<Node>::all(context.client.clone());
    match nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => {}
        Err(error) => tracing::warn!(node = node.name_any(), %error,
        "could not change the heartbeat of a machine"),
    }
}
