//! The CSI attacher: makes EC2 follow the `VolumeAttachments` of this site's Nodes, over HTTP.
//!
//! It keeps the guarantees of the real external-attacher: its finalizers are on the `VolumeAttachment` and
//! the PV before it calls, `attached` is true only after EC2 says so, and a `VolumeAttachment` goes only
//! after EC2 shows the volume detached.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_ec2::types::{InstanceStateName, Volume, VolumeAttachmentState};
use ec2sim::AttachmentState;
use k8s_openapi::api::core::v1::{Node, PersistentVolume};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use kube_runtime::reflector::Store;
use serde_json::{Value, json};

use super::error::Error;
use crate::account::context::Context;
use crate::account::{cloud, membership};
use crate::base::names::EBS_DRIVER;
use crate::base::persistent_volume::ebs_volume;
use crate::base::watching::Watching;

/// The finalizer that the external-attacher of this driver uses on `VolumeAttachments` and PVs.
pub const FINALIZER: &str = "external-attacher/ebs-csi-aws-com";

/// Where the attacher notes the instance, so that it can detach after the Node is gone.
const NODE_ID: &str = "csi.alpha.kubernetes.io/node-id";

/// How long until a look without any change.
const RESYNC: Duration = Duration::from_secs(2);
/// The first wait after a failure; it doubles.
const FIRST_RETRY: Duration = Duration::from_millis(250);
/// The longest wait after a failure.
const LAST_RETRY: Duration = Duration::from_secs(10);
/// How long EC2 is given to change a volume before it is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// Runs until the site stops.
pub async fn run(context: Context) {
    let watching = Watching::new(context.tasks.clone(), context.stop.clone());
    let attachments = watching.store(Api::<VolumeAttachment>::all(context.client.clone()));
    let volumes = watching.store(Api::<PersistentVolume>::all(context.client.clone()));
    let nodes = watching.store(Api::<Node>::all(context.client.clone()));
    let busy = Arc::new(Mutex::new(HashSet::new()));
    let waker = watching.waker();
    while !context.stop.is_cancelled() {
        for attachment in attachments.state().into_iter().filter(|attachment| needs_work(attachment)) {
            let Some(instance) = instance_of(&context, &attachment, &nodes) else { continue };
            let name = attachment.name_any();
            if !busy.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone()) {
                continue;
            }
            let (context, busy, waker) = (context.clone(), busy.clone(), waker.clone());
            context.tasks.clone().spawn(async move {
                tokio::select! {
                    () = settle(&context, &name, &instance) => {}
                    () = context.stop.cancelled() => {}
                }
                busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
                waker.notify_one();
            });
        }
        for volume in volumes.state() {
            release(&context, &volume, &attachments).await;
        }
        tokio::select! {
            () = watching.changed(RESYNC) => {}
            () = context.stop.cancelled() => {}
        }
    }
}

fn is_attached(attachment: &VolumeAttachment) -> bool {
    attachment.status.as_ref().is_some_and(|status| status.attached)
}

fn needs_work(attachment: &VolumeAttachment) -> bool {
    let is_ours = attachment.spec.attacher == EBS_DRIVER;
    let is_going = attachment.metadata.deletion_timestamp.is_some();
    is_ours && if is_going { has_finalizer(attachment.finalizers()) } else { !is_attached(attachment) }
}

fn has_finalizer(finalizers: &[String]) -> bool {
    finalizers.iter().any(|finalizer| finalizer == FINALIZER)
}

/// The instance of this site that the `VolumeAttachment` is about: as noted, or by its Node.
fn instance_of(context: &Context, attachment: &VolumeAttachment, nodes: &Store<Node>) -> Option<String> {
    let instances = context.simulator.instances();
    let is_ours = |id: &str| instances.iter().any(|instance| instance.id == id);
    if let Some(id) = attachment.annotations().get(NODE_ID) {
        return Some(id.clone()).filter(|id| is_ours(id));
    }
    let node = nodes.find(|node| node.name_any() == attachment.spec.node_name)?;
    membership::instance_id(&node).filter(|id| is_ours(id)).map(str::to_owned)
}

