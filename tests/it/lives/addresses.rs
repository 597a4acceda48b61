//! Lives in subnets of one address each: the machine that takes another's place has its host name, too.

use std::time::Duration;

use ec2sim::{Limits, Outside, World};
use freehold_rig::Hand;
use serde_json::json;

use super::house::House;
use super::lies::Lies;
use super::life::CALM;
use super::named::sleep;

/// How soon a database serves again whose successor joins at once.
const SOON: Duration = Duration::from_secs(600);

/// The finalizer by which a VolumeAttachment stays.
const HOLD: &str = "test.example/hold";

/// A machine is terminated. For so many seconds its VolumeAttachment is not gone, and its Kubernetes node
/// stays.
pub async fn reused(held: u64) {
    let mut world = World::default();
    for subnet in &mut world.subnets {
        subnet.addresses = 1;
    }
    let mut house = House::build_on(1, Lies::none(), Limits::NONE, world).await;
    house.start();
    house.grown_up("Retain").await;
    let lost = house.ec2.instances()[0].clone();
    house.hold_attachments(held > 0);
    house.strike(&Outside::Terminate);
    let limit = if held > 0 { CALM } else { SOON };
    sleep(held).await;
    house.hold_attachments(false);
    let serves = |it: &House| it.live().iter().any(|other| other.id != lost.id) && it.is_ready();
    house.until("another machine serves", limit, serves).await;
    let serving = house.live().remove(0);
    assert_eq!(serving.private_dns, lost.private_dns, "the subnet has no other address");
    let attempts = house.ec2.instances().len() - 1;
    assert_eq!(attempts, if held > 0 { 2 } else { 1 }, "one that finds its name taken never joins");
    house.rest().await;
    house.judge();
}

impl House {
    /// Puts a finalizer on every VolumeAttachment that keeps it, or takes that off.
    fn hold_attachments(&self, is_held: bool) {
        let kind = "volumeattachments.storage.k8s.io";
        for attachment in self.server.objects(kind) {
            let mut finalizers = attachment["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
            finalizers.retain(|it| it != HOLD);
            finalizers.extend(is_held.then(|| json!(HOLD)));
            let patch = json!({"metadata": {"finalizers": finalizers}});
            Hand::of(&self.server, "person").merge(kind, &attachment, "", &patch);
        }
    }
}
