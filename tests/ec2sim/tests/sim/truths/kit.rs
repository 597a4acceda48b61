//! What the statements are written with: a simulator with a clock that is stepped by hand, and short ways to
//! call it.

use std::time::Duration;

use ec2sim::{
    Clock, Delays, InstanceState, InstanceView, Limits, Options, Response, Simulator, Truth, Truths,
    VolumeState, VolumeView,
};

/// Whether a statement holds; if not, what was seen instead.
pub type Holds = Result<(), String>;

pub const ZONE: &str = "us-east-1a";
pub const SUBNET: &str = "subnet-0a000000000000000";
pub const OTHER_SUBNET: &str = "subnet-0b000000000000000";

/// The statement holds with the truth in, and fails with it taken out.
pub fn both_ways(truth: Truth, holds: fn(Truths) -> Holds) {
    let with = holds(Truths::all());
    assert!(with.is_ok(), "{truth:?} does not hold: {with:?}");
    let without = holds(Truths::all().without(truth));
    assert!(without.is_err(), "{truth:?} holds even with the behaviour taken out: the check can't fail");
}

pub fn check(condition: bool, what: &str) -> Holds {
    if condition { Ok(()) } else { Err(what.to_owned()) }
}

#[expect(clippy::needless_pass_by_value, reason = "values are written where they are compared")]
pub fn equal<T: PartialEq + std::fmt::Debug>(got: T, expected: T) -> Holds {
    if got == expected { Ok(()) } else { Err(format!("{got:?} instead of {expected:?}")) }
}

/// No rate limits and a clock that is stepped; each delay is 10 seconds, so that a state can be looked at.
pub fn options(truths: Truths) -> Options {
    let ten = Duration::from_secs(10);
    Options {
        clock: Clock::Manual,
        start: Some("2026-03-01T00:00:00Z".parse().unwrap()),
        truths,
        delays: Delays {
            pending: ten,
            status: ten,
            stopping: ten,
            shutting_down: ten,
            creating: ten,
            deleting: ten,
            vanishing: ten,
            attaching: ten,
            detaching: ten,
            modifying: ten,
            optimizing: ten,
            snapshot: ten,
            terminated: Duration::from_hours(1),
        },
        limits: Limits::NONE,
        ..Options::default()
    }
}

pub struct Kit {
    pub sim: Simulator,
}

impl Kit {
    pub fn new(truths: Truths) -> Self {
        Self::with(options(truths))
    }

    pub fn with(options: Options) -> Self {
        Self { sim: Simulator::new(options).unwrap() }
    }

    /// The answer, or the code of the refusal (`none` if there was no answer).
    pub fn call(&self, action: &str, params: &[(&str, &str)]) -> Result<Response, String> {
        let mut all = vec![("Action", action)];
        all.extend_from_slice(params);
        self.sim.call("tester", &all).map_err(|error| error.code().unwrap_or("none").to_owned())
    }

    /// The code of the refusal, or `ok`.
    pub fn code(&self, action: &str, params: &[(&str, &str)]) -> String {
        self.call(action, params).map_or_else(|code| code, |_| "ok".to_owned())
    }

    /// The same call must be refused with `code`.
    pub fn refuses(&self, code: &str, action: &str, params: &[(&str, &str)]) -> Holds {
        equal(self.code(action, params).as_str(), code)
    }

    pub fn pass(&self, seconds: u64) {
        self.sim.advance(Duration::from_secs(seconds));
    }

    pub fn run(&self, more: &[(&str, &str)]) -> Result<String, String> {
        let mut params = vec![("ImageId", "ami-0000000000000000a"), ("MinCount", "1"), ("MaxCount", "1")];
        for (key, value) in [("InstanceType", "r7i.large"), ("SubnetId", SUBNET)] {
            if !more.iter().any(|(given, _)| *given == key) {
                params.push((key, value));
            }
        }
        params.extend(more.iter().filter(|(_, value)| !value.is_empty()));
        let Response::RunInstances(reservation) = self.call("RunInstances", &params)? else {
            return Err("another answer".to_owned());
        };
        Ok(reservation.instances[0].id.clone())
    }

    /// An instance that runs.
    pub fn running(&self) -> Result<String, String> {
        let id = self.run(&[])?;
        self.pass(20);
        equal(self.instance(&id)?.state, InstanceState::Running)?;
        Ok(id)
    }

    pub fn create_volume(&self, more: &[(&str, &str)]) -> Result<String, String> {
        let mut params = Vec::new();
        for (key, value) in [("AvailabilityZone", ZONE), ("Size", "10"), ("VolumeType", "gp3")] {
            if !more.iter().any(|(given, _)| *given == key) {
                params.push((key, value));
            }
        }
        params.extend(more.iter().filter(|(_, value)| !value.is_empty()));
        let Response::Volume(volume) = self.call("CreateVolume", &params)? else {
            return Err("another answer".to_owned());
        };
        Ok(volume.id)
    }

    /// A volume that is available.
    pub fn available(&self, more: &[(&str, &str)]) -> Result<String, String> {
        let id = self.create_volume(more)?;
        self.pass(10);
        equal(self.volume(&id)?.state, VolumeState::Available)?;
        Ok(id)
    }

    pub fn attach(&self, volume: &str, instance: &str, device: &str) -> String {
        self.code("AttachVolume", &[("VolumeId", volume), ("InstanceId", instance), ("Device", device)])
    }

    pub fn instance(&self, id: &str) -> Result<InstanceView, String> {
        self.sim.instance(id).ok_or_else(|| format!("{id} is gone"))
    }

    pub fn volume(&self, id: &str) -> Result<VolumeView, String> {
        self.sim.volume(id).ok_or_else(|| format!("{id} is gone"))
    }

    /// The ids that a list of instances shows.
    pub fn listed(&self, params: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let Response::Instances(page) = self.call("DescribeInstances", params)? else {
            return Err("another answer".to_owned());
        };
        let instances = page.items.into_iter().flat_map(|reservation| reservation.instances);
        Ok(instances.map(|instance| instance.id).collect())
    }

    /// The instances that a list of statuses shows.
    pub fn statuses(&self, params: &[(&str, &str)]) -> Result<Vec<InstanceView>, String> {
        let Response::InstanceStatuses(page) = self.call("DescribeInstanceStatus", params)? else {
            return Err("another answer".to_owned());
        };
        Ok(page.items)
    }

    /// The volumes and the token of the next page that a list of volumes shows.
    pub fn volumes(&self, params: &[(&str, &str)]) -> Result<(Vec<VolumeView>, Option<String>), String> {
        let Response::Volumes(page) = self.call("DescribeVolumes", params)? else {
            return Err("another answer".to_owned());
        };
        Ok((page.items, page.next_token))
    }
}
