//! What a new Node does before it has an attempt, where the attempt is placed, and what it writes down.

use std::collections::BTreeSet;

use pretty_assertions::assert_eq;

use super::unidentified::{quota_closed, unavailable, with};
use super::*;
use crate::api::node_class::ZoneOrder;
use crate::api::node_class_status::SubnetStatus;

/// The NodeClass, of generation 3, with what was found of a generation.
fn judged_class(generation: i64, launchable: Option<bool>) -> NodeClass {
    let mut class = class();
    class.metadata.generation = Some(3);
    let observed_generation = Some(generation);
    class.status = Some(NodeClassStatus { observed_generation, launchable, ..NodeClassStatus::default() });
    class
}

/// The NodeClass of which EC2 shows these subnets in these zones.
fn class_with_subnets(shown: &[(&str, &str)]) -> NodeClass {
    let mut class = judged_class(3, Some(true));
    let subnet = |(id, zone): &(&str, &str)| SubnetStatus {
        id: (*id).to_owned(),
        zone: (*zone).to_owned(),
        vpc_id: "vpc-1".to_owned(),
    };
    class.status.as_mut().unwrap().subnets = shown.iter().map(subnet).collect();
    class
}

/// The subnet's last instance came up in another zone than this one.
fn elsewhere(subnet: &str, requested: &str, until: i64) -> OfferingsView {
    let shown = ("us-east-1c".to_owned(), at(until));
    let elsewhere = [((subnet.to_owned(), requested.to_owned()), shown)].into();
    OfferingsView { elsewhere, ..OfferingsView::default() }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_new_node_gets_its_finalizer_then_waits_for_a_sweep_then_launches() {
    hold(vec![
        (
            "the finalizer comes before anything that costs money",
            with(|it| {
                it.node.metadata.finalizers = None;
                it.instances.swept_at = None;
            }),
            now(),
            "[add finalizer] Progressing",
        ),
        (
            "nothing is decided before EC2 was seen, for a Node that is older than this operator's term",
            with(|it| {
                it.instances.swept_at = None;
                it.leading_since = at(2);
            }),
            now(),
            "[] AwaitingInventory",
        ),
        (
            "a Node of this term has nothing in EC2 yet, whether EC2 lists anything or not",
            with(|it| it.instances.swept_at = None),
            now(),
            "[launch attempt 1, r7i.large in us-east-1a] Launching, pending",
        ),
        (
            "but where a launch of it was sent, EC2 must show what became of it",
            with(|it| {
                it.instances.swept_at = None;
                it.has_sent = true;
            }),
            now(),
            "[] AwaitingInventory",
        ),
        (
            "the first type in the first zone",
            world(),
            now(),
            "[launch attempt 1, r7i.large in us-east-1a] Launching, pending",
        ),
        (
            "a NodeClass of which no machine can be launched",
            with(|it| it.class = Some(judged_class(3, Some(false)))),
            now(),
            "[] stalled NodeClassNotReady",
        ),
        (
            "a NodeClass that was judged before it was changed",
            with(|it| it.class = Some(judged_class(2, Some(false)))),
            now(),
            "[launch attempt 1, r7i.large in us-east-1a] Launching, pending",
        ),
        (
            "a NodeClass that could not be judged",
            with(|it| it.class = Some(judged_class(3, None))),
            now(),
            "[launch attempt 1, r7i.large in us-east-1a] Launching, pending",
        ),
        (
            "EC2 shows its subnet in another zone: a machine would come up there",
            with(|it| {
                it.class =
                    Some(class_with_subnets(&[("subnet-a", "us-east-1b"), ("subnet-b", "us-east-1b")]));
            }),
            now(),
            "[launch attempt 1, r7i.large in us-east-1b] Launching, pending",
        ),
        (
            "there is no other in the zone of the volume",
            with(|it| {
                it.class =
                    Some(class_with_subnets(&[("subnet-a", "us-east-1b"), ("subnet-b", "us-east-1b")]));
                it.node.spec.zone = Some("us-east-1a".to_owned());
            }),
            now(),
            "[] stalled NodeClassMismatch",
        ),
        (
            "nothing judges the class, and the last machine of the first subnet came up in another zone",
            with(|it| it.offerings = elsewhere("subnet-a", "us-east-1a", 30)),
            now(),
            "[launch attempt 1, r7i.large in us-east-1b] Launching, pending",
        ),
        (
            "and there is no other in the zone of the volume",
            with(|it| {
                it.offerings = elsewhere("subnet-a", "us-east-1a", 30);
                it.node.spec.zone = Some("us-east-1a".to_owned());
            }),
            now(),
            "[] stalled NodeClassMismatch, again in 20 s",
        ),
        (
            "EC2 does not show the first subnet: the next is tried",
            with(|it| it.class = Some(class_with_subnets(&[("subnet-c", "us-east-1c")]))),
            now(),
            "[launch attempt 1, r7i.large in us-east-1c] Launching, pending",
        ),
        (
            "EC2 shows no subnet of the class: EC2 itself is requested",
            with(|it| it.class = Some(class_with_subnets(&[]))),
            now(),
            "[launch attempt 1, r7i.large in us-east-1a] Launching, pending",
        ),
        ("no NodeClass", with(|it| it.class = None), now(), "[] stalled NodeClassNotFound, again in 60 s"),
        (
            "a closed quota gate",
            with(|it| it.offerings = quota_closed()),
            now(),
            "[] QuotaExceeded, again in 60 s",
        ),
        (
            "only the zone of the volume",
            with(|it| {
                it.node.spec.zone = Some("us-east-1c".to_owned());
                it.node.spec.zones = vec!["us-east-1a".to_owned()];
            }),
            now(),
            "[launch attempt 1, r7i.large in us-east-1c] Launching, pending",
        ),
        (
            "only the allowed zones",
            with(|it| it.node.spec.zones = vec!["us-east-1c".to_owned(), "us-east-1b".to_owned()]),
            now(),
            "[launch attempt 1, r7i.large in us-east-1b] Launching, pending",
        ),
        (
            "no subnet in the zone",
            with(|it| it.node.spec.zone = Some("us-east-1f".to_owned())),
            now(),
            "[] stalled NodeClassMismatch",
        ),
        (
            "no type that the class allows",
            with(|it| it.class.as_mut().unwrap().spec.instance_types = vec!["m7i.*".to_owned()]),
            now(),
            "[] stalled NodeClassMismatch",
        ),
        (
            "a type that the class does not allow is passed over",
            with(|it| it.class.as_mut().unwrap().spec.instance_types = vec!["r6i.*".to_owned()]),
            now(),
            "[launch attempt 1, r6i.large in us-east-1a] Launching, pending",
        ),
    ]);
}

#[test]
fn the_first_type_with_capacity_in_any_allowed_zone_is_taken() {
    let all = |until: &[i64; 6]| {
        unavailable(&[
            ("r7i.large", "us-east-1a", until[0]),
            ("r7i.large", "us-east-1b", until[1]),
            ("r7i.large", "us-east-1c", until[2]),
            ("r6i.large", "us-east-1a", until[3]),
            ("r6i.large", "us-east-1b", until[4]),
            ("r6i.large", "us-east-1c", until[5]),
        ])
    };
    hold(vec![
        (
            "the preferred type in another zone comes before another type",
            with(|it| it.offerings = unavailable(&[("r7i.large", "us-east-1a", 100)])),
            now(),
            "[launch attempt 1, r7i.large in us-east-1b] Launching, pending",
        ),
        (
            "another type when the preferred one is nowhere to be had",
            with(|it| {
                it.offerings = all(&[100; 6]);
                it.offerings.unavailable.retain(|(name, _), _| name == "r7i.large");
            }),
            now(),
            "[launch attempt 1, r6i.large in us-east-1a] Launching, pending",
        ),
        (
            "a full subnet leaves the others of its zone",
            with(|it| {
                it.class.as_mut().unwrap().spec.subnets[1].zone = "us-east-1a".to_owned();
                it.offerings.full = BTreeMap::from([("subnet-a".to_owned(), at(100))]);
            }),
            now(),
            "[launch attempt 1, r7i.large in us-east-1a {subnetID: subnet-b}] Launching, pending",
        ),
        (
            "every subnet is full: until the first has room",
            with(|it| {
                let full = ["subnet-a", "subnet-b", "subnet-c"].map(|it| (it.to_owned(), at(100)));
                it.offerings.full = BTreeMap::from(full);
            }),
            now(),
            "[] InsufficientCapacity, again in 90 s",
        ),
        (
            "what EC2 does not support with the image of another class",
            with(|it| {
                let key =
                    |image: &str, zone: &str| (image.to_owned(), "r7i.large".to_owned(), zone.to_owned());
                it.offerings.unsupported = BTreeMap::from([(key("ami-2", "us-east-1a"), at(100))]);
            }),
            now(),
            "[launch attempt 1, r7i.large in us-east-1a] Launching, pending",
        ),
        (
            "what EC2 does not support with this one",
            with(|it| {
                let key =
                    |image: &str, zone: &str| (image.to_owned(), "r7i.large".to_owned(), zone.to_owned());
                it.offerings.unsupported = BTreeMap::from([(key("ami-1", "us-east-1a"), at(100))]);
            }),
            now(),
            "[launch attempt 1, r7i.large in us-east-1b] Launching, pending",
        ),
        (
            "none anywhere: until the first pause is over",
            with(|it| it.offerings = all(&[100, 90, 100, 40, 100, 100])),
            now(),
            "[] InsufficientCapacity, again in 30 s",
        ),
    ]);
    let plan = plan(&with(|it| it.offerings = all(&[100; 6])), now());
    for name in ["r7i.large in us-east-1a", "r6i.large in us-east-1c"] {
        assert!(message(&plan).contains(name), "{}", message(&plan));
    }
}

#[test]
fn an_attempt_writes_the_whole_request_down() {
    let launch = launch(1);
    assert_eq!(
        launch.client_token,
        crate::cloud::identity::token("cluster", crate::cloud::identity::Kind::Node, "node-uid", 1)
    );
    let tags: Vec<(&str, &str)> =
        launch.tags.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(
        tags,
        [
            ("Name", "orders-k3f9q-1"),
            ("freehold.dev/attempt", "1"),
            ("freehold.dev/cluster-id", "cluster"),
            ("freehold.dev/database", "team-a/orders"),
            ("freehold.dev/node-uid", "node-uid"),
        ]
    );
    assert_eq!(launch.user_data_hash, crate::cloud::identity::user_data_hash("boot"));
    assert_eq!(
        (launch.subnet_id.as_str(), launch.zone.as_str(), launch.image_id.as_str()),
        ("subnet-a", "us-east-1a", "ami-1")
    );
}

#[test]
fn databases_begin_in_different_zones_only_where_the_class_says_so() {
    let zones = |order: ZoneOrder| -> BTreeSet<String> {
        let launched = (0..20_u32).map(|number| {
            let world = with(|it| {
                it.node.metadata.uid = Some(format!("{:08x}", number.wrapping_mul(2_654_435_761)));
                it.class.as_mut().unwrap().spec.zone_order = order;
            });
            let launched = plan(&world, now()).actions.pop();
            let Some(Action::Launch(creation, _)) = launched else { panic!("{launched:?}") };
            creation.zone
        });
        launched.collect()
    };
    assert_eq!((zones(ZoneOrder::Subnets).len(), zones(ZoneOrder::Spread).len()), (1, 3));
}
