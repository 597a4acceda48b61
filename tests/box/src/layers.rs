//! Reads the sources of this crate: folders use each other one way, and no files use each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which other folders the files of a folder may use.
const MAY_USE: [(&str, &[&str]); 6] = [
    ("base", &[]),
    ("cluster", &["base"]),
    ("machines", &["base", "cluster"]),
    ("account", &["base", "cluster", "machines"]),
    ("writer", &["base"]),
    ("presentation", &["base", "cluster", "machines", "account", "writer"]),
];

/// Which modules each module uses; a module is named by its path below the crate, such as `account::site`.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Every source file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// `account/site.rs` is `account::site`, and `account/mod.rs` is `account`.
fn module_of(file: &Path) -> String {
    let path = file.with_extension("");
    let names: Vec<&str> = path.iter().filter_map(|name| name.to_str()).filter(|name| *name != "mod").collect();
    names.join("::")
}

/// The text without comments and without the tests at its end, whose `super` is the file itself.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The modules that the text declares, each in a file of its own.
fn children(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.strip_suffix(';'))
        .filter_map(|line| line.strip_prefix("mod ").or_else(|| line.split_once(" mod ").map(|(_, name)| name)))
        .collect()
}

const fn is_in_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// The paths in the text that begin with the crate, the module itself, its parent, or one of its children.
fn paths(text: &str) -> Vec<String> {
    let children = children(text);
    let mut paths = Vec::new();
    for (end, _) in text.match_indices("::") {
        let before = &text[..end];
        let begin = before.rfind(|character| !is_in_name(character)).map_or(0, |place| place + 1);
        let name = &before[begin..];
        let is_first = !before[..begin].ends_with(':');
        if is_first && (["crate", "self", "super"].contains(&name) || children.contains(&name)) {
            read_tree(&text[begin..], "", &mut paths);
        }
    }
    paths
}

/// Adds the paths of a tree such as `a::{b, c::{d, e as f}}`, and returns what follows the tree.
fn read_tree<'a>(text: &'a str, prefix: &str, paths: &mut Vec<String>) -> &'a str {
    let (name, rest) = text.split_at(text.find(|character| !is_in_name(character)).unwrap_or(text.len()));
    let path = format!("{prefix}{name}");
    let Some(below) = rest.strip_prefix("::") else {
        paths.push(path);
        return rest;
    };
    let prefix = format!("{path}::");
    let Some(mut items) = below.strip_prefix('{') else { return read_tree(below, &prefix, paths) };
    loop {
        items = items.trim_start_matches([' ', '\n', ',']);
        match items.strip_prefix('}') {
            Some(rest) => return rest,
            None if items.is_empty() => return items,
            None => items = read_tree(items, &prefix, paths).trim_start_matches(|character| character != ',' && character != '}'),
        }
    }
}

/// The module that a path in this module leads into: the longest part of it that is a module.
fn target(module: &str, path: &str, modules: &BTreeSet<String>) -> String {
    let mut found: Vec<&str> = module.split("::").collect();
    let mut names = path.split("::").peekable();
    match names.peek() {
        Some(&"crate") => {
            found.clear();
            names.next();
        }
        Some(&"self") => drop(names.next()),
        _ => {}
    }
    while names.next_if_eq(&"super").is_some() {
        found.pop();
    }
    for name in names {
        let longer = [found.as_slice(), &[name]].concat();
        if !modules.contains(&longer.join("::")) {
            break;
        }
        found = longer;
    }
    found.join("::")
}

/// All arrows between the modules of this crate.
fn arrows() -> Arrows {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let texts: BTreeMap<String, String> = files(&sources)
        .into_iter()
        .map(|file| (module_of(file.strip_prefix(&sources).unwrap()), code(&std::fs::read_to_string(&file).unwrap())))
        .filter(|(module, _)| !["lib", "main", "layers"].contains(&module.as_str()))
        .collect();
    let modules: BTreeSet<String> = texts.keys().cloned().collect();
    let used = |(module, text): (&String, &String)| {
        let targets = paths(text).into_iter().map(|path| target(module, &path, &modules));
        (module.clone(), targets.filter(|target| target != module && modules.contains(target)).collect())
    };
    texts.iter().map(used).collect()
}

/// What is left of the arrows without the modules that no module of the rest uses, and those that use none of it: the circles.
fn circles(mut arrows: Arrows) -> Arrows {
    loop {
        let used: BTreeSet<String> = arrows.values().flatten().cloned().collect();
        let left: Arrows = arrows
            .iter()
            .filter(|(module, targets)| used.contains(*module) && !targets.is_empty())
            .map(|(module, targets)| (module.clone(), targets.iter().filter(|target| arrows.contains_key(*target)).cloned().collect()))
            .collect();
        if left == arrows {
            return left;
        }
        arrows = left;
    }
}

fn folder(module: &str) -> &str {
    module.split("::").next().unwrap_or_default()
}

#[test]
fn folders_use_each_other_one_way() {
    let allowed = BTreeMap::from(MAY_USE);
    let mut wrong = Vec::new();
    for (module, targets) in arrows() {
        for target in targets {
            let (from, to) = (folder(&module), folder(&target));
            if from != to && !allowed[from].contains(&to) {
                wrong.push(format!("{module} uses {target}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    for (place, (name, uses)) in MAY_USE.iter().enumerate() {
        let before = &MAY_USE[..place];
        assert!(uses.iter().all(|used| before.iter().any(|(known, _)| known == used)), "{name} may use what stands below it");
    }
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    assert_eq!(circles(arrows()), Arrows::new());
}

#[test]
fn the_reader_sees_the_arrows_that_are_there() {
    let found = arrows();
    for (from, to) in [
        ("account::site", "machines::disks"),
        ("account::site", "account::virtual_machines::attacher"),
        ("machines::disks", "machines::disks::sync"),
        ("machines::images::parts", "machines::images::error"),
        ("presentation::demo", "presentation::daemon"),
    ] {
        assert!(found[from].contains(to), "{from} uses {to}, and only {:?} was seen", found[from]);
    }
    let text = "mod b;\nuse crate::x::{self, y::{Z, w}};\nuse super::{a, b as c};\nfn f() { b::g(std::h::i) }";
    assert_eq!(paths(text), ["crate::x::self", "crate::x::y::Z", "crate::x::y::w", "super::a", "super::b", "b::g"]);
    let circle = |names: &[(&str, &str)]| -> Arrows {
        names.iter().map(|(from, to)| ((*from).to_owned(), BTreeSet::from([(*to).to_owned()]))).collect()
    };
    assert_eq!(circles(circle(&[("a", "b"), ("b", "c")])), Arrows::new());
    assert_eq!(circles(circle(&[("a", "b"), ("b", "c"), ("c", "b")])), circle(&[("b", "c"), ("c", "b")]));
}
