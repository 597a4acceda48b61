//! A volume that is going to be made, by `CreateVolume` or with an instance: what a request says of it.

use super::call::Call;
use crate::{SnapshotView, iam::Context, params::Reader};

/// What the parameters say of a new volume.
pub(super) struct NewVolume {
    size: Option<String>,
    volume_type: String,
    iops: Option<String>,
    throughput: Option<String>,
    encrypted: bool,
    pub(super) kms_key: Option<String>,
    pub(super) snapshot_id: Option<String>,
}

impl NewVolume {
    /// Reads the parameters under `prefix`; the size is called `Size` or `VolumeSize`.
    pub(super) fn read(given: &mut Reader, prefix: &str, size: &str) -> Self {
        let mut text = |name: &str| given.text(&format!("{prefix}{name}")).filter(|text| !text.is_empty());
        Self {
            size: text(size),
            volume_type: text("VolumeType").unwrap_or_else(|| "gp2".to_owned()),
            iops: text("Iops"),
            throughput: text("Throughput"),
            encrypted: text("Encrypted").as_deref() == Some("true"),
            kms_key: text("KmsKeyId"),
            snapshot_id: text("SnapshotId"),
        }
    }

    /// The root volume of a launch that says nothing of it.
    pub(super) fn of_image() -> Self {
        Self {
            size: None,
            volume_type: "gp3".to_owned(),
            iops: None,
            throughput: None,
            encrypted: false,
            kms_key: None,
            snapshot_id: None,
        }
    }

    /// This volume, which has `size` if the request names none.
    pub(super) fn or_size(mut self, size: u32) -> Self {
        self.size.get_or_insert_with(|| size.to_string());
        self
    }

    /// What its creation says of it. What is made from an encrypted snapshot is encrypted (EBS user guide,
    /// "How Amazon EBS encryption works").
    pub(super) fn context(&self, call: &Call<'_>, zone: Option<&str>) -> Context {
        let snapshot: Option<&SnapshotView> =
            self.snapshot_id.as_ref().and_then(|id| call.model.snapshot_as_is(id));
        let encrypted = self.encrypted || snapshot.is_some_and(|view| view.encrypted);
        let size = self.size.clone().or_else(|| snapshot.map(|view| view.size.to_string()));
        call.context()
            .with("ec2:Encrypted", encrypted.to_string())
            .with("ec2:VolumeType", &self.volume_type)
            .with_some("ec2:AvailabilityZone", zone)
            .with_some("ec2:VolumeSize", size)
            .with_some("ec2:VolumeIops", self.iops.as_ref())
            .with_some("ec2:VolumeThroughput", self.throughput.as_ref())
            .with_some(
                "ec2:ParentSnapshot",
                self.snapshot_id.as_ref().map(|id| call.arns.ec2("snapshot", id)),
            )
    }
}
