//! Reads the API server and EC2 (the simulator's own state and journal).

use std::collections::{BTreeMap, BTreeSet};

use ec2sim::{Fate, Fault, InstanceView, JournalEntry, OutsideAction};
use freehold::api::keys;
use freehold::api::{Database, Node, Volume};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    ConfigMap, Node as CoreNode, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service,
    ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::common::Failure;
use super::world::{Ec2, World};
use crate::account::policy::OPERATOR;
use crate::legacy::CALLER;

/// Who launches the machine for the operator's pod: the name in EC2's journal, and of the machine.
pub const PLATFORM: &str = "platform";

/// The person who runs `freehold adopt`: the name in EC2's journal.
pub const PERSON: &str = "person";

/// The database's namespace.
pub const NAMESPACE: &str = "default";

/// Calls by action.
pub type Calls = BTreeMap<String, u64>;

/// Reads the API server and EC2.
#[derive(Clone)]
pub struct Observer {
    kubernetes: Client,
    ec2: Client,
}

impl Observer {
    /// Reads this API server and this EC2.
    pub fn new(kubernetes: Client, endpoint: &str) -> Result<Self, Failure> {
        Ok(Self { kubernetes, ec2: Client::try_from(kube::Config::new(endpoint.parse()?))? })
    }

    /// Everything as it is now.
    pub async fn observe(&self) -> Result<World, Failure> {
        let client = &self.kubernetes;
        let all = ListParams::default();
        let ours = ListParams::default().labels(keys::DATABASE_UID_LABEL);
        let mut others = Vec::new();
        for service in Api::<Service>::namespaced(client.clone(), NAMESPACE).list(&ours).await? {
            others.push(format!("Service {}", service.name_any()));
        }
        for config in Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE).list(&ours).await? {
            others.push(format!("ConfigMap {}", config.name_any()));
        }
        for policy in Api::<NetworkPolicy>::namespaced(client.clone(), NAMESPACE).list(&ours).await? {
            others.push(format!("NetworkPolicy {}", policy.name_any()));
        }
        for budget in Api::<PodDisruptionBudget>::namespaced(client.clone(), NAMESPACE).list(&ours).await? {
            others.push(format!("PodDisruptionBudget {}", budget.name_any()));
        }
        for account in Api::<ServiceAccount>::namespaced(client.clone(), NAMESPACE).list(&ours).await? {
            others.push(format!("ServiceAccount {}", account.name_any()));
        }
        Ok(World {
            databases: Api::<Database>::namespaced(client.clone(), NAMESPACE).list(&all).await?.items,
            nodes: Api::<Node>::namespaced(client.clone(), NAMESPACE).list(&all).await?.items,
            volumes: Api::<Volume>::namespaced(client.clone(), NAMESPACE).list(&all).await?.items,
            core_nodes: Api::<CoreNode>::all(client.clone()).list(&all).await?.items,
            records: Api::<PersistentVolume>::all(client.clone()).list(&all).await?.items,
            claims: Api::<PersistentVolumeClaim>::namespaced(client.clone(), NAMESPACE)
                .list(&all)
                .await?
                .items,
            stateful_sets: Api::<StatefulSet>::namespaced(client.clone(), NAMESPACE).list(&all).await?.items,
            pods: Api::<Pod>::namespaced(client.clone(), NAMESPACE).list(&all).await?.items,
            attachments: Api::<VolumeAttachment>::all(client.clone()).list(&all).await?.items,
            secrets: Api::<Secret>::namespaced(client.clone(), NAMESPACE).list(&ours).await?.items,
            others,
            ec2: self.ec2().await?,
        })
    }

    /// EC2's truth as it is now, without the platform's machine.
    pub async fn ec2(&self) -> Result<Ec2, Failure> {
        let mut ec2: Ec2 = self.ec2.request(http::Request::get("/_sim/state").body(Vec::new())?).await?;
        let is_platforms =
            |instance: &InstanceView| instance.tags.get("Name").is_some_and(|name| name == PLATFORM);
        let platforms: Vec<String> =
            ec2.instances.iter().filter(|it| is_platforms(it)).map(|it| it.id.clone()).collect();
        ec2.instances.retain(|instance| !platforms.contains(&instance.id));
        ec2.volumes.retain(|volume| {
            !volume.attachment.as_ref().is_some_and(|attachment| platforms.contains(&attachment.instance_id))
        });
        Ok(ec2)
    }

    /// From now on something goes wrong in EC2.
    pub async fn fault(&self, fault: &Fault) -> Result<(), Failure> {
        let request = http::Request::post("/_sim/faults").header("content-type", "application/json");
        self.ec2.request_text(request.body(serde_json::to_vec(fault)?)?).await?;
        Ok(())
    }

    /// Something happens in EC2 behind the operator's back.
    pub async fn outside(&self, action: &OutsideAction) -> Result<(), Failure> {
        let request = http::Request::post("/_sim/outside").header("content-type", "application/json");
        self.ec2.request_text(request.body(serde_json::to_vec(action)?)?).await?;
        Ok(())
    }

    /// The number of the journal's last entry.
    pub async fn journal_end(&self) -> Result<u64, Failure> {
        Ok(self.journal(0).await?.last().map_or(0, |entry| entry.seq))
    }

    /// The calls after that entry of the operator and of the person, by action.
    pub async fn calls_since(&self, after: u64) -> Result<Calls, Failure> {
        let mut calls = Calls::new();
        for entry in self.journal(after).await?.iter().filter(|entry| entry.seq > after && is_counted(entry))
        {
            *calls.entry(entry.action.clone()).or_default() += 1;
        }
        Ok(calls)
    }

    /// What the operator and the person changed in EC2, by action: a creating call that was sent again with
    /// its token, or an instance that was terminated once more, counts once.
    pub async fn changes(&self) -> Result<Calls, Failure> {
        Ok(changes(&self.journal(0).await?))
    }

    /// The calls of everyone else, by action: of the EBS CSI driver. Those of who made what was there before
    /// do not count.
    pub async fn calls_of_others(&self) -> Result<Calls, Failure> {
        let mut calls = Calls::new();
        for entry in self
            .journal(0)
            .await?
            .iter()
            .filter(|entry| !is_counted(entry) && ![PLATFORM, CALLER].contains(&entry.caller.as_str()))
        {
            *calls.entry(entry.action.clone()).or_default() += 1;
        }
        Ok(calls)
    }

    /// The calls of everyone after that entry.
    pub async fn journal(&self, since: u64) -> Result<Vec<JournalEntry>, Failure> {
        Ok(self
            .ec2
            .request(http::Request::get(format!("/_sim/journal?since={since}")).body(Vec::new())?)
            .await?)
    }
}

