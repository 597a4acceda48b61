//! The names and labels of everything that belongs to a Database: one pure function. A database that was
//! adopted keeps the names that it had.

use std::collections::BTreeMap;

use data_encoding::BASE32_NOPAD;
use sha2::{Digest, Sha256};

use super::database::Database;
use super::keys::{
    DATABASE_NAME_LABEL, DATABASE_UID_LABEL, ENGINE_LABEL, INSTANCE_LABEL, MANAGED_BY_FREEHOLD,
    MANAGED_BY_LABEL,
};
use super::volume::Volume;

/// The names and labels of one Database's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The Database's namespace.
    pub namespace: String,
    /// The Database's name.
    pub database: String,
    /// The Database's UID.
    pub uid: String,
    /// The Volume and its claim: `<database>-<hash>`.
    pub volume: String,
    /// The StatefulSet; its pod is this with `-0`.
    pub stateful_set: String,
    /// The engine's container, if the spec names it.
    pub container: Option<String>,
    /// The Service that clients use.
    pub service: String,
    /// The Secret of the administrator's credentials.
    pub credentials_secret: String,
    /// The name of the Secret's copy after a deletion that retains the data.
    pub retained_secret: String,
    /// The ConfigMap with the engine's settings.
    pub config_map: String,
    /// The ServiceAccount that the pod runs as: with the hash, so that it is no other workload's.
    pub service_account: String,
    /// The NetworkPolicy.
    pub network_policy: String,
    /// The PodDisruptionBudget.
    pub disruption_budget: String,
    /// The DatabaseUser of the application.
    pub application_user: String,
    /// What selects the pod: never changed, a StatefulSet's selector is immutable.
    pub selector: BTreeMap<String, String>,
    /// What every object carries.
    pub labels: BTreeMap<String, String>,
}

impl Names {
    /// The names of this Database's objects: functions of its name and UID, or given in `spec.adopt`, which
    /// cannot change: so the same for ever.
    pub fn of(database: &Database) -> Self {
        let name = database.metadata.name.clone().unwrap_or_default();
        let uid = database.metadata.uid.clone().unwrap_or_default();
        let volume = format!("{name}-{}", short_hash(&uid));
        let selector = BTreeMap::from([
            (INSTANCE_LABEL.to_owned(), name.clone()),
            (DATABASE_UID_LABEL.to_owned(), uid.clone()),
        ]);
        let mut labels = selector.clone();
        labels.insert(MANAGED_BY_LABEL.to_owned(), MANAGED_BY_FREEHOLD.to_owned());
        labels.insert(ENGINE_LABEL.to_owned(), database.spec.engine.kind.as_str().to_owned());
        labels.insert(DATABASE_NAME_LABEL.to_owned(), name.clone());
        let adopt = database.spec.adopt.as_ref();
        Self {
            namespace: database.metadata.namespace.clone().unwrap_or_default(),
            stateful_set: adopt.map_or(&name, |adopt| &adopt.stateful_set_name).clone(),
            container: adopt.and_then(|adopt| adopt.container_name.clone()),
            service: adopt.map_or(&name, |adopt| &adopt.service_name).clone(),
            credentials_secret: adopt
                .and_then(|adopt| adopt.credentials_secret_name.clone())
                .unwrap_or_else(|| format!("{name}-admin")),
            retained_secret: retained_secret(&volume),
            config_map: format!("{name}-config"),
            network_policy: name.clone(),
            disruption_budget: name.clone(),
            application_user: format!("{name}-application"),
            service_account: volume.clone(),
            database: name,
            uid,
            volume,
            selector,
            labels,
        }
    }

    /// The Node of this ordinal: `<database>-<hash>-<ordinal>`.
    pub fn node(&self, ordinal: i32) -> String {
        format!("{}-{ordinal}", self.volume)
    }

    /// The pod of the StatefulSet.
    pub fn pod(&self) -> String {
        pod(&self.stateful_set)
    }
}

/// The pod of a StatefulSet of this name.
pub fn pod(stateful_set: &str) -> String {
    format!("{stateful_set}-0")
}

/// The Volume of the Database that a Node of this name belongs to.
pub fn volume_of_node(node: &str) -> Option<&str> {
    node.rsplit_once('-').map(|(volume, _)| volume)
}

