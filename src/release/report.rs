//! The report: as what the database is released, what stays, what goes, and what stands before it; as text
//! and as JSON. Pure.

use kube::ResourceExt;
use serde::Serialize;

use super::found::Found;
use crate::api::keys::{
    ADOPT_TAG, ATTEMPT_TAG, CLUSTER_ID_TAG, DATABASE_NODE_LABEL, DATABASE_TAG, DEDICATED_TAINT,
    FORMER_RECLAIM_POLICY_ANNOTATION, NODE_UID_TAG, VOLUME_UID_TAG,
};
use crate::api::names::VolumeNames;
use crate::api::{InstanceId, Node, VolumeId};
use crate::command::difference::{Change, differences};
use crate::command::finding::{Finding, Level};
use crate::command::text::{Row, changed, listed, table};

/// Everything that is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether no blocker was found.
    releasable: bool,
    /// Whether it becomes what it was before it was adopted.
    as_found: bool,
    /// What stays, and as what.
    stays: Vec<Row>,
    /// What goes.
    goes: Vec<Row>,
    /// What the StatefulSet keeps that is not as it was found.
    differences: Vec<Change>,
    /// What the checks found.
    checks: Vec<Finding>,
}

impl Report {
    /// Of what was found and checked.
    pub fn new(found: &Found, checks: Vec<Finding>) -> Self {
        let as_found = found.is_as_found();
        Self {
            releasable: !checks.iter().any(|finding| finding.level == Level::Blocker),
            as_found,
            stays: stays(found, as_found),
            goes: goes(found, as_found),
            differences: if as_found { Vec::new() } else { kept_changes(found) },
            checks,
        }
    }

    /// For people. Of `write` depends only how it ends.
    pub fn text(&self, write: bool) -> String {
        let mut text = String::from(if self.as_found {
            "The database becomes what it was before it was adopted; its pod goes on running.\n"
        } else {
            "The database is released as it runs now; its pod goes on running.\n"
        });
        text.push_str("\nStays\n");
        rows(&mut text, &self.stays);
        text.push_str("\nGoes\n");
        rows(&mut text, &self.goes);
        if !self.differences.is_empty() {
            text.push_str("\nDiffers from what was found (what was found -> what stays)\n");
            for (title, of_template) in
                [("Fields of the StatefulSet", false), ("Fields of its template", true)]
            {
                let of = self.differences.iter().filter(|change| change.at_restart == of_template);
                changed(&mut text, title, of);
            }
        }
        listed(&mut text, "Checks", &self.checks);
        text.push_str(match (self.releasable, write) {
            (false, _) => "\nThis database cannot be released yet. Nothing was changed.\n",
            (true, false) => {
                "\nThis database can be released. Nothing was changed; the same command with --write releases it.\n"
            }
            (true, true) => "\nReleasing\n",
        });
        text
    }
}

fn rows(text: &mut String, rows: &[Row]) {
    table(text, rows.iter().map(|row| [row.name.as_str(), row.value.as_str()]));
}

fn stays(found: &Found, as_found: bool) -> Vec<Row> {
    let names = &found.names;
    let mut rows = vec![Row::new(
        "StatefulSet",
        if as_found {
            format!("{}, with the spec, labels and annotations that it was found with", names.stateful_set)
        } else {
            format!(
                "{}, as it is; with the update strategy OnDelete, a changed template waits until its pod is deleted",
                names.stateful_set
            )
        },
    )];
    if let Some(pod) = &found.pod {
        let uid = pod.uid().unwrap_or_default();
        rows.push(Row::new("Pod", format!("{} ({uid}), which is not restarted", pod.name_any())));
    }
    rows.push(Row::new("Service", names.service.clone()));
    let secret = found.database.status.as_ref().and_then(|status| status.credentials_secret_name.clone());
    rows.extend(secret.map(|secret| Row::new("Secret", secret)));
    if !found.is_adopted() {
        rows.push(Row::new("ConfigMap", format!("{}, where the engine has one", names.config_map)));
        rows.push(Row::new("ServiceAccount", names.service_account.clone()));
        rows.push(Row::new(
            "NetworkPolicy",
            format!("{}: who may connect stays the same", names.network_policy),
        ));
    }
    if let Some(volume) = &found.volume {
        let VolumeNames { persistent_volume, claim } = VolumeNames::of(volume);
        rows.push(Row::new("Claim", claim));
        rows.push(Row::new("PersistentVolume", format!("{persistent_volume}, {}", reclaim_policy(found))));
        let id = volume.status.as_ref().and_then(|status| status.volume_id.as_ref());
        rows.extend(id.map(|VolumeId(id)| Row::new("EBS volume", format!("{id}, attached as it is"))));
    }
    for node in &found.nodes {
        rows.extend(
            instance(node).map(|InstanceId(id)| Row::new("Instance", format!("{id}, which goes on running"))),
        );
        let core_node = node.status.as_ref().and_then(|status| status.core_node_name.clone());
        rows.extend(core_node.map(|name| {
            let marks = if as_found {
                String::new()
            } else {
                format!(", with the label {DATABASE_NODE_LABEL} and the taint {DEDICATED_TAINT}: the pod is placed by them")
            };
            Row::new("Kubernetes node", format!("{name}{marks}"))
        }));
    }
    rows
}

