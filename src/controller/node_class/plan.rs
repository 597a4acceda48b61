//! The plan step of the NodeClass controller: compares what the class names with what there is. Pure.

use std::collections::BTreeMap;
use std::slice;

use k8s_openapi::api::storage::v1::StorageClass;

use super::catalog::Catalog;
use super::fault::Fault;
use super::observe::Observed;
use super::wait::ClassWait;
use super::{launch_check, launches, user_data};
use crate::api::NodeClassSpec;
use crate::api::keys::EBS_CSI_DRIVER;
use crate::api::node_class_status::EndedLaunch;
use crate::cloud::catalog::{Image, ImageDisk, SecurityGroup, Subnet};
use crate::cluster::finalizer;
use crate::controller::pattern;

/// A write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Keeps the class from being deleted while something uses it.
    AddFinalizer,
    /// Lets the class go.
    RemoveFinalizer,
}

/// What is wrong, and what to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes, in order.
    pub actions: Vec<Action>,
    /// What is awaited.
    pub waiting: Option<ClassWait>,
    /// What is not there or does not fit; empty also when EC2 could not be read.
    pub faults: Vec<Fault>,
    /// Whether a machine can be launched; absent if EC2 could not be read.
    pub launchable: Option<bool>,
    /// The newest launch of the class, if EC2 ended it.
    pub ended_launch: Option<EndedLaunch>,
}

/// Decides what to do about a NodeClass.
pub fn plan(observed: &Observed) -> Plan {
    let class = &observed.class;
    if class.metadata.deletion_timestamp.is_some() {
        return if observed.users.is_empty() {
            let actions = vec![Action::RemoveFinalizer];
            Plan { actions, waiting: Some(ClassWait::Unused), ..Plan::default() }
        } else {
            Plan { waiting: Some(ClassWait::InUse(observed.users.clone())), ..judged(observed) }
        };
    }
    if !finalizer::has(class) {
        let actions = vec![Action::AddFinalizer];
        return Plan { actions, waiting: Some(ClassWait::AddingFinalizer), ..Plan::default() };
    }
    judged(observed)
}

fn judged(observed: &Observed) -> Plan {
    let catalog = match &observed.catalog {
        Ok(catalog) => catalog,
        Err(blocked) => {
            return Plan { waiting: Some(ClassWait::Unread(blocked.clone())), ..Plan::default() };
        }
    };
    let spec = &observed.class.spec;
    let mut faults = image(spec, catalog);
    faults.extend(network(spec, catalog));
    faults.extend(instance_types(spec, catalog));
    faults.extend(storage_class(&spec.storage_class_name, observed.storage_class.as_ref()));
    let mistakes = user_data::mistakes(&spec.user_data, catalog.image.as_ref());
    faults.extend(mistakes.into_iter().map(Fault::UserData));
    let launchable = !faults.iter().any(Fault::prevents_launches);
    // A dry run refuses what is named above once more.
    let refused = launch_check::fault(spec, observed.launch_check.answer.as_ref());
    faults.extend(refused.filter(|_| launchable));
    let ended = launches::ended(spec.kms_key_id.as_ref(), observed.ended_launch.as_ref(), &observed.launches);
    faults.extend(ended.as_ref().map(|ended| Fault::LaunchEnded {
        instance: ended.instance_id.clone(),
        has_key: spec.kms_key_id.is_some(),
    }));
    Plan { launchable: Some(launchable), faults, ended_launch: ended, ..Plan::default() }
}

fn image(spec: &NodeClassSpec, catalog: &Catalog) -> Vec<Fault> {
    let Some(image) = &catalog.image else {
        return vec![Fault::ImageNotFound(spec.image_id.clone())];
    };
    if !image.is_available {
        return vec![Fault::ImageNotAvailable(image.id.clone())];
    }
    disks(spec, image)
}

