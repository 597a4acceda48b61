//! How a Volume's EBS volume is created: CreateVolume, and its attempt in the Volume's status.

use kube::ResourceExt;

use crate::api::creation::Attempt;
use crate::api::volume::VolumeCreation;
use crate::api::{ClientToken, EventReason, Volume, VolumeId, VolumeStatus};
use crate::cloud::call::Call;
use crate::cloud::identity::Kind;
use crate::cloud::turns::Priority;
use crate::cloud::{CloudError, CreateVolumeRequest, error};
use crate::cluster::events::Happened;
use crate::controller::creation::act::Creation;
use crate::controller::pass::acted::Acted;
use crate::controller::pass::context::Context;
use crate::controller::volume::messages;
use crate::controller::volume::plan::facts::demand;

/// One attempt to create an EBS volume: the whole request.
pub struct CreateVolume<'a>(pub &'a VolumeCreation);

impl Creation for CreateVolume<'_> {
    type Object = Volume;
    type Status = VolumeStatus;
    type Id = VolumeId;

    const CALL: Call = Call::CreateVolume;
    const KIND: Kind = Kind::Volume;

    fn priority(&self) -> Priority {
        Priority::Create
    }

    fn attempt(&self) -> &Attempt {
        &self.0.attempt
    }

    fn token(&self) -> Option<&ClientToken> {
        Some(&self.0.client_token)
    }

    fn announce(&self, status: &mut VolumeStatus) {
        status.creation = Some(self.0.clone());
        status.volume_id = None;
        status.initialization = None;
    }

    fn attempt_in(status: &mut VolumeStatus) -> Option<&mut Attempt> {
        status.creation.as_mut().map(|creation| &mut creation.attempt)
    }

    fn identify(status: &mut VolumeStatus, id: &VolumeId) {
        status.volume_id = Some(id.clone());
    }

    async fn send(&self, ctx: &Context) -> Result<VolumeId, CloudError> {
        let creation = self.0;
        let request = CreateVolumeRequest {
            token: creation.client_token.clone(),
            zone: creation.zone.clone(),
            size: creation.size,
            volume_type: creation.volume_type.clone(),
            iops: creation.iops,
            throughput: creation.throughput,
            snapshot_id: creation.snapshot_id.clone(),
            initialization_rate: creation.initialization_rate,
            kms_key_id: creation.kms_key_id.clone(),
            tags: creation.tags.clone(),
        };
        Ok(ctx.cloud.create_volume(&request).await?.id)
    }

    /// An EBS volume names nothing that is made moments before it.
    fn is_old(&self, _: &Context) -> bool {
        false
    }

    fn remember(&self, error: &CloudError, acted: &Acted<Volume>, ctx: &Context) {
        if let Some(kind) = error.code.as_deref().and_then(error::quota) {
            let (quota, amount) = demand(self.0).refused(kind);
            ctx.offerings.reach_quota(
                quota,
                amount,
                &acted.object.uid().unwrap_or_default(),
                ctx.clock.now(),
            );
        }
    }

    fn created(&self, id: &VolumeId) -> Happened {
        Happened::normal(EventReason::VolumeCreated, messages::events::created(id, self.0))
    }

    fn refused(&self, error: &CloudError) -> Happened {
        Happened::warning(EventReason::CreationRefused, messages::events::creation_refused(error))
    }
}
