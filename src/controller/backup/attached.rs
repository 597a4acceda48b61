//! The EBS volume of a database that was stopped for its Backup, as EC2 shows it now: the inventory lists the
//! volumes every five minutes, and the database is down meanwhile. Only reads.

use crate::api::{Backup, VolumeId};
use crate::cloud::call::Call;
use crate::cloud::turns::Priority;
use crate::cloud::{CloudError, EbsVolume, VolumeQuery};
use crate::controller::pass::context::Context;

/// Reads the volume by its id; `None` where EC2 does not show it, or the rate limit does not allow the call.
pub async fn read(backup: &Backup, id: &VolumeId, ctx: &Context) -> Result<Option<EbsVolume>, CloudError> {
    if ctx.try_take(Call::DescribeVolumes, backup, Priority::Existing).is_err() {
        return Ok(None);
    }
    let shown = ctx.cloud.describe_volumes(&VolumeQuery::Ids(vec![id.clone()])).await?;
    Ok(shown.into_iter().find(|volume| volume.id == *id))
}
