//! Names that several parts agree on: of the CSI driver, of labels and annotations, of the API server.

/// The provisioner and attacher name of the EBS CSI driver.
pub const EBS_DRIVER: &str = "ebs.csi.aws.com";

/// A name in the API server's certificate that does not depend on where it listens.
pub const SERVER_NAME: &str = "kubernetes.default.svc";

/// The label of the Nodes that kwok keeps alive. It is a label and not kwok's customary annotation because
/// only for a label does kwok notice that the mark was taken away (the API server filters and reports a
/// delete; annotations it filters itself and drops the event), and a machine that died must stop
/// heartbeating.
pub const HEARTBEAT_LABEL: &str = "box.freehold.dev/heartbeat";
/// Its value.
pub const HEARTBEAT_VALUE: &str = "kwok";

/// The annotation that differs between two boots of a machine: after a change of it, containers have
/// restarted.
pub const BOOT_ANNOTATION: &str = "box.freehold.dev/boot";
