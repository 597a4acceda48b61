//! Instances as callers see them: by id, in lists, with their console.

use super::{
    Effects, Held, Model, in_order,
    lists::{Query, USUAL, page, tag_values},
};
use crate::{InstanceView, Page, Refusal, Reservation, Response, Truth, VolumeView, params::Reader};

const FILTERS: [&str; 20] = [
    "architecture",
    "availability-zone",
    "block-device-mapping.device-name",
    "block-device-mapping.volume-id",
    "client-token",
    "dns-name",
    "iam-instance-profile.arn",
    "image-id",
    "instance-id",
    "instance-state-code",
    "instance-state-name",
    "instance-type",
    "instance.group-id",
    "private-dns-name",
    "private-ip-address",
    "reservation-id",
    "subnet-id",
    "tag-key",
    "tag:",
    "vpc-id",
];

impl Model {
    pub(super) fn describe_instances(&self, r: &mut Reader, effects: &Effects) -> Result<Response, Refusal> {
        let query = Query::read(r, "InstanceId", &FILTERS, &USUAL, &self.rules.truths)?;
        let dry_run = r.flag("DryRun")?;
        r.finish()?;
        if dry_run {
            return Err(Refusal::dry_run());
        }
        let Page { items, next_token } = self.instance_page(&query, effects, instance_values)?;
        let mut reservations: Vec<Reservation> = Vec::new();
        for instance in items {
            match reservations.last_mut().filter(|last| last.id == instance.reservation_id) {
                Some(last) => last.instances.push(instance),
                None => reservations
                    .push(Reservation { id: instance.reservation_id.clone(), instances: vec![instance] }),
            }
        }
        Ok(Response::Instances(Page { items: reservations, next_token }))
    }

    /// The instances that a query lets the caller see now.
    pub(super) fn instance_page(
        &self,
        query: &Query,
        effects: &Effects,
        values: impl Fn(&InstanceView, &str) -> Vec<String>,
    ) -> Result<Page<InstanceView>, Refusal> {
        self.refuse_disrupted(query, effects, |id| {
            self.state.instances.get(id).map(|held| held.view.zone.as_str())
        })?;
        let mut seen = Vec::new();
        if query.is_without_ids() {
            seen.extend(in_order(&self.state.instances).filter(|held| self.sees_in_lists(&held.visible)));
        } else {
            for id in &query.ids {
                match self.find_instance(id) {
                    Ok(held) => seen.push(held),
                    Err(_) if !self.holds(Truth::UnknownIdFailsWhole) => {}
                    Err(refusal) => return Err(refusal),
                }
            }
            seen.sort_by_key(|held| held.order);
        }
        let items = seen.into_iter().map(|held| (held.order, self.as_seen(held))).collect();
        Ok(page(query, items, &self.rules.truths, effects, |view| query.matches(|name| values(view, name))))
    }

    pub(super) fn get_console_output(&self, r: &mut Reader) -> Result<Response, Refusal> {
        let id = r.required("InstanceId")?;
        let dry_run = r.flag("DryRun")?;
        r.flag("Latest")?;
        r.finish()?;
        let view = &self.find_instance(&id)?.view;
        if dry_run {
            return Err(Refusal::dry_run());
        }
        Ok(Response::ConsoleOutput { instance_id: id, at: self.state.now, output: view.console.clone() })
    }

    /// The instance of this id, if callers can see it.
    pub(super) fn find_instance(&self, id: &str) -> Result<&Held<InstanceView>, Refusal> {
        if !id.starts_with("i-") {
            return Err(Refusal::new("InvalidInstanceID.Malformed", format!("Invalid id: \"{id}\"")));
        }
        self.state.instances.get(id).filter(|held| self.sees_id(&held.visible)).ok_or_else(|| {
            Refusal::new("InvalidInstanceID.NotFound", format!("The instance ID '{id}' does not exist"))
        })
    }

    /// The instance with its volumes.
    pub(super) fn with_attachments(&self, view: &InstanceView) -> InstanceView {
        let attachments = self.volumes_of(&view.id).filter_map(|volume| volume.attachment.clone()).collect();
        InstanceView { attachments, ..view.clone() }
    }

    /// The volumes at an instance, in the order of their creation.
    pub(super) fn volumes_of(&self, instance_id: &str) -> impl Iterator<Item = &VolumeView> + use<'_> {
        let is_at =
            |view: &VolumeView| view.attachment.as_ref().is_some_and(|held| held.instance_id == instance_id);
        let mut found: Vec<_> = self.state.volumes.values().filter(|held| is_at(&held.view)).collect();
        found.sort_by_key(|held| held.order);
        found.into_iter().map(|held| &held.view)
    }

    fn as_seen(&self, held: &Held<InstanceView>) -> InstanceView {
        let mut view = self.with_attachments(&held.view);
        if !self.sees_tags(&held.visible) {
            view.tags.clear();
        }
        view
    }

    /// The instances of one launch, as the answer to RunInstances shows them.
    pub(super) fn reservation(&self, ids: &[String]) -> Reservation {
        let held = ids.iter().filter_map(|id| self.state.instances.get(id));
        let instances: Vec<InstanceView> = held.map(|held| self.with_attachments(&held.view)).collect();
        Reservation {
            id: instances.first().map(|first| first.reservation_id.clone()).unwrap_or_default(),
            instances,
        }
    }
}

fn instance_values(view: &InstanceView, name: &str) -> Vec<String> {
    let one = |value: &str| vec![value.to_owned()];
    match name {
        "architecture" => one(&view.architecture),
        "availability-zone" => one(&view.zone),
        "block-device-mapping.device-name" => {
            view.attachments.iter().map(|held| held.device.clone()).collect()
        }
        "block-device-mapping.volume-id" => {
            view.attachments.iter().map(|held| held.volume_id.clone()).collect()
        }
        "client-token" => view.client_token.iter().cloned().collect(),
        "iam-instance-profile.arn" => view.instance_profile.iter().cloned().collect(),
        "image-id" => one(&view.image_id),
        "instance-id" => one(&view.id),
        "instance-state-code" => vec![view.state.code().to_string()],
        "instance-state-name" => one(view.state.as_str()),
        "instance-type" => one(&view.instance_type),
        "instance.group-id" => view.security_groups.clone(),
        "private-dns-name" => one(&view.private_dns),
        "private-ip-address" => one(&view.private_ip),
        "reservation-id" => one(&view.reservation_id),
        "subnet-id" => one(&view.subnet_id),
        "vpc-id" => one(&view.vpc_id),
        tag => tag_values(tag, &view.tags),
    }
}
