//! The kubelets: a pod starts once its volumes are attached and what it names is there, ends when it is
//! deleted, and stays as it is while its machine is silent.

use std::collections::{BTreeMap, BTreeSet};

use ec2sim::{InstanceState, InstanceView};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::driver::gib;
use super::due::Due;
use super::hand::{Hand, text};
use super::machines::{Machine, Machines};
use super::seen::{Seen, ebs_volume, instance_of, is_going, named, stamp};
use super::storage::unique_name;
use crate::server::Server;

/// The containers of a pod that run on a machine, whatever the API server says of the pod.
#[derive(Debug)]
struct Running {
    pod: String,
    instance: String,
    boot: String,
    volumes: Vec<String>,
}

/// What runs, and when the pods start or end, by UID.
#[derive(Debug, Default)]
pub struct Kubelets {
    running: BTreeMap<String, Running>,
    starting: BTreeMap<String, Timestamp>,
    ending: BTreeMap<String, Timestamp>,
    addresses: u32,
}

impl Kubelets {
    /// The pod that uses a volume on this instance.
    pub fn user(&self, volume: &str, instance: &str) -> Option<&str> {
        let uses = |it: &&Running| it.instance == instance && it.volumes.iter().any(|used| used == volume);
        self.running.values().find(uses).map(|it| it.pod.as_str())
    }

    /// Containers end with their machine and with a boot; a machine that hangs may go on writing.
    pub fn forget(&mut self, instances: &[InstanceView], machines: &Machines) {
        let states = [InstanceState::Running, InstanceState::Stopping];
        self.running.retain(|_, it| {
            let is_up = instances.iter().any(|view| view.id == it.instance && states.contains(&view.state));
            is_up && machines.boot(&it.instance).is_none_or(|boot| boot == it.boot)
        });
    }

    /// One look. `pause` draws how long a start or an end takes.
    pub fn step(
        &mut self,
        server: &Server,
        seen: &Seen,
        machines: &Machines,
        mut pause: impl FnMut() -> SignedDuration,
        due: &mut Due,
    ) {
        let mut placed: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for pod in &seen.pods {
            placed.entry(text(&pod["spec"]["nodeName"])).or_default().push(pod);
        }
        for node in &seen.nodes {
            let Some(machine) = machines.working(node, seen.now) else { continue };
            let here = placed.get(text(&node["metadata"]["name"])).map_or(&[][..], Vec::as_slice);
            for pod in here {
                if is_going(pod) {
                    self.end(server, seen, pod, &mut pause, due);
                } else {
                    self.start(server, seen, pod, machine, &mut pause, due);
                    grow(server, seen, pod);
                }
            }
            let instance = instance_of(node).unwrap_or_default();
            // What the API server does not have any more is ended.
            let is_known = |uid: &str| seen.pods.iter().any(|pod| pod["metadata"]["uid"] == uid);
            self.running.retain(|uid, it| it.instance != instance || is_known(uid));
            self.report_volumes(server, seen, (node, instance), here);
        }
    }

    /// The volumes that are mounted or about to be: the attach/detach controller leaves them alone meanwhile.
    fn report_volumes(
        &self,
        server: &Server,
        seen: &Seen,
        (node, instance): (&Value, &str),
        here: &[&Value],
    ) {
        let awaited = here.iter().flat_map(|pod| seen.volumes_of(pod));
        let running = self.running.values().filter(|it| it.instance == instance);
        let mounted = running.flat_map(|it| it.volumes.iter().map(String::as_str));
        let names: BTreeSet<String> =
            awaited.filter_map(ebs_volume).chain(mounted).map(unique_name).collect();
        let names: Vec<Value> = names.into_iter().map(Value::String).collect();
        let before = node["status"]["volumesInUse"].as_array().cloned().unwrap_or_default();
        if before != names {
            let patch = json!({"status": {"volumesInUse": names}});
            Hand::of(server, "kubelet").merge("nodes", node, "/status", &patch);
        }
    }

    fn end(
        &mut self,
        server: &Server,
        seen: &Seen,
        pod: &Value,
        pause: &mut impl FnMut() -> SignedDuration,
        due: &mut Due,
    ) {
        // At grace 0 the kubelet's last word was said already, and only a finalizer keeps the object.
        if pod["metadata"]["deletionGracePeriodSeconds"] == 0 {
            return;
        }
        let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(30);
        let takes = pause().min(SignedDuration::from_secs(grace));
        let at = *self.ending.entry(text(&pod["metadata"]["uid"]).to_owned()).or_insert(seen.now + takes);
        if due.passed(at, seen.now) {
            self.running.remove(text(&pod["metadata"]["uid"]));
            Hand::of(server, "kubelet").delete("pods", pod, &json!({"gracePeriodSeconds": 0}));
        }
    }

