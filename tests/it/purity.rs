//! Reads the sources: what decides stays pure, one place names the cloud's SDK, the simulator
//! knows nobody; `sizes` has how long files, functions and lines may be, `environments` how many scenarios
//! have a real control plane.

mod environments;
mod mends;
mod sizes;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

/// Files that decide: functions of values and `now`. So is every file of a controller that is named, or is in
/// a folder that is named, as one of `PURE_NAMES`.
const PURE: &[&str] = &[
    "adopt/choices.rs",
    "adopt/engine.rs",
    "adopt/fleet/entry.rs",
    "adopt/fleet/list.rs",
    "adopt/fleet/report.rs",
    "adopt/found.rs",
    "adopt/later.rs",
    "adopt/preflight/database.rs",
    "adopt/preflight/machine.rs",
    "adopt/preflight/mod.rs",
    "adopt/preflight/operator.rs",
    "adopt/preflight/storage.rs",
    "adopt/preflight/workload.rs",
    "adopt/render.rs",
    "adopt/report.rs",
    "cloud/absence.rs",
    "cloud/identity.rs",
    "cloud/quota.rs",
    "cloud/turns.rs",
    "command/difference.rs",
    "command/finding.rs",
    "controller/blocker.rs",
    "controller/conditions.rs",
    "controller/creation/judge.rs",
    "controller/creation/next.rs",
    "controller/database/history.rs",
    "controller/database/invalid_spec.rs",
    "controller/database/ordinal.rs",
    "controller/database/reload_wait.rs",
    "controller/database/restart_step.rs",
    "controller/database/rotation_wait.rs",
    "controller/database/upgrade.rs",
    "controller/database/wait_reason.rs",
    "controller/database/pod.rs",
    "controller/messages.rs",
    "controller/node/pods.rs",
    "controller/node/registration.rs",
    "controller/node_class/fault.rs",
    "controller/node_class/launch_check.rs",
    "controller/node_class/launches.rs",
    "controller/pattern.rs",
    "controller/recurrence.rs",
    "controller/retention.rs",
    "controller/safety.rs",
    "controller/volume/recorded.rs",
    "controller/call_blocked.rs",
    "leadership/decision.rs",
    "leadership/record.rs",
    "leadership/scope.rs",
    "time.rs",
    "orphans/found.rs",
    "orphans/report.rs",
    "release/found.rs",
    "release/preflight.rs",
    "release/report.rs",
    "retained/unrecorded.rs",
];

/// What decides, what is waited for and why, what is said of it, and what is made, in every controller.
const PURE_NAMES: [&str; 7] = ["build", "cause", "messages", "plan", "status", "user_data", "wait"];

