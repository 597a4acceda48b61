//! The plan of what every Database needs, running or paused, before anything else is done. Pure.

use super::action::{Action, Plan};
use super::facts::slowly;
use super::{access, adoption, permission, restore, validation};
use crate::controller::database::cause::InvalidSpec;
use crate::controller::database::observe::Observed;
use crate::controller::database::wait::DatabaseWait;
use crate::engine::Profile;

/// What every database needs, running or paused: a spec that can be and is permitted, names that are free,
/// the volume that it asks to adopt, credentials, ServiceAccount, ConfigMap, Service, NetworkPolicy and
/// PodDisruptionBudget. Otherwise the whole plan.
#[expect(clippy::result_large_err, reason = "made at most once a pass")]
pub(super) fn check<'a>(observed: &'a Observed, actions: &mut Vec<Action>) -> Result<&'a Profile, Plan> {
    let profile = match (validation::invalid(observed), &observed.profile) {
        (None, Ok(profile)) => profile,
        (Some(invalid), _) => return Err(Plan::wait(DatabaseWait::InvalidSpec(invalid))),
        (None, Err(error)) => {
            return Err(Plan::wait(DatabaseWait::InvalidSpec(InvalidSpec::Engine(error.clone()))));
        }
    };
    if let Some(refusal) = permission::creation(observed) {
        return Err(Plan::wait(DatabaseWait::NotPermitted(refusal)));
    }
    if let Some(conflict) = access::conflict(observed, profile) {
        // Objects that are not owned by this Database are not watched.
        return Err(Plan::wait(conflict).requeue(slowly(observed)));
    }
    if observed.legacy.is_some() {
        // An adopted database keeps its Secret, its Service and its settings as they were found.
        return Ok(profile);
    }
    if let Some(lost) = adoption::lost(observed) {
        return Err(Plan::wait(lost).requeue(slowly(observed)));
    }
    if let Some(adopting) = adoption::plan(observed, profile) {
        return Err(adopting);
    }
    if let Some(restoring) = restore::plan(observed) {
        return Err(restoring);
    }
    if let Some(again) = restore::known_again(observed) {
        return Err(again);
    }
    if let Some(undecided) = adoption::undecided(observed) {
        // Retention records are not watched.
        return Err(Plan::wait(undecided).requeue(slowly(observed)));
    }
    if let Err(unusable) = access::credentials(observed, profile, actions) {
        // Secrets are never watched.
        return Err(Plan::act(std::mem::take(actions), unusable).requeue(slowly(observed)));
    }
    adoption::after(observed, actions);
    access::objects(observed, profile, actions);
    Ok(profile)
}
