//! The identity of a cloud resource: its client token and its tags. Pure, and the safety core: the same
//! object and attempt give the same token and the same tags, for ever.

use std::collections::BTreeMap;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use sha2::{Digest, Sha256};
use strum::{EnumIter, IntoStaticStr};

use crate::api::ClientToken;
use crate::api::keys::{
    ATTEMPT_TAG, BACKUP_UID_TAG, CLUSTER_ID_TAG, DATABASE_TAG, KUBERNETES_PREFIX, NAME_TAG, NODE_UID_TAG,
    PURPOSE_BACKUP, PURPOSE_FINAL, PURPOSE_TAG, RESERVED_TAG_PREFIXES, VOLUME_UID_TAG,
};

/// What is made in the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Kind {
    /// An EC2 instance; its owner is a `Node`.
    Node,
    /// An EBS volume; its owner is a `Volume`.
    Volume,
    /// The final snapshot of an EBS volume; its owner is the `Volume`.
    Snapshot,
    /// A snapshot of an EBS volume; its owner is a `Backup`.
    Backup,
}

impl Kind {
    /// The name in tokens, logs and metrics. A change would change every token.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The tag whose value is the owner's UID.
    fn uid_tag(self) -> &'static str {
        match self {
            Self::Node => NODE_UID_TAG,
            Self::Volume | Self::Snapshot => VOLUME_UID_TAG,
            Self::Backup => BACKUP_UID_TAG,
        }
    }

    /// What a snapshot is tagged to be for; `None` for what is no snapshot.
    fn purpose(self) -> Option<&'static str> {
        match self {
            Self::Node | Self::Volume => None,
            Self::Snapshot => Some(PURPOSE_FINAL),
            Self::Backup => Some(PURPOSE_BACKUP),
        }
    }
}

/// Whom a cloud resource belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The cluster.
    pub cluster_id: String,
    /// What is made.
    pub kind: Kind,
    /// The UID of the `Node`, `Volume` or `Backup`.
    pub uid: String,
    /// The Database, as `namespace/name`.
    pub database: String,
    /// The name of the `Node`, `Volume` or `Backup`, for the console.
    pub name: String,
}

/// The idempotency token of one attempt at making one object's resource: 52 ASCII characters (EC2 takes at
/// most 64).
///
/// Every part is preceded by its length, so that no two different inputs run together into one text.
pub fn token(cluster_id: &str, kind: Kind, uid: &str, attempt: i32) -> ClientToken {
    let mut hash = Sha256::new();
    for part in [cluster_id, kind.as_str(), uid, &attempt.to_string()] {
        hash.update(part.len().to_string());
        hash.update(":");
        hash.update(part);
    }
    ClientToken(BASE32_NOPAD.encode(&hash.finalize()).to_lowercase())
}

