//! The dry run of a NodeClass' launch: when it is sent, of which launch, and what EC2's answer means. Pure.

use std::slice;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::catalog::Catalog;
use super::fault::Fault;
use super::launches::Launch;
use crate::api::creation::{Attempt, Refusal};
use crate::api::node_class_status::DryRun;
use crate::api::{NodeClass, NodeClassSpec};
use crate::cloud::catalog::{Image, InstanceType};
use crate::cloud::identity::{Kind, Owner};
use crate::cloud::{Class, CloudError, LaunchRequest, error};
use crate::controller::node::plan::offering;
use crate::controller::pattern;
use crate::settings::Timing;
use crate::time::{later, whole_second};

/// After how many resync intervals EC2 is asked again about a launch that it would accept: an hour, so that a
/// profile or a permission that was removed shows long before the next machine is needed, and a hundred
/// classes take 3 % of half the rate limit of launches.
const RESYNCS_BETWEEN: u32 = 4;

/// The Database in the tag of a dry run, which is for none.
const NO_DATABASE: &str = "-/-";

/// What EC2 answered to a dry run of a launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaunchCheck {
    /// The newest answer about this spec; none before the first.
    pub answer: Option<DryRun>,
    /// When this pass sent a dry run, if it did.
    pub sent_at: Option<Timestamp>,
    /// Whether the first answer is awaited; it is not where no launch can be asked about.
    pub is_awaited: bool,
}

/// Whether a dry run is sent, given what is known of this spec and when this process last sent one of it.
pub fn is_due(known: Option<&DryRun>, last: Option<Timestamp>, timing: &Timing, now: Timestamp) -> bool {
    last.is_none_or(|last| now >= later(last, pause(known, timing)))
}

fn pause(known: Option<&DryRun>, timing: &Timing) -> Duration {
    let Some(known) = known else { return timing.instance_sync_interval };
    match known.refusal.as_ref().map(class_of) {
        None => timing.resync_interval.saturating_mul(RESYNCS_BETWEEN),
        // EC2 learns of a new profile within minutes.
        Some(Class::NotYetUsable) => timing.instance_sync_interval,
        Some(_) => timing.forbidden_retry_interval,
    }
}

/// The launch that EC2 is asked about: made as a Node's is, into the first subnet that there is. None while
/// EC2 shows no image, subnet or type to launch with.
pub fn request(
    class: &NodeClass,
    catalog: &Catalog,
    launches: &[Launch],
    cluster_id: &str,
    now: Timestamp,
) -> Option<LaunchRequest> {
    let spec = &class.spec;
    let is_shown = |id: &str| catalog.subnets.iter().any(|subnet| subnet.id == id);
    let subnet = spec.subnets.iter().find(|subnet| is_shown(&subnet.id))?;
    let instance_type = instance_type(spec, catalog, launches)?;
    let owner = Owner {
        cluster_id: cluster_id.to_owned(),
        kind: Kind::Node,
        // Another token each time: what EC2 keeps of the token of a dry run is not documented.
        uid: format!("{}/{}", class.uid().unwrap_or_default(), now.as_second()),
        database: NO_DATABASE.to_owned(),
        name: class.name_any(),
    };
    let attempt = Attempt::new(0, Time(whole_second(now)));
    let creation = offering::creation(spec, &owner, instance_type, subnet, attempt);
    Some(offering::request(&creation, &spec.user_data))
}

/// The type of the newest launch that the class still allows; otherwise of the first pattern that names a
/// family the type with the shortest name, which is never a metal one. A pattern without a family has types
/// so old that EC2 would refuse them for what the class never uses.
fn instance_type<'a>(spec: &NodeClassSpec, catalog: &'a Catalog, launches: &[Launch]) -> Option<&'a str> {
    let image: &Image = catalog.image.as_ref()?;
    let fitting: Vec<&InstanceType> = catalog
        .instance_types
        .iter()
        .filter(|kind| kind.architectures.contains(&image.architecture))
        .collect();
    let find = |name: &str| fitting.iter().find(|kind| kind.name == name).copied();
    let mut launches: Vec<&Launch> = launches.iter().collect();
    launches.sort_by_key(|launch| std::cmp::Reverse(launch.started_at));
    let of_launch = launches.iter().find_map(|launch| find(&launch.instance_type));
    let of_pattern = |pattern: &String| {
        let matching = fitting.iter().filter(|kind| pattern::is_any(slice::from_ref(pattern), &kind.name));
        matching.min_by_key(|kind| (kind.name.len(), &kind.name)).copied()
    };
    let of_family = || spec.instance_types.iter().filter(|it| !it.starts_with('*')).find_map(of_pattern);
    of_launch.or_else(of_family).map(|kind| kind.name.as_str())
}

/// What is known after this answer. That EC2 has no capacity or quota for the type now says nothing of the
/// class, and was answered after the permissions; without an answer what was known stands.
pub fn answer(answer: Result<(), CloudError>, known: Option<DryRun>, now: Timestamp) -> Option<DryRun> {
    let Err(error) = answer else { return Some(DryRun::default()) };
    match error.class {
        Class::Capacity | Class::Quota => Some(DryRun::default()),
        Class::Forbidden | Class::Invalid | Class::Refused | Class::NotYetUsable | Class::NotFound => {
            let (code, message) = (error.code.unwrap_or_default(), error.message);
            let is_same = |refusal: &Refusal| (&refusal.code, &refusal.message) == (&code, &message);
            if known.as_ref().and_then(|known| known.refusal.as_ref()).is_some_and(is_same) {
                return known;
            }
            Some(DryRun { refusal: Some(Refusal { code, message, at: Time(whole_second(now)) }) })
        }
        Class::InDoubt | Class::Throttled | Class::Token | Class::State | Class::ModificationBudget => known,
    }
}

/// What is wrong with the class, by EC2's refusal.
pub fn fault(spec: &NodeClassSpec, answer: Option<&DryRun>) -> Option<Fault> {
    let refusal = answer?.refusal.as_ref()?;
    Some(match (class_of(refusal), &spec.instance_profile) {
        (Class::NotYetUsable, Some(profile)) => Fault::ProfileNotFound(profile.clone()),
        (Class::Forbidden, _) => Fault::LaunchForbidden(refusal.clone()),
        _ => Fault::LaunchRefused(refusal.clone()),
    })
}

fn class_of(refusal: &Refusal) -> Class {
    error::classify(Some(&refusal.code), &refusal.message, None)
}
