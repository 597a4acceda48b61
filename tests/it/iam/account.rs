//! An account with resources of this cluster, of another one and without tags, and what becomes of a call in
//! it.

use std::{collections::BTreeSet, time::Duration};

use ec2sim::{ApiError, Clock, Delays, Limits, Options, Policy, Simulator, World};

use super::shipped::{CLUSTER, KEY};

/// A key that is not in the policy.
pub const OTHER_KEY: &str = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000002";

/// A cluster beside ours.
pub const OTHER_CLUSTER: &str = "7e0c6c1b-98a4-4b0c-8a42-0f7c3f1d2b6e";

/// A call: its action and parameters. `{i:ours}`, `{vol:other}`, `{snap:none}` … in the values are the ids of
/// what has our cluster's tag, another's, or no tag; `allowed` is what may be adopted, and `adopted` was;
/// `backup` is a snapshot of a Backup, `final` a final one.
pub type Call = Vec<(String, String)>;

pub struct Account {
    simulator: Simulator,
    ids: Vec<(String, String)>,
}

impl Account {
    /// An account in `region` whose caller `operator` has this policy.
    pub fn new(region: &str, policy: &Policy) -> Self {
        let home = World::default();
        let mut world = World {
            instance_profiles: vec!["nodes".into(), "admin".into()],
            kms_keys: vec![KEY.into(), OTHER_KEY.into()],
            region: region.into(),
            ..home
        };
        for zone in &mut world.zones {
            zone.name = zone.name.replace("us-east-1", region);
        }
        for subnet in &mut world.subnets {
            subnet.zone = subnet.zone.replace("us-east-1", region);
        }
        let options = Options {
            clock: Clock::Manual,
            start: Some("2026-03-01T00:00:00Z".parse().unwrap()),
            limits: Limits::NONE,
            delays: Delays::zero(),
            policies: [("operator".to_owned(), policy.clone())].into(),
            world,
            ..Options::default()
        };
        let mut account = Self { simulator: Simulator::new(options).unwrap(), ids: Vec::new() };
        let id = |cluster| ("freehold.dev/cluster-id", cluster);
        let allowed = format!("{CLUSTER}/team-a/orders");
        let adopt = ("freehold.dev/adopt", allowed.as_str());
        let other = format!("{OTHER_CLUSTER}/team-a/orders");
        let backup = ("freehold.dev/purpose", "backup");
        let at_last = ("freehold.dev/purpose", "final");
        for (whose, tags) in [
            ("ours", &[id(CLUSTER)][..]),
            ("other", &[id(OTHER_CLUSTER)]),
            ("none", &[]),
            ("allowed", &[adopt]),
            ("allowed elsewhere", &[("freehold.dev/adopt", other.as_str())]),
            ("adopted", &[adopt, id(CLUSTER)]),
            ("adopted elsewhere", &[adopt, id(OTHER_CLUSTER)]),
            ("backup", &[backup, id(CLUSTER)]),
            ("backup elsewhere", &[backup, id(OTHER_CLUSTER)]),
            ("final", &[at_last, id(CLUSTER)]),
        ] {
            account.furnish(region, whose, tags);
        }
        account
    }

    /// Makes an instance, a volume and a snapshot.
    fn furnish(&mut self, region: &str, whose: &str, tags: &[(&str, &str)]) {
        let zone = format!("{region}a");
        let volume = [("AvailabilityZone", zone.as_str()), ("Size", "10"), ("VolumeType", "gp3")];
        let volume = self.make("volume", "CreateVolume", &volume, tags);
        let launch = [
            ("ImageId", "ami-0000000000000000a"),
            ("InstanceType", "r7i.large"),
            ("MinCount", "1"),
            ("MaxCount", "1"),
        ];
        let instance = self.make("instance", "RunInstances", &launch, tags);
        let snapshot = self.make("snapshot", "CreateSnapshot", &[("VolumeId", &volume)], tags);
        self.simulator.advance(Duration::from_secs(60));
        for (kind, id) in [("i", instance), ("vol", volume), ("snap", snapshot)] {
            self.ids.push((format!("{{{kind}:{whose}}}"), id));
        }
    }

    /// Makes something as a caller without a policy.
    fn make(&self, kind: &str, action: &str, params: &[(&str, &str)], tags: &[(&str, &str)]) -> String {
        let of_kind = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let mut all: Call = [&[("Action", action)], params].concat().iter().map(of_kind).collect();
        if !tags.is_empty() {
            all.push(("TagSpecification.1.ResourceType".to_owned(), kind.to_owned()));
        }
        for (number, (key, value)) in (1..).zip(tags) {
            all.push((format!("TagSpecification.1.Tag.{number}.Key"), (*key).to_owned()));
            all.push((format!("TagSpecification.1.Tag.{number}.Value"), (*value).to_owned()));
        }
        self.simulator.call("administrator", &all).unwrap().resource_ids().remove(0)
    }

    /// Makes the call as the operator: allowed by which statements, or denied on which resource.
    pub fn outcome(&self, call: &Call) -> String {
        let fill =
            |value: &String| self.ids.iter().fold(value.clone(), |value, (name, id)| value.replace(name, id));
        let params: Call = call.iter().map(|(key, value)| (key.clone(), fill(value))).collect();
        let allowed = |rest: &str| {
            let by: Vec<String> = self.used().into_iter().collect();
            format!("allowed by {}{rest}", by.join(" "))
        };
        match self.simulator.call("operator", &params) {
            Ok(response) => {
                self.simulator.advance(Duration::from_secs(60));
                let gone = response.resource_ids().iter().any(|id| self.was_lost(id));
                allowed(if gone { ", but not by KMS" } else { "" })
            }
            Err(ApiError::Refused(refusal)) if refusal.code == "UnauthorizedOperation" => {
                let rest = refusal.message.split_once("is not authorized to perform: ").unwrap().1;
                let what = rest.split([' ']).take_while(|word| !["because", "with"].contains(word));
                let what: Vec<&str> = what.collect();
                let named = self.ids.iter().fold(what.join(" "), |text, (name, id)| text.replace(id, name));
                format!("denied: {}", short(&named.replace("on resource: ", "on ")))
            }
            Err(ApiError::Refused(refusal)) => allowed(&format!(", and EC2 answers {}", refusal.code)),
            Err(ApiError::NoAnswer) => "no answer".to_owned(),
        }
    }

    /// Whether a volume has vanished, or a launch has failed.
    fn was_lost(&self, id: &str) -> bool {
        let has_failed = |code: &str| code == "Client.InternalError";
        let reason = self.simulator.instance(id).and_then(|view| view.state_reason);
        let is_volume = id.starts_with("vol-");
        (is_volume && self.simulator.volume(id).is_none()) || reason.is_some_and(|it| has_failed(&it.code))
    }

    /// The statements that have allowed something.
    pub fn used(&self) -> BTreeSet<String> {
        self.simulator.used_statements("operator")
    }
}

/// Without what all ARNs have in common.
fn short(text: &str) -> String {
    let text = text.replace("arn:aws:ec2:us-east-1:123456789012:", "").replace("arn:aws:ec2:us-east-1::", "");
    text.replace("arn:aws:iam::123456789012:", "")
}
