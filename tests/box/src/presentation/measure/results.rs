//! What was measured: each run, the medians, and the goals; as tables.

use std::fmt::{self, Write as _};
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};

use super::moments::LossParts;
use super::variant::Variant;
use crate::presentation::daemon::Pace;
use crate::presentation::demo::host::Host;
use crate::presentation::demo::parts::Way;
use crate::presentation::demo::report::tenths;

/// How many times the bare way a way of the operator's may take.
const RATIO: f64 = 1.2;

/// How long it may take from the end of a machine until the operator has the proof.
const DETECTION: Duration = Duration::from_secs(30);

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The longest time between two acknowledgements.
    pub outage: Duration,
    /// Its parts; none if a moment was missed.
    pub way: Option<Way>,
    /// After a loss, from the end of the machine until whoever acts had the proof.
    pub detection: Option<Duration>,
    /// After a loss, from then until a row was acknowledged.
    pub after_proof: Option<Duration>,
    /// Rows sent, acknowledged and found since the start.
    pub rows: [u64; 3],
}

impl Run {
    /// A run whose parts are not known yet.
    pub fn new(outage: Duration, sent: u64, acknowledged: u64, found: u64) -> Self {
        Self { outage, way: None, detection: None, after_proof: None, rows: [sent, acknowledged, found] }
    }

    /// The same with the parts after a loss.
    pub fn lost(self, parts: Option<LossParts>) -> Self {
        match parts {
            Some(LossParts { way, detection, after_proof }) => {
                Self { way: Some(way), detection: Some(detection), after_proof: Some(after_proof), ..self }
            }
            None => self,
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "outage {:.1} s", self.outage.as_secs_f64())?;
        if let Some(way) = &self.way {
            let parts: Vec<String> =
                way.parts.iter().map(|part| format!("{} {:.1}", part.name, part.seconds)).collect();
            write!(f, " ({})", parts.join(", "))?;
        }
        let [sent, acknowledged, found] = self.rows;
        write!(f, "; {sent} rows sent, {acknowledged} acknowledged, {found} found, none twice")
    }
}

/// The runs of one variant.
#[derive(Clone, Debug)]
pub struct Series {
    /// Which.
    pub variant: Variant,
    /// In their order.
    pub runs: Vec<Run>,
}

/// The runs at one pace of EC2 and its machines.
#[derive(Clone, Debug)]
pub struct PaceResults {
    /// The pace.
    pub pace: Pace,
    /// How busy the host was: see [`load`](crate::presentation::demo::host::load).
    pub load: String,
    /// Each variant.
    pub series: Vec<Series>,
}

/// Everything that was measured.
#[derive(Debug)]
pub struct Results {
    /// Where, and by which command.
    pub host: Host,
    /// The engine, and how many rows it had.
    pub what: String,
    /// One after the other.
    pub paces: Vec<PaceResults>,
}

/// The middle one; of an even number, the greater of both.
fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

fn in_seconds(time: Duration) -> String {
    format!("{:.1}", tenths(time))
}

impl Series {
    fn outage(&self) -> Option<Duration> {
        median(self.runs.iter().map(|run| run.outage).collect())
    }

    fn after_proof(&self) -> Option<Duration> {
        median(self.runs.iter().filter_map(|run| run.after_proof).collect())
    }

