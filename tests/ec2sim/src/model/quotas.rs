//! The account's quotas: which one a launch or a volume counts against, and the refusals when it is reached.

use super::{Effects, Model, launch_request::Launch};
use crate::{InstanceState, InstanceView, Refusal, Shape, Truth};

/// The quota of On-Demand Instances that a type counts against, as Service Quotas names it; for a family that
/// is not listed its own letters.
///
/// Source: EC2 user guide, "On-Demand Instances", section "On-Demand Instance quotas": a quota each for DL,
/// F, G and VT, HPC, High Memory, Inf, P, Standard (A, C, D, H, I, M, R, T, Z), Trn and X.
fn vcpu_quota(instance_type: &str) -> &str {
    let end = instance_type.find(|letter: char| !letter.is_ascii_lowercase()).unwrap_or(instance_type.len());
    match &instance_type[..end] {
        "a" | "c" | "d" | "h" | "i" | "im" | "is" | "m" | "r" | "t" | "z" => "Standard",
        "dl" => "DL",
        "f" => "F",
        "g" | "gr" | "vt" => "G and VT",
        "hpc" => "HPC",
        "u" => "High Memory",
        "inf" => "Inf",
        "p" => "P",
        "trn" => "Trn",
        "x" => "X",
        other => other,
    }
}

impl Model {
    /// Source: EC2 error codes; vCPU limits count pending and running instances.
    pub(super) fn refuse_over_quota(&self, launch: &Launch, effects: &Effects) -> Result<(), Refusal> {
        refuse_as_told(effects)?;
        let limits = &self.rules.limits;
        let count = usize::try_from(launch.count).unwrap_or(usize::MAX);
        if limits.instances.is_some_and(|limit| self.live().count().saturating_add(count) > limit) {
            return Err(Refusal::new(
                "InstanceLimitExceeded",
                "Your quota allows for no more running instances.",
            ));
        }
        let quota = vcpu_quota(&launch.instance_type.name);
        let counts = |view: &&InstanceView| {
            !self.holds(Truth::VcpuQuotaPerFamily) || vcpu_quota(&view.instance_type) == quota
        };
        let vcpus_of = |name: &str| self.world.instance_type(name).map_or(0, |known| known.vcpus);
        let used: u32 = self.live().filter(counts).map(|view| vcpus_of(&view.instance_type)).sum();
        let asked = launch.instance_type.vcpus.saturating_mul(launch.count);
        if limits.vcpus.get(quota).is_some_and(|limit| used.saturating_add(asked) > *limit) {
            return Err(Refusal::new(
                "VcpuLimitExceeded",
                "You have requested more vCPU capacity than your current vCPU limit allows for the instance \
                 bucket that the specified instance type belongs to.",
            ));
        }
        Ok(())
    }

    fn live(&self) -> impl Iterator<Item = &InstanceView> {
        let all = self.state.instances.values().map(|held| &held.view);
        all.filter(|view| matches!(view.state, InstanceState::Pending | InstanceState::Running))
    }

    /// Source: EBS user guide, "Quotas for Amazon EBS": storage in a quota for each volume type, IOPS in one
    /// each for io1 and io2; EC2 error codes, `VolumeLimitExceeded` and `MaxIOPSLimitExceeded`.
    pub(super) fn refuse_more_volumes(&self, wanted: &Shape, effects: &Effects) -> Result<(), Refusal> {
        refuse_as_told(effects)?;
        let limits = &self.rules.limits;
        if limits.volumes.is_some_and(|limit| self.state.volumes.len() >= limit) {
            return Err(Refusal::new("VolumeLimitExceeded", "Maximum number of volumes exceeded."));
        }
        let counts = |shape: &&Shape| {
            !self.holds(Truth::VolumeQuotaPerType) || shape.volume_type == wanted.volume_type
        };
        let shapes = || self.state.volumes.values().map(|held| &held.view.shape).filter(counts);
        let stored: u32 = shapes().map(|shape| shape.size).sum();
        if let Some(limit) = limits.storage.get(&wanted.volume_type)
            && stored.saturating_add(wanted.size) > *limit
        {
            return Err(Refusal::new(
                "VolumeLimitExceeded",
                format!(
                    "You have exceeded your maximum {} storage limit of {limit} GiB.",
                    wanted.volume_type
                ),
            ));
        }
        let provisioned: u32 = shapes().filter_map(|shape| shape.iops).sum();
        if let (Some(limit), Some(iops)) = (limits.iops.get(&wanted.volume_type), wanted.iops)
            && provisioned.saturating_add(iops) > *limit
        {
            return Err(Refusal::new(
                "MaxIOPSLimitExceeded",
                format!("You have exceeded your maximum {} IOPS limit of {limit}.", wanted.volume_type),
            ));
        }
        Ok(())
    }
}

/// The refusal that a fault demands.
fn refuse_as_told(effects: &Effects) -> Result<(), Refusal> {
    match &effects.quota {
        Some(code) => Err(Refusal::new(code, "You have reached a quota of your account.")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_counts_against_the_quota_of_its_family() {
        for (name, quota) in [
            ("r7i.large", "Standard"),
            ("im4gn.large", "Standard"),
            ("t3.small", "Standard"),
            ("p5.48xlarge", "P"),
            ("g6.xlarge", "G and VT"),
            ("vt1.3xlarge", "G and VT"),
            ("u-6tb1.112xlarge", "High Memory"),
            ("u7i-12tb.224xlarge", "High Memory"),
            ("x2iedn.xlarge", "X"),
            ("inf2.xlarge", "Inf"),
            ("trn1n.32xlarge", "Trn"),
            ("hpc7a.12xlarge", "HPC"),
            ("dl2q.24xlarge", "DL"),
            ("f2.6xlarge", "F"),
            ("mac2.metal", "mac"),
        ] {
            assert_eq!(vcpu_quota(name), quota, "{name}");
        }
    }
}
