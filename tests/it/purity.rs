//! Reads the sources: what decides stays pure, one place names the cloud's SDK, files stay small, the simulator knows nobody.

use std::path::{Path, PathBuf};

/// Files that decide: functions of values and `now`.
const PURE: [&str; 22] = [
    "cloud/absence.rs",
    "cloud/identity.rs",
    "controller/conditions.rs",
    "controller/database/access.rs",
    "controller/database/history.rs",
    "controller/database/invalid.rs",
    "controller/database/leaving.rs",
    "controller/database/machines.rs",
    "controller/database/plan.rs",
    "controller/database/pod.rs",
    "controller/database/replacing.rs",
    "controller/database/status.rs",
    "controller/database/stopping.rs",
    "controller/database/workload.rs",
    "controller/launch.rs",
    "controller/node/choose.rs",
    "controller/node/decisions.rs",
    "controller/node/fence.rs",
    "controller/node/loss.rs",
    "controller/retained.rs",
    "controller/safety.rs",
    "controller/volume/build.rs",
];

/// Files of these names are pure wherever they are, and so is every file in a folder `build`.
const PURE_NAMES: [&str; 6] = ["plan.rs", "status.rs", "leaving.rs", "growth.rs", "attempt.rs", "adopting.rs"];

/// What no pure file holds: a client, a clock, or waiting.
const IMPURE: [&str; 11] =
    ["async ", ".await", "Client", "Api::", "Api<", "Clock", "clock", "Timestamp::now", "SystemTime", "Instant::now", "tokio"];

/// The most lines of a file without its tests: about 400.
const LONGEST: usize = 420;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below, with its text.
fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

/// The text without the tests and without comments.
fn code(text: &str) -> String {
    let without_tests = text.split("#[cfg(test)]").next().unwrap_or_default();
    without_tests.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Files that only test: named so, or in a folder that is.
fn is_test(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

/// The sources of the operator that are not tests, each with its path in `src`.
pub fn sources() -> Vec<(String, String)> {
    let src = root().join("src");
    let all = files(&src).into_iter();
    let all = all.map(|(path, text)| (path.strip_prefix(&src).unwrap().to_owned(), text));
    all.filter(|(path, _)| !is_test(path)).map(|(path, text)| (path.display().to_string(), text)).collect()
}

fn is_pure(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    // How a status is written is no decision.
    let decides = path.starts_with("controller/") && (PURE_NAMES.contains(&name) || path.contains("/build/"));
    decides || PURE.contains(&path)
}

#[test]
fn what_decides_has_no_client_no_clock_and_does_not_wait() {
    let sources = sources();
    for file in PURE {
        assert!(sources.iter().any(|(path, _)| path == file), "{file} is not there: what took its place must be in this list");
    }
    let pure: Vec<_> = sources.iter().filter(|(path, _)| is_pure(path)).collect();
    assert!(pure.len() > PURE.len(), "the names that are looked for are gone");
    for (path, text) in pure {
        // The idempotency token's name is not a client.
        let code = code(text).replace("ClientToken", "");
        for word in IMPURE {
            assert!(!code.contains(word), "src/{path} decides, and holds {word:?}");
        }
    }
}

#[test]
fn only_the_cloud_folder_names_the_sdk() {
    for (path, text) in sources() {
        assert!(path.starts_with("cloud/") || !code(&text).contains("aws_sdk_ec2"), "src/{path} names aws_sdk_ec2");
    }
}

/// Files that spell a key: the one place, and a rule of a CRD, which takes a literal.
const SPELL_KEYS: [&str; 2] = ["api/keys.rs", "api/node_class.rs"];

#[test]
fn one_file_spells_the_keys_of_labels_annotations_taints_and_tags() {
    for (path, text) in sources().into_iter().filter(|(path, _)| !SPELL_KEYS.contains(&path.as_str())) {
        let spelled = ["\"freehold.dev/", "kubernetes.io/"].into_iter().find(|prefix| code(&text).contains(prefix));
        assert_eq!(spelled, None, "src/{path} spells a key: import it from api/keys.rs");
    }
}

#[test]
fn no_file_is_long_and_each_says_its_one_job_first() {
    for (path, text) in sources() {
        let lines = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().lines().count();
        assert!(lines <= LONGEST, "src/{path} has {lines} lines without its tests: split it by its jobs");
        assert!(text.starts_with("//! "), "src/{path} does not say its job in its first line");
    }
}

#[test]
fn the_simulator_does_not_know_who_uses_it() {
    for (path, text) in files(&root().join("tests/ec2sim")) {
        assert!(!text.to_lowercase().contains("freehold"), "{} names freehold", path.display());
    }
}
