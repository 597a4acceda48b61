//! The offering of the next attempt: instance type, zone and subnet, and the whole request made of them.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::facts::owner_of;
use crate::api::creation::Attempt;
use crate::api::node::NodeCreation;
use crate::api::node_class::{AdditionalVolume, NodeClassSpec, RootVolume, Subnet, ZoneOrder};
use crate::api::{NodeClass, NodeSpec};
use crate::cloud::identity::{self, Owner};
use crate::cloud::quota::{Demand, Quota};
use crate::cloud::{Disk, LAUNCH_SHAPE, LaunchRequest};
use crate::controller::node::observe::Observed;
use crate::controller::pattern;
use crate::time::whole_second;

/// Why nothing can be launched at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoChoice {
    /// The NodeClass has no subnet in an allowed zone.
    NoSubnet {
        /// The allowed zones.
        zones: Vec<String>,
    },
    /// The subnets in an allowed zone are none: EC2 launched an instance of this one in another zone.
    Elsewhere {
        /// The subnet.
        subnet: Subnet,
        /// Its zone.
        zone: String,
        /// When it is requested again.
        until: Timestamp,
    },
    /// The NodeClass allows none of the types.
    NoAllowedType,
    /// Every allowed type and zone is out of capacity until then at the earliest.
    NoCapacity {
        /// Which types and zones were refused.
        refused: Vec<(String, String)>,
        /// When the first of them is tried again.
        until: Timestamp,
    },
    /// A quota of the account is reached, and no allowed type of another quota has capacity.
    Quota {
        /// The quota that the most preferred of them counts against.
        quota: Quota,
        /// The allowed types that count against it.
        types: Vec<String>,
        /// When the first of all types is tried again.
        until: Timestamp,
    },
}

/// The first type, in order of preference, whose quota is not reached and that has capacity in an allowed
/// zone, and the first subnet there that is not full, in the class' order of subnets, or from another zone
/// on. A subnet whose last instance came up in another zone is none of that zone, whether a controller of
/// NodeClasses has judged the class or not.
pub fn choose<'a>(
    observed: &'a Observed,
    class: &'a NodeClass,
    now: Timestamp,
) -> Result<(&'a str, &'a Subnet), NoChoice> {
    let spec = &observed.node.spec;
    let mut subnets = subnets(spec, class);
    let class = &class.spec;
    if class.zone_order == ZoneOrder::Spread && spec.zone.is_none() {
        begin_with_own_zone(&mut subnets, &observed.node.uid().unwrap_or_default());
    }
    if subnets.is_empty() {
        let zones = spec.zone.clone().map_or_else(|| spec.zones.clone(), |zone| vec![zone]);
        return Err(NoChoice::NoSubnet { zones });
    }
    let elsewhere = |subnet: &Subnet| observed.offerings.elsewhere(&subnet.id, &subnet.zone).cloned();
    let first = subnets[0];
    subnets.retain(|subnet| elsewhere(subnet).is_none());
    if let (true, Some((zone, until))) = (subnets.is_empty(), elsewhere(first)) {
        return Err(NoChoice::Elsewhere { subnet: first.clone(), zone, until });
    }
    let types: Vec<&String> =
        spec.instance_types.iter().filter(|name| is_allowed(name, &class.instance_types)).collect();
    if types.is_empty() {
        return Err(NoChoice::NoAllowedType);
    }
    let offers = || types.iter().flat_map(|name| subnets.iter().map(move |subnet| (name.as_str(), *subnet)));
    let reached = |name: &str| {
        let RootVolume { volume_type, size, .. } = &class.root_volume;
        observed.offerings.reached(&Demand::instance(name, volume_type, *size))
    };
    let closed_until = |(name, subnet): (&str, &Subnet)| {
        let Subnet { id, zone } = subnet;
        let no_capacity = observed.offerings.launchable_at(name, &class.image_id, zone, id);
        no_capacity.max(reached(name).map(|(_, until)| until))
    };
    if let Some(choice) = offers().find(|offer| closed_until(*offer).is_none()) {
        return Ok(choice);
    }
    let until = offers().filter_map(closed_until).min().unwrap_or(now);
    if let Some((quota, _)) = types.iter().find_map(|name| reached(name)) {
        let counts = |name: &&&String| reached(name).is_some_and(|(reached, _)| reached == quota);
        let types = types.iter().filter(counts).map(|name| (*name).clone()).collect();
        return Err(NoChoice::Quota { quota, types, until });
    }
    let refused = offers().map(|(name, subnet)| (name.to_owned(), subnet.zone.clone())).collect();
    Err(NoChoice::NoCapacity { refused, until })
}

