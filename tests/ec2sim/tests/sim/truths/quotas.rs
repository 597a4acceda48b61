//! The account's quotas: what counts against which, and the refusal of one that is reached.

use std::collections::BTreeMap;

use ec2sim::{Limits, Truth};

use super::kit::{Kit, both_ways, equal, options};

fn of(quotas: &[(&str, u32)]) -> BTreeMap<String, u32> {
    quotas.iter().map(|(name, limit)| ((*name).to_owned(), *limit)).collect()
}

/// Source: EC2 user guide, "On-Demand Instances", section "On-Demand Instance quotas".
#[test]
fn the_vcpus_of_the_families_have_quotas_of_their_own() {
    both_ways(Truth::VcpuQuotaPerFamily, |truths| {
        let mut options = options(truths);
        options.limits = Limits { vcpus: of(&[("P", 192), ("Standard", 4)]), ..options.limits };
        let kit = Kit::with(options);
        let (gpu, standard) = ([("InstanceType", "p5.48xlarge")], [("InstanceType", "m7i.large")]);
        kit.run(&gpu)?;
        equal(kit.run(&gpu), Err("VcpuLimitExceeded".to_owned()))?;
        kit.run(&standard)?;
        kit.run(&[])?;
        equal(kit.run(&standard), Err("VcpuLimitExceeded".to_owned()))
    });
}

/// Source: EBS user guide, "Quotas for Amazon EBS"; EC2 API reference, "Error codes".
#[test]
fn the_storage_and_the_iops_of_the_volume_types_have_quotas_of_their_own() {
    both_ways(Truth::VolumeQuotaPerType, |truths| {
        let mut options = options(truths);
        let (storage, iops) = (of(&[("gp3", 20), ("io2", 100)]), of(&[("io2", 1000)]));
        options.limits = Limits { storage, iops, ..options.limits };
        let kit = Kit::with(options);
        let provisioned = |size, iops| [("VolumeType", "io2"), ("Size", size), ("Iops", iops)];
        kit.create_volume(&provisioned("90", "600"))?;
        equal(kit.create_volume(&provisioned("20", "100")), Err("VolumeLimitExceeded".to_owned()))?;
        equal(kit.create_volume(&provisioned("10", "500")), Err("MaxIOPSLimitExceeded".to_owned()))?;
        kit.create_volume(&provisioned("10", "400"))?;
        kit.create_volume(&[])?;
        kit.create_volume(&[])?;
        equal(kit.create_volume(&[]), Err("VolumeLimitExceeded".to_owned()))
    });
}