/// Brings one `VolumeAttachment` to where it should be, trying again until it is or is gone.
async fn settle(context: &Context, name: &str, instance: &str) {
    let attachments = Api::<VolumeAttachment>::all(context.client.clone());
    let mut retry = FIRST_RETRY;
    loop {
        let attachment = match attachments.get_opt(name).await {
            Ok(Some(attachment)) if needs_work(&attachment) => attachment,
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(name, %error, "could not read a VolumeAttachment");
                tokio::time::sleep(retry).await;
                continue;
            }
        };
        let is_going = attachment.metadata.deletion_timestamp.is_some();
        let done = if is_going {
            detach(context, &attachments, &attachment, instance).await
        } else {
            attach(context, &attachments, &attachment, instance).await
        };
        let Err(error) = done else { return };
        tracing::info!(name, %error, "a volume is not yet where it should be");
        let field = if is_going { "detachError" } else { "attachError" };
        let report = json!({"message": error.to_string(), "time": Timestamp::now()});
        let status = json!({"status": {"attached": is_attached(&attachment), field: report}});
        let _ = attachments.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await;
        tokio::time::sleep(retry).await;
        retry = (retry * 2).min(LAST_RETRY);
    }
}

async fn persistent_volume(
    context: &Context,
    attachment: &VolumeAttachment,
) -> Result<Option<PersistentVolume>, Error> {
    let Some(name) = &attachment.spec.source.persistent_volume_name else { return Ok(None) };
    Ok(Api::<PersistentVolume>::all(context.client.clone()).get_opt(name).await?)
}

async fn attach(
    context: &Context,
    attachments: &Api<VolumeAttachment>,
    attachment: &VolumeAttachment,
    instance: &str,
) -> Result<(), Error> {
    let source = persistent_volume(context, attachment).await?;
    let Some((source, id)) = source.and_then(|it| ebs_volume(&it).map(str::to_owned).map(|id| (it, id)))
    else {
        return Err(Error::State("the PersistentVolume is not there or not of this driver".to_owned()));
    };
    add_finalizer(context, attachments, attachment, &source, instance).await?;

    loop {
        let before = truth(context, &id);
        let volume = cloud::volume(&context.cloud, &id)
            .await?
            .ok_or_else(|| Error::State(format!("no volume {id} in EC2")))?;
        match attachment_of(&volume) {
            Some((holder, VolumeAttachmentState::Attached, device)) if holder == instance => {
                let status = json!({"status": {"attached": true,
                "attachmentMetadata": {"devicePath": device}, "attachError": null}});
                attachments
                    .patch_status(&attachment.name_any(), &PatchParams::default(), &Patch::Merge(status))
                    .await?;
                return Ok(());
            }
            Some((holder, VolumeAttachmentState::Attaching, _)) if holder == instance => {}
            Some((holder, state, _)) => {
                return Err(Error::State(format!("volume {id} is {} at {holder}", state.as_str())));
            }
            None => {
                let device = free_device(context, instance).await?;
                let doing = format!("attach volume {id} to {instance} as {device}");
                let request =
                    context.cloud.attach_volume().volume_id(&id).instance_id(instance).device(device);
                request.send().await.map_err(cloud::failed(doing))?;
            }
        }
        until_changed(context, &id, before).await;
    }
}