/// Whether a call is one of those that the report shows in its step.
fn is_counted(entry: &JournalEntry) -> bool {
    [OPERATOR, PERSON].contains(&entry.caller.as_str())
}

fn changes(journal: &[JournalEntry]) -> Calls {
    let is_change = |entry: &&JournalEntry| is_counted(entry) && entry.fate != Fate::Read && !entry.dry_run;
    let mut counted = BTreeSet::new();
    let mut calls = Calls::new();
    for entry in journal.iter().filter(is_change) {
        let which = match &entry.token {
            Some(token) => token.clone(),
            None if entry.action == "TerminateInstances" => entry.resources.join(" "),
            None => entry.seq.to_string(),
        };
        if counted.insert((&entry.action, which)) {
            *calls.entry(entry.action.clone()).or_default() += 1;
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_that_is_sent_again_changes_nothing_more() {
        let entry =
            |seq: u64, caller: &str, action: &str, resource: &str, token: Option<&str>, fate: &str| {
                json!({
                    "seq": seq, "time": "2026-01-01T00:00:00Z", "caller": caller, "action": action,
                    "resources": [resource], "tags": {},
                    "token": token, "params_hash": "", "dry_run": false, "answer": "ok", "fate": fate,
                    "faults": [], "late_of": null,
                    "parameters": {},
                })
            };
        let journal = json!([
            entry(1, OPERATOR, "RunInstances", "i-1", Some("a"), "lost"),
            entry(2, OPERATOR, "RunInstances", "i-1", Some("a"), "committed"),
            entry(3, OPERATOR, "RunInstances", "i-2", Some("b"), "committed"),
            entry(4, OPERATOR, "StopInstances", "i-3", None, "refused"),
            entry(5, OPERATOR, "TerminateInstances", "i-1", None, "committed"),
            entry(6, OPERATOR, "TerminateInstances", "i-1", None, "committed"),
            entry(7, OPERATOR, "ModifyVolume", "vol-1", None, "committed"),
            entry(8, OPERATOR, "ModifyVolume", "vol-1", None, "committed"),
            entry(9, OPERATOR, "DescribeInstances", "i-1", None, "read"),
            entry(10, "csi-driver", "AttachVolume", "vol-1", None, "committed"),
        ]);
        let journal: Vec<JournalEntry> = serde_json::from_value(journal).unwrap();
        let changes: Vec<(String, u64)> = changes(&journal).into_iter().collect();
        let counted =
            [("ModifyVolume", 2), ("RunInstances", 2), ("StopInstances", 1), ("TerminateInstances", 1)];
        assert_eq!(changes, counted.map(|(action, count)| (action.to_owned(), count)));
    }
}
