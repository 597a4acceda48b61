//! What one stage took, as figures with the goals that some of them have.

use std::time::Duration;

use super::counters::Counters;
use super::reactions::Reactions;
use super::requests::Requests;
use crate::presentation::demo::observer::Calls;

/// What is done in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All databases are created at once.
    Create,
    /// The volumes of all grow.
    Grow,
    /// The operator is started again.
    Restart,
    /// Nothing.
    Idle,
    /// All databases are deleted.
    Delete,
}

impl Kind {
    /// Its name in the tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Grow => "grow",
            Self::Restart => "restart",
            Self::Idle => "idle",
            Self::Delete => "delete",
        }
    }

    /// Whether each database is changed in it: then its cost is one of each database, otherwise it is one of
    /// the operator.
    pub fn is_of_each(self) -> bool {
        matches!(self, Self::Create | Self::Grow | Self::Delete)
    }
}

/// What one stage took.
#[derive(Debug)]
pub struct Stage {
    /// What was done.
    pub kind: Kind,
    /// How many databases there were.
    pub databases: u32,
    /// How long was counted.
    pub counted: Duration,
    /// From the first change until all databases were as it wants; none where nothing was changed.
    pub until: Option<Duration>,
    /// The least that EC2's buckets allow for that.
    pub floor: Duration,
    /// From the changes to the operator's first writes.
    pub reactions: Reactions,
    /// The operator's processor time.
    pub processor: Duration,
    /// The operator's memory at the end, in bytes.
    pub memory: u64,
    /// The same before there was a database.
    pub memory_before: u64,
    /// What the operator counts itself.
    pub counters: Counters,
    /// Its requests to the API server.
    pub requests: Requests,
    /// Its calls to EC2, by action.
    pub calls: Calls,
}

/// A number with its name, and the most that it may be.
#[derive(Debug, PartialEq)]
pub struct Figure {
    /// What is measured.
    pub what: &'static str,
    /// How much it is.
    pub measured: String,
    /// The most that it may be, and whether it is no more.
    pub goal: Option<(String, bool)>,
}

/// One number, before it is written down.
struct Number {
    unit: &'static str,
    decimals: usize,
}

const SECONDS: Number = Number { unit: " s", decimals: 2 };
const COUNT: Number = Number { unit: "", decimals: 0 };
const EACH: Number = Number { unit: "", decimals: 2 };
const PERCENT: Number = Number { unit: " %", decimals: 2 };
const MEGABYTES: Number = Number { unit: " MB", decimals: 1 };
const KIBIBYTES: Number = Number { unit: " KiB", decimals: 1 };

/// Seconds of a processor that the creation of one database may take: one for fifty.
const CREATION: f64 = 1.0 / 50.0;

/// How much longer than EC2's buckets demand a creation of many may take.
const OVER_FLOOR: f64 = 1.3;

/// The seconds in which a change must be acted on.
const REACTION: f64 = 1.0;

/// How many objects a page of a list has.
const PAGE: u32 = 500;

impl Number {
    fn figure(&self, what: &'static str, value: f64, at_most: Option<f64>) -> Figure {
        let goal = at_most.map(|most| (self.text(most), value <= most));
        Figure { what, measured: self.text(value), goal }
    }

    fn text(&self, value: f64) -> String {
        format!("{value:.*}{}", self.decimals, self.unit)
    }
}

