//! Names that several players use.

/// The EBS CSI driver's name.
pub const EBS_DRIVER: &str = "ebs.csi.aws.com";

/// The kubelets' Leases.
pub const LEASES: &str = "leases.coordination.k8s.io";
/// For which Kubernetes node the scheduler wants a volume, of a claim.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The VolumeAttachments.
pub const ATTACHMENTS: &str = "volumeattachments.storage.k8s.io";
