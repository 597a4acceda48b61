//! Lives with two operators at the pace of production: whatever becomes of the one that leads, the other one
//! follows within seconds.

use std::time::Duration;

use serde_json::json;
use strum::IntoEnumIterator as _;

use super::blow::Blow;
use super::house::House;
use super::lies::Lies;
use super::life::CALM;
use super::operators::identity;
use super::{each, judge};
use crate::properties::leaders;

/// For how long the operator is away: longer than AWS accepts what was signed before.
const AWAY: Duration = Duration::from_mins(16);

/// How soon another operator leads.
const SOON: Duration = Duration::from_secs(15);

/// The calls at which the leader is struck: of a creation, and of a move to another type.
const CALLS: [&str; 3] = ["RunInstances", "CreateVolume", "TerminateInstances"];

/// Every case: the call, and what becomes of the leader there.
pub fn cases() -> Vec<(&'static str, Blow)> {
    CALLS.into_iter().flat_map(|call| Blow::iter().map(move |blow| (call, blow))).collect()
}

/// Lives it; fails if a rule was broken.
pub async fn live((call, blow): (&'static str, Blow)) {
    let mut house = House::build(1, Lies::none()).await;
    house.start_with(2, &[]);
    house.chaos.strike_at(call, blow, AWAY);
    house.create(&json!({"deletionPolicy": "Delete"})).await;
    house.until_ready(CALM).await;
    house.patch(&json!({"instanceTypes": ["r7i.xlarge"]})).await;
    house.until_ready(CALM).await;
    // The operator that was away goes on beside the one that leads.
    tokio::time::sleep(AWAY).await;
    house.patch(&json!({"storage": {"size": "120Gi"}})).await;
    house.until_ready(CALM).await;
    let is_alone = |house: &House| house.server.objects("nodes.freehold.dev").len() == 1;
    house.until("there is one Node", CALM, is_alone).await;
    house.rest().await;
    house.judge();
    house.was_followed(blow);
}

#[test]
fn an_operator_that_is_asked_to_end_in_the_middle_of_a_creation_releases_its_lease_for_the_other_one() {
    judge(each(&[(1, ())], |()| asked_to_end()));
}

async fn asked_to_end() {
    let mut house = House::build(1, Lies::none()).await;
    house.start_with(2, &[]);
    house.create(&json!({})).await;
    house.until("an instance is launched", CALM, |house| !house.ec2.instances().is_empty()).await;
    let (asked_at, (_, leader)) = (house.ec2.now(), house.leaders().pop().unwrap());
    let number = if leader == identity(1) { 1 } else { 2 };
    house.chaos.ask_to_end(number, AWAY);
    house.until_ready(CALM).await;
    let (times, names): (Vec<_>, Vec<_>) =
        house.leaders().into_iter().filter(|(at, _)| *at > asked_at).unzip();
    assert_eq!(names, [String::new(), identity(3 - number)]);
    let after = Duration::try_from(times[1].duration_since(asked_at)).unwrap();
    assert!(after <= SOON, "the other operator leads {after:?} after the first was asked to end");
    house.rest().await;
    house.judge();
}

impl House {
    /// The leader that was struck was followed by the other one in time, or goes on leading.
    fn was_followed(&self, blow: Blow) {
        let (struck_at, struck) = self.chaos.struck_first().expect("the call was made");
        let leaders = self.leaders();
        let next =
            leaders.iter().find(|(at, leader)| *at > struck_at && *leader != struck && !leader.is_empty());
        if blow == Blow::Unanswered {
            assert_eq!(next, None, "nothing became of the leader: {leaders:?}");
            return;
        }
        let (at, _) = next.unwrap_or_else(|| panic!("no other operator follows {struck}: {leaders:?}"));
        let after = Duration::try_from(at.duration_since(struck_at)).unwrap();
        assert!(after <= SOON, "{after:?} after {struck} was struck: {leaders:?}");
    }

    /// Who held the operators' Lease since when.
    fn leaders(&self) -> Vec<(jiff::Timestamp, String)> {
        let changes = self.server.changes();
        let holders = leaders::holders(&changes);
        let mut leaders: Vec<_> = holders.map(|(at, holder)| (at, holder.to_owned())).collect();
        leaders.dedup_by(|later, earlier| later.1 == earlier.1);
        leaders
    }
}
