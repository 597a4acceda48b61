//! An instance's way through its states: terminate, stop, start, reboot, and what time does.

use std::time::Duration;

use super::{Effects, Model, dry_run::refuse_dry_run, launch::refuse_capacity_out, records::Change};
use crate::{
    AttachmentState, Health, InstanceState, InstanceView, Refusal, Response, StateChange, StateReason, Truth,
    params::Reader,
};

/// Why an instance stops or ends that a user stops or terminates.
pub(super) const BY_A_USER: (&str, &str) = ("Client.UserInitiatedShutdown", "User initiated shutdown");

impl Model {
    pub(super) fn terminate_instances(
        &mut self,
        r: &mut Reader,
        effects: &Effects,
    ) -> Result<Response, Refusal> {
        let ids = self.read_ids(r)?;
        let dry_run = self.read_end(r)?;
        for id in &ids {
            if self.find_instance(id)?.view.termination_protected {
                return Err(Refusal::new(
                    "OperationNotPermitted",
                    format!(
                        "The instance '{id}' may not be terminated. Modify its 'disableApiTermination' \
                            instance attribute and try again."
                    ),
                ));
            }
        }
        refuse_dry_run(dry_run)?;
        Ok(self.change_each(&ids, |model, id| model.begin_termination(id, BY_A_USER, effects.lingers)))
    }

    pub(super) fn stop_instances(&mut self, r: &mut Reader, effects: &Effects) -> Result<Response, Refusal> {
        let ids = self.read_ids(r)?;
        let force = r.flag("Force")?;
        if r.flag("Hibernate")? {
            return Err(Refusal::unsupported("Hibernation is not modelled"));
        }
        let dry_run = self.read_end(r)?;
        self.refuse_states(&ids, "stopped", |state| {
            matches!(state, InstanceState::Running | InstanceState::Stopping | InstanceState::Stopped)
        })?;
        refuse_dry_run(dry_run)?;
        let hangs = effects.hangs && !force;
        Ok(self.change_each(&ids, |model, id| {
            let is_hung =
                model.state.instances.get(id).is_some_and(|held| held.view.state == InstanceState::Stopping);
            if !is_hung {
                model.begin_stop(id, BY_A_USER, (!hangs).then_some(effects.lingers));
            } else if force {
                model.schedule_stop(id, effects.lingers);
            }
        }))
    }

    pub(super) fn start_instances(&mut self, r: &mut Reader, effects: &Effects) -> Result<Response, Refusal> {
        let ids = self.read_ids(r)?;
        let dry_run = self.read_end(r)?;
        self.refuse_states(&ids, "started", |state| {
            matches!(state, InstanceState::Running | InstanceState::Pending | InstanceState::Stopped)
        })?;
        for id in &ids {
            let view = &self.find_instance(id)?.view;
            if view.state == InstanceState::Stopped {
                refuse_capacity_out(&view.instance_type, &view.zone, effects)?;
            }
        }
        refuse_dry_run(dry_run)?;
        Ok(self.change_each(&ids, Self::begin_start))
    }

    pub(super) fn reboot_instances(&mut self, r: &mut Reader) -> Result<Response, Refusal> {
        let ids = self.read_ids(r)?;
        let dry_run = self.read_end(r)?;
        self.refuse_states(&ids, "rebooted", |state| matches!(state, InstanceState::Running))?;
        refuse_dry_run(dry_run)?;
        for id in &ids {
            self.reboot(id);
        }
        Ok(Response::Done)
    }

    fn read_ids(&self, r: &mut Reader) -> Result<Vec<String>, Refusal> {
        let ids = r.list("InstanceId");
        if ids.is_empty() {
            return Err(Refusal::missing("InstanceId"));
        }
        for id in &ids {
            self.find_instance(id)?;
        }
        Ok(ids)
    }

    /// Reads `DryRun`, the last parameter of an action, and refuses what is left.
    pub(super) fn read_end(&self, r: &mut Reader) -> Result<bool, Refusal> {
        let dry_run = r.flag("DryRun")? && self.holds(Truth::DryRun);
        r.finish()?;
        Ok(dry_run)
    }

    fn refuse_states(
        &self,
        ids: &[String],
        done: &str,
        fits: impl Fn(InstanceState) -> bool,
    ) -> Result<(), Refusal> {
        for id in ids {
            let state = self.find_instance(id)?.view.state;
            if self.holds(Truth::InstanceStateRefusals) && !fits(state) {
                return Err(Refusal::new(
                    "IncorrectInstanceState",
                    format!("The instance '{id}' is not in a state from which it can be {done}."),
                ));
            }
        }
        Ok(())
    }

    fn change_each(&mut self, ids: &[String], change: impl Fn(&mut Self, &str)) -> Response {
        let state = |model: &Self, id: &str| model.state.instances.get(id).map(|held| held.view.state);
        let mut changes = Vec::new();
        for id in ids {
            let previous = state(self, id);
            change(self, id);
            if let (Some(previous), Some(current)) = (previous, state(self, id)) {
                changes.push(StateChange { instance_id: id.clone(), previous, current });
            }
        }
        Response::StateChanges(changes)
    }

    /// It takes so much longer.
    pub(super) fn begin_termination(&mut self, id: &str, reason: (&str, &str), lingers: Duration) {
        let is_over = |state| matches!(state, InstanceState::ShuttingDown | InstanceState::Terminated);
        if self.state.instances.get(id).is_none_or(|held| is_over(held.view.state)) {
            return;
        }
        let epoch = self.enter(id, InstanceState::ShuttingDown, Some(reason));
        if !self.holds(Truth::VolumesHeldUntilTerminated) {
            self.release_volumes(id);
        }
        if self.holds(Truth::InstancePassesThroughStates) {
            self.after(
                self.rules.delays.shutting_down + lingers,
                Change::InstanceTerminates { id: id.to_owned(), epoch },
            );
        } else {
            self.instance_terminates(id, epoch);
        }
    }