    /// A column a run, a row a part.
    fn table(&self, preset: &str) -> Table {
        let mut table = Table::new();
        let numbers = (1..=self.runs.len()).map(|number| number.to_string());
        let header =
            ["PART".to_owned()].into_iter().chain(numbers).chain(["MEDIAN", "WHAT"].map(str::to_owned));
        table.load_preset(preset).set_header(header);
        let ways: Vec<&Way> = self.runs.iter().filter_map(|run| run.way.as_ref()).collect();
        for (place, part) in ways.first().iter().flat_map(|way| &way.parts).enumerate() {
            let of = |run: &Run| {
                run.way
                    .as_ref()
                    .and_then(|way| way.parts.get(place))
                    .map(|part| Duration::from_secs_f64(part.seconds))
            };
            self.row(&mut table, part.name, of, part.what);
        }
        self.row(
            &mut table,
            "outage",
            |run| Some(run.outage),
            "the longest time between two acknowledgements",
        );
        if self.runs.iter().any(|run| run.after_proof.is_some()) {
            self.row(
                &mut table,
                "from proof",
                |run| run.after_proof,
                "the outage without what was before the proof",
            );
            self.row(
                &mut table,
                "to proof",
                |run| run.detection,
                "from the power cut until whoever acts knows that the machine has ended",
            );
        }
        for place in 1..self.runs.len() + 2 {
            if let Some(column) = table.column_mut(place) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    fn row(&self, table: &mut Table, name: &str, of: impl Fn(&Run) -> Option<Duration>, what: &str) {
        let times: Vec<Option<Duration>> = self.runs.iter().map(of).collect();
        let middle = median(times.iter().copied().flatten().collect()).map(in_seconds).unwrap_or_default();
        let cells = times.into_iter().map(|time| time.map(in_seconds).unwrap_or_default());
        table.add_row([name.to_owned()].into_iter().chain(cells).chain([middle, what.to_owned()]));
    }
}

impl PaceResults {
    fn series(&self, variant: Variant) -> Option<&Series> {
        self.series.iter().find(|series| series.variant == variant)
    }

    /// The goals that can be judged: what, the number, the bound, whether it is met.
    fn goals(&self) -> Vec<(&'static str, String, String, bool)> {
        let mut goals = Vec::new();
        let mut ratio = |what, of: Option<Duration>, to: Option<Duration>| {
            if let (Some(of), Some(to)) = (of, to) {
                let ratio = of.as_secs_f64() / to.as_secs_f64().max(0.001);
                let number = format!("{} / {} = {ratio:.2}", in_seconds(of), in_seconds(to));
                goals.push((what, number, format!("{RATIO:.1}"), ratio <= RATIO));
            }
        };
        let outage = |variant| self.series(variant).and_then(Series::outage);
        let after_proof = |variant| self.series(variant).and_then(Series::after_proof);
        ratio(
            "planned replacement / bare move, outage",
            outage(Variant::PlannedReplacement),
            outage(Variant::BareMove),
        );
        ratio(
            "killed instance / bare loss, from proof",
            after_proof(Variant::KilledInstance),
            after_proof(Variant::BareLoss),
        );
        let detections = self
            .series(Variant::KilledInstance)
            .into_iter()
            .flat_map(|series| &series.runs)
            .filter_map(|run| run.detection);
        if let Some(longest) = detections.max() {
            let bound = format!("{} s", DETECTION.as_secs());
            goals.push((
                "killed instance, to proof, the longest",
                format!("{} s", in_seconds(longest)),
                bound,
                longest <= DETECTION,
            ));
        }
        goals
    }

    fn goals_table(&self, preset: &str) -> Option<Table> {
        let goals = self.goals();
        let mut table = Table::new();
        table.load_preset(preset).set_header(["GOAL", "MEASURED", "AT MOST", ""]);
        for (what, number, bound, is_met) in &goals {
            table.add_row([*what, number, bound, if *is_met { "met" } else { "not met" }]);
        }
        (!goals.is_empty()).then_some(table)
    }

    fn pace(&self) -> &'static str {
        match self.pace {
            Pace::Zero => "EC2 takes no time",
            Pace::Fast => "EC2 takes fractions of a second",
            Pace::Realistic => {
                "EC2 takes the time of AWS: 30 s to boot, 20 s to stop or end, 3 s to attach, \
                4 s to detach"
            }
        }
    }
}

impl Results {
    /// As a page for people.
    pub fn markdown(&self) -> String {
        let mut page = format!("# {}\n\n{}\n\n{}\n", self.host.command, self.host, self.what);
        // Writing to a String cannot fail.
        let _ = write!(
            page,
            "\nAll times are in seconds. The *outage* is what a client saw that writes a row each 10 ms: the \
             longest time between two\n\
             acknowledgements. The *bare* ways are the same StatefulSet, PersistentVolume and claim on the \
             same machines, with the\n\
             operator stopped and each step done by hand at once, while another machine waits. After each \
             run all rows were read back:\n\
             every acknowledged row was found, no row that was not sent, and none twice.\n"
        );
        for pace_results in &self.paces {
            let _ = writeln!(page, "\n## {}\n\n{}.", pace_results.pace(), pace_results.load);
            if let Some(table) = pace_results.goals_table(presets::ASCII_MARKDOWN) {
                let _ = writeln!(page, "\n{table}");
            }
            for series in &pace_results.series {
                let (name, what) = (series.variant.as_str(), series.variant.what());
                let _ = writeln!(page, "\n### {name}\n\n{what}\n\n{}", series.table(presets::ASCII_MARKDOWN));
            }
        }
        page
    }
}

impl fmt::Display for PaceResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.pace())?;
        for series in &self.series {
            writeln!(f, "\n{}\n{}", series.variant.as_str(), series.table(presets::UTF8_HORIZONTAL_ONLY))?;
        }
        match self.goals_table(presets::UTF8_HORIZONTAL_ONLY) {
            Some(table) => write!(f, "\n{table}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presentation::demo::parts::divide;

    fn seconds(tenths: u64) -> Duration {
        Duration::from_millis(tenths * 100)
    }

    fn run(outage: u64) -> Run {
        let way = divide(&[("stop", "the end", seconds(10)), ("engine", "the start", seconds(outage))]);
        Run { way: Some(way), ..Run::new(seconds(outage), 3, 2, 2) }
    }

    fn lost(outage: u64, detection: u64) -> Run {
        Run {
            detection: Some(seconds(detection)),
            after_proof: Some(seconds(outage - detection)),
            ..run(outage)
        }
    }

    fn pace_results(series: Vec<(Variant, Vec<Run>)>) -> PaceResults {
        PaceResults {
            pace: Pace::Zero,
            load: String::new(),
            series: series.into_iter().map(|(variant, runs)| Series { variant, runs }).collect(),
        }
    }

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(vec![seconds(3), seconds(1), seconds(2)]), Some(seconds(2)));
        assert_eq!(median(vec![seconds(3), seconds(1)]), Some(seconds(3)));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn a_goal_is_met_up_to_its_bound() {
        for (planned, detection, met) in [(144, 300, [true, true, true]), (145, 301, [false, true, false])] {
            let pace_results = pace_results(vec![
                (Variant::PlannedReplacement, vec![run(planned)]),
                (Variant::KilledInstance, vec![lost(180 + detection, detection)]),
                (Variant::BareMove, vec![run(120)]),
                (Variant::BareLoss, vec![lost(151, 1)]),
            ]);
            let goals: Vec<bool> = pace_results.goals().into_iter().map(|(_, _, _, is_met)| is_met).collect();
            assert_eq!(goals, met);
        }
    }

    #[test]
    fn what_was_not_run_is_not_judged() {
        let pace_results = pace_results(vec![(Variant::BareMove, vec![run(120)])]);
        assert!(pace_results.goals().is_empty());
        assert!(!pace_results.to_string().contains("GOAL"));
    }

    #[test]
    fn a_table_has_each_run_and_the_medians() {
        let series =
            Series { variant: Variant::BareLoss, runs: vec![lost(150, 2), lost(160, 1), lost(140, 3)] };
        assert_eq!(
            series.table(presets::ASCII_MARKDOWN).to_string(),
            "| PART       |    1 |    2 |    3 | MEDIAN | WHAT                                                                   |\n\
             |------------|------|------|------|--------|------------------------------------------------------------------------|\n\
             | stop       |  1.0 |  1.0 |  1.0 |    1.0 | the end                                                                |\n\
             | engine     | 14.0 | 15.0 | 13.0 |   14.0 | the start                                                              |\n\
             | outage     | 15.0 | 16.0 | 14.0 |   15.0 | the longest time between two acknowledgements                          |\n\
             | from proof | 14.8 | 15.9 | 13.7 |   14.8 | the outage without what was before the proof                           |\n\
             | to proof   |  0.2 |  0.1 |  0.3 |    0.2 | from the power cut until whoever acts knows that the machine has ended |",
        );
    }
}
