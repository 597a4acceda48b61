//! Volumes: made, listed, deleted.

use super::{
    Effects, Held, Model,
    dry_run::refuse_dry_run,
    in_order,
    lists::{Query, VOLUMES, page, tag_values, unavailable},
    records::Change,
    shapes::{Wanted, new_shape},
    tags::TagSpecs,
    tokens::mismatch,
};
use crate::{Initialization, Page, Refusal, Response, Shape, Truth, VolumeState, VolumeView, params::Reader};

const FILTERS: [&str; 17] = [
    "attachment.attach-time",
    "attachment.delete-on-termination",
    "attachment.device",
    "attachment.instance-id",
    "attachment.status",
    "availability-zone",
    "create-time",
    "encrypted",
    "multi-attach-enabled",
    "size",
    "snapshot-id",
    "status",
    "tag-key",
    "tag:",
    "volume-id",
    "volume-type",
    "availability-zone-id",
];

/// A `CreateVolume` that was read.
struct Creation {
    zone: String,
    snapshot_id: Option<String>,
    initialization: Option<Initialization>,
    shape: Shape,
    encrypted: bool,
    kms_key: Option<String>,
    tags: TagSpecs,
    token: Option<String>,
}

/// Refuses a volume in a zone that is down or full.
fn refuse_place(zone: &str, effects: &Effects) -> Result<(), Refusal> {
    if effects.zones_down.iter().any(|down| down == zone) {
        return Err(unavailable());
    }
    let is_full = effects
        .capacity_out
        .iter()
        .any(|(kind, place)| kind.is_none() && place.as_ref().is_none_or(|place| place == zone));
    if is_full {
        return Err(Refusal::new(
            "InsufficientVolumeCapacity",
            format!("There is not enough capacity in {zone}."),
        ));
    }
    Ok(())
}

impl Model {
    pub(super) fn create_volume(
        &mut self,
        r: &mut Reader,
        hash: &str,
        effects: &Effects,
    ) -> Result<Response, Refusal> {
        let request = self.read_creation(r, hash)?;
        if self.holds(Truth::LimitBeforeToken) {
            self.refuse_more_volumes(&request.shape, effects)?;
        }
        if let Some(token) = &request.token
            && let Some(made) = self.made_with("CreateVolume", token, None, hash)?
        {
            // The token of a volume that has vanished is dead until it is forgotten
            // (aws-ebs-csi-driver#1951).
            return match made.first().and_then(|id| self.state.volumes.get(id)) {
                Some(held) => Ok(Response::Volume(held.view.clone())),
                None => Err(mismatch()),
            };
        }
        self.refuse_more_volumes(&request.shape, effects)?;
        refuse_place(&request.zone, effects)?;
        let has_key = request
            .kms_key
            .as_ref()
            .is_none_or(|key| self.world.kms_keys.contains(key) && !effects.key_refused);
        if !has_key && !self.holds(Truth::KmsRefusalIsLate) {
            return Err(Refusal::new("InvalidKmsKey.NotFound", "The specified KMS key does not exist."));
        }
        let token = request.token.clone();
        let view = self.make_volume(request, has_key, effects);
        if let Some(token) = &token {
            self.remember("CreateVolume", token, None, hash, vec![view.id.clone()]);
        }
        Ok(Response::Volume(view))
    }

    fn read_creation(&self, r: &mut Reader, hash: &str) -> Result<Creation, Refusal> {
        let zone = self.read_zone(r)?;
        let snapshot_id = r.text("SnapshotId").filter(|id| !id.is_empty());
        let snapshot =
            snapshot_id.as_ref().map(|id| self.find_snapshot(id).map(|found| found.size)).transpose()?;
        let shape = new_shape(&Wanted::read(r, "", "Size")?, "gp2", snapshot, &self.rules.truths)?;
        let initialization = self.read_initialization(r, snapshot)?;
        let (encrypted, kms_key) = (r.flag("Encrypted")?, r.text("KmsKeyId"));
        if kms_key.is_some() && !encrypted {
            return Err(Refusal::new(
                "InvalidParameterDependency",
                "The parameter KmsKeyId requires the parameter Encrypted to be set.",
            ));
        }
        if r.flag("MultiAttachEnabled")? {
            return Err(Refusal::unsupported("Multi-attach is not modelled"));
        }
        let tags = TagSpecs::read(r, &["volume"])?;
        let token = self.read_token(r, hash);
        refuse_dry_run(self.read_end(r)?)?;
        Ok(Creation { zone, snapshot_id, initialization, shape, encrypted, kms_key, tags, token })
    }

