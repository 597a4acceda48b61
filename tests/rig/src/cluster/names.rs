//! Names that several players use.

/// The EBS CSI driver's name.
pub const EBS_DRIVER: &str = "ebs.csi.aws.com";

/// The kubelets' Leases.
pub const LEASES: &str = "leases.coordination.k8s.io";
/// The VolumeAttachments.
pub const ATTACHMENTS: &str = "volumeattachments.storage.k8s.io";
