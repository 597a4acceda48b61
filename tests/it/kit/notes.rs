//! What a whole run of the tests used, noted line by line in a file, for a judgement after the run.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The notes of this name, over all runs since their file was removed.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// What was noted.
pub fn read(name: &str) -> BTreeSet<String> {
    std::fs::read_to_string(path(name)).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Notes what is not noted yet. Two processes may note the same.
pub fn add(name: &str, used: &BTreeSet<String>) {
    let mut file = std::fs::File::options().create(true).append(true).open(path(name)).unwrap();
    for line in used.difference(&read(name)) {
        writeln!(file, "{line}").unwrap();
    }
}
