//! The settings of the engines of a house: what each start of an engine began with, what it has loaded since,
//! and the file in its pod, which the kubelet updates a while after the ConfigMap.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use freehold::api::database::EngineType;
use freehold::engine::client::Access;
use freehold::engine::reload::{Answer, Change, Verdict, postgresql, questdb};
use freehold::engine::verify::Row;
use freehold_rig::Server;
use jiff::Timestamp;
use parking_lot::Mutex;

/// How long the kubelet takes.
const LAG: Duration = Duration::from_secs(70);

/// A value that no engine takes.
pub const BAD: &str = "lots";

/// The settings that the engines know, and whether they take them while they run.
const KNOWN: [(&str, bool); 5] = [
    ("work_mem", true),
    ("max_connections", false),
    ("http.send.buffer.size", true),
    ("cairo.max.uncommitted.rows", false),
    ("query.timeout", false),
];

type Settings = BTreeMap<String, String>;

/// The settings of all engines. A house has one database.
#[derive(Clone, Default)]
pub struct Configured(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// What each process runs with, by its address.
    runs: BTreeMap<IpAddr, Settings>,
    /// Each content of the ConfigMap, and when it was first seen.
    written: Vec<(Timestamp, Settings)>,
}

impl Configured {
    /// What is there now is seen: each process begins with the newest file.
    pub fn look(&self, server: &Server, now: Timestamp) {
        let mut state = self.0.lock();
        for files in server.objects("configmaps") {
            let Some(settings) = settings(&files["data"]) else { continue };
            if state.written.last().is_none_or(|(_, last)| *last != settings) {
                state.written.push((now, settings));
            }
        }
        let newest = state.written.last().map(|(_, settings)| settings.clone()).unwrap_or_default();
        for pod in server.objects("pods") {
            let address = pod["status"]["podIP"].as_str().and_then(|address| address.parse().ok());
            if let Some(address) = address {
                state.runs.entry(address).or_insert_with(|| newest.clone());
            }
        }
    }

    /// What the newest process runs with.
    pub fn of(&self, address: &str) -> Settings {
        let address = address.parse().ok();
        address.and_then(|address: IpAddr| self.0.lock().runs.get(&address).cloned()).unwrap_or_default()
    }

    pub fn says(&self, access: &Access, change: &Change, now: Timestamp) -> Answer {
        let state = self.0.lock();
        let runs = state.runs.get(&access.address).cloned().unwrap_or_default();
        let answer = match change.engine {
            EngineType::Postgresql => of_postgresql(change, &state.file(now), &runs),
            EngineType::Questdb => questdb::judge(change, &parameters(&runs)).map(Answer::from),
            EngineType::Custom => None,
        };
        answer.unwrap()
    }

    pub fn load(&self, access: &Access, change: &Change, now: Timestamp) -> bool {
        let mut state = self.0.lock();
        let file = state.file(now);
        let is_known = |key: &str| KNOWN.iter().any(|(known, takes)| *known == key && *takes);
        let runs = state.runs.entry(access.address).or_default();
        if !file.values().any(|value| value == BAD) {
            runs.retain(|key, _| !is_known(key));
            runs.extend(file.into_iter().filter(|(key, _)| is_known(key)));
        }
        drop(state);
        self.says(access, change, now).verdict == Verdict::Taken { is_seen: true }
    }
}

impl State {
    /// The file in the pod.
    fn file(&self, now: Timestamp) -> Settings {
        let is_there = |(at, _): &&(Timestamp, Settings)| now >= *at + LAG;
        let found = self.written.iter().rfind(is_there).or_else(|| self.written.first());
        found.map(|(_, settings)| settings.clone()).unwrap_or_default()
    }
}

/// The settings in the files of either engine.
fn settings(data: &serde_json::Value) -> Option<Settings> {
    let text = data["postgresql.conf"].as_str().or_else(|| data["server.conf"].as_str())?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pair =
        |(key, value): (&str, &str)| (key.trim().to_owned(), value.trim().trim_matches('\'').to_owned());
    Some(lines.filter_map(|line| line.split_once('=')).map(pair).collect())
}

fn row(cells: &[Option<&str>]) -> Row {
    cells.iter().map(|cell| cell.map(str::to_owned)).collect()
}

fn of_postgresql(change: &Change, file: &Settings, runs: &Settings) -> Option<Answer> {
    let is_pending = |key: &str, takes: bool| {
        let of_file = file.get(key);
        !takes && of_file != runs.get(key) && of_file.is_none_or(|value| value != BAD)
    };
    // In the order of the file, in which the own settings come first.
    let wanted = freehold::engine::postgresql::lines(&change.to);
    let rank = |key: &String| wanted.iter().position(|(wanted, _)| wanted == key);
    let mut entries: Vec<(&String, &String)> = file.iter().collect();
    entries.sort_by_key(|(key, _)| rank(key));
    let entries = entries.into_iter().map(|(key, value)| {
        let error = (value == BAD).then_some("setting could not be applied");
        row(&[Some(postgresql::CONFIG_FILE), Some(key.as_str()), Some(value.as_str()), error])
    });
    let parameters = KNOWN.iter().map(|(key, takes)| {
        let mark = if is_pending(key, *takes) { "t" } else { "f" };
        row(&[Some(*key), Some(mark), Some("integer"), None, Some("1"), Some("1000"), None])
    });
    postgresql::judge(change, &entries.collect::<Vec<_>>(), &parameters.collect::<Vec<_>>())
}

fn parameters(runs: &Settings) -> Vec<Row> {
    let of = |(key, takes): &(&str, bool)| {
        let source = if runs.contains_key(*key) { "conf" } else { "default" };
        let value = runs.get(*key).map(String::as_str);
        row(&[
            Some(*key),
            Some("QDB_X"),
            value,
            Some(source),
            Some("f"),
            Some(if *takes { "t" } else { "f" }),
        ])
    };
    KNOWN.iter().map(of).collect()
}
