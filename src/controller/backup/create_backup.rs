//! How a Backup's snapshot is created: CreateSnapshot, and its attempt in the Backup's status. EC2 has no
//! token for it, so it is found again by its tags.

use crate::api::backup::{BackupSource, SnapshotCreation};
use crate::api::creation::Attempt;
use crate::api::{Backup, BackupStatus, ClientToken, EventReason, SnapshotId};
use crate::cloud::CloudError;
use crate::cloud::call::Call;
use crate::cloud::identity::Kind;
use crate::cloud::turns::Priority;
use crate::cluster::events::Happened;
use crate::controller::backup::messages;
use crate::controller::creation::act::Creation;
use crate::controller::pass::acted::Acted;
use crate::controller::pass::context::Context;

/// One attempt to create the snapshot.
pub struct CreateBackup<'a> {
    /// The whole request.
    pub creation: &'a SnapshotCreation,
    /// What is backed up.
    pub source: &'a BackupSource,
}

impl Creation for CreateBackup<'_> {
    type Object = Backup;
    type Status = BackupStatus;
    type Id = SnapshotId;

    const CALL: Call = Call::CreateSnapshot;
    const KIND: Kind = Kind::Backup;

    fn priority(&self) -> Priority {
        Priority::Existing
    }

    fn attempt(&self) -> &Attempt {
        &self.creation.attempt
    }

    fn token(&self) -> Option<&ClientToken> {
        None
    }

    fn announce(&self, status: &mut BackupStatus) {
        status.source = Some(self.source.clone());
        status.creation = Some(self.creation.clone());
    }

    fn attempt_in(status: &mut BackupStatus) -> Option<&mut Attempt> {
        status.creation.as_mut().map(|creation| &mut creation.attempt)
    }

    fn identify(status: &mut BackupStatus, id: &SnapshotId) {
        status.snapshot_id = Some(id.clone());
    }

    async fn send(&self, ctx: &Context) -> Result<SnapshotId, CloudError> {
        Ok(ctx.cloud.create_snapshot(&self.creation.volume_id, &self.creation.tags).await?.id)
    }

    /// A call without a token is not sent again while it is in doubt.
    fn is_old(&self, _: &Context) -> bool {
        false
    }

    /// The next attempt pauses as the answer says.
    fn remember(&self, _: &CloudError, acted: &Acted<Backup>, ctx: &Context) {
        let volume = &self.creation.volume_id.0;
        ctx.issued.note(Self::CALL, volume, ctx.clock.now(), acted.call_blocked.clone());
    }

    fn created(&self, id: &SnapshotId) -> Happened {
        let note = messages::events::started(id, &self.creation.volume_id);
        Happened::normal(EventReason::BackupStarted, note)
    }

    fn refused(&self, error: &CloudError) -> Happened {
        Happened::warning(EventReason::BackupRefused, messages::events::refused(error))
    }
}
