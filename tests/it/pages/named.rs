//! Pages for contributors: the files, functions and tests that they name are there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use regex::Regex;

use super::{pages, root};

/// The files of the repository that a page may name, with their texts, by their paths.
fn repository() -> BTreeMap<String, String> {
    let folders = ["src", "tests", "docs", "charts", "crds", "examples", "terraform"];
    let below = folders.into_iter().flat_map(|folder| crate::purity::paths(&root().join(folder)));
    let top = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.strip_prefix(root()).unwrap().display().to_string();
    let text = |path: &PathBuf| std::fs::read(path).map(|it| String::from_utf8_lossy(&it).into_owned());
    let all: Vec<PathBuf> = below.chain(top.filter(|path| path.is_file())).collect();
    all.iter().map(|path| (name(path), text(path).unwrap())).collect()
}

/// The pages for contributors without their blocks of code, each on one line.
fn contributors_pages() -> Vec<(String, String)> {
    let is_one = |path: &str| path == "CONTRIBUTING.md" || path.starts_with("docs/development/");
    let prose = |text: &str| text.split("```").step_by(2).collect::<Vec<_>>().join(" ");
    let on_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let all = pages().into_iter().filter(|(path, _)| is_one(path));
    all.map(|(path, text)| (path, on_one_line(&prose(&text)))).collect()
}

/// The files that a name stands for: the last parts of their paths. `<kind>` and `*` are any one part,
/// `{a,b}` is one of them, and a file `a.rs` may have become `a/mod.rs`.
fn files<'a>(repository: &'a BTreeMap<String, String>, named: &str) -> Vec<(&'a String, &'a String)> {
    let mut pattern = regex::escape(named).replace(r"\{", "(").replace(r"\}", ")").replace(',', "|");
    pattern = Regex::new(r"<\w+>|\\\*").unwrap().replace_all(&pattern, "[^/]*").into_owned();
    let pattern = pattern.replace(r"\.rs", r"(/mod)?\.rs");
    let pattern = Regex::new(&format!("(^|/){pattern}$")).unwrap();
    repository.iter().filter(|(path, _)| pattern.is_match(path)).collect()
}

#[test]
fn every_file_that_a_page_for_contributors_names_is_there() {
    let repository = repository();
    let file = Regex::new(r"`([\w./<>{},*-]+\.(?:rs|md|yaml|json|tpl|tftpl|toml|py|go|sh|txt))`").unwrap();
    let mut missing = Vec::new();
    for (page, text) in contributors_pages() {
        let named = file.captures_iter(&text).map(|found| found[1].to_owned());
        let gone = named.filter(|named| files(&repository, named).is_empty());
        missing.extend(gone.map(|named| format!("{page}: {named}")));
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_file_has_what_a_page_for_contributors_finds_in_it() {
    let repository = repository();
    let place = Regex::new(r"`([A-Za-z_:]+)` in `([\w./<>{},*-]+\.rs)`").unwrap();
    let (mut missing, mut found) = (Vec::new(), 0);
    for (page, text) in contributors_pages() {
        for place in place.captures_iter(&text) {
            let name = place[1].rsplit("::").next().unwrap();
            let word = Regex::new(&format!(r"\b{name}\b")).unwrap();
            found += 1;
            if !files(&repository, &place[2]).iter().any(|(_, text)| word.is_match(text)) {
                missing.push(format!("{page}: {} in {}", &place[1], &place[2]));
            }
        }
    }
    assert!(found > 20, "{found}");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_test_that_a_page_for_contributors_names_is_there() {
    let repository = repository();
    let is_rust = |path: &str| Path::new(path).extension().is_some_and(|end| end == "rs");
    let sources = repository.iter().filter(|(path, _)| is_rust(path));
    let sources: String = sources.map(|(_, text)| text.as_str()).collect();
    let test = Regex::new(r"`(?:[a-z_]+::)+([a-z_]+)`|`([a-z]+(?:_[a-z]+){3,})`").unwrap();
    let mut missing = Vec::new();
    for (page, text) in contributors_pages() {
        for test in test.captures_iter(&text) {
            let name = test.get(1).or_else(|| test.get(2)).unwrap().as_str();
            if !sources.contains(&format!("fn {name}(")) && !sources.contains(&format!("mod {name};")) {
                missing.push(format!("{page}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
