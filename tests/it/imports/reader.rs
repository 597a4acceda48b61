//! Reads which files of a crate use which, from their syntax trees.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use crate::purity::is_test_only;

/// A module's path from the crate's root, for example `["controller", "node", "plan"]`.
pub type Module = Vec<String>;

/// What one file names: paths from the crate's root, without the root.
#[derive(Default)]
struct Named {
    paths: BTreeSet<Module>,
    /// The names that it passes on from elsewhere (`pub use`).
    passed_on: BTreeMap<String, Module>,
    /// Its own module, for `self` and `super`.
    module: Module,
    /// The modules that it declares: a path in it may begin with their names.
    children: BTreeSet<String>,
}

impl Named {
    /// Reads the file of this module.
    fn of(module: Module, text: &str) -> Self {
        let file = syn::parse_file(text).unwrap();
        let children = file.items.iter().filter_map(|item| {
            let syn::Item::Mod(child) = item else { return None };
            (child.content.is_none() && !is_test_only(item)).then(|| child.ident.to_string())
        });
        let mut named = Self { module, children: children.collect(), ..Self::default() };
        named.visit_file(&file);
        named
    }

    /// The path from the root, if these segments begin with `crate`, `self`, `super` or a child.
    fn rooted(&self, segments: &[String]) -> Option<Module> {
        let (first, mut rest) = segments.split_first()?;
        let mut path = match first.as_str() {
            "crate" => Module::new(),
            "self" | "super" => self.module.clone(),
            child if self.children.contains(child) && !rest.is_empty() => {
                rest = segments;
                self.module.clone()
            }
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
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.uses(item, before, is_public));
            }
            syn::UseTree::Glob(_) => self.add(before, None),
            syn::UseTree::Name(name) if name.ident == "self" => {
                self.add(before, before.last().filter(|_| is_public));
            }
            syn::UseTree::Name(name) => {
                self.add(&with(&name.ident), is_public.then(|| name.ident.to_string()).as_ref());
            }
            syn::UseTree::Rename(name) => {
                self.add(&with(&name.ident), is_public.then(|| name.rename.to_string()).as_ref());
            }
        }
    }

    fn add(&mut self, segments: &[String], passed_on_as: Option<&String>) {
        // A child that is passed on is named without `self`.
        let path = self
            .rooted(segments)
            .or_else(|| Some([self.module.as_slice(), segments].concat()).filter(|_| passed_on_as.is_some()));
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

    // What a macro is given is no syntax tree: its paths are read as they stand.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let words = call.tokens.to_string().replace(" :: ", "::");
        let is_of_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
        for path in words.split(|letter| !is_of_path(letter)).filter(|word| word.contains("::")) {
            let segments: Vec<String> = path.split("::").map(str::to_owned).collect();
            self.add(&segments, None);
        }
        visit::visit_macro(self, call);
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
pub fn arrows(sources: Vec<(String, String)>) -> BTreeMap<Module, BTreeSet<Module>> {
    let files = sources.into_iter().filter(|(path, _)| path != "main.rs");
    let named: BTreeMap<Module, Named> =
        files.map(|(path, text)| (module_of(&path), Named::of(module_of(&path), &text))).collect();
    let arrows = named.iter().map(|(module, of_file)| {
        let targets = of_file.paths.iter().filter_map(|path| defined_in(path, &named));
        (module.clone(), targets.filter(|target| target != module).collect())
    });
    arrows.collect()
}

/// The file that defines what a path names: the longest part of it that is a module, or what that passes on.
fn defined_in(path: &Module, named: &BTreeMap<Module, Named>) -> Option<Module> {
    let length = (0..=path.len()).rev().find(|length| named.contains_key(&path[..*length]))?;
    let module = path[..length].to_vec();
    let passed_on = path.get(length).and_then(|name| named[&module].passed_on.get(name));
    passed_on.map_or(Some(module), |target| defined_in(target, named))
}

#[test]
fn paths_are_read_of_trees_of_children_and_in_macros() {
    let text = "mod b; use crate::x::{self, y::{Z, w}}; use super::{a, b as c};
        fn f() { b::g(std::h::i); assert!(crate::m::n()) }";
    let named = Named::of(module_of("top/file.rs"), text);
    let paths: BTreeSet<String> = named.paths.iter().map(|path| path.join("::")).collect();
    let wanted = ["m::n", "top::a", "top::b", "top::file::b::g", "x", "x::y::Z", "x::y::w"];
    assert_eq!(paths, wanted.map(str::to_owned).into());
}
