//! What each volume type allows: sizes, IOPS, throughput and their ratios.
//!
//! Source: EBS user guide, "Amazon EBS volume types", as of 2026 (gp3 up to 64 TiB, 80,000 IOPS, 2,000
//! MiB/s).

use crate::{Refusal, Shape, Truth, Truths, params::Reader};

struct VolumeType {
    name: &'static str,
    size: (u32, u32),
    /// Range, and the most per GiB. `None`: the type sets them itself.
    iops: Option<(u32, u32, u32)>,
    default_iops: Option<u32>,
    /// Range and default, in MiB a second.
    throughput: Option<(u32, u32)>,
}

const TYPES: [VolumeType; 7] = [
    VolumeType {
        name: "gp3",
        size: (1, 65_536),
        iops: Some((3000, 80_000, 500)),
        default_iops: Some(3000),
        throughput: Some((125, 2000)),
    },
    VolumeType { name: "gp2", size: (1, 16_384), iops: None, default_iops: None, throughput: None },
    VolumeType {
        name: "io1",
        size: (4, 16_384),
        iops: Some((100, 64_000, 50)),
        default_iops: None,
        throughput: None,
    },
    VolumeType {
        name: "io2",
        size: (4, 65_536),
        iops: Some((100, 256_000, 1000)),
        default_iops: None,
        throughput: None,
    },
    VolumeType { name: "st1", size: (125, 16_384), iops: None, default_iops: None, throughput: None },
    VolumeType { name: "sc1", size: (125, 16_384), iops: None, default_iops: None, throughput: None },
    VolumeType { name: "standard", size: (1, 1024), iops: None, default_iops: None, throughput: None },
];

/// gp3 gives at most 0.25 MiB a second for each IOPS.
const IOPS_PER_THROUGHPUT: u32 = 4;

/// The baseline that every gp3 volume has whatever its size: the ratios count only above it.
const GP3_BASE_IOPS: u32 = 3000;

/// What a request says about a volume's shape.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) size: Option<u32>,
    pub(super) volume_type: Option<String>,
    pub(super) iops: Option<u32>,
    pub(super) throughput: Option<u32>,
}

impl Wanted {
    /// Reads `Size` (or `VolumeSize`), `VolumeType`, `Iops` and `Throughput` under `prefix`.
    pub(super) fn read(reader: &mut Reader, prefix: &str, size_key: &str) -> Result<Self, Refusal> {
        Ok(Self {
            size: reader.number(&format!("{prefix}{size_key}"))?,
            volume_type: reader.text(&format!("{prefix}VolumeType")),
            iops: reader.number(&format!("{prefix}Iops"))?,
            throughput: reader.number(&format!("{prefix}Throughput"))?,
        })
    }
}

/// The shape of a new volume; `snapshot` is the size of what it is made from.
pub(super) fn new_shape(
    wanted: &Wanted,
    default_type: &str,
    snapshot: Option<u32>,
    truths: &Truths,
) -> Result<Shape, Refusal> {
    let name = wanted.volume_type.as_deref().unwrap_or(default_type);
    let kind = find(name)?;
    let size = wanted.size.or(snapshot).ok_or_else(|| Refusal::missing("size/snapshot"))?;
    if truths.holds(Truth::SnapshotMinimumSize) && snapshot.is_some_and(|least| size < least) {
        return Err(Refusal::value(format!("The size {size} GiB is smaller than the snapshot's")));
    }
    if truths.holds(Truth::VolumeRanges)
        && kind.iops.is_some()
        && kind.default_iops.is_none()
        && wanted.iops.is_none()
    {
        return Err(Refusal::missing("iops"));
    }
    let shape = Shape {
        size,
        volume_type: name.to_owned(),
        iops: wanted.iops.or_else(|| given_iops(kind, size)),
        throughput: wanted.throughput.or_else(|| kind.throughput.map(|(base, _)| base)),
    };
    check(kind, wanted, &shape, truths)?;
    Ok(shape)
}

/// The shape of a volume after a modification; what is not named stays where the new type has it.
pub(super) fn modified_shape(old: &Shape, wanted: &Wanted, truths: &Truths) -> Result<Shape, Refusal> {
    let name = wanted.volume_type.as_deref().unwrap_or(&old.volume_type);
    let kind = find(name)?;
    let size = wanted.size.unwrap_or(old.size);
    if truths.holds(Truth::VolumesOnlyGrow) && size < old.size {
        return Err(Refusal::value("New size cannot be smaller than existing size"));
    }
    let kept_iops = old.iops.filter(|_| old.volume_type != "gp2").or(kind.default_iops);
    let iops = if kind.iops.is_some() {
        wanted.iops.or(kept_iops)
    } else {
        wanted.iops.or_else(|| given_iops(kind, size))
    };
    if truths.holds(Truth::VolumeRanges) && kind.iops.is_some() && iops.is_none() {
        return Err(Refusal::missing("iops"));
    }
    let throughput =
        wanted.throughput.or_else(|| kind.throughput.map(|(base, _)| old.throughput.unwrap_or(base)));
    let shape = Shape { size, volume_type: name.to_owned(), iops, throughput };
    check(kind, wanted, &shape, truths)?;
    Ok(shape)
}

