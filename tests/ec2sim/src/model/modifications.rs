//! Growing volumes and making them faster, while they are in use.
//!
//! Source: EBS user guide, "Modify an Amazon EBS volume using Elastic Volumes operations"; since January 2026
//! four modifications in a rolling 24 hours took the place of the six hours' wait.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    Effects, Model,
    dry_run::refuse_dry_run,
    lists::{Query, VOLUMES, page},
    records::Change,
    shapes::{Wanted, modified_shape},
};
use crate::{
    ModificationState, ModificationView, Refusal, Response, Truth, VolumeState, VolumeView, params::Reader,
};

/// How many modifications a volume may begin within [`WINDOW`].
const BUDGET: usize = 4;

const WINDOW: Duration = Duration::from_hours(24);

const FILTERS: [&str; 11] = [
    "modification-state",
    "original-iops",
    "original-size",
    "original-volume-type",
    "originalMultiAttachEnabled",
    "start-time",
    "target-iops",
    "target-size",
    "target-volume-type",
    "targetMultiAttachEnabled",
    "volume-id",
];

impl Model {
    pub(super) fn modify_volume(&mut self, r: &mut Reader, effects: &Effects) -> Result<Response, Refusal> {
        let id = r.required("VolumeId")?;
        let wanted = Wanted::read(r, "", "Size")?;
        if r.flag("MultiAttachEnabled")? {
            return Err(Refusal::unsupported("Multi-attach is not modelled"));
        }
        let dry_run = self.read_end(r)?;
        let volume = &self.find_volume(&id)?.view;
        if !matches!(volume.state, VolumeState::Available | VolumeState::InUse) {
            return Err(Refusal::new(
                "IncorrectState",
                format!("Volume '{id}' is in the '{}' state.", volume.state.as_str()),
            ));
        }
        let target = modified_shape(&volume.shape, &wanted, &self.rules.truths)?;
        self.refuse_modification(volume)?;
        refuse_dry_run(dry_run)?;

        let now = self.state.now;
        let modification = ModificationView {
            volume_id: id.clone(),
            state: ModificationState::Modifying,
            progress: 0,
            original: volume.shape.clone(),
            target,
            started_at: now,
            ended_at: None,
        };
        let at_once = !self.holds(Truth::SizeUsableAtOptimizing);
        if let Some(held) = self.state.volumes.get_mut(&id) {
            if at_once {
                held.view.shape = modification.target.clone();
            }
            held.view.modifications.push(modification.clone());
            self.changed();
            let change = if effects.fails {
                Change::Fails { id }
            } else {
                Change::ModificationOptimizes { id, started_at: now }
            };
            self.after(self.rules.delays.modifying, change);
        }
        Ok(Response::Modification(modification))
    }

    fn refuse_modification(&self, volume: &VolumeView) -> Result<(), Refusal> {
        let is_over = |state| matches!(state, ModificationState::Completed | ModificationState::Failed);
        if let Some(last) = volume.modifications.last().filter(|last| !is_over(last.state))
            && self.holds(Truth::OneModificationAtATime)
        {
            return Err(Refusal::new(
                "IncorrectModificationState",
                format!(
                    "You can't modify {} because its last modification is in the state {}",
                    volume.id,
                    last.state.as_str()
                ),
            ));
        }
        let now = self.state.now;
        let recent = volume.modifications.iter().filter(|past| past.started_at + WINDOW > now).count();
        if self.holds(Truth::ModificationBudget) && recent >= BUDGET {
            return Err(Refusal::new(
                "VolumeModificationRateExceeded",
                format!(
                    "You've reached the maximum modification rate per volume limit: {BUDGET} in 24 hours \
                    for {}.",
                    volume.id
                ),
            ));
        }
        Ok(())
    }

    pub(super) fn describe_volumes_modifications(
        &self,
        r: &mut Reader,
        effects: &Effects,
    ) -> Result<Response, Refusal> {
        let query = Query::read(r, "VolumeId", &FILTERS, &VOLUMES, &self.rules.truths)?;
        let dry_run = r.flag("DryRun")?;
        r.finish()?;
        refuse_dry_run(dry_run)?;
        self.refuse_disrupted(&query, effects, |id| {
            self.state.volumes.get(id).map(|held| held.view.zone.as_str())
        })?;
        let mut items = Vec::new();
        if query.is_without_ids() {
            items.extend(self.state.volumes.values().filter(|held| self.sees_in_lists(&held.visible)));
        } else {
            for id in &query.ids {
                let held = self.find_volume(id)?;
                if held.view.modifications.is_empty() {
                    return Err(Refusal::new(
                        "InvalidVolumeModification.NotFound",
                        format!("Modification for volume '{id}' does not exist."),
                    ));
                }
                items.push(held);
            }
        }
        items.sort_by_key(|held| held.order);
        let last = items
            .iter()
            .filter_map(|held| Some((held.order, held.view.modifications.last()?.clone())))
            .collect();
        Ok(Response::Modifications(page(&query, last, &self.rules.truths, effects, |view| {
            query.matches(|name| modification_values(view, name))
        })))
    }

    pub(super) fn modification_optimizes(&mut self, id: &str, started_at: Timestamp) {
        let optimizing = self.rules.delays.optimizing;
        let Some(held) = self.state.volumes.get_mut(id) else {
            return;
        };
        let shape = &mut held.view.shape;
        if let Some(modification) =
            held.view.modifications.iter_mut().find(|one| one.started_at == started_at)
        {
            modification.state = ModificationState::Optimizing;
            *shape = modification.target.clone();
            self.changed();
            self.after(optimizing, Change::ModificationCompletes { id: id.to_owned(), started_at });
        }
    }

    pub(super) fn modification_completes(&mut self, id: &str, started_at: Timestamp) {
        let now = self.state.now;
        let Some(held) = self.state.volumes.get_mut(id) else {
            return;
        };
        if let Some(modification) =
            held.view.modifications.iter_mut().find(|one| one.started_at == started_at)
        {
            modification.state = ModificationState::Completed;
            modification.progress = 100;
            modification.ended_at = Some(now);
            self.changed();
        }
    }
}

fn modification_values(view: &ModificationView, name: &str) -> Vec<String> {
    let number = |value: Option<u32>| value.map(|value| value.to_string()).into_iter().collect();
    match name {
        "modification-state" => vec![view.state.as_str().to_owned()],
        "original-iops" => number(view.original.iops),
        "original-size" => number(Some(view.original.size)),
        "original-volume-type" => vec![view.original.volume_type.clone()],
        "originalMultiAttachEnabled" | "targetMultiAttachEnabled" => vec!["false".to_owned()],
        "start-time" => vec![view.started_at.to_string()],
        "target-iops" => number(view.target.iops),
        "target-size" => number(Some(view.target.size)),
        "target-volume-type" => vec![view.target.volume_type.clone()],
        "volume-id" => vec![view.volume_id.clone()],
        _ => Vec::new(),
    }
}
