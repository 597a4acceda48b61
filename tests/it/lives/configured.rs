//! The settings of the PostgreSQLs of a house: what each start of one began with, what it has loaded since,
//! and the file in its pod, which the kubelet updates a while after the ConfigMap.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use freehold::engine::client::Access;
use freehold::engine::reload::{Change, Verdict};
use freehold_rig::Server;
use jiff::Timestamp;
use parking_lot::Mutex;

/// How long the kubelet takes: less than a real one, since an operator asks each few seconds meanwhile, and
/// may be struck at each.
const LAG: Duration = Duration::from_secs(20);

/// A value that no server takes.
pub const BAD: &str = "lots";

/// The setting that it takes while it runs.
pub const TAKEN: &str = "work_mem";

/// The settings of all servers. A house has one database.
#[derive(Clone, Default)]
pub struct Configured(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The file that each process runs with, by its address.
    runs: BTreeMap<IpAddr, String>,
    /// How long a CHECKPOINT takes each of them.
    flush: Duration,
    /// When each of them began.
    flushed: Vec<Timestamp>,
    /// Each content of the file in the ConfigMap, and when it was first seen.
    written: Vec<(Timestamp, String)>,
}

impl Configured {
    /// What is there now is seen: each process begins with the newest file.
    pub fn look(&self, server: &Server, now: Timestamp) {
        let mut state = self.0.lock();
        for files in server.objects("configmaps") {
            let Some(file) = files["data"]["postgresql.conf"].as_str() else { continue };
            assert!(!file.contains(BAD), "what the server rejects is not written");
            if state.written.last().is_none_or(|(_, last)| last != file) {
                state.written.push((now, file.to_owned()));
            }
        }
        let newest = state.written.last().map(|(_, file)| file.clone()).unwrap_or_default();
        for pod in server.objects("pods") {
            let address = pod["status"]["podIP"].as_str().and_then(|address| address.parse().ok());
            if let Some(address) = address {
                state.runs.entry(address).or_insert_with(|| newest.clone());
            }
        }
    }

    /// From now on a CHECKPOINT takes so long.
    pub fn flush_takes(&self, time: Duration) {
        self.0.lock().flush = time;
    }

    /// A CHECKPOINT begins: how long it takes.
    pub fn begin_flush(&self, now: Timestamp) -> Duration {
        let mut state = self.0.lock();
        state.flushed.push(now);
        state.flush
    }

    /// When each CHECKPOINT began.
    pub fn flushed(&self) -> Vec<Timestamp> {
        self.0.lock().flushed.clone()
    }

    /// What the process at this address has as the value of a setting.
    pub fn of(&self, address: &str, key: &str) -> Option<String> {
        let address: IpAddr = address.parse().ok()?;
        let state = self.0.lock();
        let line = state.runs.get(&address)?.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once('=')?.1.trim().trim_matches('\'').to_owned())
    }

    pub fn judge(change: &Change) -> Verdict {
        if change.values().any(|value| value.as_deref() == Some(BAD)) {
            Verdict::Rejected(format!("invalid value: {BAD:?}"))
        } else if change.keys().all(|key| key == TAKEN) {
            Verdict::Taken
        } else {
            Verdict::AtStart
        }
    }

    pub fn load(&self, access: &Access, file: &str, now: Timestamp) -> bool {
        let mut state = self.0.lock();
        let is_there = |(at, _): &&(Timestamp, String)| now >= *at + LAG;
        let mounted = state.written.iter().rfind(is_there).or_else(|| state.written.first()).cloned();
        let Some((_, mounted)) = mounted.filter(|(_, mounted)| mounted == file) else { return false };
        state.runs.insert(access.address, mounted);
        true
    }
}
