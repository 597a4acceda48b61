//! The calls of EC2's API that Freehold makes, by name.

/// Every EC2 call that Freehold makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Puts tags on a volume.
    CreateTags,
    /// Lists volumes.
    DescribeVolumes,
    /// Lists modifications of volumes.
    DescribeVolumesModifications,
    /// Takes a snapshot.
    CreateSnapshot,
    /// Lists snapshots.
    DescribeSnapshots,
}

impl Call {
    /// Every call.
    pub const ALL: [Self; 14] = [
        Self::RunInstances,
        Self::StopInstances,
        Self::TerminateInstances,
        Self::DescribeInstances,
        Self::DescribeInstanceStatus,
        Self::GetConsoleOutput,
        Self::CreateVolume,
        Self::ModifyVolume,
        Self::DeleteVolume,
        Self::CreateTags,
        Self::DescribeVolumes,
        Self::DescribeVolumesModifications,
        Self::CreateSnapshot,
        Self::DescribeSnapshots,
    ];

    /// The name of the call in EC2's API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunInstances => "RunInstances",
            Self::StopInstances => "StopInstances",
            Self::TerminateInstances => "TerminateInstances",
            Self::DescribeInstances => "DescribeInstances",
            Self::DescribeInstanceStatus => "DescribeInstanceStatus",
            Self::GetConsoleOutput => "GetConsoleOutput",
            Self::CreateVolume => "CreateVolume",
            Self::ModifyVolume => "ModifyVolume",
            Self::DeleteVolume => "DeleteVolume",
            Self::CreateTags => "CreateTags",
            Self::DescribeVolumes => "DescribeVolumes",
            Self::DescribeVolumesModifications => "DescribeVolumesModifications",
            Self::CreateSnapshot => "CreateSnapshot",
            Self::DescribeSnapshots => "DescribeSnapshots",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_listed_once_under_its_own_name() {
        let names: std::collections::BTreeSet<_> = Call::ALL.iter().map(|call| call.as_str()).collect();
        assert_eq!(names.len(), Call::ALL.len());
    }
}
