//! The lives that have a name: which call, which lie, which crash; each is judged by the rules.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use ec2sim::{Effect, Fault, InstanceState, Outside, Sight, Visibility};
use freehold_rig::Hand;
use serde_json::json;

use super::blow::Blow;
use super::house::House;
use super::lies::Lies;
use super::life::CALM;
use crate::world::OPERATOR;

/// What happens in a life; true: the database is deleted at its end.
type Story = for<'a> fn(&'a mut House) -> Pin<Box<dyn Future<Output = bool> + 'a>>;

/// A life: its name, how late EC2 shows what is new, in seconds by id, by filter and by tag, and its story.
pub type Named = (&'static str, [u64; 3], Story);

const LATE: [u64; 3] = [2, 60, 120];
/// It shows it at once.
pub const AT_ONCE: [u64; 3] = [0; 3];

/// The lives.
pub const NAMED: &[Named] = &[
    ("a launch comes late, the operator is killed, and the database is deleted", LATE, |it| {
        Box::pin(async move {
            it.lie("RunInstances", Effect::ApplyLate { seconds: 600.0 }, 1);
            it.chaos.strike_at("RunInstances", Blow::Lost, MOMENT);
            it.born("Delete").await;
            sleep(60).await;
            it.delete().await;
            true
        })
    }),
    ("a launch comes late, the database is deleted, and the operator's clock is set forward", LATE, |it| {
        Box::pin(async move {
            it.lie("RunInstances", Effect::ApplyLate { seconds: 600.0 }, 1);
            it.chaos.strike_at("RunInstances", Blow::Lost, MOMENT);
            it.born("Delete").await;
            it.until("the operator is killed", CALM, |it| it.chaos.struck_first().is_some()).await;
            it.delete().await;
            sleep(120).await;
            it.set_clock_forward(Duration::from_secs(21 * 60));
            true
        })
    }),
    ("a launch's answer is lost, the operator is killed, and EC2 shows the machine late", LATE, |it| {
        Box::pin(async move {
            it.lie("RunInstances", Effect::ApplyThenDrop, 1);
            it.chaos.strike_at("RunInstances", Blow::After, MOMENT);
            it.born("Delete").await;
            false
        })
    }),
    ("a launch's answer is lost, and the quota is used up for its repetition", AT_ONCE, |it| {
        Box::pin(async move {
            it.lie("RunInstances", Effect::ApplyThenDrop, 1);
            it.chaos.strike_at("RunInstances", Blow::After, MOMENT);
            let quota = Effect::Quota { code: "VcpuLimitExceeded".to_owned() };
            let used_up = Fault { nth: Some(2), count: Some(20), ..Fault::on("RunInstances", quota) };
            let id = it.ec2.add_fault(used_up);
            it.born("Delete").await;
            sleep(600).await;
            it.ec2.clear_fault(&id);
            false
        })
    }),
    (
        "a machine is terminated while its launch is in doubt and the operator away for two hours",
        LATE,
        |it| {
            Box::pin(async move {
                it.lie("RunInstances", Effect::ApplyThenDrop, 1);
                it.chaos.strike_at("RunInstances", Blow::Lost, Duration::from_secs(7200));
                it.born("Delete").await;
                sleep(120).await;
                it.strike(&Outside::Terminate);
                false
            })
        },
    ),
    ("a launch dies, and the operator is killed before it writes the id", AT_ONCE, |it| {
        Box::pin(async move {
            it.lie("RunInstances", Effect::LaunchDies { code: "Client.InvalidKMSKey".to_owned() }, 1);
            it.chaos.strike_at("RunInstances", Blow::After, MOMENT);
            it.born("Delete").await;
            false
        })
    }),
    ("a volume vanishes before the operator, killed meanwhile, writes its id", LATE, |it| {
        Box::pin(async move {
            it.lie("CreateVolume", Effect::VolumeVanishes { seconds: 30.0 }, 1);
            it.chaos.strike_at("CreateVolume", Blow::After, MOMENT);
            it.born("Delete").await;
            false
        })
    }),
    ("a growth's answer is lost, and the size is edited while the operator is away", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Retain").await;
            it.chaos.strike_at("ModifyVolume", Blow::Lost, Duration::from_secs(120));
            it.patch(&json!({"storage": {"size": "120Gi"}})).await;
            sleep(60).await;
            it.patch(&json!({"storage": {"size": "130Gi"}})).await;
            false
        })
    }),
    ("a lost machine's stop is accepted and does not end, and the database is deleted", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Delete").await;
            it.lie("StopInstances", Effect::Lingers { seconds: 3000.0 }, 9);
            it.lie("TerminateInstances", Effect::Lingers { seconds: 3000.0 }, 9);
            it.strike(&Outside::Impair);
            sleep(3000).await;
            it.patch(&json!({"running": false})).await;
            sleep(600).await;
            it.delete().await;
            true
        })
    }),
    ("a machine's tags vanish as soon as it is terminated for a deletion", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Delete").await;
            let hide = Outside::Hide { sight: Sight::Tags, seconds: 1e6 }.to("");
            it.lie("TerminateInstances", Effect::Then { seconds: 0.0, action: hide }, 9);
            it.delete().await;
            true
        })
    }),
    ("a machine is not found by its id for five minutes while it is deleted", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Delete").await;
            for instance in it.ec2.instances() {
                let hide = Outside::Hide { sight: Sight::Id, seconds: 300.0 };
                it.ec2.outside(&hide.to(&instance.id)).unwrap();
            }
            it.delete().await;
            true
        })
    }),
    ("a fenced machine is started again outside Freehold", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Retain").await;
            it.strike(&Outside::Impair);
            // It stays so for a second: nothing is left to do but to terminate it.
            while !it.is_any(InstanceState::Stopped) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            for instance in it.ec2.instances() {
                let _ = it.ec2.outside(&Outside::Start.to(&instance.id));
            }
            false
        })
    }),
    ("a zone is disrupted during a move from a machine that then fails", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Retain").await;
            it.patch(&json!({"instanceTypes": ["r7i.xlarge"]})).await;
            sleep(30).await;
            let zone = it.ec2.instances()[0].zone.clone();
            let down = it.ec2.add_fault(Fault::always(Effect::ZoneDown { zone }));
            it.strike(&Outside::Impair);
            sleep(2400).await;
            it.ec2.clear_fault(&down);
            false
        })
    }),
    (
        "a machine is lost after a restart during the outage of another zone, and replaced before its end",
        AT_ONCE,
        |it| {
            Box::pin(async move {
                it.grown_up("Retain").await;
                let lost = it.ec2.instances()[0].clone();
                let zone = if lost.zone.ends_with('a') { "us-east-1b" } else { "us-east-1a" };
                let down = it.ec2.add_fault(Fault::always(Effect::ZoneDown { zone: zone.to_owned() }));
                it.chaos.kill(MOMENT);
                sleep(120).await;
                it.strike(&Outside::Terminate);
                let is_replaced = |it: &House| {
                    let mut all = it.ec2.instances().into_iter();
                    all.any(|other| other.id != lost.id && other.state == InstanceState::Running)
                };
                it.until("another machine runs", Duration::from_secs(600), is_replaced).await;
                it.until_ready(Duration::from_secs(600)).await;
                it.ec2.clear_fault(&down);
                false
            })
        },
    ),
    ("every call is throttled for ten minutes after a loss", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Retain").await;
            let throttled = Fault { caller: Some(OPERATOR.to_owned()), ..Fault::always(Effect::Throttle) };
            let id = it.ec2.add_fault(throttled);
            it.strike(&Outside::Terminate);
            sleep(600).await;
            it.ec2.clear_fault(&id);
            false
        })
    }),
    ("the watches of Nodes are silent for ten minutes while the database is edited", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Retain").await;
            it.server.silence("nodes.freehold.dev", true);
            it.patch(&json!({"instanceTypes": ["r7i.xlarge"]})).await;
            sleep(600).await;
            it.server.silence("nodes.freehold.dev", false);
            false
        })
    }),
    ("a move is taken back while the operator, killed at its launch, is away", LATE, |it| {
        Box::pin(async move {
            it.grown_up("Retain").await;
            it.chaos.strike_at("RunInstances", Blow::Lost, Duration::from_secs(300));
            it.patch(&json!({"instanceTypes": ["r7i.xlarge"]})).await;
            sleep(120).await;
            it.patch(&json!({"instanceTypes": ["r7i.large"]})).await;
            false
        })
    }),
    ("a pause is taken back while the operator, killed at the termination, is away", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Retain").await;
            it.chaos.strike_at("TerminateInstances", Blow::Lost, Duration::from_secs(120));
            it.patch(&json!({"running": false})).await;
            sleep(300).await;
            it.patch(&json!({"running": true})).await;
            false
        })
    }),
    ("the final snapshot's answer is lost, it fails, and then the policy is Retain", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Snapshot").await;
            it.lie("CreateSnapshot", Effect::Fails, 1);
            it.chaos.strike_at("CreateSnapshot", Blow::Lost, MOMENT);
            it.delete().await;
            sleep(240).await;
            it.patch_if_there(&json!({"deletionPolicy": "Retain"})).await;
            true
        })
    }),
    (
        "a machine is lost, its zone has no capacity, and the operator is away for over an hour",
        AT_ONCE,
        |it| {
            Box::pin(async move {
                it.grown_up("Retain").await;
                let zone = Some(it.ec2.instances()[0].zone.clone());
                let out = Effect::CapacityOut { instance_type: None, zone };
                let id = it.ec2.add_fault(Fault::on("RunInstances", out));
                it.chaos.strike_at("RunInstances", Blow::After, Duration::from_secs(4500));
                it.strike(&Outside::Terminate);
                sleep(6000).await;
                it.ec2.clear_fault(&id);
                false
            })
        },
    ),
    ("a termination is held up for twenty minutes on its way", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Retain").await;
            it.lie("TerminateInstances", Effect::ApplyLate { seconds: 800.0 }, 1);
            it.patch(&json!({"instanceTypes": ["r7i.xlarge"]})).await;
            false
        })
    }),
    ("a person writes to the Nodes twice a second while the machine is launched", AT_ONCE, |it| {
        Box::pin(async move {
            it.born("Delete").await;
            for number in 0..1200 {
                it.label_nodes(number);
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            assert!(it.is_ready(), "it takes ten minutes");
            false
        })
    }),
    ("the successor of a lost machine does not join, and the other type has no capacity", AT_ONCE, |it| {
        Box::pin(async move {
            it.create(&json!({"instanceTypes": ["r7i.large", "m7i.large"]})).await;
            it.until_ready(CALM).await;
            let out = Effect::CapacityOut { instance_type: Some("m7i.large".to_owned()), zone: None };
            let id = it.ec2.add_fault(Fault::on("RunInstances", out));
            it.strike(&Outside::Terminate);
            for _ in 0..600 {
                for instance in it.ec2.instances() {
                    it.controls.silence(&instance.id, true);
                }
                sleep(5).await;
            }
            it.ec2.clear_fault(&id);
            false
        })
    }),
    ("the status is lost after the second attempt, while EC2 does not show the machine", LATE, |it| {
        Box::pin(async move {
            it.second_attempt().await;
            it.forget(Sight::All);
            false
        })
    }),
    ("the status is lost after the second attempt, and the database is deleted", LATE, |it| {
        Box::pin(async move {
            it.second_attempt().await;
            it.forget(Sight::Filter);
            it.delete().await;
            true
        })
    }),
];

