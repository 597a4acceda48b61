//! What EC2's answers to the operator may be, beside the truth.

use std::time::Duration;

use ec2sim::{Effect, Fault, InstanceState, Outside, Sight, Simulator};

use crate::world::OPERATOR;

/// EC2's lies to the operator, each with this probability for a call that it fits.
pub fn faults(rate: f64) -> Vec<Fault> {
    let of = |action: Option<&str>, share: f64, effect: Effect| Fault {
        id: name(&effect).to_owned(),
        caller: Some(OPERATOR.to_owned()),
        action: action.map(str::to_owned),
        probability: Some(rate * share),
        ..Fault::always(effect)
    };
    let error = |code: &str| Effect::Error { code: code.to_owned(), message: String::new() };
    let mut all = vec![
        of(None, 0.2, Effect::Throttle),
        of(None, 0.2, error("InternalError")),
        of(None, 0.1, error("Unavailable")),
        of(None, 0.2, Effect::DropBefore),
        of(None, 0.3, Effect::ApplyThenDrop),
        of(None, 0.1, Effect::TruncatedXml),
        of(None, 0.1, Effect::EmptyPage),
    ];
    for action in ["RunInstances", "CreateVolume"] {
        all.push(of(Some(action), 0.4, Effect::ApplyLate { seconds: 300.0 }));
        all.push(of(Some(action), 0.2, error("RequestLimitExceeded")));
    }
    for action in ["StopInstances", "TerminateInstances"] {
        all.push(of(Some(action), 0.5, Effect::Lingers { seconds: 1200.0 }));
    }
    all.push(of(Some("StopInstances"), 0.5, Effect::Hangs));
    all.push(of(Some("CreateSnapshot"), 0.5, Effect::Fails));
    all.push(of(Some("CreateVolume"), 0.2, Effect::VolumeVanishes { seconds: 30.0 }));
    all.push(of(Some("RunInstances"), 0.2, Effect::Quota { code: "VcpuLimitExceeded".to_owned() }));
    all.push(of(Some("RunInstances"), 0.3, error("InsufficientInstanceCapacity")));
    all.push(of(Some("RunInstances"), 0.2, Effect::LaunchDies { code: "Server.InternalError".to_owned() }));
    if rate == 0.0 { Vec::new() } else { all }
}

/// An effect as a campaign's report names it.
fn name(effect: &Effect) -> &'static str {
    match effect {
        Effect::Throttle => "a call is throttled",
        Effect::Error { code, .. } if code == "RequestLimitExceeded" => "a call is throttled",
        Effect::Error { code, .. } if code == "InsufficientInstanceCapacity" => "there is no capacity",
        Effect::Error { .. } => "a call fails",
        Effect::DropBefore => "a call is lost",
        Effect::ApplyThenDrop => "an answer is lost",
        Effect::TruncatedXml => "an answer ends in the middle",
        Effect::EmptyPage => "a page is empty",
        Effect::ApplyLate { .. } => "a call is carried out late",
        Effect::Lingers { .. } => "a stop or an end lingers",
        Effect::Hangs => "a stop hangs",
        Effect::Fails => "a snapshot fails",
        Effect::VolumeVanishes { .. } => "a volume vanishes",
        Effect::Quota { .. } => "a quota is used up",
        Effect::LaunchDies { .. } => "a launch dies",
        Effect::Stale { .. } => "a read is stale",
        Effect::Delay { .. }
        | Effect::Invisible { .. }
        | Effect::CapacityOut { .. }
        | Effect::ZoneDown { .. }
        | Effect::Then { .. } => "something else",
    }
}

/// How far back a stale read goes, in seconds.
const STALE: [f64; 3] = [2.0, 15.0, 60.0];

/// The longest of them, for the simulator.
pub const PAST: Duration = Duration::from_secs(61);

/// Reads that are answered as they would have been, with this probability for each call and age, so that
/// what it sees goes back and forth, and two lists disagree.
pub fn stale_reads(rate: f64) -> Vec<Fault> {
    let of = |seconds: f64| Fault {
        id: name(&Effect::Stale { seconds }).to_owned(),
        caller: Some(OPERATOR.to_owned()),
        probability: Some(rate),
        ..Fault::always(Effect::Stale { seconds })
    };
    if rate == 0.0 { Vec::new() } else { STALE.map(of).to_vec() }
}

/// Longer than any life, in seconds.
const FOR_GOOD: f64 = 1e9;

/// The tags of instances that have ended are not shown any more (EC2 user guide, "Terminate": tags "may no
/// longer be visible on the terminated instance after a short while").
pub fn hide_tags(ec2: &Simulator) {
    let ended = [InstanceState::ShuttingDown, InstanceState::Terminated];
    for instance in ec2.instances().iter().filter(|it| ended.contains(&it.state)) {
        let hide = Outside::Hide { sight: Sight::Tags, seconds: FOR_GOOD };
        let _ = ec2.outside(&hide.to(&instance.id));
    }
}
