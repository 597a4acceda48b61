//! Refusals of EC2 that hold for more than the object whose call was refused: an instance type in a zone for
//! lack of capacity, alone or with one image, a subnet without addresses, and a quota of the account.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::quota::{Demand, Quota};
use super::turns::Priority;
use crate::time::{growing_pause, later};

/// For so many times `unavailable_offering_ttl` a type counts as unsupported and a subnet as in another zone,
/// an hour by default: either is so for months, and each request costs an attempt.
const UNSUPPORTED_FOR: u32 = 20;

/// The refusals that hold for more than one object, each until a time.
#[derive(Debug)]
pub struct Offerings {
    unavailable_offering_ttl: Duration,
    quota_retry_interval: Duration,
    requeue_interval: Duration,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// (instance type, zone) → until when it counts as unavailable.
    unavailable: BTreeMap<(String, String), Timestamp>,
    /// (image, instance type, zone) → until when they count as not going together.
    unsupported: BTreeMap<(String, String, String), Timestamp>,
    /// Subnet → until when it counts as full.
    full: BTreeMap<String, Timestamp>,
    /// (subnet, zone that was requested) → the zone where it is, and until when that is believed.
    elsewhere: BTreeMap<(String, String), (String, Timestamp)>,
    /// The last refusal of each quota for each object, by its UID.
    refused: BTreeMap<(Quota, String), Refused>,
}

/// A creation that was refused for a quota.
#[derive(Clone, Copy, Debug)]
struct Refused {
    /// How much it asked of the quota.
    amount: u32,
    at: Timestamp,
    /// How many times in a row.
    times: u32,
}

/// The refusals that held at one moment: a plain value for the plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferingsView {
    /// (instance type, zone) → until when it counts as unavailable.
    pub unavailable: BTreeMap<(String, String), Timestamp>,
    /// (image, instance type, zone) → until when they count as not going together.
    pub unsupported: BTreeMap<(String, String, String), Timestamp>,
    /// Subnet → until when it counts as full.
    pub full: BTreeMap<String, Timestamp>,
    /// (subnet, zone that was requested) → the zone where it is, and until when that is believed.
    pub elsewhere: BTreeMap<(String, String), (String, Timestamp)>,
    /// Until when nothing is created that asks at least this much of a quota.
    pub quotas: BTreeMap<(Quota, u32), Timestamp>,
}

impl Offerings {
    /// `unavailable_offering_ttl`: how long a type counts as unavailable in a zone; `quota_retry_interval`:
    /// how long a refusal for a quota stops what a new database needs; `requeue_interval`: the unit of the
    /// pauses of what a database needs that exists.
    pub fn new(
        unavailable_offering_ttl: Duration,
        quota_retry_interval: Duration,
        requeue_interval: Duration,
    ) -> Self {
        let known = Mutex::default();
        Self { unavailable_offering_ttl, quota_retry_interval, requeue_interval, known }
    }

    /// Until when a type counts as unsupported, or a subnet as in another zone.
    fn unsupported_until(&self, now: Timestamp) -> Timestamp {
        later(now, self.unavailable_offering_ttl.saturating_mul(UNSUPPORTED_FOR))
    }

    /// EC2 reported that it has no capacity for this type in this zone.
    pub fn mark_unavailable(&self, instance_type: &str, zone: &str, now: Timestamp) {
        let until = later(now, self.unavailable_offering_ttl);
        self.known.lock().unavailable.insert((instance_type.to_owned(), zone.to_owned()), until);
    }

    /// EC2 reported that it does not support this type in this zone with this image.
    pub fn mark_unsupported(&self, image: &str, instance_type: &str, zone: &str, now: Timestamp) {
        let until = self.unsupported_until(now);
        let key = (image.to_owned(), instance_type.to_owned(), zone.to_owned());
        self.known.lock().unsupported.insert(key, until);
    }

    /// EC2 reported that this subnet has no free address.
    pub fn mark_full(&self, subnet: &str, now: Timestamp) {
        let until = later(now, self.unavailable_offering_ttl);
        self.known.lock().full.insert(subnet.to_owned(), until);
    }

    /// EC2 launched an instance of this subnet in `zone`, and another zone was requested. A subnet never
    /// moves; that it is requested again after an hour is for what else may have been wrong.
    pub fn mark_elsewhere(&self, subnet: &str, requested: &str, zone: &str, now: Timestamp) {
        let until = self.unsupported_until(now);
        let key = (subnet.to_owned(), requested.to_owned());
        self.known.lock().elsewhere.insert(key, (zone.to_owned(), until));
    }

