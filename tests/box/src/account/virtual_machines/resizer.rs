//! The CSI resizer: makes EC2 and the PV follow a PVC that asks for more. The file system's part is the
//! kubelet's.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_ec2::types::VolumeModificationState;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::error::Error;
use crate::account::cloud;
use crate::account::context::Context;
use crate::base::persistent_volume::ebs_volume;
use crate::base::quantity;
use crate::base::watching::Watching;

/// How long until a look without any change, and after a failure.
const RESYNC: Duration = Duration::from_secs(2);
/// How long EC2 is given to make a new size usable before this round ends; the next one goes on.
const USABLE_LIMIT: Duration = Duration::from_secs(30);

/// A PVC that asks for more than its PV has.
struct Growth {
    claim: Arc<PersistentVolumeClaim>,
    volume: Arc<PersistentVolume>,
    id: String,
    wanted: u64,
}

/// Runs until the site stops.
pub async fn run(context: Context) {
    let watching = Watching::new(context.tasks.clone(), context.stop.clone());
    let claims = watching.store(Api::<PersistentVolumeClaim>::all(context.client.clone()));
    let volumes = watching.store(Api::<PersistentVolume>::all(context.client.clone()));
    while !context.stop.is_cancelled() {
        let volumes = volumes.state();
        let growths: Vec<Growth> =
            claims.state().into_iter().filter_map(|claim| growth(claim, &volumes)).collect();
        for growth in growths.iter().filter(|growth| context.simulator.volume(&growth.id).is_some()) {
            let grown = tokio::select! {
                grown = grow(&context, growth) => grown,
                () = context.stop.cancelled() => return,
            };
            if let Err(error) = grown {
                tracing::info!(claim = growth.claim.name_any(), %error, "a volume could not be grown yet");
            }
        }
        tokio::select! {
            () = watching.changed(RESYNC) => {}
            () = context.stop.cancelled() => {}
        }
    }
}

fn growth(claim: Arc<PersistentVolumeClaim>, volumes: &[Arc<PersistentVolume>]) -> Option<Growth> {
    let spec = claim.spec.as_ref()?;
    let name = spec.volume_name.as_deref()?;
    let volume = volumes.iter().find(|volume| volume.name_any() == name)?.clone();
    let has_bound = claim.status.as_ref()?.phase.as_deref() == Some("Bound");
    let source = volume.spec.as_ref()?;
    let id = ebs_volume(&volume)?.to_owned();
    let wanted = quantity::bytes(spec.resources.as_ref()?.requests.as_ref()?.get("storage")?)?;
    let capacity = quantity::bytes(source.capacity.as_ref()?.get("storage")?)?;
    (has_bound && wanted > capacity).then_some(Growth { claim, volume, id, wanted })
}

/// As the EBS driver does it: ask for the size only if the volume has less, wait until it is usable, then
/// tell the PV the true size.
async fn grow(context: &Context, growth: &Growth) -> Result<(), Error> {
    let id = &growth.id;
    let wanted = i32::try_from(quantity::gib(growth.wanted)).unwrap_or(i32::MAX);
    let volume = cloud::volume(&context.cloud, id)
        .await?
        .ok_or_else(|| Error::State(format!("no volume {id} in EC2")))?;
    let size = volume.size().unwrap_or_default();
    if size < wanted {
        let request = context.cloud.modify_volume().volume_id(id).size(wanted);
        request.send().await.map_err(cloud::failed(format!("grow volume {id} to {wanted} GiB")))?;
    }
    until_usable(context, id).await?;

    let actual = size.max(wanted);
    let volumes = Api::<PersistentVolume>::all(context.client.clone());
    let patch = json!({
        "metadata": {"resourceVersion": growth.volume.resource_version()},
        "spec": {"capacity": {"storage": format!("{actual}Gi")}},
    });
    volumes.patch(&growth.volume.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    let claims = Api::<PersistentVolumeClaim>::namespaced(
        context.client.clone(),
        &growth.claim.namespace().unwrap_or_default(),
    );
    // With the version that was seen: when the kubelet was faster, there is nothing pending any more.
    let status = json!({"metadata": {"resourceVersion": growth.claim.resource_version()},
    "status": {"conditions": [{
        "type": "FileSystemResizePending", "status": "True", "lastTransitionTime": Timestamp::now(),
        "message": "Waiting for the kubelet to grow the file system of the volume on the node.",
    }]}});
    match claims.patch_status(&growth.claim.name_any(), &PatchParams::default(), &Patch::Merge(status)).await
    {
        Err(kube::Error::Api(status)) if status.is_conflict() => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

/// Waits until no modification of the volume is in the state `modifying`: from `optimizing` on the new size
/// can be used.
async fn until_usable(context: &Context, id: &str) -> Result<(), Error> {
    let mut changes = context.simulator.changes();
    let started = tokio::time::Instant::now();
    loop {
        let request = context.cloud.describe_volumes_modifications().volume_ids(id);
        let state = match request.send().await.map_err(cloud::failed(format!(
            "describe the modifications of \
            volume {id}"
        ))) {
            Ok(output) => {
                output.volumes_modifications().first().and_then(|last| last.modification_state().cloned())
            }
            Err(error) if error.code == "InvalidVolumeModification.NotFound" => None,
            Err(error) => return Err(error.into()),
        };
        if state == Some(VolumeModificationState::Failed) {
            return Err(Error::State(format!("the modification of volume {id} failed")));
        }
        if state != Some(VolumeModificationState::Modifying) {
            return Ok(());
        }
        if started.elapsed() > USABLE_LIMIT {
            return Err(Error::State(format!("volume {id} is still being modified")));
        }
        let _ = tokio::time::timeout(RESYNC, changes.changed()).await;
    }
}