    /// Makes the volume. Without its key, or if it fails, it does not become available.
    fn make_volume(&mut self, request: Creation, has_key: bool, effects: &Effects) -> VolumeView {
        let id = self.new_id("vol");
        let passes = self.holds(Truth::VolumePassesThroughStates);
        let view = VolumeView {
            id: id.clone(),
            client_token: request.token,
            zone: request.zone,
            shape: request.shape,
            encrypted: request.encrypted,
            kms_key: request.kms_key,
            snapshot_id: request.snapshot_id,
            initialization: request.initialization,
            state: if passes { VolumeState::Creating } else { VolumeState::Available },
            created_at: self.state.now,
            tags: request.tags.of("volume"),
            attachment: None,
            modifications: Vec::new(),
        };
        let held = self.hold(view.clone(), effects);
        self.state.volumes.insert(id.clone(), held);
        // One that vanishes is creating until then, whatever lets it vanish.
        if passes && has_key && effects.vanishes.is_none() {
            let change = if effects.fails {
                Change::Fails { id: id.clone() }
            } else {
                Change::VolumeAvailable { id: id.clone(), epoch: 0 }
            };
            self.after(self.rules.delays.creating, change);
        }
        if let Some(delay) = effects.vanishes.or_else(|| (!has_key).then_some(self.rules.delays.vanishing)) {
            self.after(delay, Change::VolumeGone { id });
        }
        view
    }

    fn read_zone(&self, r: &mut Reader) -> Result<String, Refusal> {
        let (name, id) = (r.text("AvailabilityZone"), r.text("AvailabilityZoneId"));
        let found = match (&name, &id) {
            (Some(name), None) => self.world.zones.iter().find(|zone| zone.name == *name),
            (None, Some(id)) => self.world.zones.iter().find(|zone| zone.id == *id),
            (Some(_), Some(_)) => {
                return Err(Refusal::combination(
                    "AvailabilityZone and AvailabilityZoneId exclude each other",
                ));
            }
            (None, None) => return Err(Refusal::missing("AvailabilityZone")),
        };
        found.map(|zone| zone.name.clone()).ok_or_else(|| {
            let asked = name.or(id).unwrap_or_default();
            Refusal::new("InvalidZone.NotFound", format!("The zone '{asked}' does not exist."))
        })
    }

    pub(super) fn delete_volume(&mut self, r: &mut Reader) -> Result<Response, Refusal> {
        let id = r.required("VolumeId")?;
        let dry_run = self.read_end(r)?;
        let view = &self.find_volume(&id)?.view;
        if self.holds(Truth::DeleteRefusesUsedVolume)
            && let Some(attachment) = &view.attachment
        {
            return Err(Refusal::new(
                "VolumeInUse",
                format!("Volume {id} is currently attached to {}", attachment.instance_id),
            ));
        }
        refuse_dry_run(dry_run)?;
        if view.state == VolumeState::Creating {
            return Err(Refusal::new("IncorrectState", format!("Volume '{id}' is in the 'creating' state.")));
        }
        self.begin_deletion(&id);
        Ok(Response::Done)
    }

    pub(super) fn describe_volumes(&self, r: &mut Reader, effects: &Effects) -> Result<Response, Refusal> {
        let query = Query::read(r, "VolumeId", &FILTERS, &VOLUMES, &self.rules.truths)?;
        let dry_run = r.flag("DryRun")?;
        r.finish()?;
        refuse_dry_run(dry_run)?;
        Ok(Response::Volumes(self.volume_page(&query, effects)?))
    }

