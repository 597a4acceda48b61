//! Retained volumes that have no retention record any more: known by EC2's tags alone, judged, and the record
//! that is written for one. Pure.
//!
//! A record is lost when a PersistentVolume that is Released is cleaned up, and it was never written when the
//! finalizer of a Volume was removed. Nothing is adopted by it alone: a Database names it, and the operator
//! looks at the EBS volume's tags once more.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use serde::Serialize;

use crate::api::database::{DeletionPolicy, FileSystem};
use crate::api::keys::{
    DATABASE_NAME_LABEL, DATABASE_TAG, ENGINE_LABEL, ENGINE_VERSION_ANNOTATION, INSTANCE_LABEL,
    MANAGED_BY_FREEHOLD, MANAGED_BY_LABEL, NAME_TAG, RETAINED_LABEL, VOLUME_UID_LABEL, VOLUME_UID_TAG,
};
use crate::api::volume::VolumeSpec;
use crate::api::{Size, Volume, VolumeId, names};
use crate::cloud::identity::{self, Kind};
use crate::cloud::{EbsVolume, VolumeState};
use crate::cluster::persistent_volume;
use crate::controller::retention::{self, Disk};
use crate::controller::volume::build;

/// Why the record exists, as it says itself.
const BECAUSE: &str = "its former record was lost; this one was written from the tags in EC2";

/// What EC2 and Kubernetes have. What EC2 has was read first: the Volume of an EBS volume is there before it.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The EBS volumes with the tag of this cluster.
    pub volumes: Vec<EbsVolume>,
    /// The UIDs that the Volumes of the cluster claim.
    pub claimed: BTreeSet<String>,
    /// Every PersistentVolume.
    pub records: Vec<PersistentVolume>,
    /// The UIDs of the namespaces that the tags name, where these exist.
    pub namespaces: BTreeMap<String, String>,
}

/// A retained volume without a record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unrecorded {
    /// The namespace that its tag names.
    pub namespace: String,
    /// The Database that its tag names.
    pub database: String,
    /// The EBS volume.
    #[serde(rename = "volumeID")]
    pub volume_id: VolumeId,
    /// Its size.
    pub size: Size,
    /// Its type.
    pub volume_type: String,
    /// Its zone.
    pub zone: String,
    /// The UID of the Volume that its tag names.
    #[serde(rename = "volumeUID")]
    pub volume_uid: String,
    /// The name of that Volume.
    pub volume: String,
    /// The PersistentVolume that names it already, and is no record.
    pub persistent_volume: Option<String>,
    /// Why no record can be written for it.
    pub hindrance: Option<String>,
    /// The UID of its namespace.
    #[serde(skip)]
    namespace_uid: Option<String>,
    /// The same PersistentVolume.
    #[serde(skip)]
    unmarked: Option<Box<PersistentVolume>>,
}

/// What EC2's tags do not say, and the person who writes a record does.
#[derive(Clone, Debug)]
pub struct Choices {
    /// The engine that wrote the data.
    pub engine: String,
    /// Its version.
    pub engine_version: Option<String>,
    /// The file system.
    pub file_system: FileSystem,
}

/// The retained volumes that no record names.
pub fn unrecorded(known: &Known) -> Vec<Unrecorded> {
    let is_there =
        |volume: &&EbsVolume| !matches!(volume.state, VolumeState::Deleting | VolumeState::Deleted);
    let mut found: Vec<Unrecorded> =
        known.volumes.iter().filter(is_there).filter_map(|volume| judged(known, volume)).collect();
    found.sort_by(|one, other| {
        (&one.namespace, &one.database, &one.volume_id).cmp(&(
            &other.namespace,
            &other.database,
            &other.volume_id,
        ))
    });
    found
}