async fn detach(
    context: &Context,
    attachments: &Api<VolumeAttachment>,
    attachment: &VolumeAttachment,
    instance: &str,
) -> Result<(), Error> {
    // A PV that is gone cannot say which volume it was; the real attacher has the finalizer on the PV against
    // that, as this one has.
    if let Some(id) = persistent_volume(context, attachment).await?.as_ref().and_then(ebs_volume) {
        loop {
            let before = truth(context, id);
            let volume = cloud::volume(&context.cloud, id).await?;
            match volume.as_ref().and_then(attachment_of) {
                Some((holder, state, _)) if holder == instance => {
                    let is_leaving = state == VolumeAttachmentState::Detaching;
                    if !is_leaving && !is_ending(context, instance).await? {
                        let doing = format!("detach volume {id} from {instance}");
                        let request = context.cloud.detach_volume().volume_id(id).instance_id(instance);
                        request.send().await.map_err(cloud::failed(doing))?;
                    }
                }
                // Gone, free, or at another machine already.
                None | Some(_) => break,
            }
            until_changed(context, id, before).await;
        }
    }
    let finalizers: Vec<&String> =
        attachment.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER).collect();
    let version = attachments.get(&attachment.name_any()).await?.resource_version();
    let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
    attachments.patch(&attachment.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// The instance that EC2 shows the volume at, the state, and the device.
fn attachment_of(volume: &Volume) -> Option<(String, VolumeAttachmentState, String)> {
    let attachment = volume.attachments().first()?;
    let state = attachment.state().filter(|state| **state != VolumeAttachmentState::Detached)?;
    Some((
        attachment.instance_id()?.to_owned(),
        state.clone(),
        attachment.device().unwrap_or_default().to_owned(),
    ))
}

/// A machine that is shutting down or gone gives its volumes back by itself, and EC2 refuses to detach them
/// meanwhile.
async fn is_ending(context: &Context, instance: &str) -> Result<bool, Error> {
    let instance = cloud::instance(&context.cloud, instance).await?;
    let state = instance.and_then(|instance| instance.state?.name);
    Ok(state.is_none_or(|state| {
        [InstanceStateName::ShuttingDown, InstanceStateName::Terminated].contains(&state)
    }))
}

/// The first device name that the instance does not use, of those that EC2 recommends for data volumes of HVM
/// instances.
async fn free_device(context: &Context, instance: &str) -> Result<String, Error> {
    let found = cloud::instance(&context.cloud, instance).await?;
    let found = found.ok_or_else(|| Error::State(format!("no instance {instance} in EC2")))?;
    let used: HashSet<&str> =
        found.block_device_mappings().iter().filter_map(|mapping| mapping.device_name()).collect();
    let names =
        ('b'..='d').flat_map(|first| ('a'..='z').map(move |second| format!("/dev/xvd{first}{second}")));
    let free = names.into_iter().find(|name| !used.contains(name.as_str()));
    free.ok_or_else(|| Error::State(format!("instance {instance} has no free device name")))
}

/// The state of the volume's attachment, whatever EC2 shows of it; none if there is none.
fn truth(context: &Context, volume: &str) -> Option<AttachmentState> {
    Some(context.simulator.volume(volume)?.attachment?.state)
}

/// Waits until the volume's attachment differs in truth from what it was before EC2 was asked, so that EC2 is
/// asked when there is something new, and not ten times a second. Before, since what takes no time has
/// happened by now.
async fn until_changed(context: &Context, volume: &str, before: Option<AttachmentState>) {
    let mut changes = context.simulator.changes();
    let waiting = async { while truth(context, volume) == before && changes.changed().await.is_ok() {} };
    let _ = tokio::time::timeout(ASK_AGAIN, waiting).await;
}

async fn add_finalizer(
    context: &Context,
    attachments: &Api<VolumeAttachment>,
    attachment: &VolumeAttachment,
    source: &PersistentVolume,
    instance: &str,
) -> Result<(), Error> {
    let with_ours = |finalizers: &[String]| -> Option<Value> {
        (!has_finalizer(finalizers))
            .then(|| json!(finalizers.iter().map(String::as_str).chain([FINALIZER]).collect::<Vec<_>>()))
    };
    if let Some(finalizers) = with_ours(source.finalizers()) {
        let patch = json!({"metadata": {"resourceVersion": source.resource_version(),
        "finalizers": finalizers}});
        let volumes = Api::<PersistentVolume>::all(context.client.clone());
        volumes.patch(&source.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    if let Some(finalizers) = with_ours(attachment.finalizers()) {
        let patch = json!({"metadata": {
            "resourceVersion": attachment.resource_version(), "finalizers": finalizers,
            "annotations": {NODE_ID: instance},
        }});
        attachments.patch(&attachment.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    Ok(())
}

/// Takes the finalizer from a PV of this site that is being deleted once no `VolumeAttachment` names it.
async fn release(context: &Context, volume: &PersistentVolume, attachments: &Store<VolumeAttachment>) {
    let name = volume.name_any();
    let is_named = || {
        attachments
            .find(|attachment| attachment.spec.source.persistent_volume_name.as_ref() == Some(&name))
            .is_some()
    };
    let is_going = volume.metadata.deletion_timestamp.is_some() && has_finalizer(volume.finalizers());
    // A volume that EC2 does not show any more belongs to no site: the first one that sees it releases it.
    if !is_going || is_named() {
        return;
    }
    let finalizers: Vec<&String> =
        volume.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER).collect();
    let patch = json!({"metadata": {"resourceVersion": volume.resource_version(), "finalizers": finalizers}});
    let volumes = Api::<PersistentVolume>::all(context.client.clone());
    if let Err(error) = volumes.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
        tracing::debug!(name, %error, "could not release a PersistentVolume");
    }
}
