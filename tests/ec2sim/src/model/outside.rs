//! What AWS, or a person with another tool, does to the account behind the callers' backs.

use std::time::Duration;

use jiff::Timestamp;

use super::{Model, lifecycle::BY_A_USER};
use crate::{
    AttachmentState, Health, InstanceState, Outside, OutsideAction, Refusal, VolumeState,
    view::ScheduledEvent,
};

impl Model {
    /// Does it, whatever callers can see.
    ///
    /// # Errors
    /// If there is no such resource.
    pub fn outside(&mut self, action: &OutsideAction) -> Result<(), Refusal> {
        let id = action.id.as_str();
        if self.tags_of(id).is_none() {
            return Err(Refusal::new("InvalidID", format!("there is no resource '{id}'")));
        }
        match &action.what {
            Outside::Terminate => {
                self.begin_termination(id, BY_A_USER, Duration::ZERO);
            }
            Outside::Stop => {
                let reason = ("Server.ScheduledStop", "Stopped due to a scheduled retirement");
                self.begin_stop(id, reason, Some(Duration::ZERO));
            }
            Outside::Start => self.begin_start(id),
            Outside::Reboot => self.reboot(id),
            Outside::Impair => self.set_health(id, Health::Impaired),
            Outside::Recover => self.set_health(id, Health::Ok),
            Outside::Schedule { code, not_before } => self.announce(id, code, *not_before),
            Outside::Console(line) => {
                if let Some(held) = self.state.instances.get_mut(id) {
                    held.view.console.push_str(line);
                    held.view.console.push('\n');
                }
            }
            Outside::Vanish => self.volume_gone(id),
            Outside::Break => {
                if let Some(held) = self.state.volumes.get_mut(id) {
                    held.epoch += 1;
                    held.view.state = VolumeState::Error;
                }
            }
            Outside::Delete => {
                self.begin_deletion(id);
                self.state.snapshots.remove(id);
            }
            Outside::Detach => self.set_attachment_state(id, AttachmentState::Detached),
            Outside::Tag { set, remove } => {
                if let Some(tags) = self.tags_mut(id) {
                    tags.extend(set.clone());
                    tags.retain(|key, _| !remove.contains(key));
                }
            }
            Outside::Hide { sight, seconds } => {
                let until = self.state.now + Duration::try_from_secs_f64(*seconds).unwrap_or_default();
                let instance = self.state.instances.get_mut(id).map(|held| &mut held.visible);
                let volume = self.state.volumes.get_mut(id).map(|held| &mut held.visible);
                let snapshot = self.state.snapshots.get_mut(id).map(|held| &mut held.visible);
                if let Some(visible) = instance.or(volume).or(snapshot) {
                    visible.hide(*sight, until);
                }
            }
        }
        self.changed();
        Ok(())
    }

    fn set_health(&mut self, id: &str, health: Health) {
        let held = self.state.instances.get_mut(id).filter(|held| held.view.state == InstanceState::Running);
        if let Some(held) = held {
            held.view.instance_status = health;
            held.view.system_status = health;
        }
    }

    fn announce(&mut self, instance_id: &str, code: &str, not_before: Timestamp) {
        let id = self.new_id("instance-event");
        if let Some(held) = self.state.instances.get_mut(instance_id) {
            held.view.events.push(ScheduledEvent {
                id,
                code: code.to_owned(),
                description: format!("The instance is scheduled for {code}"),
                not_before,
            });
        }
    }
}