/// As long as a restart takes.
const MOMENT: Duration = Duration::from_secs(1);

/// So long.
pub async fn sleep(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Lives it; fails if a rule was broken.
pub async fn live((name, lag, story): Named) {
    let [by_id, by_filter, tags] = lag.map(Duration::from_secs);
    let lies = Lies { visibility: Visibility { by_id, by_filter, tags }, ..Lies::none() };
    let mut house = House::build(1, lies).await;
    house.start();
    house.chaos.tell(name);
    let is_deleted = story(&mut house).await;
    house.chaos.tell("the story ends");
    if is_deleted {
        house.until_gone(CALM).await;
    } else {
        house.until_ready(CALM).await;
        let is_alone = |house: &House| house.server.objects("nodes.freehold.dev").len() == 1;
        house.until("there is one Node", CALM, is_alone).await;
    }
    house.rest().await;
    house.judge();
}

impl House {
    /// So many calls of the operator's are hit.
    pub fn lie(&self, action: &str, effect: Effect, count: u64) {
        let caller = Some(OPERATOR.to_owned());
        self.ec2.add_fault(Fault { caller, nth: Some(1), count: Some(count), ..Fault::on(action, effect) });
    }

    /// The database is created.
    async fn born(&self, policy: &str) {
        self.create(&json!({"deletionPolicy": policy})).await;
    }

    /// The database is created and ready.
    pub async fn grown_up(&self, policy: &str) {
        self.born(policy).await;
        self.until_ready(CALM).await;
    }

    fn is_any(&self, state: InstanceState) -> bool {
        self.ec2.instances().iter().any(|it| it.state == state)
    }

    /// The first attempt is refused, the second has just made the machine.
    async fn second_attempt(&self) {
        let full = Effect::Error { code: "InsufficientInstanceCapacity".to_owned(), message: String::new() };
        self.lie("RunInstances", full, 1);
        self.born("Delete").await;
        self.until("there is a machine", CALM, |it| !it.ec2.instances().is_empty()).await;
    }

    /// A person writes a label to every Node.
    fn label_nodes(&self, number: usize) {
        for node in self.server.objects("nodes.freehold.dev") {
            let labels = json!({"metadata": {"labels": {"number": number.to_string()}}});
            Hand::of(&self.server, "person").merge("nodes.freehold.dev", &node, "", &labels);
        }
    }

    /// A person takes the status off every Node, and EC2 does not show the machines for a while.
    fn forget(&self, sight: Sight) {
        for instance in self.ec2.instances() {
            let _ = self.ec2.outside(&Outside::Hide { sight, seconds: 240.0 }.to(&instance.id));
        }
        self.wipe("nodes.freehold.dev");
    }
}
