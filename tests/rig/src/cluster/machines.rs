//! The machines: an instance boots, joins the cluster, renews its Lease, and falls silent when it ends or
//! hangs.

use std::collections::{BTreeMap, BTreeSet};

use ec2sim::{Health, InstanceState, InstanceView, Simulator};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::due::Due;
use super::hand::{Hand, text};
use super::names::{EBS_DRIVER, LEASES};
use super::seen::{Seen, instance_of, named, stamp, with_condition};
use crate::server::Server;

/// How often a kubelet renews its Lease (kubelet: a quarter of 40 s).
const RENEWAL: SignedDuration = SignedDuration::from_secs(10);

/// One machine, beside what EC2 and the cluster show.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Which instance it is.
    pub instance: String,
    /// Which boot this is.
    pub boot: String,
    /// When it has booted.
    pub up_at: Timestamp,
    /// A kubelet registers once a boot: it does not make its Kubernetes node again when that was deleted.
    has_registered: bool,
    renewed: Timestamp,
}

/// All machines.
#[derive(Debug, Default)]
pub struct Machines {
    all: BTreeMap<String, Machine>,
    /// Those whose kubelet hangs, or whose network is cut.
    pub silent: BTreeSet<String>,
}

impl Machines {
    /// The machine of a Kubernetes node, while its kubelet works.
    pub fn working(&self, node: &Value, now: Timestamp) -> Option<&Machine> {
        let id = instance_of(node)?;
        self.all
            .get(id)
            .filter(|machine| machine.up_at <= now && machine.has_registered && !self.silent.contains(id))
    }

    /// Which boot this instance is in; none if it does not run, or hangs.
    pub fn boot(&self, instance: &str) -> Option<&str> {
        self.all.get(instance).map(|machine| machine.boot.as_str())
    }

    /// Brings the Kubernetes nodes to where the machines are. `boot_time` draws how long a boot takes.
    pub fn step(
        &mut self,
        server: &Server,
        ec2: &Simulator,
        seen: &Seen,
        instances: &[InstanceView],
        mut boot_time: impl FnMut() -> SignedDuration,
        due: &mut Due,
    ) {
        self.all.retain(|id, _| instances.iter().any(|it| it.id == *id && lives(it)));
        for instance in instances.iter().filter(|it| lives(it)) {
            let boot = boot_id(instance);
            let machine = self.all.entry(instance.id.clone());
            let fresh = |up_at| Machine {
                instance: instance.id.clone(),
                boot: boot.clone(),
                up_at,
                has_registered: false,
                renewed: Timestamp::UNIX_EPOCH,
            };
            let machine = machine.or_insert_with(|| fresh(seen.now + boot_time()));
            if machine.boot != boot {
                *machine = fresh(seen.now + boot_time());
            }
            if machine.up_at > seen.now {
                due.at(machine.up_at);
            } else if !self.silent.contains(&instance.id) {
                machine.work(server, ec2, seen, instance, due);
            }
        }
    }
}

