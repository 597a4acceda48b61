//! RunInstances: from a request to pending instances and their volumes.

use std::{collections::BTreeSet, net::Ipv4Addr};

use super::{Effects, Model, launch_request::Launch, lists::unavailable, records::Change};
use crate::{
    AttachmentState, AttachmentView, Health, InstanceState, InstanceView, Refusal, Response, StateReason,
    Subnet, Truth, VolumeState, VolumeView, params::Reader,
};

impl Model {
    pub(super) fn run_instances(
        &mut self,
        r: &mut Reader,
        hash: &str,
        effects: &Effects,
    ) -> Result<Response, Refusal> {
        let launch = self.read_launch(r, hash)?;
        r.finish()?;
        if launch.dry_run && self.holds(Truth::DryRun) {
            return Err(Refusal::dry_run());
        }
        let zone = launch.named_zone.as_deref();
        if self.holds(Truth::LimitBeforeToken) {
            self.refuse_over_quota(&launch, effects)?;
        }
        if let Some(token) = &launch.token
            && let Some(instances) = self.made_with("RunInstances", token, zone, hash)?
        {
            self.refuse_token_of_terminated(&instances)?;
            return Ok(Response::RunInstances(self.reservation(&instances)));
        }
        self.refuse_over_quota(&launch, effects)?;
        self.refuse_without_capacity(&launch, effects)?;
        let instances = self.launch(&launch, effects);
        if let Some(token) = &launch.token {
            self.remember("RunInstances", token, zone, hash, instances.clone());
        }
        Ok(Response::RunInstances(self.reservation(&instances)))
    }

    fn refuse_without_capacity(&self, launch: &Launch, effects: &Effects) -> Result<(), Refusal> {
        let (name, zone) = (&launch.instance_type.name, &launch.subnet.zone);
        if effects.zones_down.contains(zone) {
            return Err(unavailable());
        }
        if !launch.instance_type.is_offered_in(zone) {
            return Err(Refusal::new(
                "Unsupported",
                format!(
                    "Your requested instance type ({name}) is not supported in your requested \
                    Availability Zone ({zone})."
                ),
            ));
        }
        refuse_capacity_out(name, zone, effects)?;
        if self.free_addresses(&launch.subnet) < launch.count {
            return Err(Refusal::new(
                "InsufficientFreeAddressesInSubnet",
                format!(
                    "There are not enough free addresses in subnet '{}' to satisfy the requested number of \
                        instances.",
                    launch.subnet.id
                ),
            ));
        }
        Ok(())
    }

    fn launch(&mut self, launch: &Launch, effects: &Effects) -> Vec<String> {
        let reservation_id = self.new_id("r");
        let mut made = Vec::new();
        for launch_index in 0..launch.count {
            let id = self.new_id("i");
            let Some(address) = self.free_address(&launch.subnet) else {
                break;
            };
            let view = InstanceView {
                id: id.clone(),
                reservation_id: reservation_id.clone(),
                launch_index,
                client_token: launch.token.clone(),
                image_id: launch.image.id.clone(),
                architecture: launch.image.architecture.clone(),
                instance_type: launch.instance_type.name.clone(),
                zone: launch.subnet.zone.clone(),
                subnet_id: launch.subnet.id.clone(),
                vpc_id: launch.subnet.vpc_id.clone(),
                security_groups: launch.security_groups.clone(),
                instance_profile: launch.instance_profile.clone(),
                key_name: launch.key_name.clone(),
                private_ip: address.to_string(),
                private_dns: format!("ip-{}.ec2.internal", address.to_string().replace('.', "-")),
                user_data: launch.user_data.clone(),
                metadata: launch.metadata.clone(),
                ebs_optimized: launch.ebs_optimized,
                termination_protected: launch.termination_protected,
                shutdown_behavior: launch.shutdown_behavior.clone(),
                root_device: launch.image.root_device.clone(),
                tags: launch.tags.of("instance"),
                state: InstanceState::Pending,
                state_reason: Some(StateReason { code: "pending".into(), message: "pending".into() }),
                launched_at: self.state.now,
                running_at: None,
                terminated_at: None,
                reboots: 0,
                system_status: Health::NotApplicable,
                instance_status: Health::NotApplicable,
                events: Vec::new(),
                console: String::new(),
                attachments: Vec::new(),
            };
            let held = self.hold(view, effects);
            self.state.instances.insert(id.clone(), held);
            let death =
                self.make_mapped_volumes(&id, launch, effects).or_else(|| effects.launch_dies.clone());
            self.schedule_start(&id, death.filter(|_| self.holds(Truth::LaunchMayDie)));
            made.push(id);
        }
        made
    }

