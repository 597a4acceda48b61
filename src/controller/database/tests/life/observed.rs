//! What the next pass observes of the model.

use super::*;
use crate::controller::database::plan::reload::question;

impl Life {
    pub(super) fn observed(&self) -> Observed {
        let mut observed = Observed {
            legacy: None,
            claim: None,
            priority_class: None,
            database: self.database.clone(),
            class: Some(class(json!({}))),
            namespace_labels: BTreeMap::new(),
            usage: Usage::default(),
            names: self.names.clone(),
            profile: self.profile.clone(),
            nodes: self.machines.iter().map(|machine| machine.node.clone()).collect(),
            node_name_taken: None,
            is_pod_foreign: false,
            credentials_as_reported: false,
            tls: TlsSecret::NotRead,
            volume: child(self.volume.as_ref()),
            credentials: Credentials::Read(child(self.credentials.as_ref())),
            retained: child(self.retained.as_ref().filter(|_| self.is_deleting())),
            kept: self.kept(),
            config_map: child(self.config_map.as_ref()),
            service: child(self.service.as_ref()),
            service_account: child(self.service_account.as_ref()),
            network_policy: child(self.network_policy.as_ref()),
            disruption_budget: child(self.disruption_budget.as_ref()),
            application_user: Child::Absent,
            stateful_set: child(self.stateful_set.as_ref()),
            pod: self.pod.clone(),
            flush: self.flush,
            attachment: self.attachment(),
            core_nodes: self.machines.iter().filter_map(|machine| machine.core_node.clone()).collect(),
            labelled: self.labelled().cloned().collect(),
            answers: EngineAnswers::default(),
            disk: None,
            torn_down: TornDown::default(),
            network: let_in(),
            timing: Timing::default(),
        };
        observed.answers.settings = question(&observed).map(|(_, change)| Ok(Self::verdict(&change)));
        observed
    }
}

/// The operator is let in by name.
fn let_in() -> Network {
    let operator_from = r#"[{"podSelector": {"matchLabels": {"app": "freehold"}}}]"#.parse().unwrap();
    Network { operator_from, ..Network::default() }
}
