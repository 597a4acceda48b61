//! The calls of EC2's API that Freehold makes, by name.

use strum::{EnumIter, EnumString, IntoStaticStr};

/// Every EC2 call that Freehold makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumIter, EnumString, IntoStaticStr)]
pub enum Call {
    /// Launches an instance.
    RunInstances,
    /// Stops instances.
    StopInstances,
    /// Terminates instances.
    TerminateInstances,
    /// Lists instances.
    DescribeInstances,
    /// Lists status checks and scheduled events.
    DescribeInstanceStatus,
    /// Reads a console.
    GetConsoleOutput,
    /// Creates a volume.
    CreateVolume,
    /// Changes a volume.
    ModifyVolume,
    /// Deletes a volume.
    DeleteVolume,
    /// Puts tags on an instance, a volume or a snapshot.
    CreateTags,
    /// Takes tags off instances, volumes and network interfaces.
    DeleteTags,
    /// Lists what carries a tag.
    DescribeTags,
    /// Lists volumes.
    DescribeVolumes,
    /// Reads how far the initialization of volumes is.
    DescribeVolumeStatus,
    /// Lists modifications of volumes.
    DescribeVolumesModifications,
    /// Takes a snapshot.
    CreateSnapshot,
    /// Deletes a snapshot.
    DeleteSnapshot,
    /// Lists snapshots.
    DescribeSnapshots,
    /// Lists images.
    DescribeImages,
    /// Lists subnets.
    DescribeSubnets,
    /// Lists security groups.
    DescribeSecurityGroups,
    /// Lists instance types.
    DescribeInstanceTypes,
}

impl Call {
    /// The name of the call in EC2's API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
