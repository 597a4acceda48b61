//! The sentences about a creation that are the same for every kind. Pure.

use super::judge::Doubt;
use crate::controller::messages::FIRST_SYNC;

/// Why an attempt in doubt is only looked up, as the end of a sentence.
pub fn in_doubt(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::FirstLookUp => FIRST_SYNC,
        Doubt::Pause => "the identical call is made again shortly",
        Doubt::Deleting => {
            "this object is being deleted, so EC2 is searched until it is proven that nothing was created"
        }
        Doubt::NoToken => {
            "EC2 has no client token for this call, so EC2 is searched until it is proven that nothing was \
                created"
        }
        Doubt::TokenTooOld => {
            "its client token is too old for the identical call, so EC2 is searched until it is proven that \
                nothing was created"
        }
        Doubt::RequestChanged => {
            "the NodeClass has changed, so the identical call cannot be made again; EC2 is searched until it \
                is proven that nothing was created"
        }
        Doubt::RefusedAfterDoubt => {
            "EC2 refuses the call now, so EC2 is searched until it is proven that nothing was created"
        }
    }
}
