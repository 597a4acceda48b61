//! How many scenarios have a test environment on a real control plane: each takes many seconds of processor
//! time, and one on the rig a fraction of that.

use super::{files, root};

/// The most places that start one. A scenario that needs it (docs/testing.md) takes one that is there with
/// it, or says in its commit why there has to be another.
const MOST: usize = 20;

/// How one is started.
const STARTS: [&str; 5] = ["start", "start_with", "build", "build_alone", "build_at"];

#[test]
fn few_scenarios_have_a_real_control_plane() {
    let folder = root().join("tests/it");
    let mut places = Vec::new();
    for (path, text) in files(&folder) {
        let path = path.strip_prefix(&folder).unwrap().display().to_string();
        // The kit starts none by itself, and real machines have their own permits.
        if ["kit/", "real/", "purity/"].iter().any(|other| path.starts_with(other)) {
            continue;
        }
        let starts = |line: &&str| STARTS.iter().any(|start| line.contains(&format!("TestEnv::{start}(")));
        places.extend(text.lines().filter(starts).map(|line| format!("{path}: {}", line.trim())));
    }
    assert!(places.len() > MOST / 2, "this test finds too few: {places:#?}");
    assert!(places.len() <= MOST, "{} places start one: run it on the rig: {places:#?}", places.len());
}