impl Machine {
    fn work(
        &mut self,
        server: &Server,
        ec2: &Simulator,
        seen: &Seen,
        instance: &InstanceView,
        due: &mut Due,
    ) {
        let hand = Hand::of(server, "kubelet");
        // Where a Kubernetes node had its name, it reports on that one, whatever instance that names.
        let is_its = |it: &&std::sync::Arc<Value>| {
            instance_of(it) == Some(instance.id.as_str())
                || (self.has_registered && it["metadata"]["name"] == instance.private_dns.as_str())
        };
        let node = seen.nodes.iter().find(is_its);
        match node {
            Some(node) => {
                self.has_registered = true;
                let ready = with_condition(node, "Ready", "True", "KubeletReady", seen.now);
                if ready != node["status"]["conditions"] {
                    hand.merge("nodes", node, "/status", &json!({"status": {"conditions": ready}}));
                }
                if seen.now >= self.renewed + RENEWAL {
                    self.renewed = seen.now;
                    renew(&hand, seen, &instance.private_dns);
                }
                due.at(self.renewed + RENEWAL);
            }
            None if self.has_registered || !joins(instance) => {}
            None => {
                register(&hand, ec2, instance, seen.now);
                self.has_registered = true;
            }
        }
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

/// The label and the taint of a database's machine.
const DEDICATED: &str = "freehold.dev/dedicated";

/// Whether the user data starts a kubelet; without user data the image does.
fn joins(instance: &InstanceView) -> bool {
    let starts = |text: &String| text.contains("bootstrap") || text.contains("NodeConfig");
    instance.user_data.as_ref().is_none_or(starts)
}

/// Whether the user data gives the kubelet this, as it stands there.
fn is_given(instance: &InstanceView, option: &str) -> bool {
    instance.user_data.as_ref().is_none_or(|text| text.contains(option))
}

/// The labels that the user data gives the kubelet, as an option of the bootstrap.
fn labels(instance: &InstanceView) -> impl Iterator<Item = (&str, &str)> {
    let text = instance.user_data.as_deref().unwrap_or_default();
    let given = text
        .split_once("--node-labels")
        .and_then(|(_, rest)| rest.trim_start_matches([' ', '=']).split_whitespace().next());
    given.into_iter().flat_map(|all| all.split(',')).filter_map(|it| it.split_once('='))
}

/// Registers the machine as a kubelet does. One that finds a Kubernetes node of its name takes that for its
/// own, and its providerID stays what it was (kubelet: `tryRegisterWithAPIServer`).
fn register(hand: &Hand<'_>, ec2: &Simulator, instance: &InstanceView, now: Timestamp) {
    let name = &instance.private_dns;
    let region = instance.zone.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    let world = ec2.world();
    let (cpus, memory) =
        world.instance_type(&instance.instance_type).map_or((2, 8192), |it| (it.vcpus, it.memory));
    let resources = json!({"cpu": cpus.to_string(), "memory": format!("{memory}Mi"), "pods": "110",
        "ephemeral-storage": "20Gi"});
    let mut node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name,
            "labels": {"topology.kubernetes.io/zone": instance.zone,
                "topology.kubernetes.io/region": region, "kubernetes.io/hostname": name,
                "node.kubernetes.io/instance-type": instance.instance_type,
                "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}},
        "spec": {"providerID": format!("aws:///{}/{}", instance.zone, instance.id),
            "taints": []},
        "status": {"capacity": resources, "allocatable": resources,
            "addresses": [{"type": "InternalIP", "address": instance.private_ip}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                "lastHeartbeatTime": stamp(now), "lastTransitionTime": stamp(now)}]},
    });
    if is_given(instance, &format!("{DEDICATED}=true")) {
        node["metadata"]["labels"][DEDICATED] = json!("true");
    }
    for (label, value) in labels(instance) {
        node["metadata"]["labels"][label] = json!(value);
    }
    if is_given(instance, &format!("{DEDICATED}=:NoExecute")) {
        node["spec"]["taints"] = json!([{"key": DEDICATED, "effect": "NoExecute"}]);
    }
    let Some(node) = hand.create("nodes", &node) else { return };
    let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}]);
    hand.create(
        "csinodes.storage.k8s.io",
        &json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
            "metadata": {"name": name, "ownerReferences": owner},
            "spec": {"drivers": [{"name": EBS_DRIVER, "nodeID": instance.id,
                "topologyKeys": ["topology.kubernetes.io/zone"], "allocatable": {"count": 26}}]}}),
    );
    hand.create(
        LEASES,
        &json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease", "ownerReferences": owner},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": micro(now)}}),
    );
}

fn renew(hand: &Hand<'_>, seen: &Seen, name: &str) {
    if let Some(lease) = named(&seen.leases, "kube-node-lease", name) {
        hand.merge(LEASES, lease, "", &json!({"spec": {"renewTime": micro(seen.now)}}));
    }
}

fn micro(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// When the kubelet of a Kubernetes node last renewed its Lease.
pub fn renewed(seen: &Seen, node: &Value) -> Option<Timestamp> {
    let lease = named(&seen.leases, "kube-node-lease", text(&node["metadata"]["name"]))?;
    text(&lease["spec"]["renewTime"]).parse().ok()
}
