//! How time passes in the model of a Database's life: what the other controllers do by themselves.

use super::*;
use crate::api::{ConditionType, Reason, VolumeStatus};
use crate::controller::conditions::{self, Entry};

impl Life {
    /// Time moves to what the plan waits for, or to what moves by itself before that.
    pub(super) fn wait_for(&mut self, plan: &Plan) {
        let mut pause = plan.requeue.unwrap_or_else(|| Timing::default().resync_interval);
        if self.is_moving || !plan.actions.is_empty() {
            pause = pause.min(Duration::from_secs(10));
        }
        self.take_step(pause);
    }

    /// Time passes, and the other controllers do what they do meanwhile.
    fn take_step(&mut self, pause: Duration) {
        self.now = later(self.now, pause);
        let moved = [
            self.settle_machines(),
            self.settle_volume(),
            self.settle_files(),
            self.settle_flush(),
            self.settle_pod(),
            self.settle_stateful_set(),
            self.settle_backups(),
        ];
        self.is_moving = moved.contains(&true);
        self.write_rows();
    }

    fn settle_machines(&mut self) -> bool {
        let (now, before) = (self.now, self.machines.len());
        let host = self.host().and_then(Machine::core_node_name).map(str::to_owned);
        let goes = |machine: &Machine| {
            let has_pod = host.is_some() && machine.core_node_name() == host.as_deref();
            let goes = machine.goes(has_pod);
            assert!(!goes || machine.engine.is_none(), "a machine goes while an engine runs on it");
            goes
        };
        self.machines.retain(|machine| !goes(machine));
        let has_capacity = self.no_capacity == 0;
        self.no_capacity = self.no_capacity.saturating_sub(1);
        let mut has_moved = before != self.machines.len() || !has_capacity;
        for machine in &mut self.machines {
            has_moved |= machine.step(has_capacity, now);
        }
        has_moved
    }

    /// The Volume's controller. A Volume that another client deleted waits for its Database to be deleted,
    /// and one that is deleted follows the Database's newest policy.
    fn settle_volume(&mut self) -> bool {
        let (is_used, is_leaving) = (self.is_claim_used(), self.is_deleting());
        let Some(volume) = &mut self.volume else { return false };
        let is_deleting = volume.metadata.deletion_timestamp.is_some();
        if is_deleting && is_leaving && !is_used {
            (self.volume, self.claim) = (None, Claim::Absent);
            self.volume_ended = Some(self.database.spec.deletion_policy);
            return true;
        }
        if is_deleting && volume.spec.replaced && !is_used {
            self.retain_replaced();
            return true;
        }
        let before = self.claim;
        self.claim = match self.claim {
            Claim::Leaving if !is_used => Claim::Absent,
            Claim::Absent if !is_deleting => Claim::Bound,
            claim @ (Claim::Absent | Claim::Bound | Claim::Leaving) => claim,
        };
        let is_bound = self.claim == Claim::Bound;
        let entry = |kind: ConditionType, holds: bool| {
            let reason = if holds { Reason::AsExpected } else { Reason::Pending };
            Entry { kind, holds, reason, message: kind.as_str().to_owned() }
        };
        let (old, generation) = (volume.status.take(), volume.metadata.generation);
        let is_said = |status: &VolumeStatus| {
            let is_ready = conditions::is_true(&status.conditions, ConditionType::Ready);
            let said = conditions::is_true(&status.conditions, ConditionType::Bound);
            (status.observed_generation, said, is_ready) == (generation, is_bound, is_bound && !is_deleting)
        };
        if old.as_ref().is_some_and(is_said) {
            volume.status = old;
            return before != self.claim;
        }
        let mut status = old.unwrap_or_default();
        let entries = [
            entry(ConditionType::Ready, is_bound && !is_deleting),
            entry(ConditionType::Created, true),
            entry(ConditionType::Bound, is_bound),
            entry(ConditionType::Modified, is_bound),
        ];
        status.conditions = conditions::merge(&status.conditions, &entries, generation, self.now);
        status.observed_generation = generation;
        in_place::name(&mut status, volume);
        volume.status = Some(status);
        true
    }
}
