//! Checks of the volume with the data, in Kubernetes and in EC2. Pure.

use kube::ResourceExt;

use crate::adopt::found::Found;
use crate::adopt::render::file_system;
use crate::adopt::wanted::Wanted;
use crate::cloud::{Attachment, ModificationState};
use crate::command::finding::Finding;
use crate::controller::volume::expansion::{self, NotExpandable};

pub(super) fn claims(found: &Found, _: &Wanted) -> Vec<Finding> {
    let Some(pod) = &found.pod else { return Vec::new() };
    let object = format!("Pod {}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    let mut findings = Vec::new();
    if found.data().is_none() {
        let message = "none of its claims is an EBS volume: Freehold cannot keep its data";
        findings.push(Finding::blocker(&object, message).way_out("create a new Database and copy the data"));
    }
    if found.claims.len() > 1 {
        let names: Vec<&str> = found.claims.iter().map(|claim| claim.name.as_str()).collect();
        let message = format!("it has several claims ({}), and a Database has one volume", names.join(", "));
        findings.push(Finding::blocker(&object, message).way_out("create a new Database and copy the data"));
    }
    findings
}

pub(super) fn persistent_volume(found: &Found, _: &Wanted) -> Vec<Finding> {
    let Some(volume) = found.data().and_then(|claim| claim.persistent_volume.as_ref()) else {
        return Vec::new();
    };
    let object = format!("PersistentVolume {}", volume.name_any());
    let modes = volume.spec.iter().flat_map(|spec| spec.access_modes.iter().flatten());
    let mut findings = Vec::new();
    for mode in modes {
        match mode.as_str() {
            "ReadWriteOncePod" => {}
            "ReadWriteOnce" => findings.push(Finding::note(
                &object,
                "its access mode is ReadWriteOnce, and stays: a second pod on the machine could mount it",
            )),
            other => findings.push(Finding::warning(
                &object,
                format!("its access mode is {other}, and stays: other pods could mount it"),
            )),
        }
    }
    if file_system(found).is_none() {
        let name = found.file_system().unwrap_or_else(|| "unknown".to_owned());
        let message = format!("its file system is {name}, and Freehold grows ext4 and xfs only");
        findings.push(Finding::blocker(&object, message).way_out("create a new Database and copy the data"));
    }
    findings
}

pub(super) fn retention(found: &Found, _: &Wanted) -> Vec<Finding> {
    let Some(data) = found.data() else { return Vec::new() };
    let mut findings = Vec::new();
    let spec = data.persistent_volume.as_ref().and_then(|volume| volume.spec.as_ref());
    if spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref()) == Some("Delete") {
        let name = data.persistent_volume.as_ref().map(ResourceExt::name_any).unwrap_or_default();
        let message = "its reclaim policy is Delete; Freehold sets it to Retain first, so that no deleted \
            claim deletes the data";
        findings.push(Finding::note(format!("PersistentVolume {name}"), message));
    }
    let claim = data.claim.as_ref();
    let cause = claim.and_then(|claim| expansion::refused(claim, found.storage_class.as_ref()));
    findings.extend(
        cause.map(|cause| growth_refused(&claim.map(ResourceExt::name_any).unwrap_or_default(), cause)),
    );
    findings
}

/// What Kubernetes would say to a larger size later.
fn growth_refused(claim: &str, cause: NotExpandable) -> Finding {
    let is_refused = |why: &str| format!("{why}: a larger spec.storage.size is refused");
    match cause {
        NotExpandable::WithoutClass => {
            Finding::warning(format!("claim {claim}"), is_refused("it names no StorageClass"))
                .way_out("docs/adopt.md, \"A claim that cannot grow\"")
        }
        NotExpandable::ClassNotFound(name) => {
            Finding::warning(format!("StorageClass {name}"), is_refused("it is not there"))
                .way_out("create it again, with allowVolumeExpansion: true")
        }
        NotExpandable::ClassFixed(name) => {
            let message = is_refused("it does not set allowVolumeExpansion");
            Finding::warning(format!("StorageClass {name}"), message).way_out(expansion::permitted_by(&name))
        }
    }
}

pub(super) fn volume(found: &Found, _: &Wanted) -> Vec<Finding> {
    let Some(id) = found.volume_id() else { return Vec::new() };
    let object = format!("EBS volume {id}");
    let Some(volume) = &found.volume else {
        let way_out =
            "check the account and the Region of your AWS credentials (aws sts get-caller-identity)";
        return vec![
            Finding::blocker(object, "EC2 does not list it in this account and Region").way_out(way_out),
        ];
    };
    let mut findings = Vec::new();
    if volume.multi_attach {
        let message = "several instances may attach it at once: Freehold could not keep a second writer away";
        let way_out =
            format!("aws ec2 modify-volume --volume-id {id} --no-multi-attach-enabled (io2, while detached)");
        findings.push(Finding::blocker(&object, message).way_out(way_out));
    }
    if !volume.encrypted {
        findings.push(Finding::note(
            &object,
            "it is not encrypted, and stays so; volumes that Freehold creates are",
        ));
    }
    match found.modification.as_ref().map(|it| it.state) {
        Some(ModificationState::Modifying) => findings.push(
            Finding::warning(
                &object,
                "a modification of it is in progress: its size may differ from what is shown",
            )
            .way_out("wait, and run this again"),
        ),
        Some(ModificationState::Optimizing) => {
            findings.push(Finding::note(&object, "EC2 still optimizes it: the next growth waits for that"));
        }
        Some(ModificationState::Completed | ModificationState::Failed) | None => {}
    }
    findings
}

pub(super) fn attachments(found: &Found, _: &Wanted) -> Vec<Finding> {
    let (Some(volume), Some(instance)) = (&found.volume, found.instance_id()) else { return Vec::new() };
    let object = format!("EBS volume {}", volume.id);
    let (here, elsewhere): (Vec<&Attachment>, Vec<&Attachment>) =
        volume.attachments.iter().partition(|attachment| attachment.instance == instance);
    let mut findings = Vec::new();
    let [attachment] = here.as_slice() else {
        let message = format!("it is not attached to {instance}, the instance of the pod");
        return vec![
            Finding::blocker(object, message).way_out("wait until the pod is ready, and run this again"),
        ];
    };
    if let Some(other) = elsewhere.first() {
        let message = format!("it is attached to {} as well", other.instance);
        findings.push(Finding::blocker(&object, message).way_out("detach it there"));
    }
    if attachment.delete_on_termination {
        let device = &attachment.device;
        findings.push(
            Finding::blocker(&object, format!("EC2 deletes it when {instance} is terminated")).way_out(
                format!(
                    "aws ec2 modify-instance-attribute --instance-id {instance} --block-device-mappings \
                    '[{{\"DeviceName\":\"{device}\",\"Ebs\":{{\"DeleteOnTermination\":false}}}}]'"
                ),
            ),
        );
    }
    findings
}
