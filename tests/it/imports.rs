//! Reads the imports of the operator's sources: no circle among files, and no arrow between folders that runs back up.
//!
//! A file that uses another is an arrow. In each folder the files and sub-folders are the nodes, and an arrow between two files is drawn
//! where their paths part: `controller/node/act.rs` to `cloud/mod.rs` is one from `controller` to `cloud` in `src`. Each such picture
//! must be free of circles. A re-exported name counts as the file that defines it; tests do not count.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use crate::purity::{is_test_only, sources};

/// A module's path from the crate's root, for example `["controller", "node", "plan"]`.
type Module = Vec<String>;

/// What one file names: paths from the crate's root, without the root.
#[derive(Default)]
struct Named {
    paths: BTreeSet<Module>,
    /// The names that it passes on from elsewhere (`pub use`).
    passed_on: BTreeMap<String, Module>,
    /// Its own module, for `self` and `super`.
    module: Module,
}

impl Named {
    /// The path from the root, if these segments begin with `crate`, `self` or `super`.
    fn rooted(&self, segments: &[String]) -> Option<Module> {
        let (first, rest) = segments.split_first()?;
        let mut path = match first.as_str() {
            "crate" => Module::new(),
            "self" | "super" => self.module.clone(),
            _ => return None,
        };
        if first == "super" {
            path.pop();
        }
        for segment in rest {
            match segment.as_str() {
                "super" => drop(path.pop()),
                segment => path.push(segment.to_owned()),
            }
        }
        Some(path)
    }

    fn uses(&mut self, tree: &syn::UseTree, before: &[String], is_public: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.uses(&path.tree, &with(&path.ident), is_public),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.uses(item, before, is_public)),
            syn::UseTree::Glob(_) => self.add(before, None),
            syn::UseTree::Name(name) if name.ident == "self" => self.add(before, before.last().filter(|_| is_public)),
            syn::UseTree::Name(name) => self.add(&with(&name.ident), is_public.then(|| name.ident.to_string()).as_ref()),
            syn::UseTree::Rename(name) => self.add(&with(&name.ident), is_public.then(|| name.rename.to_string()).as_ref()),
        }
    }

    fn add(&mut self, segments: &[String], passed_on_as: Option<&String>) {
        // A child that is passed on is named without `self`.
        let path = self.rooted(segments).or_else(|| Some([self.module.as_slice(), segments].concat()).filter(|_| passed_on_as.is_some()));
        let Some(path) = path else { return };
        match passed_on_as {
            Some(name) => drop(self.passed_on.insert(name.clone(), path)),
            None => drop(self.paths.insert(path)),
        }
    }
}

impl<'ast> Visit<'ast> for Named {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test_only(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.uses(&item.tree, &[], !matches!(item.vis, syn::Visibility::Inherited));
    }

    // `pub(in crate::…)` says who may use a thing, and uses nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add(&segments, None);
        visit::visit_path(self, path);
    }
}

/// The module of a file: `cloud/mod.rs` is `cloud`, `cloud/error.rs` is `cloud::error`.
fn module_of(path: &str) -> Module {
    let mut module: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| ["mod", "lib"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

/// The files and what each of them uses, both as modules.
fn arrows() -> BTreeMap<Module, BTreeSet<Module>> {
    let mut named = BTreeMap::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| path != "main.rs") {
        let mut of_file = Named { module: module_of(&path), ..Named::default() };
        of_file.visit_file(&syn::parse_file(&text).unwrap());
        named.insert(module_of(&path), of_file);
    }
    let arrows = named.iter().map(|(module, of_file)| {
        let targets = of_file.paths.iter().filter_map(|path| defined_in(path, &named));
        (module.clone(), targets.filter(|target| target != module).collect())
    });
    arrows.collect()
}

/// The file that defines what a path names.
fn defined_in(path: &Module, named: &BTreeMap<Module, Named>) -> Option<Module> {
    let length = (1..=path.len()).rev().find(|length| named.contains_key(&path[..*length]))?;
    let module = path[..length].to_vec();
    let passed_on = path.get(length).and_then(|name| named[&module].passed_on.get(name));
    passed_on.map_or(Some(module), |target| defined_in(target, named))
}

/// The picture of each folder: its files and sub-folders, and which of them uses which.
fn pictures() -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let arrows = arrows();
    let is_folder = |module: &Module| arrows.keys().any(|other| other.len() > module.len() && other.starts_with(module));
    // A folder's own file is a node of the folder's picture.
    let place = |module: &Module| if is_folder(module) { [module.as_slice(), &["mod".to_owned()]].concat() } else { module.clone() };
    let mut pictures: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
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
fn circle(picture: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk<'a>(
        node: &'a str,
        picture: &'a BTreeMap<String, BTreeSet<String>>,
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
    let pictures = pictures();
    assert!(pictures.contains_key("controller/node/plan"), "the sources that are looked at are gone");
    let circles: Vec<String> =
        pictures.iter().filter_map(|(folder, picture)| Some(format!("src/{folder}: {}", circle(picture)?.join(" -> ")))).collect();
    assert!(circles.is_empty(), "imports run in a circle; move what both need to a file of its own:\n{}", circles.join("\n"));
}

#[test]
fn the_layers_are_used_from_above_only() {
    let pictures = pictures();
    let uses = |from: &str| pictures[""].get(from).cloned().unwrap_or_default();
    for (layer, may_use) in [
        ("api", vec![]),
        ("cloud", vec!["api", "clock", "error_chain", "metrics", "settings", "time"]),
        ("cluster", vec!["api", "clock", "error_chain", "metrics", "time"]),
        ("engine", vec!["api"]),
        ("controller", vec!["api", "clock", "cloud", "cluster", "engine", "error_chain", "metrics", "settings", "time"]),
    ] {
        let others: Vec<String> = uses(layer).into_iter().filter(|used| !may_use.contains(&used.as_str())).collect();
        assert!(others.is_empty(), "src/{layer} uses {}, which is not below it", others.join(", "));
    }
}

#[test]
fn a_circle_is_found_and_a_chain_is_none() {
    let picture = |arrows: &[(&str, &str)]| {
        let mut picture: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in arrows {
            picture.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        picture
    };
    assert_eq!(circle(&picture(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    let found = circle(&picture(&[("a", "b"), ("b", "c"), ("c", "b")])).unwrap();
    assert_eq!(found, ["b", "c", "b"]);
}