/// Every tag of the resource that this attempt makes: the class's own, and ours, which win. Reserved keys of
/// the class's are dropped.
pub fn tags(owner: &Owner, attempt: i32, class_tags: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut tags: BTreeMap<String, String> = class_tags
        .iter()
        .filter(|(key, _)| !is_reserved(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    tags.extend(owner_tags(&owner.cluster_id, owner.kind, &owner.uid));
    tags.insert(DATABASE_TAG.to_owned(), owner.database.clone());
    tags.insert(ATTEMPT_TAG.to_owned(), attempt.to_string());
    tags.insert(NAME_TAG.to_owned(), owner.name.clone());
    tags
}

/// Those of these tags of a resource that its class may have asked for, and may ask for now: not ours.
pub fn class_tags(tags: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    let is_of_class = |(key, _): &(&String, &String)| !is_reserved(key) && *key != NAME_TAG;
    tags.iter().filter(is_of_class).map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

/// Those of these tags of a volume that its snapshots carry, too: what its class has asked for, such as a
/// cost centre. What makes a resource a cluster's (`kubernetes.io/cluster/<name>: owned`) stays off: a
/// snapshot outlives the cluster, and what deletes a cluster deletes what it owns.
pub fn snapshot_tags(tags: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let of_class = class_tags(tags).into_iter().filter(|(key, _)| !key.starts_with(KUBERNETES_PREFIX));
    of_class.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// What a volume that another `Volume` takes over is tagged with anew: whose it is. The attempt that made it
/// stays, and the class's tags.
pub fn adoption_tags(owner: &Owner) -> BTreeMap<String, String> {
    let mut tags = ownership_tags(owner);
    tags.insert(NAME_TAG.to_owned(), owner.name.clone());
    tags
}

/// Whose a resource is, and nothing else: what is put on one that a database used before it was adopted, and
/// taken off when it is released. Its Name stays what it was.
pub fn ownership_tags(owner: &Owner) -> BTreeMap<String, String> {
    let mut tags = owner_tags(&owner.cluster_id, owner.kind, &owner.uid);
    tags.insert(DATABASE_TAG.to_owned(), owner.database.clone());
    tags
}

/// The value of [`ADOPT_TAG`](crate::api::keys::ADOPT_TAG) that allows a Database to adopt a resource; the
/// Database as `namespace/name`.
pub fn adopter(cluster_id: &str, database: &str) -> String {
    format!("{cluster_id}/{database}")
}

/// True if a NodeClass cannot set this tag key.
pub fn is_reserved(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    RESERVED_TAG_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// The tags that every resource of this cluster carries: the filter of a full sync.
pub fn cluster_tags(cluster_id: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(CLUSTER_ID_TAG.to_owned(), cluster_id.to_owned())])
}

/// The tags that every resource of one owner carries: the filter of a look-up by tag.
pub fn owner_tags(cluster_id: &str, kind: Kind, uid: &str) -> BTreeMap<String, String> {
    let mut tags = cluster_tags(cluster_id);
    tags.insert(kind.uid_tag().to_owned(), uid.to_owned());
    tags.extend(kind.purpose().map(|purpose| (PURPOSE_TAG.to_owned(), purpose.to_owned())));
    tags
}

/// The UID of the owner that a resource of this kind names in its tags. A root disk names its Node, so it
/// belongs to no `Volume`.
pub fn owner_uid(kind: Kind, tags: &BTreeMap<String, String>) -> Option<&str> {
    let is_for = |purpose: &str| tags.get(PURPOSE_TAG).is_some_and(|of_tag| of_tag == purpose);
    let is_ours = kind.purpose().is_none_or(is_for);
    tags.get(kind.uid_tag()).filter(|uid| is_ours && !uid.is_empty()).map(String::as_str)
}

/// The namespace of the Database that a resource names in its tags.
pub fn namespace(tags: &BTreeMap<String, String>) -> Option<&str> {
    tags.get(DATABASE_TAG)?.split_once('/').map(|(namespace, _)| namespace)
}

/// The attempt that a resource names in its tags.
pub fn attempt(tags: &BTreeMap<String, String>) -> Option<i32> {
    tags.get(ATTEMPT_TAG)?.parse().ok()
}

/// Whether this token is the one of the attempt that the tags name: a tag can be put on anything, a token
/// only comes from the call that made it.
pub fn is_made(kind: Kind, tags: &BTreeMap<String, String>, token: Option<&ClientToken>) -> bool {
    let made = tags.get(CLUSTER_ID_TAG).zip(owner_uid(kind, tags)).zip(attempt(tags));
    made.is_some_and(|((cluster, uid), attempt)| token == Some(&self::token(cluster, kind, uid, attempt)))
}

/// SHA-256 of the user data, hexadecimal: what an intent records instead of the text.
pub fn user_data_hash(user_data: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(user_data.as_bytes()))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use strum::IntoEnumIterator;

    use super::*;
    use crate::api::keys::ADOPT_TAG;

    const CLUSTER: &str = "0b0b8b0e-2f3f-4a53-8f9c-6c2f8f2f1a10";
    const UID: &str = "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11";

    fn owner(kind: Kind) -> Owner {
        Owner {
            cluster_id: CLUSTER.into(),
            kind,
            uid: UID.into(),
            database: "team-a/orders".into(),
            name: "orders-k3f9q".into(),
        }
    }

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn tokens_are_the_ones_that_earlier_releases_made() {
        // Golden: if one of these changes, a new release would launch a second machine for every attempt in
        // doubt.
        assert_eq!(
            token(CLUSTER, Kind::Node, UID, 1).0,
            "5gxqburo6x2pcbi77m4yj37zzivbuotc3dysu2nfllwccgmgtmjq"
        );
        assert_eq!(
            token(CLUSTER, Kind::Node, UID, 2).0,
            "ruruhmf3ebvednjrjikm4fnkolsywfwqzwx6fxtvefkqelfvoabq"
        );
        assert_eq!(
            token(CLUSTER, Kind::Volume, UID, 1).0,
            "ckjguwtowo25ub4krmqlkr36l4wq2kv4k34z6oj3norj3ld5psma"
        );
    }

    #[test]
    fn a_token_is_what_ec2_accepts() {
        let token = token(CLUSTER, Kind::Node, UID, i32::MAX).0;
        assert!(
            token.len() <= 64 && token.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()),
            "{token}"
        );
    }

    #[test]
    fn no_two_inputs_run_together_into_one_token() {
        let inputs = [
            ("a", Kind::Node, "bc", 1),
            ("ab", Kind::Node, "c", 1),
            ("a", Kind::Node, "bc1", 1),
            ("a", Kind::Node, "bc", 11),
            ("a", Kind::Volume, "bc", 1),
            ("a1:", Kind::Node, "bc", 1),
            ("a", Kind::Node, "1:bc", 1),
        ];
        let tokens: std::collections::BTreeSet<_> =
            inputs.iter().map(|(cluster, kind, uid, attempt)| token(cluster, *kind, uid, *attempt)).collect();
        assert_eq!(tokens.len(), inputs.len());
    }

    #[test]
    fn our_tags_win_over_the_classs_and_reserved_keys_of_the_class_are_dropped() {
        let class = map(&[
            ("team", "platform"),
            ("Name", "not this"),
            ("freehold.dev/cluster-id", "another"),
            ("freehold.dev/adopt", "yes"),
            ("Freehold.dev/volume-uid", "another"),
            ("aws:createdBy", "x"),
        ]);
        assert_eq!(
            tags(&owner(Kind::Node), 3, &class),
            map(&[
                ("team", "platform"),
                ("Name", "orders-k3f9q"),
                ("freehold.dev/cluster-id", CLUSTER),
                ("freehold.dev/node-uid", UID),
                ("freehold.dev/database", "team-a/orders"),
                ("freehold.dev/attempt", "3"),
            ])
        );
    }

    #[test]
    fn a_snapshot_carries_what_the_class_asked_for_but_not_that_a_cluster_owns_it() {
        let class = map(&[("team", "platform"), ("kubernetes.io/cluster/one", "owned")]);
        let of_volume = tags(&owner(Kind::Volume), 1, &class);
        assert_eq!(snapshot_tags(&of_volume), map(&[("team", "platform")]));
    }

    #[test]
    fn what_an_attempt_makes_is_found_by_its_owners_tags_and_names_its_owner_and_attempt() {
        for kind in Kind::iter() {
            let tags = tags(&owner(kind), 2, &BTreeMap::new());
            let wanted = owner_tags(CLUSTER, kind, UID);
            assert!(wanted.iter().all(|(key, value)| tags.get(key) == Some(value)), "{kind:?}");
            assert!(
                cluster_tags(CLUSTER).iter().all(|(key, value)| wanted.get(key) == Some(value)),
                "{kind:?}"
            );
            assert_eq!(owner_uid(kind, &tags), Some(UID), "{kind:?}");
            assert_eq!(attempt(&tags), Some(2), "{kind:?}");
            assert_eq!(namespace(&tags), Some("team-a"), "{kind:?}");
        }
    }

    #[test]
    fn what_is_adopted_is_found_by_its_owners_tags_and_keeps_its_name_and_its_tag_of_adoption() {
        for kind in [Kind::Node, Kind::Volume] {
            let tags = ownership_tags(&owner(kind));
            assert!(owner_tags(CLUSTER, kind, UID).iter().all(|(key, value)| tags.get(key) == Some(value)));
            assert_eq!((owner_uid(kind, &tags), namespace(&tags)), (Some(UID), Some("team-a")));
            assert!(!tags.contains_key(NAME_TAG) && !tags.contains_key(ADOPT_TAG));
        }
        assert_eq!(adopter(CLUSTER, "team-a/orders"), format!("{CLUSTER}/team-a/orders"));
    }

    #[test]
    fn a_root_disk_belongs_to_no_volume_and_a_snapshot_for_another_purpose_is_not_the_final_one() {
        assert_eq!(owner_uid(Kind::Volume, &tags(&owner(Kind::Node), 1, &BTreeMap::new())), None);
        assert_eq!(owner_uid(Kind::Snapshot, &tags(&owner(Kind::Volume), 1, &BTreeMap::new())), None);
    }

    #[test]
    fn an_attempt_that_is_no_number_is_none() {
        assert_eq!(attempt(&map(&[("freehold.dev/attempt", "two")])), None);
        assert_eq!(attempt(&BTreeMap::new()), None);
    }

    #[test]
    fn user_data_is_hashed_as_sha256() {
        assert_eq!(user_data_hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