    /// The volumes that a query lets the caller see now.
    pub(super) fn volume_page(&self, query: &Query, effects: &Effects) -> Result<Page<VolumeView>, Refusal> {
        self.refuse_disrupted(query, effects, |id| {
            self.state.volumes.get(id).map(|held| held.view.zone.as_str())
        })?;
        let mut seen = Vec::new();
        if query.is_without_ids() {
            seen.extend(in_order(&self.state.volumes).filter(|held| self.sees_in_lists(&held.visible)));
        } else {
            for id in &query.ids {
                match self.find_volume(id) {
                    Ok(held) => seen.push(held),
                    Err(_) if !self.holds(Truth::UnknownIdFailsWhole) => {}
                    Err(refusal) => return Err(refusal),
                }
            }
            seen.sort_by_key(|held| held.order);
        }
        let as_seen = |held: &Held<VolumeView>| {
            let mut view = held.view.clone();
            if !self.sees_tags(&held.visible) {
                view.tags.clear();
            }
            view
        };
        let items = seen.into_iter().map(|held| (held.order, as_seen(held))).collect();
        Ok(page(query, items, &self.rules.truths, effects, |view| {
            query.matches(|name| self.volume_values(view, name))
        }))
    }

    /// The volume of this id, if callers can see it.
    pub(super) fn find_volume(&self, id: &str) -> Result<&Held<VolumeView>, Refusal> {
        if !id.starts_with("vol-") {
            return Err(Refusal::value(format!(
                "Value ({id}) for parameter volumeId is invalid. Expected: \
                'vol-...'."
            )));
        }
        self.state.volumes.get(id).filter(|held| self.sees_id(&held.visible)).ok_or_else(|| {
            Refusal::new("InvalidVolume.NotFound", format!("The volume '{id}' does not exist."))
        })
    }

    pub(super) fn begin_deletion(&mut self, id: &str) {
        let Some(held) = self.state.volumes.get_mut(id) else {
            return;
        };
        if held.view.state == VolumeState::Deleting {
            return;
        }
        held.epoch += 1;
        held.view.state = VolumeState::Deleting;
        held.view.attachment = None;
        self.changed();
        if self.holds(Truth::VolumePassesThroughStates) {
            self.after(self.rules.delays.deleting, Change::VolumeGone { id: id.to_owned() });
        } else {
            self.volume_gone(id);
        }
    }

    pub(super) fn volume_available(&mut self, id: &str, epoch: u64) {
        if let Some(held) = self.state.volumes.get_mut(id).filter(|held| held.epoch == epoch) {
            held.epoch += 1;
            held.view.state = VolumeState::Available;
            self.changed();
        }
    }

    pub(super) fn volume_gone(&mut self, id: &str) {
        self.state.volumes.remove(id);
        self.changed();
    }

    fn volume_values(&self, view: &VolumeView, name: &str) -> Vec<String> {
        let one = |value: &str| vec![value.to_owned()];
        let attachment = view.attachment.as_ref();
        match name {
            "attachment.attach-time" => {
                attachment.map(|held| held.attached_at.to_string()).into_iter().collect()
            }
            "attachment.delete-on-termination" => {
                attachment.map(|held| held.delete_on_termination.to_string()).into_iter().collect()
            }
            "attachment.device" => attachment.map(|held| held.device.clone()).into_iter().collect(),
            "attachment.instance-id" => attachment.map(|held| held.instance_id.clone()).into_iter().collect(),
            "attachment.status" => {
                attachment.map(|held| held.state.as_str().to_owned()).into_iter().collect()
            }
            "availability-zone" => one(&view.zone),
            "availability-zone-id" => {
                let zones = self.world.zones.iter().filter(|zone| zone.name == view.zone);
                zones.map(|zone| zone.id.clone()).collect()
            }
            "create-time" => vec![view.created_at.to_string()],
            "encrypted" => vec![view.encrypted.to_string()],
            "multi-attach-enabled" => one("false"),
            "size" => vec![view.shape.size.to_string()],
            "snapshot-id" => view.snapshot_id.iter().cloned().collect(),
            "status" => one(view.state.as_str()),
            "volume-id" => one(&view.id),
            "volume-type" => one(&view.shape.volume_type),
            tag => tag_values(tag, &view.tags),
        }
    }
}