    fn start(
        &mut self,
        server: &Server,
        seen: &Seen,
        pod: &Value,
        machine: &Machine,
        pause: &mut impl FnMut() -> SignedDuration,
        due: &mut Due,
    ) {
        let uid = text(&pod["metadata"]["uid"]);
        let id = format!("rig://{}/{uid}", machine.boot);
        let before = &pod["status"]["containerStatuses"][0];
        let is_running = before["containerID"] == id.as_str();
        if is_running || !has_volumes(seen, pod) || !has_references(server, pod) {
            return;
        }
        let key = format!("{uid}/{}", machine.boot);
        let at = *self.starting.entry(key).or_insert_with(|| seen.now + pause());
        if !due.passed(at, seen.now) {
            return;
        }
        if let Some(image) = image_with(pod, NO_IMAGE) {
            return wait_for_image(server, pod, image);
        }
        self.addresses += 1;
        let [_, second, third, fourth] = self.addresses.to_be_bytes();
        let restarts = before["restartCount"].as_i64().unwrap_or_default()
            + i64::from(before["containerID"].is_string());
        let is_ready = image_with(pod, NEVER_READY).is_none();
        let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
        let statuses: Vec<Value> = containers
            .map(|container| {
                json!({"name": container["name"], "image": container["image"],
                    "imageID": container["image"],
                    "containerID": id, "ready": is_ready, "started": true, "restartCount": restarts,
                    "state": {"running": {"startedAt": stamp(seen.now)}}})
            })
            .collect();
        let now = stamp(seen.now);
        let is = |(kind, holds): (&str, bool)| json!({"type": kind, "status": if holds { "True" } else { "False" }, "lastTransitionTime": now});
        let all = [
            ("PodScheduled", true),
            ("Initialized", true),
            ("ContainersReady", is_ready),
            ("Ready", is_ready),
        ];
        let conditions: Vec<Value> = all.map(is).to_vec();
        let status = json!({"metadata": {"uid": uid}, "status": {"phase": "Running",
            "conditions": conditions, "containerStatuses": statuses, "startTime": now,
            "podIP": format!("10.{}.{third}.{fourth}", 128 + second)}});
        let volumes = seen.volumes_of(pod).filter_map(ebs_volume).map(str::to_owned).collect();
        let name = text(&pod["metadata"]["name"]).to_owned();
        let (instance, boot) = (machine.instance.clone(), machine.boot.clone());
        self.running.insert(uid.to_owned(), Running { pod: name, instance, boot, volumes });
        Hand::of(server, "kubelet").merge("pods", pod, "/status", &status);
    }
}

/// In the name of an image that no registry has.
const NO_IMAGE: &str = "does-not-exist";

/// In the name of an image whose program runs, and never accepts connections.
const NEVER_READY: &str = "never-ready";

/// The image of a container that has this in its name.
fn image_with<'a>(pod: &'a Value, part: &str) -> Option<&'a str> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    containers.map(|it| text(&it["image"])).find(|image| image.contains(part))
}

fn wait_for_image(server: &Server, pod: &Value, image: &str) {
    let waiting =
        json!({"waiting": {"reason": "ErrImagePull", "message": format!("image {image} not found")}});
    if pod["status"]["containerStatuses"][0]["state"] != waiting {
        let container = json!({"name": pod["spec"]["containers"][0]["name"], "image": image, "imageID": "",
            "ready": false, "restartCount": 0, "state": waiting});
        let status = json!({"metadata": {"uid": pod["metadata"]["uid"]},
            "status": {"containerStatuses": [container]}});
        Hand::of(server, "kubelet").merge("pods", pod, "/status", &status);
    }
}

/// Whether every volume of the pod is attached to its Kubernetes node.
fn has_volumes(seen: &Seen, pod: &Value) -> bool {
    let is_bound = seen.claims_of(pod).all(|claim| claim.is_some_and(|it| it["status"]["phase"] == "Bound"));
    let is_attached = |volume: &Value| {
        seen.attachments.iter().any(|it| {
            it["spec"]["source"]["persistentVolumeName"] == volume["metadata"]["name"]
                && it["spec"]["nodeName"] == pod["spec"]["nodeName"]
                && it["status"]["attached"] == true
                && !is_going(it)
        })
    };
    is_bound && seen.volumes_of(pod).all(is_attached)
}

/// Whether the Secrets and ConfigMaps that the pod mounts are there, without those that are optional.
fn has_references(server: &Server, pod: &Value) -> bool {
    let namespace = text(&pod["metadata"]["namespace"]);
    let (secrets, maps) = (server.objects("secrets"), server.objects("configmaps"));
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let is_there = |volume: &Value| {
        let secret = volume["secret"]["secretName"].as_str().filter(|_| volume["secret"]["optional"] != true);
        let map = volume["configMap"]["name"].as_str();
        secret.is_none_or(|name| named(&secrets, namespace, name).is_some())
            && map.is_none_or(|name| named(&maps, namespace, name).is_some())
    };
    volumes.into_iter().all(is_there)
}

/// While the pod runs, the file system follows the volume.
fn grow(server: &Server, seen: &Seen, pod: &Value) {
    if pod["status"]["phase"] != "Running" {
        return;
    }
    for claim in seen.claims_of(pod).flatten() {
        let Some(volume) = seen.volume(text(&claim["spec"]["volumeName"])) else { continue };
        let size = &volume["spec"]["capacity"]["storage"];
        if gib(size) > gib(&claim["status"]["capacity"]["storage"]) {
            let status = json!({"status": {"capacity": {"storage": size}, "conditions": null}});
            Hand::of(server, "kubelet").merge("persistentvolumeclaims", claim, "/status", &status);
        }
    }
}