/// The zones in turn, from one on that the UID of the Node decides; the subnets of each as they are.
fn begin_with_own_zone(subnets: &mut [&Subnet], uid: &str) {
    let zones: BTreeSet<&str> = subnets.iter().map(|subnet| subnet.zone.as_str()).collect();
    let zones: Vec<&str> = zones.into_iter().collect();
    // A UID is random; any sum of it is.
    let sum = uid.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
    let Some(first) = sum.checked_rem(zones.len()) else { return };
    let turn = |zone: &str| {
        let place = zones.iter().position(|other| *other == zone).unwrap_or_default();
        (place + zones.len() - first) % zones.len()
    };
    subnets.sort_by_key(|subnet| turn(&subnet.zone));
}

/// The class' subnets in the zones that the spec allows, in the class' order. One that EC2 shows in another
/// zone is none of them: its machines would come up there, where the volume is not. One that EC2 does not
/// show is none while there is another.
pub fn subnets<'a>(spec: &NodeSpec, class: &'a NodeClass) -> Vec<&'a Subnet> {
    let is_allowed = |subnet: &&Subnet| match &spec.zone {
        Some(zone) => subnet.zone == *zone,
        None => spec.zones.is_empty() || spec.zones.contains(&subnet.zone),
    };
    let judged = class.status.as_ref().filter(|status| {
        status.launchable.is_some() && status.observed_generation == class.metadata.generation
    });
    let shown = |subnet: &Subnet| judged.and_then(|it| it.subnets.iter().find(|shown| shown.id == subnet.id));
    let is_elsewhere = |subnet: &Subnet| shown(subnet).is_some_and(|shown| shown.zone != subnet.zone);
    let all = class.spec.subnets.iter().filter(is_allowed);
    let declared: Vec<&Subnet> = all.filter(|subnet| !is_elsewhere(subnet)).collect();
    let seen: Vec<&Subnet> = declared.iter().copied().filter(|subnet| shown(subnet).is_some()).collect();
    if judged.is_none() || seen.is_empty() { declared } else { seen }
}

/// What an instance asks of the account's quotas.
pub(in crate::controller::node) fn demand(creation: &NodeCreation) -> Demand {
    let RootVolume { volume_type, size, .. } = &creation.root_volume;
    Demand::instance(&creation.instance_type, volume_type, *size)
}

/// The whole request of an attempt.
pub fn launch(
    observed: &Observed,
    class: &NodeClassSpec,
    instance_type: &str,
    subnet: &Subnet,
    attempt: i32,
    never_joined: i32,
    now: Timestamp,
) -> NodeCreation {
    let attempt = Attempt::new(attempt, Time(whole_second(now)));
    NodeCreation { never_joined, ..creation(class, &owner_of(observed), instance_type, subnet, attempt) }
}

/// The whole request of an attempt for this owner: of a Node's launch, and of a NodeClass' dry run.
pub fn creation(
    class: &NodeClassSpec,
    owner: &Owner,
    instance_type: &str,
    subnet: &Subnet,
    attempt: Attempt,
) -> NodeCreation {
    let class_tags: BTreeMap<String, String> =
        class.tags.iter().map(|(key, value)| (key.clone(), value.0.clone())).collect();
    NodeCreation {
        client_token: identity::token(&owner.cluster_id, owner.kind, &owner.uid, attempt.number),
        zone: subnet.zone.clone(),
        subnet_id: subnet.id.clone(),
        instance_type: instance_type.to_owned(),
        image_id: class.image_id.clone(),
        security_group_ids: class.security_group_ids.clone(),
        instance_profile: class.instance_profile.clone(),
        root_volume: class.root_volume.clone(),
        additional_volumes: class.additional_volumes.clone(),
        kms_key_id: class.kms_key_id.clone(),
        tags: identity::tags(owner, attempt.number, &class_tags),
        user_data_hash: identity::user_data_hash(&class.user_data),
        never_joined: 0,
        shape: LAUNCH_SHAPE,
        attempt,
    }
}

