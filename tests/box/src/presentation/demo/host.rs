//! The machine that the demo was run on, for a report that is read elsewhere.

use std::fmt;

use serde::Serialize;

/// What a time depends on.
#[derive(Debug, Default, Serialize)]
pub struct Host {
    /// The command.
    pub command: String,
    /// Processors that this program may use.
    pub cores: usize,
    /// Memory in GiB, rounded.
    pub memory_gib: u64,
    /// The kernel's release.
    pub kernel: String,
}

impl Host {
    /// This machine, and how this program was called: by this name, and with these arguments.
    pub fn this(name: &str) -> Self {
        let arguments: Vec<String> = std::env::args().skip(2).collect();
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            command: [name.to_owned()].into_iter().chain(arguments).collect::<Vec<_>>().join(" "),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gib: gib(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default()),
            kernel: kernel.trim().to_owned(),
        }
    }
}

/// How busy this machine is with other things, in words; asked before a measurement begins.
pub fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "Load of the host in the minute before: {}",
        load.split_ascii_whitespace().next().unwrap_or("unknown")
    )
}

/// `MemTotal` of `/proc/meminfo` (KiB) in whole GiB.
fn gib(meminfo: &str) -> u64 {
    const KIB: u64 = 1 << 20;
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .and_then(|number| number.parse::<u64>().ok());
    (kib.unwrap_or_default() + KIB / 2) / KIB
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cores, {} GiB of memory, Linux {}", self.cores, self.memory_gib, self.kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_in_whole_gib() {
        assert_eq!(gib("MemFree:  12 kB\nMemTotal:       24631412 kB\n"), 23);
        assert_eq!(gib("MemTotal:       25000000 kB\n"), 24);
        assert_eq!(gib(""), 0);
    }
}