    /// Makes the volumes of an instance; answers with the reason that it will die of, if one of them can't be
    /// made.
    fn make_mapped_volumes(
        &mut self,
        instance_id: &str,
        launch: &Launch,
        effects: &Effects,
    ) -> Option<String> {
        for mapping in &launch.mappings {
            if self.rules.limits.volumes.is_some_and(|limit| self.state.volumes.len() >= limit) {
                return Some("Client.VolumeLimitExceeded".into());
            }
            let is_unusable = |key: &String| effects.key_refused || !self.world.kms_keys.contains(key);
            if mapping.kms_key.as_ref().is_some_and(is_unusable) {
                return Some("Client.InternalError".into());
            }
            let id = self.new_id("vol");
            let view = VolumeView {
                id: id.clone(),
                client_token: None,
                zone: launch.subnet.zone.clone(),
                shape: mapping.shape.clone(),
                encrypted: mapping.encrypted,
                kms_key: mapping.kms_key.clone(),
                snapshot_id: mapping.snapshot_id.clone(),
                initialization: None,
                state: VolumeState::InUse,
                created_at: self.state.now,
                tags: launch.tags.of("volume"),
                attachment: Some(AttachmentView {
                    volume_id: id.clone(),
                    instance_id: instance_id.to_owned(),
                    device: mapping.device.clone(),
                    state: AttachmentState::Attached,
                    attached_at: self.state.now,
                    delete_on_termination: mapping.delete_on_termination,
                }),
                modifications: Vec::new(),
            };
            let held = self.hold(view, effects);
            self.state.volumes.insert(id, held);
        }
        None
    }

    fn schedule_start(&mut self, id: &str, death: Option<String>) {
        let pending = self.rules.delays.pending;
        let change = match death {
            Some(code) => Change::LaunchDies { id: id.to_owned(), epoch: 0, code },
            None => Change::InstanceRuns { id: id.to_owned(), epoch: 0 },
        };
        if self.holds(Truth::InstancePassesThroughStates) {
            self.after(pending, change);
        } else {
            self.instance_runs(id, 0);
        }
    }

    fn addresses_in_use(&self, subnet: &Subnet) -> BTreeSet<Ipv4Addr> {
        let views = self.state.instances.values().map(|held| &held.view);
        let live =
            views.filter(|view| view.subnet_id == subnet.id && view.state != InstanceState::Terminated);
        live.filter_map(|view| view.private_ip.parse().ok()).collect()
    }

    pub(super) fn free_addresses(&self, subnet: &Subnet) -> u32 {
        let used = u32::try_from(self.addresses_in_use(subnet).len()).unwrap_or(u32::MAX);
        subnet.addresses.saturating_sub(used)
    }

    /// The next free address after the highest one that was ever given, round the subnet: that of a machine
    /// that has just ended is not given to the next one, whose host name it would be. The first four of a
    /// subnet are AWS's own (VPC user guide, "Subnet sizing").
    fn free_address(&self, subnet: &Subnet) -> Option<Ipv4Addr> {
        let used = self.addresses_in_use(subnet);
        let base: Ipv4Addr = subnet.cidr.split('/').next()?.parse().ok()?;
        let first = u32::from(base) + 4;
        let end = first + subnet.addresses;
        let given = self.state.instances.values().filter(|held| held.view.subnet_id == subnet.id);
        let highest = given
            .filter_map(|held| held.view.private_ip.parse().ok())
            .map(|address: Ipv4Addr| u32::from(address))
            .max();
        let next = highest.map_or(first, |highest| highest + 1).min(end);
        (next..end).chain(first..next).map(Ipv4Addr::from).find(|address| !used.contains(address))
    }
}

pub(super) fn refuse_capacity_out(name: &str, zone: &str, effects: &Effects) -> Result<(), Refusal> {
    let is = |wanted: &Option<String>, actual: &str| wanted.as_ref().is_none_or(|wanted| wanted == actual);
    if effects.capacity_out.iter().any(|(wanted, place)| is(wanted, name) && is(place, zone)) {
        return Err(Refusal::new(
            "InsufficientInstanceCapacity",
            format!(
                "We currently do not have sufficient {name} capacity in the Availability Zone you \
                requested ({zone})."
            ),
        ));
    }
    Ok(())
}
