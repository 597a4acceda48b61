//! The quotas of an AWS account: which of them a creation counts against, and how much it asks of each. Pure.

use super::error::QuotaKind;

/// A quota of the AWS account in the Region.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quota {
    /// Any creation: AWS has not verified the account yet.
    Account,
    /// The vCPUs of the running On-Demand Instances of a group of families, as Service Quotas names it: EC2
    /// user guide, "On-Demand Instances", section "On-Demand Instance quotas".
    Vcpus(String),
    /// The storage of all volumes of a type: EBS user guide, "Quotas for Amazon EBS".
    Storage(String),
    /// The IOPS of all volumes of a type: the same page.
    Iops(String),
}

/// What a creation asks of the quotas that it counts against. A refusal proves that whoever asks at least as
/// much of the same quota would be refused, too; of who asks less it says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// What the call is about.
    main: (Quota, u32),
    also: Vec<(Quota, u32)>,
}

impl Demand {
    /// An instance of this type, with a root disk of this type and size in GiB.
    pub fn instance(instance_type: &str, root_type: &str, root_size: i32) -> Self {
        Self {
            main: (Quota::Vcpus(families(instance_type)), vcpus(instance_type)),
            also: vec![(Quota::Account, 1), (Quota::Storage(root_type.to_owned()), amount(root_size))],
        }
    }

    /// An EBS volume of this type, size in GiB and IOPS.
    pub fn volume(volume_type: &str, size: i32, iops: Option<i32>) -> Self {
        let iops = iops.map(|iops| (Quota::Iops(volume_type.to_owned()), amount(iops)));
        Self {
            main: (Quota::Storage(volume_type.to_owned()), amount(size)),
            also: [(Quota::Account, 1)].into_iter().chain(iops).collect(),
        }
    }

    /// Every quota that it counts against, and how much it asks of it.
    pub fn parts(&self) -> impl Iterator<Item = &(Quota, u32)> {
        std::iter::once(&self.main).chain(&self.also)
    }

    /// The quota that EC2 has refused it for, and how much it asked of it.
    pub fn refused(&self, kind: QuotaKind) -> (Quota, u32) {
        let is_named = |quota: &Quota| match kind {
            // Every instance counts as one.
            QuotaKind::Vcpus | QuotaKind::Instances => matches!(quota, Quota::Vcpus(_)),
            QuotaKind::Storage => matches!(quota, Quota::Storage(_)),
            QuotaKind::Iops => matches!(quota, Quota::Iops(_)),
            QuotaKind::Account => *quota == Quota::Account,
            QuotaKind::Snapshots => false,
        };
        let (quota, amount) = self.parts().find(|(quota, _)| is_named(quota)).unwrap_or(&self.main).clone();
        (quota, if kind == QuotaKind::Instances { 1 } else { amount })
    }
}

fn amount(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

/// The group of families whose quota an instance type counts against; a family that AWS adds has one of its
/// own letters.
fn families(instance_type: &str) -> String {
    let end = instance_type.find(|letter: char| !letter.is_ascii_lowercase()).unwrap_or(instance_type.len());
    let letters = instance_type.get(..end).unwrap_or_default();
    match letters {
        "a" | "c" | "d" | "h" | "i" | "im" | "is" | "m" | "r" | "t" | "z" => {
            "Standard (A, C, D, H, I, M, R, T, Z)".to_owned()
        }
        "g" | "gr" | "vt" => "G and VT".to_owned(),
        "u" => "High Memory".to_owned(),
        "inf" => "Inf".to_owned(),
        "trn" => "Trn".to_owned(),
        _ => letters.to_uppercase(),
    }
}

/// The vCPUs of a type as far as its size tells: `large` has 2, `xlarge` 4, and `12xlarge` 12 times as many.
/// It serves to compare the types of a group; `metal` alone, which is the largest of its family, is larger
/// than all others.
fn vcpus(instance_type: &str) -> u32 {
    let size = instance_type.split_once('.').map_or("", |(_, size)| size);
    let size = size.strip_prefix("metal-").unwrap_or(size);
    match size {
        "nano" | "micro" | "small" | "medium" => 1,
        "large" => 2,
        "xlarge" => 4,
        _ => {
            let times = size.strip_suffix("xlarge").or_else(|| size.strip_suffix("xl"));
            let times = times.and_then(|times| times.parse::<u32>().ok());
            times.map_or(u32::MAX, |times| times.saturating_mul(4))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_instance_type_counts_against_the_quota_of_its_family() {
        let standard = "Standard (A, C, D, H, I, M, R, T, Z)";
        for (name, group) in [
            ("r7i.large", standard),
            ("im4gn.large", standard),
            ("is4gen.large", standard),
            ("t3.small", standard),
            ("z1d.large", standard),
            ("p5.48xlarge", "P"),
            ("p6-b200.48xlarge", "P"),
            ("g6.xlarge", "G and VT"),
            ("gr6.4xlarge", "G and VT"),
            ("vt1.3xlarge", "G and VT"),
            ("u-6tb1.112xlarge", "High Memory"),
            ("u7i-12tb.224xlarge", "High Memory"),
            ("x2iedn.xlarge", "X"),
            ("inf2.xlarge", "Inf"),
            ("trn1n.32xlarge", "Trn"),
            ("hpc7a.12xlarge", "HPC"),
            ("dl2q.24xlarge", "DL"),
            ("f2.6xlarge", "F"),
            ("new1.large", "NEW"),
        ] {
            assert_eq!(families(name), group, "{name}");
        }
    }

    #[test]
    fn types_are_compared_by_their_size() {
        for (name, expected) in [
            ("t3.nano", 1),
            ("r7i.large", 2),
            ("r7i.xlarge", 4),
            ("r7i.48xlarge", 192),
            ("r7i.metal-24xl", 96),
            ("m5.metal", u32::MAX),
            ("odd", u32::MAX),
        ] {
            assert_eq!(vcpus(name), expected, "{name}");
        }
    }

    #[test]
    fn a_refusal_is_about_the_quota_that_its_code_names() {
        let machine = Demand::instance("p5.48xlarge", "gp3", 20);
        let volume = Demand::volume("io2", 65_536, Some(256_000));
        let vcpus = |amount| (Quota::Vcpus("P".to_owned()), amount);
        let storage = |name: &str, amount| (Quota::Storage(name.to_owned()), amount);
        for (demand, kind, expected) in [
            (&machine, QuotaKind::Vcpus, vcpus(192)),
            (&machine, QuotaKind::Instances, vcpus(1)),
            (&machine, QuotaKind::Storage, storage("gp3", 20)),
            (&machine, QuotaKind::Iops, vcpus(192)),
            (&machine, QuotaKind::Account, (Quota::Account, 1)),
            (&volume, QuotaKind::Storage, storage("io2", 65_536)),
            (&volume, QuotaKind::Iops, (Quota::Iops("io2".to_owned()), 256_000)),
            (&volume, QuotaKind::Account, (Quota::Account, 1)),
            (&volume, QuotaKind::Snapshots, storage("io2", 65_536)),
        ] {
            assert_eq!(demand.refused(kind), expected, "{demand:?} {kind:?}");
        }
    }
}