/// A disk that the class does not name is as the image has it, encrypted or not.
fn disks(spec: &NodeClassSpec, image: &Image) -> Vec<Fault> {
    let root = &spec.root_volume;
    if root.device_name != image.root_device {
        return vec![Fault::RootDevice { image: image.root_device.clone(), class: root.device_name.clone() }];
    }
    let more = spec.additional_volumes.iter().map(|volume| (&volume.device_name, volume.size));
    let sizes: BTreeMap<&String, i32> = more.chain([(&root.device_name, root.size)]).collect();
    let fault = |disk: &ImageDisk| {
        let Some(&class) = sizes.get(&disk.device) else {
            return Some(Fault::DiskNotNamed(disk.device.clone()));
        };
        let image = disk.size.filter(|size| *size > class)?;
        Some(Fault::DiskTooSmall { device: disk.device.clone(), image, class })
    };
    image.disks.iter().filter_map(fault).collect()
}

fn network(spec: &NodeClassSpec, catalog: &Catalog) -> Vec<Fault> {
    let shown = |id: &str| catalog.subnets.iter().find(|subnet| subnet.id == id);
    let mut faults = Vec::new();
    for subnet in &spec.subnets {
        match shown(&subnet.id) {
            None => faults.push(Fault::SubnetNotFound(subnet.id.clone())),
            Some(shown) if shown.zone != subnet.zone => faults.push(Fault::SubnetZone {
                subnet: subnet.id.clone(),
                zone: shown.zone.clone(),
                class: subnet.zone.clone(),
            }),
            Some(_) => {}
        }
    }
    let subnets: Vec<&Subnet> = spec.subnets.iter().filter_map(|subnet| shown(&subnet.id)).collect();
    let Some((first, others)) = subnets.split_first() else { return faults };
    let place = |subnet: &Subnet| (subnet.id.clone(), subnet.vpc_id.clone());
    if let Some(other) = others.iter().find(|other| other.vpc_id != first.vpc_id) {
        faults.push(Fault::SubnetVpc { one: place(first), other: place(other) });
    }
    faults.extend(security_groups(spec, &catalog.security_groups, first));
    let full: Vec<String> =
        subnets.iter().filter(|subnet| subnet.free_addresses < 1).map(|subnet| subnet.id.clone()).collect();
    if !full.is_empty() {
        faults.push(Fault::NoFreeAddresses(full));
    }
    faults
}

fn security_groups(spec: &NodeClassSpec, shown: &[SecurityGroup], subnet: &Subnet) -> Vec<Fault> {
    let fault = |id: &String| match shown.iter().find(|group| group.id == *id) {
        None => Some(Fault::SecurityGroupNotFound(id.clone())),
        Some(group) if group.vpc_id != subnet.vpc_id => Some(Fault::SecurityGroupVpc {
            group: id.clone(),
            vpc: group.vpc_id.clone(),
            subnets: subnet.vpc_id.clone(),
        }),
        Some(_) => None,
    };
    spec.security_group_ids.iter().filter_map(fault).collect()
}

/// A pattern that matches types of several architectures is right if one of them runs the image.
fn instance_types(spec: &NodeClassSpec, catalog: &Catalog) -> Vec<Fault> {
    let Some(image) = &catalog.image else { return Vec::new() };
    let mut faults = Vec::new();
    let mut other_architecture = Vec::new();
    for name in &spec.instance_types {
        let mut matching = catalog
            .instance_types
            .iter()
            .filter(|kind| pattern::is_any(slice::from_ref(name), &kind.name))
            .peekable();
        if matching.peek().is_none() {
            faults.push(Fault::NoSuchType(name.clone()));
        } else if !matching.any(|kind| kind.architectures.contains(&image.architecture)) {
            other_architecture.push(name.clone());
        }
    }
    if !other_architecture.is_empty() {
        let image = image.architecture.clone();
        faults.push(Fault::Architecture { image, patterns: other_architecture });
    }
    faults
}

fn storage_class(name: &str, shown: Option<&StorageClass>) -> Option<Fault> {
    let Some(shown) = shown else { return Some(Fault::StorageClassNotFound(name.to_owned())) };
    if shown.provisioner != EBS_CSI_DRIVER {
        let provisioner = shown.provisioner.clone();
        return Some(Fault::StorageClassDriver { name: name.to_owned(), provisioner });
    }
    (shown.allow_volume_expansion != Some(true)).then(|| Fault::StorageClassFixed(name.to_owned()))
}
