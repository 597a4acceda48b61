//! Scripts: named lists of requests, as YAML.
//!
//! ```yaml
//! - name: an update with an old resourceVersion conflicts
//!   steps:
//!   - POST core/configmaps: {metadata: {name: a}}
//!   - PATCH core/configmaps/a merge: {data: {k: v}}
//!   - PUT core/configmaps/a: {metadata: {name: a, resourceVersion: "{{1.metadata.resourceVersion}}"}}
//! ```
//!
//! A step is `METHOD path [word …]` with a body or none. The path begins with a prefix of [`PREFIXES`]; `NS`
//! is the script's own namespace, which exists. `{{n.a.b}}` is a value of the answer to step `n`. The words:
//!
//! * `merge`, `json`, `strategic`, `apply`: which patch it is;
//! * `metadata`, `listed-metadata`: only metadata is asked for;
//! * `free`: the words of the refusal are not compared, only its code and reason;
//! * after `WATCH`, a number: how many events are read; without one, all until the time is up;
//! * `OPEN` begins a watch that goes on, and `READ n` reads that many events of it.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::purity::paths;

/// What a path begins with.
pub const PREFIXES: [(&str, &str); 10] = [
    ("core/", "/api/v1/namespaces/NS/"),
    ("cluster/", "/api/v1/"),
    ("ours/", "/apis/freehold.dev/v1alpha1/namespaces/NS/"),
    ("classes/", "/apis/freehold.dev/v1alpha1/"),
    ("apps/", "/apis/apps/v1/namespaces/NS/"),
    ("storage/", "/apis/storage.k8s.io/v1/"),
    ("net/", "/apis/networking.k8s.io/v1/namespaces/NS/"),
    ("policy/", "/apis/policy/v1/namespaces/NS/"),
    ("leases/", "/apis/coordination.k8s.io/v1/namespaces/NS/"),
    ("events/", "/apis/events.k8s.io/v1/namespaces/NS/"),
];

/// A script.
#[derive(Clone, Debug)]
pub struct Script {
    /// What it shows, as a sentence.
    pub name: String,
    /// Its requests.
    pub steps: Vec<Step>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Step {
    /// As it is written.
    pub text: String,
    /// The method, or `WATCH`, `OPEN`, `READ`.
    pub method: String,
    /// The path with its prefix spelled out.
    pub path: String,
    /// The words after the path.
    pub words: Vec<String>,
    /// The body; null for none.
    pub body: Value,
}

impl Step {
    /// Whether this word is there.
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|it| it == word)
    }

    /// How many events are read.
    pub fn count(&self) -> Option<usize> {
        self.words.iter().find_map(|it| it.parse().ok())
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/same_api/scripts")
}

/// The names of the files.
pub fn files() -> Vec<String> {
    let name = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    paths(&folder()).into_iter().map(name).collect()
}

/// The scripts of a file.
pub fn of_file(file: &str) -> Vec<Script> {
    let text = std::fs::read_to_string(folder().join(format!("{file}.yaml"))).unwrap();
    let scripts: Vec<Map<String, Value>> =
        serde_norway::from_str(&text).unwrap_or_else(|it| panic!("{file}: {it}"));
    let script = |script: &Map<String, Value>| Script {
        name: script["name"].as_str().unwrap().to_owned(),
        steps: script["steps"].as_array().unwrap().iter().map(step).collect(),
    };
    scripts.iter().map(script).collect()
}

fn step(value: &Value) -> Step {
    let (text, body) = match value.as_object() {
        Some(one) => one.iter().next().map(|(key, body)| (key.clone(), body.clone())).unwrap(),
        None => (value.as_str().unwrap().to_owned(), Value::Null),
    };
    let mut words = text.split_whitespace().map(str::to_owned);
    let (method, short) = (words.next().unwrap(), words.next().unwrap_or_default());
    let prefix = PREFIXES.iter().find(|(prefix, _)| short.starts_with(prefix));
    let path = prefix.map_or_else(|| short.clone(), |(prefix, whole)| short.replacen(prefix, whole, 1));
    let mut words: Vec<String> = words.collect();
    if method == "READ" {
        words.push(short);
    }
    Step { text: text.clone(), method, path, words, body }
}
