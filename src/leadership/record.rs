//! The Lease object: what it says, and how it is written.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::ResourceExt;

use super::decision::{Candidate, Claim};
use super::scope::Scope;
use crate::api::keys::{CLUSTER_ID_ANNOTATION, INSTALLATION_ANNOTATION, NAMESPACES_ANNOTATION};

/// What a Lease says.
pub fn claim(lease: &Lease) -> Claim {
    let annotation = |key: &str| lease.annotations().get(key);
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Claim {
        lease: lease.name_any(),
        holder: spec.holder_identity.unwrap_or_default(),
        installation: annotation(INSTALLATION_ANNOTATION).cloned().unwrap_or_default(),
        cluster_id: annotation(CLUSTER_ID_ANNOTATION).cloned().unwrap_or_default(),
        scope: annotation(NAMESPACES_ANNOTATION).map(|written| Scope::read(written)),
        duration: Duration::from_secs(seconds.unwrap_or_default()),
        transitions: spec.lease_transitions.unwrap_or_default(),
    }
}

/// The Lease as a candidate takes it: a new term, counted.
pub fn taken(lease: Option<Lease>, us: &Candidate, now: Timestamp) -> Lease {
    let mut lease = lease.unwrap_or_default();
    lease.metadata.name = Some(us.scope.lease_name());
    let about = [
        (INSTALLATION_ANNOTATION, us.installation.clone()),
        (CLUSTER_ID_ANNOTATION, us.cluster_id.clone()),
        (NAMESPACES_ANNOTATION, us.scope.written()),
    ];
    lease.annotations_mut().extend(about.map(|(key, value)| (key.to_owned(), value)));
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    spec.holder_identity = Some(us.identity.clone());
    // Rounded up: the others wait at least as long as this one may act.
    let seconds = i32::try_from(us.duration.as_millis().div_ceil(1000)).unwrap_or(i32::MAX);
    spec.lease_duration_seconds = Some(seconds);
    spec.acquire_time = Some(MicroTime(now));
    spec.renew_time = Some(MicroTime(now));
    spec.lease_transitions = Some(spec.lease_transitions.unwrap_or_default().saturating_add(1));
    lease
}

/// The Lease as its holder renews it.
pub fn renewed(lease: &Lease, now: Timestamp) -> Lease {
    let mut lease = lease.clone();
    if let Some(spec) = &mut lease.spec {
        spec.renew_time = Some(MicroTime(now));
    }
    lease
}

/// The Lease as its holder releases it: free at once. What it says of the last holder stays.
pub fn released(lease: &Lease) -> Lease {
    let mut lease = lease.clone();
    if let Some(spec) = &mut lease.spec {
        spec.holder_identity = None;
    }
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us() -> Candidate {
        Candidate {
            identity: "freehold-0".to_owned(),
            installation: "system/freehold".to_owned(),
            cluster_id: "c1".to_owned(),
            scope: Scope::new(["b", "a"]),
            duration: Duration::from_millis(9001),
        }
    }

    #[test]
    fn what_is_taken_is_read_as_the_candidates_and_counts_the_terms() {
        let first = taken(None, &us(), Timestamp::UNIX_EPOCH);
        let expected = Claim {
            lease: us().scope.lease_name(),
            holder: "freehold-0".to_owned(),
            installation: "system/freehold".to_owned(),
            cluster_id: "c1".to_owned(),
            scope: Some(us().scope),
            duration: Duration::from_secs(10),
            transitions: 1,
        };
        assert_eq!(claim(&first), expected);
        let second = taken(Some(released(&first)), &us(), Timestamp::UNIX_EPOCH);
        assert_eq!(claim(&second), Claim { transitions: 2, ..expected });
    }

    #[test]
    fn a_released_lease_is_free_and_says_whose_it_was() {
        let left = claim(&released(&taken(None, &us(), Timestamp::UNIX_EPOCH)));
        assert_eq!((left.holder.as_str(), left.cluster_id.as_str()), ("", "c1"));
    }

    #[test]
    fn a_renewal_changes_the_time_alone() {
        let lease = taken(None, &us(), Timestamp::UNIX_EPOCH);
        let renewed = renewed(&lease, Timestamp::from_second(5).unwrap());
        assert_eq!(claim(&renewed), claim(&lease));
        assert!(renewed != lease);
    }

    #[test]
    fn a_lease_of_another_program_has_no_scope() {
        assert_eq!(claim(&Lease::default()).scope, None);
    }
}
