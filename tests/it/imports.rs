//! Reads the imports of every crate: no circle among files, and no arrow between folders that runs back up.
//!
//! A file that uses another is an arrow. In each folder the files and sub-folders are the nodes, and an arrow
//! between two files is drawn where their paths part: `controller/node/act.rs` to `cloud/mod.rs` is one from
//! `controller` to `cloud` in `src`. Each such picture must be free of circles. A re-exported name counts as
//! the file that defines it; tests do not count.

mod reader;

use std::collections::{BTreeMap, BTreeSet};

use crate::purity::{crates, sources_of};
use reader::{Module, arrows};

/// What uses what in a folder, by name.
type Picture = BTreeMap<String, BTreeSet<String>>;

/// Which other folders, and files beside them, each folder of the operator may use.
const OPERATOR: [(&str, &[&str]); 5] = [
    ("api", &[]),
    ("cloud", &["api", "clock", "error_chain", "metrics", "settings", "term", "time"]),
    ("cluster", &["api", "clock", "error_chain", "metrics", "time"]),
    ("engine", &["api"]),
    (
        "controller",
        &["api", "clock", "cloud", "cluster", "engine", "error_chain", "metrics", "settings", "term", "time"],
    ),
];

/// The same of the box.
const BOX: [(&str, &[&str]); 7] = [
    ("base", &[]),
    ("cluster", &["base"]),
    ("machines", &["base", "cluster"]),
    ("account", &["base", "cluster", "machines"]),
    ("writer", &["base"]),
    ("legacy", &["base", "cluster", "machines", "account", "writer"]),
    ("presentation", &["base", "cluster", "machines", "account", "writer", "legacy"]),
];

/// The picture of each folder: its files and sub-folders, and which of them uses which.
fn pictures(member: &str) -> BTreeMap<String, Picture> {
    let arrows = arrows(sources_of(member));
    let is_folder =
        |module: &Module| arrows.keys().any(|other| other.len() > module.len() && other.starts_with(module));
    // A folder's own file is a node of the folder's picture.
    let place = |module: &Module| {
        if is_folder(module) { [module.as_slice(), &["mod".to_owned()]].concat() } else { module.clone() }
    };
    let mut pictures: BTreeMap<String, Picture> = BTreeMap::new();
    for (from, targets) in &arrows {
        for to in targets {
            let (from, to) = (place(from), place(to));
            let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
            let picture = pictures.entry(from[..shared].join("/")).or_default();
            picture.entry(from[shared].clone()).or_default().insert(to[shared].clone());
        }
    }
    pictures
}

/// A circle in a picture, if there is one: its nodes in order.
fn circle(picture: &Picture) -> Option<Vec<String>> {
    fn walk<'a>(
        node: &'a str,
        picture: &'a Picture,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(start) = way.iter().position(|before| *before == node) {
            return Some(way[start..].iter().chain(&[node]).map(|name| (*name).to_owned()).collect());
        }
        if !done.insert(node) {
            return None;
        }
        way.push(node);
        let found = picture.get(node).into_iter().flatten().find_map(|next| walk(next, picture, way, done));
        way.pop();
        found
    }
    let mut done = BTreeSet::new();
    picture.keys().find_map(|node| walk(node, picture, &mut Vec::new(), &mut done))
}

#[test]
fn no_file_uses_one_that_uses_it_and_no_folder_either() {
    let mut circles = Vec::new();
    for member in crates() {
        for (folder, picture) in pictures(&member) {
            let found = circle(&picture).map(|way| format!("{member}/src/{folder}: {}", way.join(" -> ")));
            circles.extend(found);
        }
    }
    assert!(
        circles.is_empty(),
        "imports run in a circle; move what both need to a file of its own:\n{}",
        circles.join("\n")
    );
}

#[test]
fn the_layers_are_used_from_above_only() {
    for (member, layers) in [(".", OPERATOR.as_slice()), ("tests/box", BOX.as_slice())] {
        let pictures = pictures(member);
        for (layer, may_use) in layers {
            let uses = pictures[""].get(*layer).into_iter().flatten();
            let others: Vec<&String> = uses.filter(|used| !may_use.contains(&used.as_str())).collect();
            assert!(others.is_empty(), "{member}/src/{layer} uses {others:?}, which is not below it");
        }
    }
    let known: Vec<&str> = BOX.iter().map(|(folder, _)| *folder).collect();
    let unknown: Vec<String> =
        pictures("tests/box")[""].keys().filter(|it| !known.contains(&it.as_str())).cloned().collect();
    assert_eq!(unknown, Vec::<String>::new(), "what may these use?");
}

#[test]
fn the_reader_sees_the_arrows_that_are_there() {
    assert!(pictures(".").contains_key("controller/node/plan"), "the sources that are looked at are gone");
    let found = arrows(sources_of("tests/box"));
    let module = |path: &str| -> Module { path.split("::").map(str::to_owned).collect() };
    for (from, to) in [
        ("account::site", "machines::disks"),
        ("account::site", "account::virtual_machines::attacher"),
        ("machines::disks", "machines::disks::sync"),
        ("presentation::demo", "presentation::daemon"),
    ] {
        let used = &found[&module(from)];
        assert!(used.contains(&module(to)), "{from} uses {to}, and only {used:?} was seen");
    }
}

#[test]
fn a_circle_is_found_and_a_chain_is_none() {
    let picture = |arrows: &[(&str, &str)]| {
        let mut picture = Picture::new();
        for (from, to) in arrows {
            picture.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        picture
    };
    assert_eq!(circle(&picture(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    let found = circle(&picture(&[("a", "b"), ("b", "c"), ("c", "b")])).unwrap();
    assert_eq!(found, ["b", "c", "b"]);
}
