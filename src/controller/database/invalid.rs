//! Checks a spec again: a stored object may be older than a rule of the resource definition. Pure.

use super::observe::Observed;
use crate::api::database::Storage;

/// The longest name: 52 characters are left of 63 for what is derived from it.
const LONGEST_NAME: usize = 40;

/// What in the spec cannot be, naming the field and the way out; `None` when nothing is wrong.
pub fn invalid(observed: &Observed) -> Option<String> {
    name(observed)
        .or_else(|| observed.profile.as_ref().err().map(ToString::to_string))
        .or_else(|| storage(observed))
        .or_else(|| placement(observed))
}

fn name(observed: &Observed) -> Option<String> {
    let name = observed.names.database.as_str();
    let is_name = name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    (!is_name).then(|| {
        format!(
            "metadata.name {name:?} cannot be used: create the Database under a name of a-z, 0-9 and '-' that starts with a letter, of \
             at most {LONGEST_NAME} characters"
        )
    })
}

fn storage(observed: &Observed) -> Option<String> {
    let Storage { size, volume_type, iops, throughput, file_system } = &observed.database.spec.storage;
    let Some(gib) = size.gib() else {
        return Some(format!("spec.storage.size {size} must be a whole number of GiB or TiB, for example 100Gi or 2Ti"));
    };
    if throughput.is_some() && volume_type != "gp3" {
        return Some("spec.storage.throughput is only for the type gp3: remove it or set spec.storage.type to gp3".to_owned());
    }
    if iops.is_some() && ["gp2", "st1", "sc1", "standard"].contains(&volume_type.as_str()) {
        return Some(format!("spec.storage.iops is not for the type {volume_type}: remove it or set spec.storage.type to gp3"));
    }
    if iops.is_none() && ["io1", "io2"].contains(&volume_type.as_str()) {
        return Some(format!("spec.storage.iops is required for the type {volume_type}"));
    }
    let made = &observed.volume.ours()?.spec;
    if made.size.gib().is_some_and(|made| gib < made) {
        return Some(format!("spec.storage.size {size} is less than the volume's {}: EBS volumes only grow; set it back", made.size));
    }
    (*file_system != made.file_system)
        .then(|| format!("spec.storage.fileSystem cannot change: the volume was formatted with {}; set it back", made.file_system.as_str()))
}

fn placement(observed: &Observed) -> Option<String> {
    let spec = &observed.database.spec;
    if spec.instance_types.is_empty() {
        return Some("spec.instanceTypes is empty: name at least one EC2 instance type, for example r7i.large".to_owned());
    }
    let zone = observed.database.status.as_ref().and_then(|status| status.zone.as_ref())?;
    (!spec.zones.is_empty() && !spec.zones.contains(zone)).then(|| {
        format!("spec.zones does not hold {zone}, where the volume is: an EBS volume cannot leave its zone; add {zone} to the list again")
    })
}