impl Stage {
    /// Its figures, in the order of the tables.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = self.times();
        figures.extend(self.processor_and_memory());
        figures.extend(if self.kind.is_of_each() { self.of_each() } else { self.of_operator() });
        figures
    }

    fn times(&self) -> Vec<Figure> {
        let Some(until) = self.until else {
            return vec![SECONDS.figure("time that was counted", self.counted.as_secs_f64(), None)];
        };
        let floor = self.floor.as_secs_f64();
        let (what, most) = match self.kind {
            Kind::Create => ("until all are Ready", (floor > 0.0).then_some(floor * OVER_FLOOR)),
            Kind::Grow => ("until all are grown", None),
            Kind::Restart | Kind::Idle | Kind::Delete => ("until all are gone", None),
        };
        let mut figures = vec![
            SECONDS.figure(what, until.as_secs_f64(), most),
            SECONDS.figure("least that EC2's buckets allow", floor, None),
        ];
        if let Some(last) = self.reactions.last {
            let what = "first write for the database changed last";
            figures.push(SECONDS.figure(what, last.as_secs_f64(), None));
        }
        if let Some(p99) = self.reactions.p99 {
            let what = "from a change to the first write, p99";
            figures.push(SECONDS.figure(what, p99.as_secs_f64(), Some(REACTION)));
        }
        if self.reactions.unanswered > 0 {
            let unanswered = u32::try_from(self.reactions.unanswered).unwrap_or(u32::MAX);
            figures.push(COUNT.figure("databases that no write followed", f64::from(unanswered), Some(0.0)));
        }
        figures
    }

    fn processor_and_memory(&self) -> Vec<Figure> {
        let processor = self.processor.as_secs_f64();
        let allowed = (self.kind == Kind::Create).then(|| CREATION * f64::from(self.databases));
        let mut figures = vec![SECONDS.figure("processor time", processor, allowed)];
        if self.kind == Kind::Idle {
            let percent = 100.0 * processor / self.counted.as_secs_f64().max(0.001);
            figures.push(PERCENT.figure("of one core", percent, Some(1.0)));
        }
        let is_judged = matches!(self.kind, Kind::Create | Kind::Restart);
        let judged = |most: f64| is_judged.then_some(most);
        figures.push(MEGABYTES.figure("memory (RSS)", number(self.memory) / 1e6, judged(40.0)));
        if self.kind != Kind::Delete {
            let more = (number(self.memory) - number(self.memory_before)) / 1024.0;
            let more = more / f64::from(self.databases);
            figures.push(KIBIBYTES.figure("memory more for a database", more, judged(25.0)));
        }
        figures
    }

    /// A database's share, where each is changed.
    fn of_each(&self) -> Vec<Figure> {
        let each = |what, count: u64, most: Option<f64>| {
            let most = most.filter(|_| self.kind == Kind::Create);
            EACH.figure(what, number(count) / f64::from(self.databases), most)
        };
        let requests = &self.requests;
        let reads_of_ec2 = ["DescribeInstances", "DescribeVolumes"].map(|action| self.called(action));
        vec![
            each("writes a database", requests.writes, Some(20.0)),
            each("events among them", requests.events, Some(5.0)),
            each("reads a database (get, list)", requests.gets + requests.lists, Some(20.0)),
            each("watches begun a database", requests.watches, None),
            each("reconciles a database", self.counters.passes.values().sum(), Some(12.0)),
            each("calls to EC2 a database", self.calls.values().sum(), None),
            each("DescribeInstances + DescribeVolumes", reads_of_ec2.iter().sum(), Some(0.2)),
            COUNT.figure("calls that EC2 refused for their rate", number(self.counters.throttled), None),
        ]
    }

    /// The operator's own, where nothing is changed.
    fn of_operator(&self) -> Vec<Figure> {
        let requests = &self.requests;
        let is_restart = self.kind == Kind::Restart;
        let mut figures = vec![COUNT.figure("writes", number(requests.writes), Some(0.0))];
        if is_restart {
            let pages = f64::from(self.databases.div_ceil(PAGE));
            let what = "lists of the kind listed most";
            figures.push(COUNT.figure(what, number(requests.most_lists), Some(pages)));
            let what = "gets of objects of which there are many";
            figures.push(COUNT.figure(what, number(requests.gets_of_many), Some(0.0)));
        }
        figures.push(COUNT.figure("reads (get, list)", number(requests.gets + requests.lists), None));
        figures.push(COUNT.figure("watches begun", number(requests.watches), None));
        figures.push(COUNT.figure("reconciles", number(self.counters.passes.values().sum()), None));
        let minutes = self.counted.as_secs_f64() / 60.0;
        let calls = number(self.calls.values().sum()) / minutes.max(0.001);
        let goal = (!is_restart).then(|| idle_calls(self.databases));
        figures.push(EACH.figure("calls to EC2 a minute", calls, goal));
        figures
    }

    fn called(&self, action: &str) -> u64 {
        self.calls.get(action).copied().unwrap_or_default()
    }
}

