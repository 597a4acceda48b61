//! The patches of `tests/mends`: each takes one mend out, and names the test that fails then (`.ci/mends`).

use std::process::Command;

use super::{files, paths, root};

/// A patch, by its name, with the test that it names.
struct Patch {
    name: String,
    test: String,
}

/// Every patch; its first two lines say which test of the library fails, and what goes wrong without the
/// mend.
fn patches() -> Vec<Patch> {
    let mut patches: Vec<Patch> = paths(&root().join("tests/mends"))
        .into_iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let content = std::fs::read_to_string(&path).unwrap();
            let mut lines = content.lines();
            let test = lines.next().and_then(|line| line.strip_prefix("# red: lib "));
            let why = lines.next().and_then(|line| line.strip_prefix("# "));
            assert!(why.is_some_and(|why| why.ends_with('.')), "{name} does not say what goes wrong");
            Patch { test: test.unwrap_or_else(|| panic!("{name} names no test")).to_owned(), name }
        })
        .collect();
    patches.sort_by(|one, other| one.name.cmp(&other.name));
    patches
}

#[test]
fn every_mend_can_be_taken_out() {
    assert!(!patches().is_empty());
    for Patch { name, .. } in patches() {
        // A repository around a copy of this one would take no path of the patch for its own.
        let checked = Command::new("git")
            .args(["apply", "--check"])
            .arg(root().join("tests/mends").join(&name))
            .current_dir(root())
            .env("GIT_CEILING_DIRECTORIES", root().parent().unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(checked.status.success(), "{name} does not apply: renew it, or say why it may go\n{said}");
    }
}

#[test]
fn every_mend_names_a_test_that_exists() {
    let sources = files(&root().join("src"));
    for Patch { name, test } in patches() {
        let function = test.rsplit("::").next().unwrap_or_default();
        let is_there = |text: &str| text.contains(&format!("fn {function}("));
        assert!(sources.iter().any(|(_, text)| is_there(text)), "{name} names {test}, which does not exist");
    }
}
