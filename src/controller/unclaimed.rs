//! Reports what EC2 has of this cluster and no object claims: a metric, a line of the log, and an event on
//! the Database that the tags name. Nothing is ended.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{Api, ListParams};
use tokio_util::sync::CancellationToken;

use super::messages;
use super::pass::context::Context;
use super::retention;
use crate::api::keys::{DATABASE_TAG, RETAINED_LABEL};
use crate::api::{Database, EventReason, VolumeId};
use crate::cloud::{EbsVolume, Instance};
use crate::cluster::events::{Events, Happened};

/// Looks as often as instances are listed, until `stop`.
pub async fn run(ctx: std::sync::Arc<Context>, stop: CancellationToken) {
    let events = Events::new(ctx.client.clone(), "unclaimed");
    let mut reported = BTreeSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(ctx.timing.instance_sync_interval) => {}
        }
        match unclaimed(&ctx).await {
            Ok((instances, volumes)) => {
                ctx.metrics.unclaimed(instances.len(), volumes.len());
                report(&ctx, &events, &mut reported, &instances, &volumes).await;
            }
            Err(error) => tracing::warn!(%error, "failed to list the retention records"),
        }
    }
}

/// The instances and EBS volumes. A retained volume is claimed by its record.
async fn unclaimed(ctx: &Context) -> Result<(Vec<Instance>, Vec<EbsVolume>), kube::Error> {
    let (instances, mut volumes) = (ctx.inventory.unclaimed_instances(), ctx.inventory.unclaimed_volumes());
    if !volumes.is_empty() {
        let selector = ListParams::default().labels(&format!("{RETAINED_LABEL}=true"));
        let records = Api::<PersistentVolume>::all(ctx.client.clone()).list(&selector.match_any()).await?;
        let kept: BTreeSet<VolumeId> =
            records.items.iter().filter_map(retention::read).map(|kept| kept.volume_id).collect();
        volumes.retain(|volume| !kept.contains(&volume.id));
    }
    Ok((instances, volumes))
}

/// Each once for as long as it is there.
async fn report(
    ctx: &Context,
    events: &Events,
    reported: &mut BTreeSet<String>,
    instances: &[Instance],
    volumes: &[EbsVolume],
) {
    let of_instances =
        instances.iter().map(|it| (&it.id.0, &it.tags, messages::unclaimed_instance(&it.id, &it.volumes)));
    let of_volumes = volumes.iter().map(|it| (&it.id.0, &it.tags, messages::unclaimed_volume(&it.id)));
    let all: Vec<_> = of_instances.chain(of_volumes).collect();
    reported.retain(|id| all.iter().any(|(other, ..)| *other == id));
    for (id, tags, note) in all {
        if !reported.insert(id.clone()) {
            continue;
        }
        let database = tags.get(DATABASE_TAG);
        tracing::warn!(id, database, "{note}");
        let Some((namespace, name)) = database.and_then(|it| it.split_once('/')) else { continue };
        let databases = Api::<Database>::namespaced(ctx.client.clone(), namespace);
        if let Ok(Some(database)) = databases.get_opt(name).await {
            events.publish(&database, &Happened::warning(EventReason::UnclaimedResource, note)).await;
        }
    }
}