    /// EC2 reported that the account has reached this quota, of which the object of this UID asked so much.
    pub fn reach_quota(&self, quota: Quota, amount: u32, object: &str, now: Timestamp) {
        let mut known = self.known.lock();
        let refused =
            known.refused.entry((quota, object.to_owned())).or_insert(Refused { amount, at: now, times: 0 });
        *refused = Refused { amount, at: now, times: refused.times.saturating_add(1) };
    }

    /// The refusals that hold now for the object of this UID; expired ones are dropped. What a new database
    /// needs is not asked for again while a refusal of the same quota holds, whoever was refused. What a
    /// database needs that exists is asked for whatever others were refused, and pauses only after its own
    /// refusals: the quota may have room again, as when the machine that is replaced has just stopped.
    pub fn view(&self, object: &str, priority: Priority, now: Timestamp) -> OfferingsView {
        let mut known = self.known.lock();
        known.unavailable.retain(|_, until| *until > now);
        known.unsupported.retain(|_, until| *until > now);
        known.full.retain(|_, until| *until > now);
        known.elsewhere.retain(|_, (_, until)| *until > now);
        known.refused.retain(|_, refused| later(refused.at, self.quota_retry_interval) > now);
        let mut quotas = BTreeMap::new();
        for ((quota, refused_object), Refused { amount, at, times }) in &known.refused {
            let pause = match priority {
                Priority::Create => self.quota_retry_interval,
                Priority::Repair | Priority::Existing if refused_object == object => {
                    growing_pause(*times, self.requeue_interval)
                }
                Priority::Repair | Priority::Existing => continue,
            };
            let until = later(*at, pause);
            if until > now {
                let latest = quotas.entry((quota.clone(), *amount)).or_insert(until);
                *latest = until.max(*latest);
            }
        }
        let Known { unavailable, unsupported, full, elsewhere, refused: _ } = &*known;
        OfferingsView {
            unavailable: unavailable.clone(),
            unsupported: unsupported.clone(),
            full: full.clone(),
            elsewhere: elsewhere.clone(),
            quotas,
        }
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

    /// When a launch of this type with this image may be tried in this subnet of this zone again; `None` if
    /// it may be now.
    pub fn launchable_at(
        &self,
        instance_type: &str,
        image: &str,
        zone: &str,
        subnet: &str,
    ) -> Option<Timestamp> {
        let key = (image.to_owned(), instance_type.to_owned(), zone.to_owned());
        let refusals = [self.unsupported.get(&key), self.full.get(subnet)];
        self.available_at(instance_type, zone).max(refusals.into_iter().flatten().max().copied())
    }

    /// The zone where this subnet is, of which an instance was requested in another one, and until when no
    /// other is.
    pub fn elsewhere(&self, subnet: &str, requested: &str) -> Option<&(String, Timestamp)> {
        self.elsewhere.get(&(subnet.to_owned(), requested.to_owned()))
    }

    /// The quota that stops this creation, and until when; `None` if it may be requested now.
    pub fn reached(&self, demand: &Demand) -> Option<(Quota, Timestamp)> {
        let reached = demand
            .parts()
            .flat_map(|(quota, amount)| self.quotas.range((quota.clone(), 0)..=(quota.clone(), *amount)));
        reached.max_by_key(|(_, until)| **until).map(|((quota, _), until)| (quota.clone(), *until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn offerings() -> Offerings {
        Offerings::new(Duration::from_secs(180), Duration::from_secs(600), Duration::from_secs(5))
    }

    fn machine(instance_type: &str) -> Demand {
        Demand::instance(instance_type, "gp3", 20)
    }

    /// The machine of this object is refused for the quota of its vCPUs.
    fn refuse(offerings: &Offerings, instance_type: &str, object: &str, now: Timestamp) {
        let (quota, amount) = machine(instance_type).refused(crate::cloud::error::QuotaKind::Vcpus);
        offerings.reach_quota(quota, amount, object, now);
    }

    fn until(
        offerings: &Offerings,
        demand: &Demand,
        object: &str,
        priority: Priority,
        now: Timestamp,
    ) -> Option<Timestamp> {
        offerings.view(object, priority, now).reached(demand).map(|(_, until)| until)
    }

    #[test]
    fn a_full_subnet_closes_itself_alone_and_an_image_that_is_not_supported_only_its_own_launches() {
        let offerings = offerings();
        offerings.mark_full("subnet-1", at(0));
        offerings.mark_unsupported("ami-1", "r7i.large", "us-east-1b", at(0));
        let view = offerings.view("one", Priority::Create, at(179));
        let at_subnet = |subnet| view.launchable_at("r7i.large", "ami-1", "us-east-1a", subnet);
        assert_eq!((at_subnet("subnet-1"), at_subnet("subnet-2")), (Some(at(180)), None));
        let with = |image| view.launchable_at("r7i.large", image, "us-east-1b", "subnet-3");
        assert_eq!((with("ami-1"), with("ami-2")), (Some(at(3600)), None));
        assert!(view.is_available("r7i.large", "us-east-1a") && view.is_available("r7i.large", "us-east-1b"));
        assert_eq!(offerings.view("one", Priority::Create, at(180)).full, BTreeMap::new());
        assert_eq!(offerings.view("one", Priority::Create, at(3600)), OfferingsView::default());
    }

    #[test]
    fn a_subnet_that_is_in_another_zone_than_requested_is_not_requested_there_for_an_hour() {
        let offerings = offerings();
        offerings.mark_elsewhere("subnet-1", "us-east-1b", "us-east-1a", at(0));
        let shown = |zone, now| {
            let view = offerings.view("one", Priority::Repair, now);
            view.elsewhere("subnet-1", zone).map(|(shown, _)| shown.clone())
        };
        assert_eq!(shown("us-east-1b", at(3599)).as_deref(), Some("us-east-1a"));
        assert_eq!(shown("us-east-1a", at(0)), None, "the class was corrected");
        assert_eq!(shown("us-east-1b", at(3600)), None);
    }

    #[test]
    fn a_type_without_capacity_is_unavailable_in_that_zone_only_and_for_the_pause_only() {
        let offerings = offerings();
        let view = |now| offerings.view("one", Priority::Repair, now);
        offerings.mark_unavailable("r7i.large", "us-east-1a", at(0));
        let now = view(at(179));
        assert_eq!(now.available_at("r7i.large", "us-east-1a"), Some(at(180)));
        assert!(!now.is_available("r7i.large", "us-east-1a"));
        assert!(now.is_available("r7i.large", "us-east-1b"));
        assert!(now.is_available("r6i.large", "us-east-1a"));
        assert!(view(at(180)).is_available("r7i.large", "us-east-1a"));
    }

    #[test]
    fn a_quota_stops_new_databases_that_ask_as_much_of_it_and_nothing_else() {
        let offerings = offerings();
        refuse(&offerings, "r7i.4xlarge", "one", at(0));
        let of = |demand: &Demand, now| until(&offerings, demand, "another", Priority::Create, now);
        assert_eq!(of(&machine("r7i.4xlarge"), at(599)), Some(at(600)));
        assert_eq!(of(&machine("m7i.8xlarge"), at(0)), Some(at(600)), "of the same quota, and more");
        assert_eq!(of(&machine("m7i.2xlarge"), at(0)), None, "less may fit");
        assert_eq!(of(&machine("p5.48xlarge"), at(0)), None, "another quota");
        assert_eq!(of(&Demand::volume("gp3", 100, None), at(0)), None, "nor volumes");
        assert_eq!(of(&machine("r7i.4xlarge"), at(600)), None);
    }

    #[test]
    fn a_quota_of_volumes_stops_new_volumes_of_its_type_that_ask_as_much() {
        let offerings = offerings();
        offerings.reach_quota(Quota::Storage("gp3".to_owned()), 1000, "one", at(0));
        offerings.reach_quota(Quota::Iops("io2".to_owned()), 64_000, "two", at(0));
        let stops = |demand: &Demand| until(&offerings, demand, "new", Priority::Create, at(1)).is_some();
        for (demand, expected) in [
            (Demand::volume("gp3", 1000, None), true),
            (Demand::volume("gp3", 999, Some(80_000)), false),
            (Demand::volume("io2", 4000, Some(64_000)), true),
            (Demand::volume("io2", 4000, Some(1000)), false),
            (Demand::volume("io1", 4000, Some(64_000)), false),
            (machine("r7i.large"), false),
            (Demand::instance("r7i.large", "gp3", 1000), true),
        ] {
            assert_eq!(stops(&demand), expected, "{demand:?}");
        }
    }

    #[test]
    fn what_exists_pauses_after_its_own_refusals_only_and_longer_each_time_up_to_a_minute() {
        let offerings = offerings();
        let of = |object: &str, now| until(&offerings, &machine("r7i.large"), object, Priority::Repair, now);
        refuse(&offerings, "r7i.large", "another", at(0));
        assert_eq!(of("mine", at(1)), None);
        let mut now = at(1);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            refuse(&offerings, "r7i.large", "mine", now);
            let until = of("mine", now).unwrap();
            pauses.push(until.duration_since(now).as_secs());
            now = until;
            assert_eq!(of("mine", now), None, "it tries again");
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn refusals_are_forgotten() {
        let offerings = offerings();
        refuse(&offerings, "r7i.large", "one", at(0));
        assert_eq!(offerings.view("one", Priority::Create, at(600)), OfferingsView::default());
        assert!(offerings.known.lock().refused.is_empty());
    }
}