/// `None` for one that is no database's, that a Volume has, or that has its record.
fn judged(known: &Known, volume: &EbsVolume) -> Option<Unrecorded> {
    let uid = identity::owner_uid(Kind::Volume, &volume.tags).filter(|uid| !known.claimed.contains(*uid))?;
    let naming: Vec<&PersistentVolume> = known
        .records
        .iter()
        .filter(|record| persistent_volume::ebs_volume(record).as_ref() == Some(&volume.id))
        .collect();
    if naming.iter().any(|record| retention::read(record).is_some()) {
        return None;
    }
    let tag = volume.tags.get(DATABASE_TAG).and_then(|tag| tag.split_once('/'));
    let (namespace, database) = tag.unwrap_or_default();
    let name = volume.tags.get(NAME_TAG).filter(|name| names::is_of_an_object(name));
    let unmarked = naming.first().map(|record| Box::new((*record).clone()));
    let hindrance = tagged_wrong(known, volume, uid, namespace)
        .or_else(|| in_use(volume))
        .or_else(|| claimed(known, volume, uid, namespace, &naming));
    Some(Unrecorded {
        namespace: namespace.to_owned(),
        database: database.to_owned(),
        volume_id: volume.id.clone(),
        size: Size::from_gib(volume.size),
        volume_type: volume.volume_type.clone(),
        zone: volume.zone.clone(),
        volume_uid: uid.to_owned(),
        volume: name.map_or(database, String::as_str).to_owned(),
        persistent_volume: unmarked.as_ref().map(|record| record.name_any()),
        hindrance,
        namespace_uid: known.namespaces.get(namespace).cloned(),
        unmarked,
    })
}

/// The tags name no namespace, or the Volume that another EBS volume names.
fn tagged_wrong(known: &Known, volume: &EbsVolume, uid: &str, namespace: &str) -> Option<String> {
    let id = &volume.id;
    if namespace.is_empty() {
        return Some(format!("the tag {DATABASE_TAG} of EBS volume {id} names no namespace and Database"));
    }
    let is_of_same =
        |other: &&EbsVolume| other.id != *id && other.tags.get(VOLUME_UID_TAG).is_some_and(|it| it == uid);
    if let Some(other) = known.volumes.iter().find(is_of_same) {
        return Some(format!("EBS volumes {id} and {} have the same tag {VOLUME_UID_TAG}", other.id));
    }
    let is_missing = !known.namespaces.contains_key(namespace);
    is_missing.then(|| format!("namespace {namespace} of EBS volume {id} does not exist: create it"))
}

fn in_use(volume: &EbsVolume) -> Option<String> {
    let is_free = volume.state == VolumeState::Available && volume.attachments.is_empty();
    let to = volume.attachments.first().map(|it| format!(" to {}", it.instance)).unwrap_or_default();
    (!is_free).then(|| format!("EBS volume {} is not available: it is attached{to} or in error", volume.id))
}

/// A PersistentVolume is in the way.
fn claimed(
    known: &Known,
    volume: &EbsVolume,
    uid: &str,
    namespace: &str,
    naming: &[&PersistentVolume],
) -> Option<String> {
    let id = &volume.id;
    let name = names::persistent_volume(uid);
    let [record] = naming else {
        if let [one, other, ..] = naming {
            return Some(format!(
                "PersistentVolumes {} and {} both name EBS volume {id}",
                one.name_any(),
                other.name_any()
            ));
        }
        let is_taken = known.records.iter().any(|record| record.name_any() == name);
        return is_taken.then(|| format!("PersistentVolume {name} does not name EBS volume {id}"));
    };
    let name = record.name_any();
    if record.labels().get(VOLUME_UID_LABEL).map(String::as_str) != Some(uid) {
        return Some(format!("PersistentVolume {name} names EBS volume {id} and is not Freehold's"));
    }
    if record.metadata.deletion_timestamp.is_some() {
        return Some(format!("PersistentVolume {name} of EBS volume {id} is being deleted"));
    }
    let spec = record.spec.as_ref();
    let claim = spec.and_then(|spec| spec.claim_ref.as_ref()?.namespace.as_deref());
    if claim != Some(namespace) {
        return Some(format!("PersistentVolume {name} of EBS volume {id} names no claim in {namespace}"));
    }
    let phase = record.status.as_ref().and_then(|status| status.phase.as_deref());
    (phase != Some("Released"))
        .then(|| format!("PersistentVolume {name} of EBS volume {id} is not Released: something claims it"))
}

impl Unrecorded {
    /// The record, as it is to be: a PersistentVolume that is there, with its marks, or a new one.
    pub fn record(&self, choices: &Choices, now: Timestamp) -> PersistentVolume {
        let mut record = self.unmarked.as_deref().cloned().unwrap_or_else(|| self.persistent_volume(choices));
        let disk = Disk { size: self.size.clone(), volume_type: self.volume_type.clone() };
        let marks = retention::marks(
            &self.volume,
            Some(&choices.engine),
            None,
            &disk,
            BECAUSE,
            self.namespace_uid.as_ref(),
            now,
        );
        let version = choices.engine_version.clone();
        record.annotations_mut().extend(marks);
        record
            .annotations_mut()
            .extend(version.map(|version| (ENGINE_VERSION_ANNOTATION.to_owned(), version)));
        let labels = [(RETAINED_LABEL, "true"), (DATABASE_NAME_LABEL, self.database.as_str())];
        record.labels_mut().extend(labels.map(|(key, value)| (key.to_owned(), value.to_owned())));
        record
    }

