//! What is known of one database of many: a row of the table, an entry of the report. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;
use strum::IntoStaticStr;

use crate::adopt::engine::engine;
use crate::adopt::error::AdoptError;
use crate::adopt::found::Found;
use crate::adopt::wanted::Wanted;
use crate::api::keys::ADOPT_TAG;
use crate::cloud::identity::adopter;
use crate::command::finding::{Finding, Level};
use crate::error_chain::Chain;

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum State {
    /// This run adopted it.
    Adopted,
    /// An earlier run adopted it, and it is Ready.
    AlreadyAdopted,
    /// No blocker stands before it. At the end of a run with --write: it was not begun.
    Adoptable,
    /// A blocker stands before it. Nothing was changed.
    Blocked,
    /// It could not be adopted, or not to the end.
    Failed,
    /// What there is of it could not be read. Nothing was changed.
    Unknown,
}

impl State {
    /// The name, in words.
    pub fn words(self) -> String {
        let name: &str = self.into();
        name.replace('-', " ")
    }
}

/// One database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// `<namespace>/<name>` of the StatefulSet.
    pub stateful_set: String,
    /// `<namespace>/<name>` of the Database.
    pub database: String,
    /// Its engine with the version, as the Database names it; else its image.
    pub engine: Option<String>,
    /// Its EBS volume.
    #[serde(rename = "volumeID")]
    pub volume_id: Option<String>,
    /// The volume's size in GiB.
    #[serde(rename = "sizeGiB")]
    pub size: Option<i32>,
    /// Its instance.
    #[serde(rename = "instanceID")]
    pub instance_id: Option<String>,
    /// The type of that.
    pub instance_type: Option<String>,
    /// Its pod before this run, and for one that an earlier run adopted, the pod that was adopted.
    #[serde(rename = "podUIDBefore")]
    pub pod_uid_before: Option<String>,
    /// Its pod once it was Ready.
    #[serde(rename = "podUIDAfter")]
    pub pod_uid_after: Option<String>,
    /// The snapshot that this run or an earlier one took before.
    #[serde(rename = "snapshotID")]
    pub snapshot_id: Option<String>,
    /// The tag on volume and instance that permits the adoption.
    pub tag: String,
    /// When this run began with it.
    pub started_at: Option<Timestamp>,
    /// When this run ended with it.
    pub finished_at: Option<Timestamp>,
    /// What became of it.
    pub state: State,
    /// The warnings of the checks.
    pub warnings: Vec<String>,
    /// What stands before it, or went wrong.
    pub problems: Vec<Problem>,
}

/// What stands before a database, or went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A sentence.
    pub message: String,
    /// What a person can do.
    pub way_out: Option<String>,
}

impl Entry {
    /// Of one whose StatefulSet could not be read.
    pub fn unread(wanted: &Wanted, error: &AdoptError) -> Self {
        let problem = Problem { message: Chain(error).to_string(), way_out: None };
        let database = format!("{}/{}", wanted.stateful_set.namespace, wanted.database());
        Self {
            stateful_set: wanted.stateful_set.to_string(),
            database,
            engine: None,
            volume_id: None,
            size: None,
            instance_id: None,
            instance_type: None,
            pod_uid_before: None,
            pod_uid_after: None,
            snapshot_id: None,
            tag: String::new(),
            started_at: None,
            finished_at: None,
            state: State::Unknown,
            warnings: Vec::new(),
            problems: vec![problem],
        }
    }

    /// Of what was found and checked.
    pub fn new(found: &Found, wanted: &Wanted, findings: &[Finding]) -> Self {
        let stateful_set = wanted.stateful_set.to_string();
        let database = format!("{}/{}", wanted.stateful_set.namespace, wanted.database());
        let pod = found.pod.as_ref().and_then(ResourceExt::uid);
        let owner = found.database.as_ref().filter(|_| is_adopted(found, wanted));
        let status = owner.and_then(|it| it.status.as_ref()?.adoption.as_ref());
        // Not whether it is Ready now: a database that was adopted long ago may just be repaired.
        let adopted = owner.filter(|it| it.status.as_ref().is_some_and(|it| it.first_ready_at.is_some()));
        let of = |level| findings.iter().filter(move |it: &&Finding| it.level == level);
        let problems: Vec<Problem> = of(Level::Blocker).map(problem).collect();
        let (state, problems) = match (adopted, problems) {
            (Some(_), _) => (State::AlreadyAdopted, Vec::new()),
            (None, problems) if problems.is_empty() => (State::Adoptable, problems),
            (None, problems) => (State::Blocked, problems),
        };
        Self {
            tag: format!("{ADOPT_TAG}={}", adopter(&found.cluster_id, &database)),
            stateful_set,
            database,
            engine: engine_of(found, wanted),
            volume_id: found.volume_id().map(|id| id.0),
            size: found.volume.as_ref().map(|volume| volume.size),
            instance_id: found.instance_id().map(|id| id.0),
            instance_type: found.instance.as_ref().map(|instance| instance.instance_type.clone()),
            pod_uid_before: status.map(|status| status.pod_uid.clone()).or_else(|| pod.clone()),
            pod_uid_after: pod.filter(|_| adopted.is_some()),
            snapshot_id: None,
            started_at: None,
            finished_at: None,
            state,
            warnings: of(Level::Warning).map(|it| format!("{}: {}", it.object, it.message)).collect(),
            problems,
        }
    }