fn find(name: &str) -> Result<&'static VolumeType, Refusal> {
    TYPES.iter().find(|kind| kind.name == name).ok_or_else(|| {
        Refusal::new("UnknownVolumeType", format!("Unsupported volume type '{name}' for volume creation."))
    })
}

/// What a volume has without asking: gp3's default; for gp2 3 IOPS for each GiB, at least 100 and at most
/// 16,000.
fn given_iops(kind: &VolumeType, size: u32) -> Option<u32> {
    if kind.name == "gp2" { Some(size.saturating_mul(3).clamp(100, 16_000)) } else { kind.default_iops }
}

fn check(kind: &VolumeType, wanted: &Wanted, shape: &Shape, truths: &Truths) -> Result<(), Refusal> {
    if !truths.holds(Truth::VolumeRanges) {
        return Ok(());
    }
    let (name, size) = (kind.name, shape.size);
    in_range("size", "GiB", size, kind.size)?;
    match (kind.iops, shape.iops) {
        (Some((least, most, per_gib)), Some(iops)) => {
            in_range("iops", "", iops, (least, most))?;
            let is_base = name == "gp3" && iops <= GP3_BASE_IOPS;
            if !is_base && u64::from(iops) > u64::from(size) * u64::from(per_gib) {
                return Err(Refusal::value(format!(
                    "Iops to volume size ratio of {:.6} is too high; maximum is {per_gib}",
                    f64::from(iops) / f64::from(size)
                )));
            }
        }
        (None, _) if wanted.iops.is_some() => {
            return Err(Refusal::combination(format!(
                "The parameter iops is not supported for {name} \
                volumes."
            )));
        }
        (_, _) => {}
    }
    match (kind.throughput, shape.throughput) {
        (Some(range), Some(throughput)) => {
            in_range("throughput", "MiB/s", throughput, range)?;
            let iops = shape.iops.unwrap_or(0);
            if u64::from(throughput) * u64::from(IOPS_PER_THROUGHPUT) > u64::from(iops) {
                return Err(Refusal::value(format!(
                    "Throughput (MiBps) to iops ratio of {:.6} is too high; maximum is 0.250000 MiBps per \
                        iops.",
                    f64::from(throughput) / f64::from(iops)
                )));
            }
        }
        (None, _) if wanted.throughput.is_some() => {
            return Err(Refusal::combination(format!(
                "The parameter throughput is not supported for {name} \
                volumes."
            )));
        }
        (_, _) => {}
    }
    Ok(())
}

fn in_range(what: &str, unit: &str, value: u32, (least, most): (u32, u32)) -> Result<(), Refusal> {
    if value < least {
        return Err(Refusal::value(format!(
            "Volume {what} of {value}{unit} is too low; minimum is \
            {least}{unit}."
        )));
    }
    if value > most {
        return Err(Refusal::value(format!(
            "Volume {what} of {value}{unit} is too high; maximum is \
            {most}{unit}."
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(
        volume_type: &str,
        size: u32,
        iops: Option<u32>,
        throughput: Option<u32>,
    ) -> Result<Shape, Refusal> {
        let wanted = Wanted { size: Some(size), volume_type: Some(volume_type.into()), iops, throughput };
        new_shape(&wanted, "gp2", None, &Truths::all())
    }

    #[test]
    fn each_type_keeps_to_its_ranges_and_ratios() {
        for (volume_type, size, iops, throughput, fits) in [
            ("gp3", 1, None, None, true),
            ("gp3", 0, None, None, false),
            ("gp3", 65_536, None, None, true),
            ("gp3", 65_537, None, None, false),
            ("gp3", 100, Some(2999), None, false),
            ("gp3", 100, Some(50_000), None, true),
            ("gp3", 100, Some(50_001), None, false),
            ("gp3", 200, Some(80_001), None, false),
            ("gp3", 100, Some(3000), Some(750), true),
            ("gp3", 100, Some(3000), Some(751), false),
            ("gp3", 100, Some(8000), Some(2000), true),
            ("gp3", 100, Some(8004), Some(2001), false),
            ("gp3", 100, None, Some(124), false),
            ("gp2", 16_384, None, None, true),
            ("gp2", 16_385, None, None, false),
            ("gp2", 100, Some(300), None, false),
            ("gp2", 100, None, Some(125), false),
            ("io1", 4, Some(200), None, true),
            ("io1", 4, Some(201), None, false),
            ("io1", 3, Some(100), None, false),
            ("io1", 100, None, None, false),
            ("io2", 4, Some(4000), None, true),
            ("io2", 4, Some(4001), None, false),
            ("gp4", 4, None, None, false),
        ] {
            let got = new(volume_type, size, iops, throughput);
            assert_eq!(got.is_ok(), fits, "{volume_type} {size} {iops:?} {throughput:?}: {got:?}");
        }
    }

    #[test]
    fn what_a_modification_does_not_name_stays() {
        let old = new("gp3", 100, Some(6000), Some(500)).unwrap();
        let wanted = Wanted { size: Some(200), ..Wanted::default() };
        let target = modified_shape(&old, &wanted, &Truths::all()).unwrap();
        assert_eq!(target, Shape { size: 200, ..old });
    }
}
