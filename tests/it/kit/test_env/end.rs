//! The end of a test environment: the checks, what is taken away, and what a failed test shows.

use std::path::PathBuf;

use ec2sim::JournalEntry;
use freehold_box::base::process::tail;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::TestEnv;
use crate::kit::env::Env as _;
use crate::kit::{invariants, rights, statements};

/// How much of the journal, of writes and of a log a failure shows, in lines.
pub(super) const TAIL: usize = 40;

impl TestEnv {
    /// The end of a scenario: everything that must always hold, holds. Then the machines' Nodes go, so that
    /// others need not see them.
    pub async fn close(self) {
        invariants::check(&self).await;
        self.close_unchecked().await;
    }

    /// The same without the checks, for tests of these.
    pub async fn close_unchecked(mut self) {
        if let Some(operator) = self.operator.take() {
            operator.kill();
        }
        self.proxies.clear();
        rights::note(&self.control_plane);
        statements::note(self.ec2());
        for set in self.list::<StatefulSet>().await {
            let _ = self.api::<StatefulSet>().delete(&set.name_any(), &DeleteParams::background()).await;
        }
        let nodes = Api::<CoreNode>::all(self.client.clone());
        let ours: Vec<String> = self.ec2().instances().into_iter().map(|instance| instance.id).collect();
        for node in nodes.list(&ListParams::default()).await.unwrap() {
            let provider_id =
                node.spec.as_ref().and_then(|spec| spec.provider_id.clone()).unwrap_or_default();
            if ours.iter().any(|id| provider_id.ends_with(id)) {
                let name = node.name_any();
                let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                let _ = nodes.patch(&name, &PatchParams::default(), &free).await;
                let _ = nodes.delete(&name, &DeleteParams::default()).await;
            }
        }
    }
}

impl Drop for TestEnv {
    /// Says what there was to see when a test fails; the operator's whole log goes to the folder
    /// FREEHOLD_KEEP_LOGS, if one is named.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let kinds = "databases,nodes.freehold.dev,volumes.freehold.dev,statefulsets,pods,pvc,events";
        let objects = self.kubectl().args(["get", kinds, "-o", "wide"]).output();
        let objects =
            objects.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let journal: Vec<String> = self.calls_since(0).iter().rev().take(TAIL).rev().map(short).collect();
        eprintln!("==== {}: objects\n{objects}\n==== EC2's journal\n{}", self.name, journal.join("\n"));
        eprintln!("==== the operator's log\n{}", tail(&self.log()));
        if let Ok(folder) = std::env::var("FREEHOLD_KEEP_LOGS") {
            let _ = std::fs::copy(self.log(), PathBuf::from(folder).join(format!("{}.log", self.name)));
        }
    }
}

/// A journal's entry in a line.
fn short(entry: &JournalEntry) -> String {
    let resources = entry.resources.join(",");
    format!("{:>5} {} {} {:?} {} {resources}", entry.seq, entry.time, entry.action, entry.fate, entry.answer)
}
