//! The report: what was found, checked, would be written, and would differ later; as text and as JSON. Pure.

use std::fmt::Write as _;

use kube::ResourceExt;
use serde::Serialize;
use serde_json::Value;

use super::choices::{secret, service};
use super::found::Found;
use super::later::{self, Kept};
use super::render;
use super::wanted::Wanted;
use crate::api::Database;
use crate::api::keys::ADOPT_TAG;
use crate::cloud::identity::adopter;
use crate::cloud::{EbsVolume, Instance};
use crate::command::difference::Change;
use crate::command::finding::{Finding, Level};
use crate::command::text::{Row, changed, listed, table};

/// Everything that is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether no blocker was found.
    adoptable: bool,
    /// What was found, by what it is.
    found: Vec<Row>,
    /// What the checks found.
    checks: Vec<Finding>,
    /// What `--write` does before the Database is created.
    steps: Vec<String>,
    /// The Database that would be created.
    database: Option<Value>,
    /// What Freehold would do that differs from today.
    later: Vec<Row>,
    /// The fields that change.
    changes: Vec<Change>,
    /// The fields that a Database does not have.
    kept: Vec<Kept>,
    /// The Database as YAML.
    #[serde(skip)]
    yaml: Option<String>,
}

impl Report {
    /// Of what was found and checked.
    pub fn new(found: &Found, wanted: &Wanted, checks: Vec<Finding>) -> Result<Self, serde_norway::Error> {
        let database = render::database(found, wanted);
        let engine = found.engine().map(|engine| engine.name.as_str()).unwrap_or_default();
        let is_new = database.as_ref().filter(|_| !found.is_adopted(wanted.database()));
        Ok(Self {
            adoptable: database.is_some() && checks.iter().all(|finding| finding.level != Level::Blocker),
            found: rows(found, wanted),
            checks,
            steps: database.iter().flat_map(|database| steps(found, wanted, database)).collect(),
            later: database
                .iter()
                .flat_map(later::behaviour)
                .map(|(name, value)| Row { name: name.to_owned(), value })
                .collect(),
            changes: is_new.map(|database| later::changes(&found.stateful_set, database)).unwrap_or_default(),
            kept: later::kept(&found.stateful_set, engine),
            yaml: database.as_ref().map(render::yaml).transpose()?,
            database: database.map(|database| serde_json::json!(database)),
        })
    }

    /// For people. Of `write` depends only how it ends.
    pub fn text(&self, write: bool) -> String {
        let mut text = String::from("Found\n");
        table(&mut text, self.found.iter().map(|row| [row.name.as_str(), row.value.as_str()]));
        listed(&mut text, "Checks", &self.checks);
        if let Some(yaml) = &self.yaml {
            text.push_str("\nWhat would be written\n");
            for (number, step) in self.steps.iter().enumerate() {
                let _ = writeln!(text, "  {}. {step}", number + 1);
            }
            let _ = writeln!(text, "\n{yaml}");
            text.push_str("What would differ later\n");
            table(&mut text, self.later.iter().map(|row| [row.name.as_str(), row.value.as_str()]));
            self.fields(&mut text);
        }
        text.push_str(&self.end(write));
        text
    }

    fn fields(&self, text: &mut String) {
        for (title, at_restart) in
            [("in the StatefulSet, at once", false), ("in its template, for the next restart", true)]
        {
            let changes = self.changes.iter().filter(|change| change.at_restart == at_restart);
            changed(text, &format!("Fields that change {title}"), changes);
        }
        if !self.kept.is_empty() {
            text.push_str("\n  Fields that a Database does not have\n");
            table(text, self.kept.iter().map(|kept| [kept.field.as_str(), kept.outcome]));
        }
    }

    fn end(&self, write: bool) -> String {
        let count = |level: Level| match self.checks.iter().filter(|it| it.level == level).count() {
            0 => format!("no {}", level.as_str()),
            1 => format!("1 {}", level.as_str()),
            several => format!("{several} {}s", level.as_str()),
        };
        match (self.adoptable, write) {
            (false, _) => format!(
                "\nThis database cannot be adopted yet: {}. Nothing was changed.\n",
                count(Level::Blocker)
            ),
            (true, false) => format!(
                "\nThis database can be adopted: {}. Nothing was changed; the same command with --write \
                    begins.\n",
                count(Level::Warning)
            ),
            (true, true) => "\nAdopting\n".to_owned(),
        }
    }
}

/// What is checked once it is Ready.
pub fn afterwards(database: &Database) -> String {
    let (namespace, name) = (database.namespace().unwrap_or_default(), database.name_any());
    format!(
        "done: Database {namespace}/{name} is Ready. Check that clients are connected, that the pod did \
            not restart (kubectl get pods --namespace {namespace}), and put the Database into Git"
    )
}

fn steps(found: &Found, wanted: &Wanted, database: &Database) -> Vec<String> {
    let Some(adopt) = &database.spec.adopt else { return Vec::new() };
    let (volume, instance) = (&adopt.volume_id, &adopt.instance_id);
    let subject = format!("{}/{}", database.namespace().unwrap_or_default(), database.name_any());
    let proof = format!("{ADOPT_TAG}={}", adopter(&found.cluster_id, &subject));
    let snapshot =
        (!wanted.skip_snapshot).then(|| format!("EC2: a snapshot of {volume}, with the tag {proof}"));
    let rest = [
        format!("EC2: the tag {proof} on {volume} and {instance}"),
        format!("Kubernetes: Database {subject}, which is:"),
    ];
    snapshot.into_iter().chain(rest).collect()
}

fn rows(found: &Found, wanted: &Wanted) -> Vec<Row> {
    let unknown = || "(not found)".to_owned();
    let node = found.core_node.as_ref().map(ResourceExt::name_any);
    let image = found
        .engine()
        .map(|engine| format!("{} (container {})", engine.image.as_deref().unwrap_or_default(), engine.name));
    let claim = found.data().map(|data| {
        let volume = data.persistent_volume.as_ref().map(ResourceExt::name_any).unwrap_or_default();
        format!("{} (PersistentVolume {volume})", data.name)
    });
    let rows = [
        ("StatefulSet", Some(found.subject().replacen("StatefulSet ", "", 1))),
        ("Pod", found.pod.as_ref().map(ResourceExt::name_any)),
        ("Image", image),
        ("Kubernetes node", node),
        ("Instance", found.instance.as_ref().map(instance)),
        ("Claim", claim),
        ("EBS volume", found.volume.as_ref().map(volume)),
        ("File system", found.file_system()),
        ("Service", service(found, wanted).ok()),
        ("Secret", secret(found, wanted).ok().map(|name| name.unwrap_or_else(|| "(none)".to_owned()))),
        ("Cluster id", Some(found.cluster_id.clone())),
    ];
    rows.into_iter()
        .map(|(name, value)| Row { name: name.to_owned(), value: value.unwrap_or_else(unknown) })
        .collect()
}

fn instance(instance: &Instance) -> String {
    format!("{}, {}, {}", instance.id, instance.instance_type, instance.zone)
}

fn volume(volume: &EbsVolume) -> String {
    let mut text = format!("{}, {} GiB, {}", volume.id, volume.size, volume.volume_type);
    if let Some(iops) = volume.iops {
        let _ = write!(text, ", {iops} IOPS");
    }
    if let Some(throughput) = volume.throughput {
        let _ = write!(text, ", {throughput} MiB/s");
    }
    let _ = write!(text, ", {}{}", volume.zone, if volume.encrypted { "" } else { ", not encrypted" });
    text
}
