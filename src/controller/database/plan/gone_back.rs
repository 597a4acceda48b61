//! Whether what an adopted database went back from still holds. Pure.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::Pod;

use crate::api::database::{Adoption, WentBack};
use crate::controller::database::build;
use crate::controller::database::observe::Observed;
use crate::controller::database::pod::{engine_wait, has_started, inputs_of};

/// What the database went back from, as long as that holds: the spec requests it still, and it did not start
/// after all.
pub(super) fn holds<'a>(observed: &Observed, adoption: &'a Adoption) -> Option<&'a WentBack> {
    let back = adoption.went_back.as_ref()?;
    let is_requested = back.inputs_hash == build::inputs_hash(&observed.database.spec);
    let has_run = |pod: &Pod| match &back.image {
        Some(_) => has_started(pod, observed.engine()),
        None => engine_wait(Some(pod), observed.engine()).is_none(),
    };
    let is_of_it = |pod: &Pod| inputs_of(pod) == Some(back.inputs_hash.as_str());
    let came_up = observed.pod.as_ref().is_some_and(|pod| is_of_it(pod) && has_run(pod));
    let may_have_changed_data = back.image.is_some() && adoption.unproven_image.is_some();
    (is_requested && !came_up && !may_have_changed_data).then_some(back)
}

/// The adoption as it decides the template: what the database went back from is left out once it does not
/// hold any more.
pub(super) fn in_force<'a>(observed: &Observed, adoption: &'a Adoption) -> Cow<'a, Adoption> {
    if adoption.went_back.is_some() && holds(observed, adoption).is_none() {
        Cow::Owned(Adoption { went_back: None, ..adoption.clone() })
    } else {
        Cow::Borrowed(adoption)
    }
}