/// The calls to EC2 that so many databases at rest may cost in a minute: a list of instances in pages of
/// 1000, a fifth of a list of volumes in pages of 500, and three for everything else.
fn idle_calls(databases: u32) -> f64 {
    f64::from(databases.div_ceil(1000)) + f64::from(databases.div_ceil(500)) / 5.0 + 3.0
}

#[expect(clippy::cast_precision_loss, reason = "bytes and requests, far below 2^52")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Fifty databases, with every figure at its goal.
    pub fn stage(kind: Kind) -> Stage {
        let moment = Some(Duration::from_secs(1));
        let (reactions, until) = if kind.is_of_each() {
            (Reactions { last: moment, p99: moment, unanswered: 0 }, Some(Duration::from_millis(29_250)))
        } else {
            (Reactions::default(), None)
        };
        let (requests, calls) = if kind.is_of_each() {
            let requests =
                Requests { writes: 1000, events: 250, gets: 400, lists: 600, ..Requests::default() };
            (requests, [("DescribeInstances", 6), ("DescribeVolumes", 4)].as_slice())
        } else {
            (
                Requests { most_lists: 1, lists: 9, ..Requests::default() },
                [("DescribeInstances", 4)].as_slice(),
            )
        };
        Stage {
            kind,
            databases: 50,
            counted: Duration::from_secs(60),
            until,
            floor: Duration::from_millis(22_500),
            reactions,
            processor: Duration::from_millis(if kind == Kind::Idle { 600 } else { 1000 }),
            memory: 31_280_000,
            memory_before: 30_000_000,
            counters: Counters { passes: [("node".to_owned(), 600)].into(), throttled: 3 },
            requests,
            calls: calls.iter().map(|(action, count)| ((*action).to_owned(), *count)).collect(),
        }
    }

    /// The figures whose goal is missed.
    fn missed(stage: &Stage) -> Vec<&'static str> {
        let figures = stage.figures().into_iter();
        figures.filter(|it| it.goal.as_ref().is_some_and(|(_, is_met)| !is_met)).map(|it| it.what).collect()
    }

    #[test]
    fn a_goal_is_met_up_to_its_bound() {
        for kind in [Kind::Create, Kind::Grow, Kind::Restart, Kind::Idle, Kind::Delete] {
            assert_eq!(missed(&stage(kind)), Vec::<&str>::new(), "{kind:?}");
        }
    }

    #[test]
    fn each_goal_of_a_creation_is_missed_by_little_more() {
        let mut create = stage(Kind::Create);
        create.until = create.until.map(|until| until + Duration::from_millis(1));
        create.reactions.p99 = Some(Duration::from_millis(1001));
        create.reactions.unanswered = 1;
        create.processor += Duration::from_millis(10);
        create.memory = 40_100_000;
        create.requests.writes += 1;
        create.requests.events += 1;
        create.requests.gets += 1;
        create.counters.passes.insert("volume".to_owned(), 1);
        create.calls.insert("DescribeVolumes".to_owned(), 5);
        let with_a_goal: Vec<_> =
            create.figures().into_iter().filter(|it| it.goal.is_some()).map(|it| it.what).collect();
        assert_eq!(missed(&create), with_a_goal);
        assert_eq!(with_a_goal.len(), 11);
    }

    #[test]
    fn each_goal_of_an_operator_at_rest_is_missed_by_little_more() {
        let mut restart = stage(Kind::Restart);
        restart.requests = Requests { writes: 1, most_lists: 2, gets_of_many: 1, ..Requests::default() };
        assert_eq!(missed(&restart).len(), 3);
        let mut idle = stage(Kind::Idle);
        idle.processor = Duration::from_millis(610);
        idle.requests.writes = 1;
        idle.calls.insert("DescribeVolumes".to_owned(), 1);
        assert_eq!(missed(&idle), ["of one core", "writes", "calls to EC2 a minute"]);
    }

    #[test]
    fn the_calls_of_a_fleet_at_rest_grow_with_its_pages() {
        for (databases, calls) in [(50, 4.2), (1000, 4.4), (1001, 5.6)] {
            assert!((idle_calls(databases) - calls).abs() < 1e-9, "{databases}");
        }
    }

    #[test]
    fn where_ec2_demands_no_time_none_is_judged() {
        let mut create = stage(Kind::Create);
        create.floor = Duration::ZERO;
        assert_eq!(create.figures()[0].goal, None);
    }
}
