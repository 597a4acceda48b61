//! Refusals of EC2 that hold for all objects: an instance type in a zone for lack of capacity, or all
//! creations for a quota.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

/// The refusals that hold for all objects, each until a time.
#[derive(Debug)]
pub struct Offerings {
    unavailable_offering_ttl: Duration,
    quota_retry_interval: Duration,
    known: Mutex<OfferingsView>,
}

/// The refusals that held at one moment: a plain value for the plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferingsView {
    /// (instance type, zone) → until when it counts as unavailable.
    pub unavailable: BTreeMap<(String, String), Timestamp>,
    /// Until when nothing is created, after a quota error.
    pub quota_closed_until: Option<Timestamp>,
}

impl Offerings {
    /// `unavailable_offering_ttl`: how long a type counts as unavailable in a zone; `quota_retry_interval`:
    /// how long a quota error stops creations.
    pub fn new(unavailable_offering_ttl: Duration, quota_retry_interval: Duration) -> Self {
        Self { unavailable_offering_ttl, quota_retry_interval, known: Mutex::default() }
    }

    /// EC2 reported that it has no capacity for this type in this zone.
    pub fn mark_unavailable(&self, instance_type: &str, zone: &str, now: Timestamp) {
        let until = now.checked_add(self.unavailable_offering_ttl).unwrap_or(Timestamp::MAX);
        self.lock().unavailable.insert((instance_type.to_owned(), zone.to_owned()), until);
    }

    /// EC2 reported that the account has reached a quota.
    pub fn close_quota_gate(&self, now: Timestamp) {
        self.lock().quota_closed_until =
            Some(now.checked_add(self.quota_retry_interval).unwrap_or(Timestamp::MAX));
    }

    /// The refusals that hold now; expired ones are dropped.
    pub fn view(&self, now: Timestamp) -> OfferingsView {
        let mut known = self.lock();
        known.unavailable.retain(|_, until| *until > now);
        known.quota_closed_until = known.quota_closed_until.filter(|until| *until > now);
        known.clone()
    }

    fn lock(&self) -> MutexGuard<'_, OfferingsView> {
        self.known.lock()
    }
}

impl OfferingsView {
    /// True unless EC2 recently had no capacity for this type in this zone.
    pub fn is_available(&self, instance_type: &str, zone: &str) -> bool {
        self.available_at(instance_type, zone).is_none()
    }

    /// When this type may be tried in this zone again; `None` if it may be now.
    pub fn available_at(&self, instance_type: &str, zone: &str) -> Option<Timestamp> {
        self.unavailable.get(&(instance_type.to_owned(), zone.to_owned())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn offerings() -> Offerings {
        Offerings::new(Duration::from_secs(180), Duration::from_secs(600))
    }

    #[test]
    fn a_type_without_capacity_is_unavailable_in_that_zone_only_and_for_the_pause_only() {
        let offerings = offerings();
        offerings.mark_unavailable("r7i.large", "us-east-1a", at(0));
        let view = offerings.view(at(179));
        assert_eq!(view.available_at("r7i.large", "us-east-1a"), Some(at(180)));
        assert!(!view.is_available("r7i.large", "us-east-1a"));
        assert!(view.is_available("r7i.large", "us-east-1b"));
        assert!(view.is_available("r6i.large", "us-east-1a"));
        assert!(offerings.view(at(180)).is_available("r7i.large", "us-east-1a"));
    }

    #[test]
    fn a_quota_error_closes_the_gate_for_its_pause() {
        let offerings = offerings();
        assert_eq!(offerings.view(at(0)).quota_closed_until, None);
        offerings.close_quota_gate(at(0));
        assert_eq!(offerings.view(at(599)).quota_closed_until, Some(at(600)));
        assert_eq!(offerings.view(at(600)), OfferingsView::default());
    }
}