    /// A PersistentVolume as the Volume had it. The claim that it names can come no more, so that it shows as
    /// Released.
    fn persistent_volume(&self, choices: &Choices) -> PersistentVolume {
        let labels = [
            (DATABASE_NAME_LABEL, self.database.as_str()),
            (INSTANCE_LABEL, self.database.as_str()),
            (MANAGED_BY_LABEL, MANAGED_BY_FREEHOLD),
            (ENGINE_LABEL, choices.engine.as_str()),
        ];
        let metadata = ObjectMeta {
            name: Some(self.volume.clone()),
            namespace: Some(self.namespace.clone()),
            uid: Some(self.volume_uid.clone()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            ..ObjectMeta::default()
        };
        let spec = VolumeSpec {
            node_class_name: String::new(),
            size: self.size.clone(),
            volume_type: String::new(),
            iops: None,
            throughput: None,
            file_system: choices.file_system,
            zone: self.zone.clone(),
            snapshot_id: None,
            initialization_rate: None,
            adopt_retained: None,
            adopt: None,
            release: false,
            deletion_decided: false,
            replaced: false,
            restore_generation: None,
            deletion_policy: DeletionPolicy::Retain,
        };
        let volume = Volume { metadata, spec, status: None };
        build::persistent_volume(&volume, &self.volume_id, &self.size, "", Some(self.volume_uid.clone()))
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::InstanceId;
    use crate::cloud::Attachment;

    const UID: &str = "6f1c2a54";

    fn volume(id: &str, uid: &str, database: &str) -> EbsVolume {
        let tags = [(VOLUME_UID_TAG, uid), (DATABASE_TAG, database), (NAME_TAG, "orders-k3f9q")];
        EbsVolume {
            id: VolumeId(id.to_owned()),
            state: VolumeState::Available,
            zone: "us-east-1b".to_owned(),
            size: 100,
            volume_type: "gp3".to_owned(),
            iops: None,
            throughput: None,
            encrypted: true,
            multi_attach: false,
            attachments: Vec::new(),
            tags: tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            created_at: None,
        }
    }

    fn known() -> Known {
        Known {
            volumes: vec![volume("vol-1", UID, "team-a/orders")],
            namespaces: BTreeMap::from([("team-a".to_owned(), "9".to_owned())]),
            ..Known::default()
        }
    }

    fn choices() -> Choices {
        Choices {
            engine: "postgresql".to_owned(),
            engine_version: Some("17.6".to_owned()),
            file_system: FileSystem::Xfs,
        }
    }

    /// The PersistentVolume of a Volume that lost its finalizer, with these changes.
    fn left(changes: &Value) -> PersistentVolume {
        let mut left = json!({
            "metadata": {"name": "freehold-6f1c2a54", "labels": {VOLUME_UID_LABEL: UID},
                "annotations": {"freehold.dev/database": "team-a/orders"}},
            "spec": {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1", "fsType": "ext4"},
                "claimRef": {"namespace": "team-a", "name": "orders-k3f9q", "uid": "5"}},
            "status": {"phase": "Released"},
        });
        json_patch::merge(&mut left, changes);
        serde_json::from_value(left).unwrap()
    }

    fn only(known: &Known) -> Unrecorded {
        let mut found = unrecorded(known);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    fn hindrance(known: &Known) -> String {
        only(known).hindrance.unwrap_or_default()
    }

    #[test]
    fn a_volume_whose_record_was_cleaned_up_gets_one_that_can_be_adopted() {
        let found = only(&known());
        assert_eq!((found.hindrance.as_ref(), found.persistent_volume.as_ref()), (None, None));
        let mut record = found.record(&choices(), Timestamp::UNIX_EPOCH);
        assert_eq!(record.name_any(), "freehold-6f1c2a54");
        let claim = record.spec.as_ref().and_then(|spec| spec.claim_ref.clone()).unwrap();
        assert_eq!(claim.uid.as_deref(), Some(UID), "a claim that can come no more");
        record.status = serde_json::from_value(json!({"phase": "Released"})).unwrap();
        let read = retention::read(&record).unwrap();
        assert_eq!(
            (read.namespace.as_str(), read.database.as_str(), read.volume_id.0.as_str()),
            ("team-a", "orders", "vol-1")
        );
        assert_eq!((read.volume_uid.as_str(), read.zone.as_deref()), (UID, Some("us-east-1b")));
        assert_eq!(
            (read.engine.as_deref(), read.engine_version.as_deref()),
            (Some("postgresql"), Some("17.6"))
        );
        assert_eq!(
            (read.file_system.as_deref(), read.size.map(|size| size.0)),
            (Some("xfs"), Some("100Gi".to_owned()))
        );
        assert_eq!((read.namespace_uid.as_deref(), read.volume_type.as_deref()), (Some("9"), Some("gp3")));
        assert_eq!(read.credentials_secret.as_deref(), Some("orders-k3f9q-admin"));
        assert!(read.is_released && read.adopted_by.is_none());
        // What it names is recorded from now on.
        assert_eq!(unrecorded(&Known { records: vec![record], ..known() }), Vec::new());
    }

    #[test]
    fn what_a_volume_without_a_finalizer_left_becomes_its_record() {
        let known = Known { records: vec![left(&json!({}))], ..known() };
        let found = only(&known);
        assert_eq!(
            (found.hindrance.as_ref(), found.persistent_volume.as_deref()),
            (None, Some("freehold-6f1c2a54"))
        );
        let read = retention::read(&found.record(&choices(), Timestamp::UNIX_EPOCH)).unwrap();
        assert_eq!(read.file_system.as_deref(), Some("ext4"), "as it was made");
        assert!(read.is_released);
    }

    #[test]
    fn no_record_is_written_for_what_may_be_in_use_or_another_s() {
        let attached = Attachment {
            instance: InstanceId("i-1".to_owned()),
            device: "/dev/sdf".to_owned(),
            delete_on_termination: false,
        };
        let in_use = EbsVolume {
            state: VolumeState::InUse,
            attachments: vec![attached],
            ..volume("vol-1", UID, "team-a/orders")
        };
        let of_claim = |records: Vec<PersistentVolume>| Known { records, ..known() };
        let cases = [
            (Known { volumes: vec![in_use], ..known() }, "attached to i-1"),
            (Known { namespaces: BTreeMap::new(), ..known() }, "does not exist"),
            (Known { volumes: vec![volume("vol-1", UID, "orders")], ..known() }, "names no namespace"),
            (of_claim(vec![left(&json!({"status": {"phase": "Bound"}}))]), "is not Released"),
            (
                of_claim(vec![left(&json!({"spec": {"claimRef": {"namespace": "team-b"}}}))]),
                "no claim in team-a",
            ),
            (
                of_claim(vec![left(&json!({"metadata": {"labels": {VOLUME_UID_LABEL: "other"}}}))]),
                "is not Freehold's",
            ),
            (
                of_claim(vec![left(&json!({"metadata": {"deletionTimestamp": "2026-11-22T01:00:00Z"}}))]),
                "is being deleted",
            ),
            (
                of_claim(vec![left(&json!({})), left(&json!({"metadata": {"name": "other"}}))]),
                "both name EBS volume vol-1",
            ),
            (
                of_claim(vec![left(&json!({"spec": {"csi": {"volumeHandle": "vol-2"}}}))]),
                "does not name EBS volume vol-1",
            ),
        ];
        for (known, expected) in cases {
            let said = hindrance(&known);
            assert!(said.contains(expected), "{said} / {expected}");
        }
        let twice = vec![volume("vol-1", UID, "team-a/orders"), volume("vol-2", UID, "team-a/orders")];
        for found in unrecorded(&Known { volumes: twice, ..known() }) {
            assert!(found.hindrance.unwrap().contains("have the same tag"));
        }
    }

    #[test]
    fn what_a_volume_has_and_what_is_no_databases_is_not_listed() {
        let claimed = BTreeSet::from([UID.to_owned()]);
        assert_eq!(unrecorded(&Known { claimed, ..known() }), Vec::new());
        let mut root = volume("vol-1", UID, "team-a/orders");
        root.tags.remove(VOLUME_UID_TAG);
        let gone = EbsVolume { state: VolumeState::Deleting, ..volume("vol-1", UID, "team-a/orders") };
        assert_eq!(unrecorded(&Known { volumes: vec![root, gone], ..known() }), Vec::new());
    }
}
