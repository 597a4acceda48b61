//! The answers, as values; the wire face turns them into XML.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    AttachmentView, Image, InstanceState, InstanceType, InstanceView, ModificationView, SecurityGroup,
    SnapshotView, Subnet, VolumeStatusView, VolumeView, Zone, view::Tags,
};

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// What is on it; may be nothing although more pages follow.
    pub items: Vec<T>,
    /// What to ask the next page with.
    pub next_token: Option<String>,
}

/// The instances of one launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// `r-…`.
    pub id: String,
    /// Its instances.
    pub instances: Vec<InstanceView>,
}

/// What a call did to an instance's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateChange {
    /// `i-…`.
    pub instance_id: String,
    /// Before.
    pub previous: InstanceState,
    /// Now.
    pub current: InstanceState,
}

/// A tag of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagView {
    /// The resource's id.
    pub resource_id: String,
    /// `instance`, `volume` or `snapshot`.
    pub resource_type: &'static str,
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
}

/// A subnet and how many addresses are left in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubnetView {
    /// The subnet.
    pub subnet: Subnet,
    /// The id of its zone.
    pub zone_id: String,
    /// Free addresses.
    pub free: u32,
}

/// What EC2 answers to a request that it does not refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// RunInstances.
    RunInstances(Reservation),
    /// `TerminateInstances`, `StopInstances`, `StartInstances`.
    StateChanges(Vec<StateChange>),
    /// An action that answers `true`: `RebootInstances`, `DeleteVolume`, `DeleteSnapshot`, `CreateTags`,
    /// `DeleteTags`.
    Done,
    /// `DescribeInstances`.
    Instances(Page<Reservation>),
    /// `DescribeInstanceStatus`.
    InstanceStatuses(Page<InstanceView>),
    /// `GetConsoleOutput`.
    ConsoleOutput {
        /// `i-…`.
        instance_id: String,
        /// When it was last written.
        at: Timestamp,
        /// The text.
        output: String,
    },
    /// CreateVolume.
    Volume(VolumeView),
    /// `DescribeVolumes`.
    Volumes(Page<VolumeView>),
    /// `DescribeVolumeStatus`.
    VolumeStatuses(Page<VolumeStatusView>),
    /// `AttachVolume`, `DetachVolume`.
    Attachment(AttachmentView),
    /// `ModifyVolume`.
    Modification(ModificationView),
    /// `DescribeVolumesModifications`.
    Modifications(Page<ModificationView>),
    /// `CreateSnapshot`.
    Snapshot(SnapshotView),
    /// `DescribeSnapshots`.
    Snapshots(Page<SnapshotView>),
    /// `DescribeTags`.
    Tags(Page<TagView>),
    /// `DescribeSubnets`.
    Subnets(Page<SubnetView>),
    /// `DescribeAvailabilityZones`.
    Zones(Vec<Zone>),
    /// `DescribeInstanceTypes`.
    InstanceTypes(Page<InstanceType>),
    /// `DescribeImages`.
    Images(Page<Image>),
    /// `DescribeSecurityGroups`.
    SecurityGroups(Page<SecurityGroup>),
}

impl Response {
    /// The ids of the resources that the call made, or changed the state of.
    pub fn resource_ids(&self) -> Vec<String> {
        match self {
            Self::RunInstances(reservation) => {
                reservation.instances.iter().map(|instance| instance.id.clone()).collect()
            }
            Self::StateChanges(changes) => changes.iter().map(|change| change.instance_id.clone()).collect(),
            Self::Volume(volume) => vec![volume.id.clone()],
            Self::Snapshot(snapshot) => vec![snapshot.id.clone()],
            Self::Attachment(attachment) => {
                vec![attachment.volume_id.clone(), attachment.instance_id.clone()]
            }
            Self::Modification(modification) => vec![modification.volume_id.clone()],
            Self::Done
            | Self::Instances(_)
            | Self::InstanceStatuses(_)
            | Self::ConsoleOutput { .. }
            | Self::Volumes(_)
            | Self::VolumeStatuses(_)
            | Self::Modifications(_)
            | Self::Snapshots(_)
            | Self::Tags(_)
            | Self::Subnets(_)
            | Self::Zones(_)
            | Self::InstanceTypes(_)
            | Self::Images(_)
            | Self::SecurityGroups(_) => Vec::new(),
        }
    }

    /// The tags of what the call made.
    pub fn tags(&self) -> Option<&Tags> {
        match self {
            Self::RunInstances(reservation) => reservation.instances.first().map(|instance| &instance.tags),
            Self::Volume(volume) => Some(&volume.tags),
            Self::Snapshot(snapshot) => Some(&snapshot.tags),
            Self::StateChanges(_)
            | Self::Done
            | Self::Attachment(_)
            | Self::Modification(_)
            | Self::Instances(_)
            | Self::InstanceStatuses(_)
            | Self::ConsoleOutput { .. }
            | Self::Volumes(_)
            | Self::VolumeStatuses(_)
            | Self::Modifications(_)
            | Self::Snapshots(_)
            | Self::Tags(_)
            | Self::Subnets(_)
            | Self::Zones(_)
            | Self::InstanceTypes(_)
            | Self::Images(_)
            | Self::SecurityGroups(_) => None,
        }
    }
}
