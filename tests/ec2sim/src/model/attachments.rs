//! Volumes at instances: attach and detach, with everything that EC2 refuses.

use super::{Effects, Model, dry_run::refuse_dry_run, records::Change};
use crate::{
    AttachmentState, AttachmentView, InstanceState, InstanceView, Refusal, Response, Truth, VolumeState,
    VolumeView, params::Reader,
};

impl Model {
    pub(super) fn attach_volume(&mut self, r: &mut Reader, effects: &Effects) -> Result<Response, Refusal> {
        let volume_id = r.required("VolumeId")?;
        let instance_id = r.required("InstanceId")?;
        let device = r.required("Device")?;
        let dry_run = self.read_end(r)?;
        if !is_device_name(&device) {
            return Err(Refusal::value(format!(
                "Value ({device}) for parameter device is invalid. {device} is not a valid EBS device name."
            )));
        }
        let volume = &self.find_volume(&volume_id)?.view;
        let instance = &self.find_instance(&instance_id)?.view;
        self.refuse_attachment(volume, instance, &device)?;
        refuse_dry_run(dry_run)?;

        let passes = self.holds(Truth::AttachmentPassesThroughStates);
        let attachment = AttachmentView {
            volume_id: volume_id.clone(),
            instance_id,
            device,
            state: if passes { AttachmentState::Attaching } else { AttachmentState::Attached },
            attached_at: self.state.now,
            delete_on_termination: false,
        };
        if let Some(held) = self.state.volumes.get_mut(&volume_id) {
            held.epoch += 1;
            held.view.state = VolumeState::InUse;
            held.view.attachment = Some(attachment.clone());
            let epoch = held.epoch;
            self.changed();
            if passes && !effects.hangs {
                self.after(self.rules.delays.attaching, Change::VolumeAttached { id: volume_id, epoch });
            }
        }
        Ok(Response::Attachment(attachment))
    }

    fn refuse_attachment(
        &self,
        volume: &VolumeView,
        instance: &InstanceView,
        device: &str,
    ) -> Result<(), Refusal> {
        if self.holds(Truth::AttachRefusesUsedVolume) && volume.attachment.is_some() {
            return Err(Refusal::new(
                "VolumeInUse",
                format!("{} is already attached to an instance", volume.id),
            ));
        }
        if self.holds(Truth::AttachRefusesUsedVolume) && volume.state != VolumeState::Available {
            return Err(Refusal::new("IncorrectState", format!("{} is not 'available'.", volume.id)));
        }
        if self.holds(Truth::AttachRefusesOtherZone) && volume.zone != instance.zone {
            return Err(Refusal::new(
                "InvalidVolume.ZoneMismatch",
                format!(
                    "The volume '{}' is not in the same availability zone as instance '{}'",
                    volume.id, instance.id
                ),
            ));
        }
        let takes_volumes = matches!(instance.state, InstanceState::Running | InstanceState::Stopped);
        if self.holds(Truth::AttachRefusesInstanceState) && !takes_volumes {
            return Err(Refusal::new(
                "IncorrectState",
                format!("Instance '{}' is not 'running'.", instance.id),
            ));
        }
        let is_taken = self
            .volumes_of(&instance.id)
            .any(|other| other.attachment.as_ref().is_some_and(|held| held.device == device));
        if self.holds(Truth::AttachRefusesTakenDevice) && is_taken {
            return Err(Refusal::value(format!(
                "Invalid value '{device}' for unixDevice. Attachment point {device} is already in use"
            )));
        }
        let most =
            self.world.instance_type(&instance.instance_type).map_or(usize::MAX, |known| known.volumes);
        if self.holds(Truth::AttachRefusesTooMany) && self.volumes_of(&instance.id).count() >= most {
            return Err(Refusal::new(
                "AttachmentLimitExceeded",
                format!("The instance '{}' can take no more than {most} volumes.", instance.id),
            ));
        }
        Ok(())
    }

