//! What exists: its ARN, its tags, and the other condition keys of its type.

use super::call::Call;
use crate::{
    InstanceView, SnapshotView, VolumeView,
    iam::Context,
    view::{MetadataOptions, Shape, Tags},
};

impl Call<'_> {
    /// The ARN and the context of an existing resource; without tags if it does not exist, and `None` for an
    /// id of a kind that the model has not.
    pub(super) fn held(&self, id: &str) -> Option<(String, Context)> {
        let unknown = || self.context();
        let (kind, context) = match id.split('-').next() {
            Some("i") => {
                ("instance", self.model.instance_as_is(id).map_or_else(unknown, |view| self.instance(view)))
            }
            Some("vol") => {
                ("volume", self.model.volume_as_is(id).map_or_else(unknown, |view| self.volume(view)))
            }
            Some("snap") => {
                ("snapshot", self.model.snapshot_as_is(id).map_or_else(unknown, |view| self.snapshot(view)))
            }
            _ => return None,
        };
        Some((self.arns.ec2(kind, id), context))
    }

    /// The tags of a resource. EC2 has them under two names, and recommends the global one (EC2 user guide,
    /// "Control access using attribute-based access").
    pub(super) fn tagged(&self, tags: &Tags) -> Context {
        self.context().with_tags("aws:ResourceTag/", tags).with_tags("ec2:ResourceTag/", tags)
    }

    fn instance(&self, view: &InstanceView) -> Context {
        let MetadataOptions { http_tokens, hop_limit, http_endpoint, instance_metadata_tags } =
            &view.metadata;
        self.tagged(&view.tags)
            .with("ec2:InstanceID", &view.id)
            .with("ec2:InstanceType", &view.instance_type)
            .with("ec2:AvailabilityZone", &view.zone)
            .with("ec2:EbsOptimized", view.ebs_optimized.to_string())
            .with("ec2:MetadataHttpTokens", http_tokens)
            .with("ec2:MetadataHttpPutResponseHopLimit", hop_limit.to_string())
            .with("ec2:MetadataHttpEndpoint", http_endpoint)
            .with("ec2:InstanceMetadataTags", instance_metadata_tags)
            .with("ec2:InstanceMarketType", "on-demand")
            .with("ec2:RootDeviceType", "ebs")
            .with("ec2:Tenancy", "default")
            .with_some("ec2:InstanceProfile", view.instance_profile.as_ref())
    }

    fn volume(&self, view: &VolumeView) -> Context {
        let Shape { size, volume_type, iops, throughput } = &view.shape;
        let parent = view.snapshot_id.as_ref().map(|id| self.arns.ec2("snapshot", id));
        self.tagged(&view.tags)
            .with("ec2:VolumeID", &view.id)
            .with("ec2:AvailabilityZone", &view.zone)
            .with("ec2:Encrypted", view.encrypted.to_string())
            .with("ec2:VolumeSize", size.to_string())
            .with("ec2:VolumeType", volume_type)
            .with_some("ec2:VolumeIops", iops.map(|iops| iops.to_string()))
            .with_some("ec2:VolumeThroughput", throughput.map(|throughput| throughput.to_string()))
            .with_some("ec2:ParentSnapshot", parent)
    }

    fn snapshot(&self, view: &SnapshotView) -> Context {
        self.tagged(&view.tags)
            .with("ec2:SnapshotID", &view.id)
            .with("ec2:Owner", &self.arns.world.account)
            .with("ec2:ParentVolume", self.arns.ec2("volume", &view.volume_id))
            .with("ec2:SnapshotTime", view.started_at.to_string())
            .with("ec2:VolumeSize", view.size.to_string())
            .with("ec2:Encrypted", view.encrypted.to_string())
    }
}
