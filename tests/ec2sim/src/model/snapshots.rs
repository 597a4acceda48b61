//! Snapshots: taken, listed, deleted. `CreateSnapshot` has no token: each call takes another one.

use std::time::Duration;

use super::{
    Effects, Held, Model,
    dry_run::refuse_dry_run,
    in_order,
    lists::{Query, VOLUMES, page, tag_values},
    records::Change,
    tags::TagSpecs,
};
use crate::{Refusal, Response, SnapshotState, SnapshotView, Truth, VolumeState, params::Reader};

/// The pause between two snapshots of a volume (error-code reference,
/// `SnapshotCreationPerVolumeRateExceeded`).
const PAUSE: Duration = Duration::from_secs(15);

/// How many snapshots of one volume may be pending (EBS endpoints and quotas, "Concurrent snapshots per …
/// volume").
const CONCURRENT: usize = 5;

/// The steps in which progress is seen, in per cent.
const STEPS: u32 = 4;

const FILTERS: [&str; 11] = [
    "description",
    "encrypted",
    "owner-id",
    "progress",
    "snapshot-id",
    "start-time",
    "status",
    "tag-key",
    "tag:",
    "volume-id",
    "volume-size",
];

impl Model {
    pub(super) fn create_snapshot(&mut self, r: &mut Reader, effects: &Effects) -> Result<Response, Refusal> {
        let volume_id = r.required("VolumeId")?;
        let description = r.text("Description").unwrap_or_default();
        let tags = TagSpecs::read(r, &["snapshot"])?;
        let dry_run = self.read_end(r)?;
        let volume = self.find_volume(&volume_id)?.view.clone();
        if !matches!(volume.state, VolumeState::Available | VolumeState::InUse) {
            return Err(Refusal::new(
                "IncorrectState",
                format!("Volume '{volume_id}' is in the '{}' state.", volume.state.as_str()),
            ));
        }
        refuse_dry_run(dry_run)?;
        self.refuse_snapshot(&volume_id, effects)?;
        let id = self.new_id("snap");
        let passes = self.holds(Truth::SnapshotPassesThroughStates);
        let now = self.state.now;
        let view = SnapshotView {
            id: id.clone(),
            volume_id,
            size: volume.shape.size,
            state: if passes { SnapshotState::Pending } else { SnapshotState::Completed },
            progress: if passes { 0 } else { 100 },
            started_at: now,
            completed_at: (!passes).then_some(now),
            description,
            encrypted: volume.encrypted,
            kms_key: volume.kms_key,
            tags: tags.of("snapshot"),
        };
        let held = self.hold(view.clone(), effects);
        self.state.snapshots.insert(id.clone(), held);
        if effects.fails {
            self.after(self.rules.delays.snapshot, Change::Fails { id: id.clone() });
            return Ok(Response::Snapshot(view));
        }
        for step in (1..=STEPS).filter(|_| passes) {
            let percent = u8::try_from(step * 100 / STEPS).unwrap_or(100);
            self.after(
                self.rules.delays.snapshot * step / STEPS,
                Change::SnapshotProgresses { id: id.clone(), percent },
            );
        }
        Ok(Response::Snapshot(view))
    }

    fn refuse_snapshot(&self, volume_id: &str, effects: &Effects) -> Result<(), Refusal> {
        if let Some(code) = &effects.quota {
            return Err(Refusal::new(code, "You have reached a quota of your account."));
        }
        if self.rules.limits.snapshots.is_some_and(|limit| self.state.snapshots.len() >= limit) {
            return Err(Refusal::new(
                "SnapshotLimitExceeded",
                "You have reached the limit on the number of snapshots.",
            ));
        }
        let of_volume = || self.state.snapshots.values().filter(|held| held.view.volume_id == volume_id);
        let is_recent = |held: &Held<SnapshotView>| held.view.started_at + PAUSE > self.state.now;
        if self.holds(Truth::SnapshotRate) && of_volume().any(is_recent) {
            return Err(Refusal::new(
                "SnapshotCreationPerVolumeRateExceeded",
                "The maximum per volume CreateSnapshot request rate has been exceeded. Use an increasing or \
                    variable sleep interval between requests.",
            ));
        }
        let pending = of_volume().filter(|held| held.view.state == SnapshotState::Pending).count();
        if self.holds(Truth::SnapshotConcurrency) && pending >= CONCURRENT {
            return Err(Refusal::new(
                "ConcurrentSnapshotLimitExceeded",
                format!("Maximum allowed in-progress snapshots for the volume exceeded: {CONCURRENT}."),
            ));
        }
        Ok(())
    }

