//! Which EBS volume a PersistentVolume names, in the driver's form or in that of Kubernetes' own plugin
//! before it, which Kubernetes' controllers translate (its documentation, "CSI migration").

use k8s_openapi::api::core::v1::PersistentVolume;

use super::names::EBS_DRIVER;

/// The id of the EBS volume; none if it is of another driver.
pub fn ebs_volume(record: &PersistentVolume) -> Option<&str> {
    let spec = record.spec.as_ref()?;
    match (&spec.csi, &spec.aws_elastic_block_store) {
        (Some(csi), _) => (csi.driver == EBS_DRIVER).then_some(csi.volume_handle.as_str()),
        // `aws://<zone>/<id>`, or the id alone.
        (None, Some(ebs)) => ebs.volume_id.rsplit('/').next(),
        (None, None) => None,
    }
}