    /// It takes so much longer; none: until it is forced.
    pub(super) fn begin_stop(&mut self, id: &str, reason: (&str, &str), lingers: Option<Duration>) {
        let can_stop = |state| matches!(state, InstanceState::Running | InstanceState::Pending);
        if self.state.instances.get(id).is_none_or(|held| !can_stop(held.view.state)) {
            return;
        }
        self.enter(id, InstanceState::Stopping, Some(reason));
        if let Some(lingers) = lingers {
            self.schedule_stop(id, lingers);
        }
    }

    fn schedule_stop(&mut self, id: &str, lingers: Duration) {
        if let Some(epoch) = self.state.instances.get(id).map(|held| held.epoch) {
            self.after(
                self.rules.delays.stopping + lingers,
                Change::InstanceStops { id: id.to_owned(), epoch },
            );
        }
    }

    pub(super) fn begin_start(&mut self, id: &str) {
        if self.state.instances.get(id).is_none_or(|held| held.view.state != InstanceState::Stopped) {
            return;
        }
        let epoch = self.enter(id, InstanceState::Pending, None);
        let now = self.state.now;
        if let Some(held) = self.state.instances.get_mut(id) {
            held.view.launched_at = now;
        }
        self.after(self.rules.delays.pending, Change::InstanceRuns { id: id.to_owned(), epoch });
    }

    pub(super) fn reboot(&mut self, id: &str) {
        if let Some(held) = self.state.instances.get_mut(id) {
            held.view.reboots += 1;
            self.changed();
        }
    }

    pub(super) fn instance_runs(&mut self, id: &str, epoch: u64) {
        if !self.is_current(id, epoch) {
            return;
        }
        let epoch = self.enter(id, InstanceState::Running, None);
        let (now, initializing) = (self.state.now, self.holds(Truth::StatusInitializing));
        if let Some(held) = self.state.instances.get_mut(id) {
            let status = if initializing { Health::Initializing } else { Health::Ok };
            held.view.running_at = Some(now);
            held.view.system_status = status;
            held.view.instance_status = status;
        }
        self.after(self.rules.delays.status, Change::StatusOk { id: id.to_owned(), epoch });
    }

    pub(super) fn status_ok(&mut self, id: &str, epoch: u64) {
        if !self.is_current(id, epoch) {
            return;
        }
        if let Some(held) = self.state.instances.get_mut(id) {
            for status in [&mut held.view.system_status, &mut held.view.instance_status] {
                if *status == Health::Initializing {
                    *status = Health::Ok;
                }
            }
        }
        self.changed();
    }

    pub(super) fn launch_dies(&mut self, id: &str, epoch: u64, code: &str) {
        if self.is_current(id, epoch) {
            let epoch = self.enter(
                id,
                InstanceState::ShuttingDown,
                Some((code, "The launch failed after it was accepted")),
            );
            self.instance_terminates(id, epoch);
        }
    }

    pub(super) fn instance_stops(&mut self, id: &str, epoch: u64) {
        if self.is_current(id, epoch) {
            self.enter_keeping_reason(id, InstanceState::Stopped);
        }
    }

    pub(super) fn instance_terminates(&mut self, id: &str, epoch: u64) {
        if !self.is_current(id, epoch) {
            return;
        }
        self.enter_keeping_reason(id, InstanceState::Terminated);
        let now = self.state.now;
        if let Some(held) = self.state.instances.get_mut(id) {
            held.view.terminated_at = Some(now);
        }
        self.release_volumes(id);
        if self.holds(Truth::TerminatedVisibleForAnHour) {
            self.after(self.rules.delays.terminated, Change::InstanceForgotten { id: id.to_owned() });
        }
    }

    /// Detaches the volumes of an instance that is no more, and deletes those whose mapping says so.
    fn release_volumes(&mut self, instance_id: &str) {
        let ids: Vec<String> = self.volumes_of(instance_id).map(|volume| volume.id.clone()).collect();
        for id in ids {
            let attachment = self.state.volumes.get(&id).and_then(|held| held.view.attachment.as_ref());
            let deletes = attachment.is_some_and(|held| held.delete_on_termination)
                && self.holds(Truth::DeleteOnTermination);
            self.set_attachment_state(&id, AttachmentState::Detached);
            if deletes {
                self.begin_deletion(&id);
            }
        }
    }

    fn is_current(&self, id: &str, epoch: u64) -> bool {
        self.state.instances.get(id).is_some_and(|held| held.epoch == epoch)
    }

    fn enter(&mut self, id: &str, state: InstanceState, reason: Option<(&str, &str)>) -> u64 {
        let reason = reason.map(|(code, message)| StateReason { code: code.into(), message: message.into() });
        if let Some(held) = self.state.instances.get_mut(id) {
            held.view.state_reason = reason;
        }
        self.enter_keeping_reason(id, state)
    }

    fn enter_keeping_reason(&mut self, id: &str, state: InstanceState) -> u64 {
        self.changed();
        let Some(held) = self.state.instances.get_mut(id) else {
            return 0;
        };
        held.epoch += 1;
        held.view.state = state;
        if state != InstanceState::Running {
            not_checked(&mut held.view);
        }
        held.epoch
    }
}

fn not_checked(view: &mut InstanceView) {
    view.system_status = Health::NotApplicable;
    view.instance_status = Health::NotApplicable;
}
