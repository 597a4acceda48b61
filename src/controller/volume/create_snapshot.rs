//! How a Volume's final snapshot is created: CreateSnapshot, and its attempt in the Volume's status. EC2 has
//! no token for it, so it is found again by its tags.

use std::collections::BTreeMap;

use crate::api::creation::Attempt;
use crate::api::volume::FinalSnapshot;
use crate::api::{ClientToken, EventReason, SnapshotId, Volume, VolumeId, VolumeStatus};
use crate::cloud::CloudError;
use crate::cloud::call::Call;
use crate::cloud::identity::Kind;
use crate::cloud::turns::Priority;
use crate::cluster::events::Happened;
use crate::controller::creation::act::Creation;
use crate::controller::pass::acted::Acted;
use crate::controller::pass::context::Context;
use crate::controller::volume::messages;

/// One attempt to create the final snapshot.
pub struct CreateSnapshot<'a> {
    /// Of this EBS volume.
    pub volume: &'a VolumeId,
    /// The attempt.
    pub attempt: &'a Attempt,
    /// Every tag of the snapshot.
    pub tags: BTreeMap<String, String>,
}

impl Creation for CreateSnapshot<'_> {
    type Object = Volume;
    type Status = VolumeStatus;
    type Id = SnapshotId;

    const CALL: Call = Call::CreateSnapshot;
    const KIND: Kind = Kind::Snapshot;

    fn priority(&self) -> Priority {
        Priority::Existing
    }

    fn attempt(&self) -> &Attempt {
        self.attempt
    }

    fn token(&self) -> Option<&ClientToken> {
        None
    }

    fn announce(&self, status: &mut VolumeStatus) {
        status.final_snapshot = Some(FinalSnapshot { attempt: self.attempt.clone(), snapshot_id: None });
    }

    fn attempt_in(status: &mut VolumeStatus) -> Option<&mut Attempt> {
        status.final_snapshot.as_mut().map(|snapshot| &mut snapshot.attempt)
    }

    fn identify(status: &mut VolumeStatus, id: &SnapshotId) {
        if let Some(snapshot) = &mut status.final_snapshot {
            snapshot.snapshot_id = Some(id.clone());
        }
    }

    async fn send(&self, ctx: &Context) -> Result<SnapshotId, CloudError> {
        Ok(ctx.cloud.create_snapshot(self.volume, &self.tags).await?.id)
    }

    /// A call without a token is not sent again while it is in doubt.
    fn is_old(&self, _: &Context) -> bool {
        false
    }

    /// The next attempt pauses as the answer says.
    fn remember(&self, _: &CloudError, acted: &Acted<Volume>, ctx: &Context) {
        ctx.issued.note(Self::CALL, &self.volume.0, ctx.clock.now(), acted.call_blocked.clone());
    }

    fn created(&self, id: &SnapshotId) -> Happened {
        let note = messages::events::snapshot_started(id, self.volume);
        Happened::normal(EventReason::FinalSnapshotStarted, note)
    }

    fn refused(&self, error: &CloudError) -> Happened {
        Happened::warning(EventReason::FinalSnapshotRefused, messages::events::snapshot_refused(error))
    }
}