/// The reclaim policy that the PersistentVolume has then.
fn reclaim_policy(found: &Found) -> String {
    let record = found.persistent_volume.as_ref();
    let former = record.and_then(|it| it.annotations().get(FORMER_RECLAIM_POLICY_ANNOTATION).cloned());
    let today = record.and_then(|it| it.spec.as_ref()?.persistent_volume_reclaim_policy.clone());
    format!("reclaim policy {}", former.or(today).unwrap_or_else(|| "Retain".to_owned()))
}

fn goes(found: &Found, as_found: bool) -> Vec<Row> {
    let mut rows = vec![Row::new("Database", found.subject())];
    for node in &found.nodes {
        rows.push(Row::new("Node", node.name_any()));
        let is_launched = node.spec.instance_id.is_none();
        rows.extend(instance(node).map(|InstanceId(id)| {
            let (things, attempt) = if is_launched {
                (format!("{id}, its own disks and its network interface"), format!(", {ATTEMPT_TAG}"))
            } else {
                (id.clone(), String::new())
            };
            Row::new("Tags", format!("{CLUSTER_ID_TAG}, {NODE_UID_TAG}, {DATABASE_TAG}{attempt} of {things}"))
        }));
        let core_node = node.status.as_ref().and_then(|status| status.core_node_name.clone());
        rows.extend(core_node.map(|name| {
            let marks = if as_found { ", and its labels and its taint" } else { "" };
            Row::new("Finalizer", format!("Freehold's on Kubernetes node {name}{marks}"))
        }));
    }
    if let Some(volume) = &found.volume {
        rows.push(Row::new("Volume", volume.name_any()));
        let id = volume.status.as_ref().and_then(|status| status.volume_id.as_ref());
        let attempt = if volume.spec.adopt.is_none() { format!(", {ATTEMPT_TAG}") } else { String::new() };
        rows.extend(id.map(|VolumeId(id)| {
            Row::new("Tags", format!("{CLUSTER_ID_TAG}, {VOLUME_UID_TAG}, {DATABASE_TAG}{attempt} of {id}"))
        }));
    }
    rows.push(Row::new("Labels", "Freehold's on what stays, but for those that select or place the pod"));
    rows.push(Row::new("Owners", "the references of what stays to what goes"));
    if found.is_adopted() {
        rows.push(Row::new("Yours", format!("the tag {ADOPT_TAG} stays until you remove it")));
    }
    rows
}

fn instance(node: &Node) -> Option<&InstanceId> {
    let recorded = node.status.as_ref().and_then(|status| status.instance_id.as_ref());
    recorded.or(node.spec.instance_id.as_ref())
}

/// What the StatefulSet keeps of what Freehold has changed in an adopted one: its metadata becomes what it
/// was.
fn kept_changes(found: &Found) -> Vec<Change> {
    let (Some(before), Some(today)) = (found.found_set(), &found.stateful_set) else { return Vec::new() };
    let mut kept = differences(&before, today);
    kept.retain(|change| change.field.starts_with("spec."));
    kept
}