/// What no pure file names: a client, a clock, a lock, or waiting.
const IMPURE: [&str; 9] =
    ["Api", "Client", "Clock", "Instant", "Mutex", "SystemTime", "clock", "tokio", "tracing"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below.
pub fn paths(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(paths(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Every Rust file below, with its text.
fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let rust = paths(folder).into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    rust.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// Files that only test: named so, or in a folder that is.
fn is_test(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs")
        || path.components().any(|part| part.as_os_str() == "tests")
}

/// The sources of the operator that are not tests, each with its path in `src`.
pub fn sources() -> Vec<(String, String)> {
    sources_of(".")
}

/// The same of any crate of the workspace.
pub fn sources_of(member: &str) -> Vec<(String, String)> {
    let src = root().join(member).join("src");
    let all = files(&src).into_iter();
    let all = all.map(|(path, text)| (path.strip_prefix(&src).unwrap().to_owned(), text));
    all.filter(|(path, _)| !is_test(path)).map(|(path, text)| (path.display().to_string(), text)).collect()
}

/// The folders of the workspace's crates.
pub fn crates() -> Vec<String> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.split_once("\nmembers = [").unwrap().1.split(']').next().unwrap();
    members.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether an item is compiled for tests only.
#[expect(clippy::wildcard_enum_match_arm, reason = "syn's enum may grow")]
pub fn is_test_only(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|argument| argument == "test")
    })
}

/// The identifiers and texts of a file, and whether anything in it waits; without its tests, comments and
/// docs.
#[derive(Default)]
struct Code {
    identifiers: BTreeSet<String>,
    /// Each string literal in quotes, and what each macro is given.
    texts: Vec<String>,
    waits: bool,
}

impl Code {
    fn of(text: &str) -> Self {
        let mut code = Self::default();
        code.visit_file(&syn::parse_file(text).unwrap());
        code
    }
}

impl<'ast> Visit<'ast> for Code {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test_only(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_ident(&mut self, identifier: &'ast syn::Ident) {
        self.identifiers.insert(identifier.to_string());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        // The answer of the API server, as an error has it, is no client.
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if !names.ends_with(&["Error".to_owned(), "Api".to_owned()]) {
            visit::visit_path(self, path);
        }
    }

    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.texts.push(format!("{:?}", text.value()));
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.waits |= signature.asyncness.is_some();
        visit::visit_signature(self, signature);
    }

    fn visit_expr_await(&mut self, expression: &'ast syn::ExprAwait) {
        self.waits = true;
        visit::visit_expr_await(self, expression);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        // What a macro is given is no syntax tree: its words are read as they stand.
        let words = call.tokens.to_string();
        self.waits |= words.contains(". await");
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        self.identifiers.extend(words.split(|c| !is_word(c)).map(str::to_owned));
        self.texts.push(words);
        visit::visit_macro(self, call);
    }
}

fn is_pure(path: &str) -> bool {
    // How a status is written (`cluster/status.rs`) is no decision.
    let decides = path.starts_with("controller/")
        && path.split('/').any(|part| PURE_NAMES.contains(&part.trim_end_matches(".rs")));
    decides || PURE.contains(&path)
}

#[test]
fn what_decides_has_no_client_no_clock_and_does_not_wait() {
    let sources = sources();
    for file in PURE {
        assert!(
            sources.iter().any(|(path, _)| path == file),
            "{file} is not there: what took its place must be in this list"
        );
    }
    let pure: Vec<_> = sources.iter().filter(|(path, _)| is_pure(path)).collect();
    assert!(pure.len() > PURE.len() + 60, "the folders that are looked for are gone: {}", pure.len());
    for (path, text) in pure {
        let code = Code::of(text);
        assert!(!code.waits, "src/{path} decides, and waits");
        for word in IMPURE {
            assert!(!code.identifiers.contains(word), "src/{path} decides, and names {word}");
        }
    }
}

#[test]
fn only_the_cloud_folder_names_the_sdk() {
    for (path, text) in sources() {
        assert!(
            path.starts_with("cloud/") || !Code::of(&text).identifiers.contains("aws_sdk_ec2"),
            "src/{path} names aws_sdk_ec2"
        );
    }
}

/// Files that spell a key: the one place, and a rule of a CRD, which takes a literal.
const SPELL_KEYS: [&str; 2] = ["api/keys.rs", "api/node_class.rs"];

#[test]
fn one_file_spells_the_keys_of_labels_annotations_taints_and_tags() {
    for (path, text) in sources().into_iter().filter(|(path, _)| !SPELL_KEYS.contains(&path.as_str())) {
        let texts = Code::of(&text).texts.join("\n");
        let spelled = ["\"freehold.dev/", "kubernetes.io/"].into_iter().find(|prefix| texts.contains(prefix));
        assert_eq!(spelled, None, "src/{path} spells a key: import it from api/keys.rs");
    }
}

/// Finds comparisons with a reason, and patterns that match one.
#[derive(Default)]
struct Compared(Vec<String>);

impl Compared {
    fn note(&mut self, what: &impl quote::ToTokens) {
        let text = what.to_token_stream().to_string();
        if text.contains("Reason ::") || text.contains(". reason") {
            self.0.push(text);
        }
    }
}

impl<'ast> Visit<'ast> for Compared {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test_only(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_expr_binary(&mut self, expression: &'ast syn::ExprBinary) {
        if matches!(expression.op, syn::BinOp::Eq(_) | syn::BinOp::Ne(_)) {
            self.note(expression);
        }
        visit::visit_expr_binary(self, expression);
    }

    fn visit_pat(&mut self, pattern: &'ast syn::Pat) {
        self.note(pattern);
        visit::visit_pat(self, pattern);
    }
}

/// Files that compare reasons: what a gauge shows, which event reports a change, and what an operator wrote
/// that had no field for it yet.
const COMPARE_REASONS: [&str; 4] = [
    "controller/database/status.rs",
    "controller/node/status.rs",
    "controller/volume/recorded.rs",
    "metrics/shown.rs",
];

#[test]
fn no_decision_reads_a_reason() {
    for (path, text) in sources().into_iter().filter(|(path, _)| !COMPARE_REASONS.contains(&path.as_str())) {
        let mut compared = Compared::default();
        compared.visit_file(&syn::parse_file(&text).unwrap());
        assert!(
            compared.0.is_empty(),
            "src/{path} decides by a reason, which is for people and programs outside: {:?}",
            compared.0
        );
    }
}

/// The fields that a file reads.
#[derive(Default)]
struct Fields(BTreeSet<String>);

impl Fields {
    fn of(text: &str) -> Self {
        let mut fields = Self::default();
        fields.visit_file(&syn::parse_file(text).unwrap());
        fields
    }

    /// The causes in the history of a Database are sentences.
    fn reads_a_cause_of_the_history(&self) -> bool {
        self.0.contains("history") && self.0.contains("cause")
    }
}

impl<'ast> Visit<'ast> for Fields {
    fn visit_expr_field(&mut self, expression: &'ast syn::ExprField) {
        if let syn::Member::Named(name) = &expression.member {
            self.0.insert(name.to_string());
        }
        visit::visit_expr_field(self, expression);
    }
}

#[test]
fn no_plan_reads_the_sentences_of_a_history() {
    let reads = "fn times(it: &Status) -> usize { it.history.iter().filter(|it| it.cause == \"x\").count() }";
    assert!(Fields::of(reads).reads_a_cause_of_the_history());
    for (path, text) in sources().into_iter().filter(|(path, _)| path.contains("/plan/")) {
        let decides = Fields::of(&text).reads_a_cause_of_the_history();
        assert!(!decides, "src/{path} decides by a sentence: record what it needs in a field of its own");
    }
}

#[test]
fn what_stands_behind_the_tests_of_a_file_is_read_too() {
    let code = Code::of(
        "#[cfg(test)]\nmod tests;\nfn one() \
        { tracing::info!(error = aws_sdk_ec2::x()); two(); }\n",
    );
    assert!(["tracing", "aws_sdk_ec2", "two"].iter().all(|word| code.identifiers.contains(*word)));
    let code = Code::of("async fn one() {}\n#[cfg(test)]\nmod tests { fn two() {} }\n");
    assert!(code.waits && !code.identifiers.contains("two"));
}

#[test]
fn the_simulator_does_not_know_who_uses_it() {
    for (path, text) in files(&root().join("tests/ec2sim")) {
        assert!(!text.to_lowercase().contains("freehold"), "{} names freehold", path.display());
    }
}