    pub(super) fn delete_snapshot(&mut self, r: &mut Reader) -> Result<Response, Refusal> {
        let id = r.required("SnapshotId")?;
        let dry_run = self.read_end(r)?;
        self.find_snapshot(&id)?;
        refuse_dry_run(dry_run)?;
        self.state.snapshots.remove(&id);
        self.changed();
        Ok(Response::Done)
    }

    pub(super) fn describe_snapshots(&self, r: &mut Reader, effects: &Effects) -> Result<Response, Refusal> {
        let query = Query::read(r, "SnapshotId", &FILTERS, &VOLUMES, &self.rules.truths)?;
        let owners = r.list("Owner");
        let dry_run = r.flag("DryRun")?;
        r.finish()?;
        refuse_dry_run(dry_run)?;
        let is_ours =
            owners.is_empty() || owners.iter().any(|owner| *owner == "self" || *owner == self.world.account);
        let mut seen = Vec::new();
        if query.is_without_ids() {
            seen.extend(
                in_order(&self.state.snapshots).filter(|held| is_ours && self.sees_in_lists(&held.visible)),
            );
        } else {
            for id in &query.ids {
                match self.held_snapshot(id) {
                    Ok(held) => seen.push(held),
                    Err(_) if !self.holds(Truth::UnknownIdFailsWhole) => {}
                    Err(refusal) => return Err(refusal),
                }
            }
            seen.sort_by_key(|held| held.order);
        }
        let as_seen = |held: &Held<SnapshotView>| {
            let mut view = held.view.clone();
            if !self.sees_tags(&held.visible) {
                view.tags.clear();
            }
            view
        };
        let items = seen.into_iter().map(|held| (held.order, as_seen(held))).collect();
        Ok(Response::Snapshots(page(&query, items, &self.rules.truths, effects, |view| {
            query.matches(|name| self.snapshot_values(view, name))
        })))
    }

    /// The snapshot of this id, if callers can see it.
    pub(super) fn find_snapshot(&self, id: &str) -> Result<&SnapshotView, Refusal> {
        self.held_snapshot(id).map(|held| &held.view)
    }

    pub(super) fn held_snapshot(&self, id: &str) -> Result<&Held<SnapshotView>, Refusal> {
        if !id.starts_with("snap-") {
            return Err(Refusal::value(format!(
                "Value ({id}) for parameter snapshotId is invalid. Expected: \
                'snap-...'."
            )));
        }
        self.state.snapshots.get(id).filter(|held| self.sees_id(&held.visible)).ok_or_else(|| {
            Refusal::new("InvalidSnapshot.NotFound", format!("The snapshot '{id}' does not exist."))
        })
    }

    pub(super) fn snapshot_progresses(&mut self, id: &str, percent: u8) {
        let now = self.state.now;
        let Some(held) = self.state.snapshots.get_mut(id) else {
            return;
        };
        if held.view.state != SnapshotState::Pending {
            return;
        }
        held.view.progress = percent;
        if percent == 100 {
            held.view.state = SnapshotState::Completed;
            held.view.completed_at = Some(now);
        }
        self.changed();
    }

    fn snapshot_values(&self, view: &SnapshotView, name: &str) -> Vec<String> {
        let one = |value: &str| vec![value.to_owned()];
        match name {
            "description" => one(&view.description),
            "encrypted" => vec![view.encrypted.to_string()],
            "owner-id" => one(&self.world.account),
            "progress" => vec![format!("{}%", view.progress)],
            "snapshot-id" => one(&view.id),
            "start-time" => vec![view.started_at.to_string()],
            "status" => one(view.state.as_str()),
            "volume-id" => one(&view.volume_id),
            "volume-size" => vec![view.size.to_string()],
            tag => tag_values(tag, &view.tags),
        }
    }
}
