//! The plan of what every Database needs, running or paused, before anything else is done. Pure.

use super::action::{Action, Plan};
use super::facts::slowly;
use super::{access, adoption, validation};

use crate::api::Reason;
use crate::controller::database::observe::Observed;
use crate::controller::waiting::Waiting;
use crate::engine::Profile;

/// What every database needs, running or paused: a spec that can be, names that are free, the volume that it asks to take over,
/// credentials, and the ways to the engine. Otherwise the whole plan.
pub(super) fn check<'a>(observed: &'a Observed, actions: &mut Vec<Action>) -> Result<&'a Profile, Plan> {
    let profile = match (validation::invalid(observed), &observed.profile) {
        (None, Ok(profile)) => profile,
        (Some(message), _) => return Err(Plan::new(Vec::new(), Waiting::stalled(Reason::InvalidSpec, message))),
        (None, Err(error)) => return Err(Plan::new(Vec::new(), Waiting::stalled(Reason::InvalidSpec, error.to_string()))),
    };
    if let Some(conflict) = access::conflict(observed, profile) {
        // What belongs to others wakes nobody when it goes.
        return Err(Plan::new(Vec::new(), conflict).again(slowly(observed)));
    }
    if let Some(adopting) = adoption::plan(observed, profile) {
        return Err(adopting);
    }
    if let Err(unusable) = access::credentials(observed, profile, actions) {
        // Secrets are never watched.
        return Err(Plan::new(std::mem::take(actions), unusable).again(slowly(observed)));
    }
    adoption::after(observed, actions);
    access::ways(observed, profile, actions);
    Ok(profile)
}
