//! The EBS CSI driver: its attacher and its resizer, which make EC2 follow what Kubernetes wants.

use ec2sim::{AttachmentState, InstanceState, InstanceView, ModificationState, Simulator};
use serde_json::{Value, json};

use super::due::Due;
use super::hand::{Hand, text};
use super::names::ATTACHMENTS;
use super::seen::{Seen, ebs_volume, instance_of, is_going, stamp, without};
use crate::server::Server;

/// The finalizer that the external-attacher of this driver uses.
const FINALIZER: &str = "external-attacher/ebs-csi-aws-com";

/// Where the attacher notes the instance, so that it can detach after the Kubernetes node is gone.
const NODE_ID: &str = "csi.alpha.kubernetes.io/node-id";

/// The access key id of the driver.
pub const CALLER: &str = "csi-driver";

/// One look of the attacher. The volumes that it detaches, each with its instance.
pub fn attach(
    server: &Server,
    ec2: &Simulator,
    seen: &Seen,
    instances: &[InstanceView],
    due: &mut Due,
) -> Vec<(String, String)> {
    let mut detached = Vec::new();
    let hand = Hand::of(server, "external-attacher");
    for attachment in &seen.attachments {
        let volume = seen.volume(text(&attachment["spec"]["source"]["persistentVolumeName"]));
        let noted = attachment["metadata"]["annotations"][NODE_ID].as_str();
        let node = seen.node(text(&attachment["spec"]["nodeName"]));
        let instance = noted.or_else(|| node.and_then(instance_of));
        if is_going(attachment) {
            // What another one holds has nothing of the attacher's left.
            let Some(finalizers) = without(attachment, FINALIZER) else { continue };
            if is_detached(ec2, volume, instance, instances, &mut detached) {
                hand.merge(ATTACHMENTS, attachment, "", &json!({"metadata": {"finalizers": finalizers}}));
            } else {
                due.soon(seen.now);
            }
            continue;
        }
        let (Some(volume), Some(instance)) = (volume, instance) else { continue };
        if attachment["status"]["attached"] == true || !is_marked(&hand, attachment, volume, instance) {
            continue;
        }
        if is_attached(ec2, volume, instance, instances) {
            hand.merge(ATTACHMENTS, attachment, "/status", &json!({"status": {"attached": true}}));
        } else {
            due.soon(seen.now);
        }
    }
    for volume in seen.volumes.iter().filter(|it| is_going(it)) {
        let is_named = seen
            .attachments
            .iter()
            .any(|it| it["spec"]["source"]["persistentVolumeName"] == volume["metadata"]["name"]);
        if let Some(finalizers) = without(volume, FINALIZER).filter(|_| !is_named) {
            hand.merge("persistentvolumes", volume, "", &json!({"metadata": {"finalizers": finalizers}}));
        }
    }
    detached
}

/// Puts the attacher's finalizers on; true once they are there.
fn is_marked(hand: &Hand<'_>, attachment: &Value, volume: &Value, instance: &str) -> bool {
    let has = |object: &Value| without(object, FINALIZER).is_some();
    let with = |object: &Value| {
        let mut all = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        all.push(json!(FINALIZER));
        json!({"metadata": {"resourceVersion": object["metadata"]["resourceVersion"], "finalizers": all}})
    };
    if !has(volume) {
        hand.merge("persistentvolumes", volume, "", &with(volume));
    }
    if !has(attachment) {
        let mut patch = with(attachment);
        patch["metadata"]["annotations"] = json!({NODE_ID: instance});
        hand.merge(ATTACHMENTS, attachment, "", &patch);
    }
    has(volume) && has(attachment)
}

fn is_attached(ec2: &Simulator, volume: &Value, instance: &str, instances: &[InstanceView]) -> bool {
    let Some(id) = ebs_volume(volume) else { return false };
    let Some(view) = ec2.volume(id) else { return false };
    if let Some(held) = view.attachment {
        return held.instance_id == instance && held.state == AttachmentState::Attached;
    }
    let used = instances.iter().find(|it| it.id == instance).map(|it| &it.attachments);
    let names = ('a'..='z').map(|letter| format!("/dev/xvdb{letter}"));
    let is_free = |name: &String| used.is_none_or(|used| used.iter().all(|it| it.device != *name));
    if let Some(device) = names.into_iter().find(is_free) {
        call(ec2, "AttachVolume", &[("VolumeId", id), ("InstanceId", instance), ("Device", &device)]);
    }
    false
}

fn is_detached(
    ec2: &Simulator,
    volume: Option<&Value>,
    instance: Option<&str>,
    instances: &[InstanceView],
    detached: &mut Vec<(String, String)>,
) -> bool {
    let (Some(id), Some(instance)) = (volume.and_then(ebs_volume), instance) else { return true };
    let held = ec2.volume(id).and_then(|view| view.attachment).filter(|held| held.instance_id == instance);
    let Some(held) = held else { return true };
    // A machine that ends gives its volumes back by itself, and EC2 refuses to detach them meanwhile.
    let is_ending = instances.iter().any(|it| {
        it.id == instance && [InstanceState::ShuttingDown, InstanceState::Terminated].contains(&it.state)
    });
    let may_detach = held.state != AttachmentState::Detaching && !is_ending;
    if may_detach && call(ec2, "DetachVolume", &[("VolumeId", id), ("InstanceId", instance)]) {
        detached.push((id.to_owned(), instance.to_owned()));
    }
    false
}

fn call(ec2: &Simulator, action: &str, params: &[(&str, &str)]) -> bool {
    let all: Vec<(&str, &str)> = [("Action", action)].into_iter().chain(params.iter().copied()).collect();
    ec2.call(CALLER, &all).is_ok()
}

/// One look of the resizer: a claim that asks for more than its PersistentVolume has.
pub fn resize(server: &Server, ec2: &Simulator, seen: &Seen, due: &mut Due) {
    let hand = Hand::of(server, "external-resizer");
    for claim in seen.claims.iter().filter(|claim| claim["status"]["phase"] == "Bound" && !is_going(claim)) {
        let wanted = gib(&claim["spec"]["resources"]["requests"]["storage"]);
        let Some(volume) = seen.volume(text(&claim["spec"]["volumeName"])) else { continue };
        if wanted <= gib(&volume["spec"]["capacity"]["storage"]) {
            continue;
        }
        let Some(view) = ebs_volume(volume).and_then(|id| ec2.volume(id)) else { continue };
        due.soon(seen.now);
        if i64::from(view.shape.size) < wanted {
            call(ec2, "ModifyVolume", &[("VolumeId", &view.id), ("Size", &wanted.to_string())]);
            continue;
        }
        let is_usable = view.modifications.last().is_none_or(|it| it.state != ModificationState::Modifying);
        if is_usable {
            let size = json!({"spec": {"capacity": {"storage": format!("{}Gi", view.shape.size)}}});
            hand.merge("persistentvolumes", volume, "", &size);
            let status = json!({"status": {"conditions": [{"type": "FileSystemResizePending",
                "status": "True", "lastTransitionTime": stamp(seen.now)}]}});
            hand.merge("persistentvolumeclaims", claim, "/status", &status);
        }
    }
}

/// A size that is written in GiB or TiB.
pub fn gib(quantity: &Value) -> i64 {
    let written = text(quantity);
    let number = |unit: &str| written.strip_suffix(unit).and_then(|it| it.parse::<i64>().ok());
    number("Gi").or_else(|| number("Ti").map(|it| it * 1024)).unwrap_or_default()
}