    pub(super) fn detach_volume(&mut self, r: &mut Reader, effects: &Effects) -> Result<Response, Refusal> {
        let volume_id = r.required("VolumeId")?;
        let instance_id = r.text("InstanceId");
        let device = r.text("Device");
        let force = r.flag("Force")?;
        let dry_run = self.read_end(r)?;
        let volume = &self.find_volume(&volume_id)?.view;
        if let Some(id) = &instance_id {
            self.find_instance(id)?;
        }
        let Some(attachment) = volume.attachment.clone() else {
            return Err(Refusal::new(
                "IncorrectState",
                format!("Volume '{volume_id}' is in the '{}' state.", volume.state.as_str()),
            ));
        };
        let is_other_instance = instance_id.is_some_and(|id| id != attachment.instance_id);
        if is_other_instance || device.is_some_and(|device| device != attachment.device) {
            return Err(Refusal::new(
                "InvalidAttachment.NotFound",
                format!("The volume '{volume_id}' is not attached as the request says."),
            ));
        }
        let instance = self.state.instances.get(&attachment.instance_id).map(|held| &held.view);
        let is_root = instance.is_some_and(|view| {
            view.root_device == attachment.device && view.state != InstanceState::Stopped
        });
        if self.holds(Truth::DetachRefusesRoot) && is_root {
            return Err(Refusal::new(
                "OperationNotPermitted",
                format!(
                    "Unable to detach root volume '{volume_id}' from instance '{}'",
                    attachment.instance_id
                ),
            ));
        }
        if attachment.state == AttachmentState::Detaching && !force {
            return Err(Refusal::new(
                "IncorrectState",
                format!("Volume '{volume_id}' is in the 'detaching' state."),
            ));
        }
        refuse_dry_run(dry_run)?;
        if self.holds(Truth::AttachmentPassesThroughStates) {
            self.set_attachment_state(&volume_id, AttachmentState::Detaching);
            if !effects.hangs || force {
                let epoch = self.state.volumes.get(&volume_id).map_or(0, |held| held.epoch);
                self.after(self.rules.delays.detaching, Change::VolumeDetached { id: volume_id, epoch });
            }
            Ok(Response::Attachment(AttachmentView { state: AttachmentState::Detaching, ..attachment }))
        } else {
            self.set_attachment_state(&volume_id, AttachmentState::Detached);
            Ok(Response::Attachment(AttachmentView { state: AttachmentState::Detached, ..attachment }))
        }
    }

    pub(super) fn volume_attached(&mut self, id: &str, epoch: u64) {
        if self.state.volumes.get(id).is_some_and(|held| held.epoch == epoch) {
            self.set_attachment_state(id, AttachmentState::Attached);
        }
    }

    pub(super) fn volume_detached(&mut self, id: &str, epoch: u64) {
        if self.state.volumes.get(id).is_some_and(|held| held.epoch == epoch) {
            self.set_attachment_state(id, AttachmentState::Detached);
        }
    }

    /// Moves an attachment on; a detached one is gone and its volume available.
    pub(super) fn set_attachment_state(&mut self, volume_id: &str, state: AttachmentState) {
        let Some(held) = self.state.volumes.get_mut(volume_id) else {
            return;
        };
        held.epoch += 1;
        if state == AttachmentState::Detached {
            held.view.attachment = None;
            held.view.state = VolumeState::Available;
        } else if let Some(attachment) = &mut held.view.attachment {
            attachment.state = state;
        }
        self.changed();
    }
}

/// Source: EC2 user guide, "Device names for volumes on Amazon EC2 instances".
fn is_device_name(device: &str) -> bool {
    let Some(name) = device.strip_prefix("/dev/") else {
        return false;
    };
    let Some(letters) = name.strip_prefix("sd").or_else(|| name.strip_prefix("xvd")) else {
        return false;
    };
    let letters = letters.trim_end_matches(|character: char| character.is_ascii_digit());
    (1..=2).contains(&letters.len()) && letters.chars().all(|character| character.is_ascii_lowercase())
}
