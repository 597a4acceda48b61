//! The spec as it is carried out where a part of it was decided otherwise: the size that the volume has grown
//! to, and the engine that the database went back to, or does not leave yet. Pure.

use super::{auto_grow, back_to_served, engine_in_effect};
use crate::controller::database::observe::Observed;

/// The world of a Database whose spec requests that; `None` where the spec is carried out as it is.
pub(in crate::controller::database) fn of(observed: &Observed) -> Option<Observed> {
    let grown = auto_grow::grown_world(observed);
    let observed = grown.as_ref().unwrap_or(observed);
    back_to_served::world(observed).or_else(|| engine_in_effect::world(observed)).or(grown)
}
