//! The labels of the series that show objects.

use kube::ResourceExt;
use prometheus_client::encoding::EncodeLabelSet;

use crate::api::Backup;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct ConditionLabels {
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) r#type: String,
    pub(super) status: String,
    pub(super) reason: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct DatabaseLabels {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) engine: &'static str,
    pub(super) version: String,
    pub(super) node_class: String,
    pub(super) instance_type: String,
    pub(super) zone: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct ObjectLabels {
    pub(super) namespace: String,
    pub(super) name: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct BackupLabels {
    pub(super) namespace: String,
    pub(super) database: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct NamespaceLabels {
    pub(super) namespace: String,
}

impl BackupLabels {
    pub(super) fn of(backup: &Backup) -> Self {
        let namespace = backup.namespace().unwrap_or_default();
        Self { namespace, database: backup.spec.database_name.clone() }
    }
}

impl ObjectLabels {
    pub(super) fn of(object: &impl ResourceExt) -> Self {
        Self { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }
}
