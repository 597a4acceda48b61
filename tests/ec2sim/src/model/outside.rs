//! What AWS, or a person with another tool, does to the account behind the callers' backs.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Model;
use crate::{
    AttachmentState, Health, InstanceState, Refusal, VolumeState,
    view::{ScheduledEvent, Tags},
};

/// How a resource can be invisible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sight {
    /// To calls that name its id.
    Id,
    /// In lists without ids.
    Filter,
    /// Its tags.
    Tags,
    /// In all ways.
    All,
}

/// What can happen to a resource without a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outside {
    /// An instance is terminated.
    Terminate,
    /// An instance is stopped.
    Stop,
    /// A stopped instance is started.
    Start,
    /// An instance is rebooted.
    Reboot,
    /// An instance's status checks fail.
    Impair,
    /// An instance's status checks pass again.
    Recover,
    /// AWS announces something for an instance.
    Schedule {
        /// `instance-reboot`, `system-reboot`, `system-maintenance`, `instance-retirement` or `instance-stop`.
        code: String,
        /// When it comes.
        not_before: Timestamp,
    },
    /// An instance's console shows another line.
    Console(String),
    /// A volume is suddenly gone.
    Vanish,
    /// A volume breaks.
    Break,
    /// A volume or a snapshot is deleted.
    Delete,
    /// A volume is detached.
    Detach,
    /// Tags are set, then others removed.
    Tag {
        /// The tags to set.
        #[serde(default)]
        set: Tags,
        /// The keys to remove.
        #[serde(default)]
        remove: Vec<String>,
    },
    /// A resource can't be seen for a while.
    Hide {
        /// In which way.
        sight: Sight,
        /// For how long, in virtual seconds.
        seconds: f64,
    },
}

/// Something that happens to one resource without a call, as JSON `{"id": "i-…", "what": "terminate"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutsideAction {
    /// The resource; in a fault it may be empty, for each resource that the call made or changed.
    #[serde(default)]
    pub id: String,
    /// What happens to it.
    pub what: Outside,
}

impl Outside {
    /// The same, to the resource of this id.
    pub fn to(self, id: impl Into<String>) -> OutsideAction {
        OutsideAction { id: id.into(), what: self }
    }
}

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
                self.begin_termination(id, ("Client.UserInitiatedShutdown", "User initiated shutdown"));
            }
            Outside::Stop => {
                self.begin_stop(id, ("Server.ScheduledStop", "Stopped due to a scheduled retirement"), false);
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