/// The Secret with the retained credentials of a Volume of this name.
pub fn retained_secret(volume: &str) -> String {
    format!("{volume}-admin")
}

/// What the two objects of a Volume are called that a pod uses its EBS volume by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeNames {
    /// The PersistentVolume.
    pub persistent_volume: String,
    /// The claim, in the namespace of the Volume.
    pub claim: String,
}

impl VolumeNames {
    /// Those of an adopted volume are in its spec, and those that Freehold creates are functions of the
    /// Volume's UID and name.
    pub fn of(volume: &Volume) -> Self {
        match &volume.spec.adopt {
            Some(adopt) => Self {
                persistent_volume: adopt.persistent_volume_name.clone(),
                claim: adopt.claim_name.clone(),
            },
            None => Self {
                persistent_volume: persistent_volume(volume.metadata.uid.as_deref().unwrap_or_default()),
                claim: volume.metadata.name.clone().unwrap_or_default(),
            },
        }
    }
}

/// The PersistentVolume that Freehold creates for a Volume: cluster-scoped, so named by the Volume's UID.
pub fn persistent_volume(volume_uid: &str) -> String {
    format!("freehold-{volume_uid}")
}

/// The UID of the Volume that a PersistentVolume of this name was created for; none where it was adopted in
/// place, and its label alone names the Volume.
pub fn volume_uid_of(persistent_volume: &str) -> Option<&str> {
    persistent_volume.strip_prefix("freehold-")
}

/// Five characters that distinguish two Databases of one name.
fn short_hash(uid: &str) -> String {
    let mut text = BASE32_NOPAD.encode(&Sha256::digest(uid.as_bytes())).to_lowercase();
    text.truncate(5);
    text
}

/// Whether the text can be the name of an object (Kubernetes documentation, "Object Names and IDs": DNS
/// subdomain names).
pub fn is_of_an_object(text: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.len() <= 253
        && bytes.iter().all(|byte| is_alphanumeric(*byte) || matches!(byte, b'-' | b'.'))
        && bytes.first().copied().is_some_and(is_alphanumeric)
        && bytes.last().copied().is_some_and(is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubernetes_gives_to_no_object_is_no_name() {
        for name in ["default", "a", "al2023.v2", "9-disks"] {
            assert!(is_of_an_object(name), "{name}");
        }
        for text in ["", "no such thing", "a/../b", "..", "-a", "a-", "Default", "a?b", &"a".repeat(254)] {
            assert!(!is_of_an_object(text), "{text}");
        }
    }

    #[test]
    fn a_persistent_volume_tells_its_volume() {
        assert_eq!(volume_uid_of(&persistent_volume("6f1c2a54")), Some("6f1c2a54"));
        assert_eq!(volume_uid_of("pvc-6f1c2a54"), None);
    }

    #[test]
    fn an_adopted_volume_is_used_under_the_names_that_it_has() {
        let mut volume: Volume = serde_json::from_value(serde_json::json!({
            "apiVersion": "freehold.dev/v1alpha1", "kind": "Volume",
            "metadata": {"name": "orders-k3f9q", "namespace": "team-a", "uid": "6f1c2a54"},
            "spec": {"nodeClassName": "default", "size": "100Gi", "type": "gp3", "fileSystem": "xfs",
                "zone": "us-east-1b", "deletionPolicy": "Retain"},
        }))
        .unwrap();
        let names = |persistent_volume: &str, claim: &str| VolumeNames {
            persistent_volume: persistent_volume.to_owned(),
            claim: claim.to_owned(),
        };
        assert_eq!(VolumeNames::of(&volume), names("freehold-6f1c2a54", "orders-k3f9q"));
        volume.spec.adopt = serde_json::from_value(serde_json::json!({
            "volumeID": "vol-9", "persistentVolumeName": "pvc-5a1c", "claimName": "data-orders-0",
        }))
        .unwrap();
        assert_eq!(VolumeNames::of(&volume), names("pvc-5a1c", "data-orders-0"));
    }

    #[test]
    fn two_uids_of_one_name_have_two_volume_names_of_the_documented_form() {
        let one = short_hash("6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11");
        let two = short_hash("6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a12");
        assert_ne!(one, two);
        assert_eq!(one.len(), 5);
        assert!(one.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()));
        assert_eq!(one, short_hash("6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"));
    }
}