/// What EC2 is sent of it; `user_data` is the text of the recorded hash.
pub fn request(creation: &NodeCreation, user_data: &str) -> LaunchRequest {
    LaunchRequest {
        token: creation.client_token.clone(),
        subnet_id: creation.subnet_id.clone(),
        instance_type: creation.instance_type.clone(),
        image_id: creation.image_id.clone(),
        user_data: user_data.to_owned(),
        security_group_ids: creation.security_group_ids.clone(),
        instance_profile: creation.instance_profile.clone(),
        disks: disks(creation),
        kms_key_id: creation.kms_key_id.clone(),
        tags: creation.tags.clone(),
    }
}

/// The machine's own disks, the root disk first.
fn disks(creation: &NodeCreation) -> Vec<Disk> {
    let RootVolume { size, volume_type, device_name } = creation.root_volume.clone();
    let root = Disk { device: device_name, size, volume_type };
    let others = creation.additional_volumes.iter().cloned();
    let others = others.map(|AdditionalVolume { device_name, size, volume_type }| Disk {
        device: device_name,
        size,
        volume_type,
    });
    std::iter::once(root).chain(others).collect()
}

/// What of the NodeClass a machine was made with that differs from the class now; nothing when it is the
/// same.
pub fn drift(launch: &NodeCreation, class: &NodeClassSpec) -> Vec<&'static str> {
    let mut differs = Vec::new();
    if launch.image_id != class.image_id {
        differs.push("imageID");
    }
    if !class.subnets.iter().any(|subnet| subnet.id == launch.subnet_id) {
        differs.push("subnets");
    }
    if launch.security_group_ids != class.security_group_ids {
        differs.push("securityGroupIDs");
    }
    if launch.instance_profile != class.instance_profile {
        differs.push("instanceProfile");
    }
    if launch.user_data_hash != identity::user_data_hash(&class.user_data) {
        differs.push("userData");
    }
    if launch.root_volume != class.root_volume {
        differs.push("rootVolume");
    }
    if launch.additional_volumes != class.additional_volumes {
        differs.push("additionalVolumes");
    }
    if launch.kms_key_id != class.kms_key_id {
        differs.push("kmsKeyID");
    }
    let wanted = class.tags.iter().map(|(key, value)| (key.clone(), value.0.clone())).collect();
    if identity::class_tags(&launch.tags) != identity::class_tags(&wanted) {
        differs.push("tags");
    }
    differs
}

/// A device name that two disks of the class have.
pub fn shared_device(class: &NodeClassSpec) -> Option<&str> {
    let mut devices: Vec<&str> = class.additional_volumes.iter().map(|it| it.device_name.as_str()).collect();
    devices.push(&class.root_volume.device_name);
    devices.sort_unstable();
    devices.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// Whether a pattern of the class allows the type.
pub fn is_allowed(instance_type: &str, patterns: &[String]) -> bool {
    pattern::is_any(patterns, instance_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_begin_with_different_zones_and_each_tries_all_with_their_subnets_in_order() {
        let subnet = |id: &str, zone: &str| Subnet { id: id.to_owned(), zone: zone.to_owned() };
        let class = [subnet("a1", "a"), subnet("b1", "b"), subnet("a2", "a"), subnet("c1", "c")];
        let mut begun: BTreeMap<String, usize> = BTreeMap::new();
        for number in 0..300_u32 {
            let uid = format!("{:08x}-2f3f-4a53-8f9c-6c2f8f2f1a10", number.wrapping_mul(2_654_435_761));
            let mut subnets: Vec<&Subnet> = class.iter().collect();
            begin_with_own_zone(&mut subnets, &uid);
            let order: Vec<&str> = subnets.iter().map(|subnet| subnet.id.as_str()).collect();
            let turns = [["a1", "a2", "b1", "c1"], ["b1", "c1", "a1", "a2"], ["c1", "a1", "a2", "b1"]];
            assert!(turns.iter().any(|turn| order == turn), "{order:?}");
            *begun.entry(subnets[0].zone.clone()).or_default() += 1;
        }
        assert!(begun.len() == 3 && begun.values().all(|count| *count > 60), "{begun:?}");
        begin_with_own_zone(&mut [], "1");
    }
}
