//! Where a time went, from the moments at which each thing was seen; and so the way from `kubectl apply` to
//! the first answered query.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

/// EC2 shows the instance.
pub const LAUNCHED: &str = "instance launched";
/// The machine's kubelet made its Node.
pub const REGISTERED: &str = "node registered";
/// The Node is Ready.
pub const JOINED: &str = "node joined";
/// The claim is bound to the volume.
pub const BOUND: &str = "volume bound";
/// EC2 attached the volume, by the CSI driver's call.
pub const ATTACHED: &str = "volume attached";
/// The kubelet mounted it and made the pod's sandbox.
pub const MOUNTED: &str = "volume mounted";

/// When each thing was seen, from the step's begin.
pub type Moments = BTreeMap<&'static str, Duration>;

/// One part of the way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// What it is the time of.
    pub what: &'static str,
    /// How much of the whole it is: the parts add up to it.
    pub seconds: f64,
}

/// The whole way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Way {
    /// One after the other.
    pub parts: Vec<Part>,
    /// From the begin to the end.
    pub seconds: f64,
}

/// Divides the time until the first answer; none if a moment is missing.
///
/// The volume is made while the machine boots: only what it took beyond that is a part.
pub fn way(seen: &Moments, answered: Duration) -> Option<Way> {
    let at = |what: &str| seen.get(what).copied();
    Some(divide(&[
        ("launch", "the operator's RunInstances", at(LAUNCHED)?),
        ("boot", "the machine, until its kubelet has made its Node", at(REGISTERED)?),
        ("join", "the Node, until it is Ready", at(JOINED)?),
        ("volume", "made and bound; the rest of it passed beside the boot", at(BOUND)?),
        ("attach", "StatefulSet, pod, scheduling, the CSI driver's AttachVolume", at(ATTACHED)?),
        ("mount", "file system, mount, the pod's sandbox", at(MOUNTED)?),
        ("engine", "the engine's start, until its first answer to a client", answered),
    ]))
}

/// Parts of a time: the name of each, what it is the time of, and when it ended since the begin. One that
/// ended before the part in front of it took no time of its own.
pub fn divide(ends: &[(&'static str, &'static str, Duration)]) -> Way {
    // Rounded before they are subtracted, so that what is shown adds up.
    let tenths = |moment: Duration| u32::try_from((moment.as_millis() + 50) / 100).unwrap_or(u32::MAX);
    let seconds = |tenths: u32| f64::from(tenths) / 10.0;
    let mut parts = Vec::new();
    let mut before = 0;
    for &(name, what, end) in ends {
        let end = tenths(end).max(before);
        parts.push(Part { name, what, seconds: seconds(end - before) });
        before = end;
    }
    Way { parts, seconds: seconds(before) }
}

impl Way {
    /// As a table of this style.
    pub fn table(&self, preset: &str) -> Table {
        let mut table = Table::new();
        table.load_preset(preset).set_header(["PART", "SECONDS", "WHAT"]);
        for Part { name, what, seconds } in &self.parts {
            table.add_row([*name, &format!("{seconds:.1}"), what]);
        }
        table.add_row([
            "in all",
            &format!("{:.1}", self.seconds),
            "from kubectl apply to the first answered query",
        ]);
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.table(presets::UTF8_HORIZONTAL_ONLY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moments in tenths of seconds.
    fn moments(bound: u64) -> Moments {
        [(LAUNCHED, 4), (REGISTERED, 30), (JOINED, 41), (BOUND, bound), (ATTACHED, 70), (MOUNTED, 85)]
            .into_iter()
            .map(|(what, tenths)| (what, Duration::from_millis(tenths * 100)))
            .collect()
    }

    #[test]
    fn the_parts_add_up_to_the_whole() {
        for (bound, volume, attach) in [(15, 0.0, 2.9), (55, 1.4, 1.5)] {
            let way = way(&moments(bound), Duration::from_millis(15_000)).unwrap();
            let seconds: Vec<f64> = way.parts.iter().map(|part| part.seconds).chain([way.seconds]).collect();
            assert_eq!(seconds, [0.4, 2.6, 1.1, volume, attach, 1.5, 6.5, 15.0]);
        }
    }

    #[test]
    fn without_all_moments_there_are_no_parts() {
        let mut seen = moments(15);
        seen.remove(ATTACHED);
        assert_eq!(way(&seen, Duration::from_secs(15)), None);
    }
}