    /// The same, once it could not be adopted.
    #[must_use]
    pub fn failed(self, error: &AdoptError, last_said: &str) -> Self {
        let mut message = Chain(error).to_string();
        if matches!(error, AdoptError::NotReady { .. }) {
            message = format!("{message}; Ready is {last_said}");
        }
        let (namespace, name) = self.database.split_once('/').unwrap_or_default();
        let way_out = if matches!(error, AdoptError::PodReplaced { .. }) {
            format!(
                "find out what replaced it (kubectl describe statefulset {} --namespace {namespace}); the \
                    Database goes on with the new pod",
                self.stateful_set.split('/').next_back().unwrap_or_default()
            )
        } else {
            format!(
                "run the same command again, which goes on where it was; kubectl describe database {name} \
                    --namespace {namespace} shows what is awaited"
            )
        };
        Self { state: State::Failed, problems: vec![Problem { message, way_out: Some(way_out) }], ..self }
    }

    /// What the table says of it.
    pub fn result(&self) -> String {
        let first = self.problems.first().map_or("", |problem| problem.message.as_str());
        let others = match self.problems.len() {
            0 | 1 => String::new(),
            several => format!(" (and {} more)", several - 1),
        };
        match (self.state, self.warnings.len()) {
            (State::Adoptable, 1) => "adoptable, 1 warning".to_owned(),
            (State::Adoptable, warnings @ 2..) => format!("adoptable, {warnings} warnings"),
            (State::Adopted | State::AlreadyAdopted | State::Adoptable, _) => self.state.words(),
            (State::Blocked | State::Failed | State::Unknown, _) => {
                format!("{}: {first}{others}", self.state.words().to_uppercase())
            }
        }
    }
}

/// Blocks each database whose instance another one of the run has: the tag on an instance permits one
/// Database, and the second would overwrite that of the first. What is adopted already comes before what is
/// not.
pub fn refuse_shared(entries: &mut [&mut Entry]) {
    let mut holders: BTreeMap<String, String> = BTreeMap::new();
    for state in [State::AlreadyAdopted, State::Adoptable] {
        for entry in entries.iter_mut().filter(|entry| entry.state == state) {
            let Some(instance) = entry.instance_id.clone() else { continue };
            let Some(holder) = holders.get(&instance) else {
                holders.insert(instance, entry.stateful_set.clone());
                continue;
            };
            let message = format!(
                "Instance {instance}: StatefulSet {holder} runs on it, too, and comes first; a machine is one \
                Database's alone"
            );
            let way_out = "move one of the two to a machine of its own, and run the same command again";
            entry.problems.push(Problem { message, way_out: Some(way_out.to_owned()) });
            entry.state = State::Blocked;
        }
    }
}

/// Whether the StatefulSet is the Database's, and the Database adopts what was found.
fn is_adopted(found: &Found, wanted: &Wanted) -> bool {
    let set = &wanted.stateful_set.name;
    let adopt = found.database.as_ref().and_then(|it| it.spec.adopt.as_ref());
    found.is_adopted(wanted.database()) && adopt.is_some_and(|adopt| adopt.stateful_set_name == *set)
}

fn problem(finding: &Finding) -> Problem {
    Problem { message: format!("{}: {}", finding.object, finding.message), way_out: finding.way_out.clone() }
}

fn engine_of(found: &Found, wanted: &Wanted) -> Option<String> {
    let image = found.engine().and_then(|container| container.image.clone());
    let Ok(engine) = engine(found, wanted) else { return image };
    match engine.version {
        Some(version) => Some(format!("{} {version}", engine.kind.as_str())),
        None => image,
    }
}
