//! What a Database's namespace already has of what its NodeClass limits. Only reads.

use std::collections::BTreeSet;

use kube::api::{Api, ListParams};
use kube::{Resource, ResourceExt};

use super::child::Child;
use crate::api::keys::DATABASE_UID_LABEL;
use crate::api::{Database, Node, NodeClass, Volume, names};
use crate::cloud::inventory::TaggedVolume;
use crate::cluster::ownership::is_unowned;
use crate::controller::database::growth::{self, Facts, Judgement};
use crate::controller::database::in_place;
use crate::controller::pass::context::Context;
use crate::controller::retention;

/// What the namespace already has. Counted only where the NodeClass has the limit, and only while the
/// Database requests what it does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many Databases of the namespace name the same NodeClass and were created before this one. Which
    /// these are is the same for each of them, whichever is reconciled first.
    pub created_before: usize,
    /// How many deleted Databases have an orphaned Node or Volume of the NodeClass.
    pub orphaned: usize,
    /// The storage; `None` as long as EC2 was not listed.
    pub storage: Option<NamespaceStorage>,
}

/// The storage of a namespace, of all NodeClasses together. Sizes in GiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceStorage {
    /// Its Databases that are not being deleted, the oldest first.
    pub databases: Vec<Requested>,
    /// Its Volumes.
    pub volumes: Vec<Held>,
    /// Its EBS volumes that no Volume has any more.
    pub retained: Vec<TaggedVolume>,
}

/// What a Database requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    /// The Database's UID.
    pub uid: String,
    /// The size.
    pub size: i32,
    /// The UID of the Volume before, if it adopts a retained volume.
    pub adopts: Option<String>,
}

impl Requested {
    /// What this Database requests; nothing where its size is not one.
    pub fn by(database: &Database) -> Self {
        let storage = &database.spec.storage;
        Self {
            uid: database.uid().unwrap_or_default(),
            size: storage.size.gib().unwrap_or_default(),
            adopts: storage.adopt_retained.as_deref().and_then(names::volume_uid_of).map(str::to_owned),
        }
    }
}

/// A Volume as it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The UID of the Database that it was created for.
    pub database_uid: String,
    /// No Database owns it any more.
    pub is_orphaned: bool,
    /// What it requests, or what EC2 shows if that is more.
    pub size: i32,
}

/// Reads what the limits of the class count.
pub(super) async fn observe(
    database: &Database,
    class: Option<&NodeClass>,
    volume: &Child<Volume>,
    ctx: &Context,
) -> Result<Usage, kube::Error> {
    let Some(limits) = class.map(|class| &class.spec.limits) else { return Ok(Usage::default()) };
    let was_created = database.status.as_ref().is_some_and(|status| status.volume_name.is_some());
    let has = volume.ours().and_then(|volume| volume.spec.size.gib());
    let counts_databases = limits.databases.is_some() && !was_created;
    // Where the plan sees a newer reading, it waits for what is counted here in the next pass.
    let grows = growing(database, volume.ours(), ctx).is_some();
    // The volume that a restore in place replaces stays beside the new one.
    let is_replaced = volume.ours().is_some_and(|volume| in_place::due(database, volume).is_some());
    let asks_for_more = grows || is_replaced || database.spec.storage.size.gib() > has;
    let counts_storage = limits.total_storage.is_some() && asks_for_more;
    if !counts_databases && !counts_storage {
        return Ok(Usage::default());
    }
    let namespace = database.namespace().unwrap_or_default();
    let all = ListParams::default();
    let mut databases = Api::<Database>::namespaced(ctx.client.clone(), &namespace).list(&all).await?.items;
    let volumes = Api::<Volume>::namespaced(ctx.client.clone(), &namespace).list(&all).await?.items;
    databases.sort_by_key(age);
    let mut usage = Usage::default();
    if counts_databases {
        let nodes = Api::<Node>::namespaced(ctx.client.clone(), &namespace).list(&all).await?.items;
        usage.created_before = created_before(database, &databases);
        usage.orphaned = orphaned(&database.spec.node_class_name, &databases, &nodes, &volumes);
    }
    if counts_storage {
        // After the Volumes: the EBS volume of one that is gone by now was retained.
        let shown = ctx.inventory.tagged_volumes(Some(&namespace));
        let requested = |database: &Database| requested(database, &volumes, class, ctx);
        let requested = databases.iter().filter(|it| is_staying(it)).map(requested).collect();
        usage.storage = shown.map(|shown| storage(requested, &databases, &volumes, shown));
    }
    Ok(usage)
}

/// What a Database requests, and its file system by filling up.
fn requested(database: &Database, volumes: &[Volume], class: Option<&NodeClass>, ctx: &Context) -> Requested {
    let uid = database.metadata.uid.as_ref();
    let volume = volumes.iter().find(|volume| volume.labels().get(DATABASE_UID_LABEL) == uid);
    let has = volume.map(|volume| &volume.spec.size);
    let in_effect = growth::in_effect(database, has).and_then(|size| size.gib());
    // What its own limit does not permit takes no room from others.
    let limits = class.filter(|class| class.name_any() == database.spec.node_class_name);
    let most = limits.and_then(|class| class.spec.limits.storage.as_ref()?.gib()).unwrap_or(i32::MAX);
    let grows = growing(database, volume, ctx).map(|grows| grows.min(most));
    let requested = Requested::by(database);
    let size = requested.size.max(in_effect.unwrap_or_default()).max(grows.unwrap_or_default());
    Requested { size, ..requested }
}

/// How many GiB a volume is to have that grows by itself.
fn growing(database: &Database, volume: Option<&Volume>, ctx: &Context) -> Option<i32> {
    let reading = ctx.disk_readings.of(&database.uid()?);
    let (reading, interval) = (reading.as_ref(), ctx.timing.disk_usage_interval);
    let facts = Facts { database, volume, reading, interval };
    if let Judgement::Grow(size) = growth::judge(&facts, ctx.clock.now()) { Some(size) } else { None }
}

fn age(database: &Database) -> impl Ord + use<> {
    (database.metadata.creation_timestamp.clone(), database.metadata.uid.clone())
}

fn created_before(database: &Database, databases: &[Database]) -> usize {
    let class = &database.spec.node_class_name;
    let is_before = |it: &&Database| it.spec.node_class_name == *class && age(it) < age(database);
    databases.iter().filter(is_before).count()
}

/// Whether it has no owner, and none of these Databases is its Database.
fn is_orphaned<K: Resource>(object: &K, databases: &[Database]) -> bool {
    let uid = object.labels().get(DATABASE_UID_LABEL);
    is_unowned(object) && !databases.iter().any(|database| database.metadata.uid.as_ref() == uid)
}

/// How many Databases that are gone left an orphan of this class behind.
fn orphaned(class: &str, databases: &[Database], nodes: &[Node], volumes: &[Volume]) -> usize {
    let nodes = nodes.iter().filter(|node| node.spec.node_class_name == class);
    let volumes = volumes.iter().filter(|volume| volume.spec.node_class_name == class);
    let nodes = nodes.filter(|node| is_orphaned(*node, databases)).map(ResourceExt::labels);
    let volumes = volumes.filter(|volume| is_orphaned(*volume, databases)).map(ResourceExt::labels);
    let gone: BTreeSet<_> = nodes.chain(volumes).map(|labels| labels.get(DATABASE_UID_LABEL)).collect();
    gone.len()
}

fn is_staying(database: &Database) -> bool {
    database.metadata.deletion_timestamp.is_none()
}

fn storage(
    requested: Vec<Requested>,
    databases: &[Database],
    volumes: &[Volume],
    shown: Vec<TaggedVolume>,
) -> NamespaceStorage {
    NamespaceStorage {
        databases: requested,
        volumes: volumes.iter().map(|volume| held(volume, databases, &shown)).collect(),
        retained: retention::retained(shown, &volumes.iter().flat_map(retention::claims).collect()),
    }
}

fn held(volume: &Volume, databases: &[Database], shown: &[TaggedVolume]) -> Held {
    let claims = retention::claims(volume);
    let of_ec2 = shown.iter().filter(|shown| claims.contains(&shown.volume_uid)).map(|shown| shown.size);
    Held {
        database_uid: volume.labels().get(DATABASE_UID_LABEL).cloned().unwrap_or_default(),
        is_orphaned: is_orphaned(volume, databases),
        size: of_ec2.chain(volume.spec.size.gib()).max().unwrap_or_default(),
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "a json! reads best where it is used")]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::*;

    fn database(uid: &str, created: &str, storage: Value, more: Value) -> Database {
        let mut metadata =
            json!({"name": uid, "namespace": "team-a", "uid": uid, "creationTimestamp": created});
        metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(json!({
            "apiVersion": "freehold.dev/v1alpha1", "kind": "Database", "metadata": metadata,
            "spec": {"engine": {"type": "questdb", "version": "9.3.4"}, "storage": storage},
        }))
        .unwrap()
    }

    /// What is owned by a Database, or was: the owner is there unless it is orphaned.
    fn metadata(uid: &str, database: &str, is_orphaned: bool) -> Value {
        let owner = json!([{"apiVersion": "freehold.dev/v1alpha1", "kind": "Database", "name": database,
            "uid": database, "controller": true}]);
        let labels = json!({"freehold.dev/database-uid": database});
        json!({"name": uid, "namespace": "team-a", "uid": uid, "labels": labels,
            "ownerReferences": if is_orphaned { json!([]) } else { owner }})
    }

    fn volume(uid: &str, database: &str, is_orphaned: bool, spec: Value) -> Volume {
        let mut whole = json!({"nodeClassName": "default", "type": "gp3", "fileSystem": "xfs",
            "zone": "us-east-1b", "deletionPolicy": "Retain"});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "Volume",
            "metadata": metadata(uid, database, is_orphaned), "spec": whole}))
        .unwrap()
    }

    fn node(uid: &str, database: &str, class: &str) -> Node {
        serde_json::from_value(json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "Node",
            "metadata": metadata(uid, database, true),
            "spec": {"nodeClassName": class, "instanceTypes": ["r7i.large"]}}))
        .unwrap()
    }

    fn shown(volume_uid: &str, size: i32) -> TaggedVolume {
        TaggedVolume { volume_uid: volume_uid.to_owned(), namespace: "team-a".to_owned(), size }
    }

    #[test]
    fn a_volume_counts_once_as_what_it_requests_or_has_and_what_no_volume_claims_was_retained() {
        let databases = [
            database("db-1", "2026-01-01T00:00:00Z", json!({"size": "1Ti"}), json!({})),
            database(
                "db-2",
                "2026-01-02T00:00:00Z",
                json!({"size": "10Gi", "adoptRetained": "freehold-v-9"}),
                json!({}),
            ),
            database(
                "db-3",
                "2026-01-03T00:00:00Z",
                json!({"size": "10Gi"}),
                json!({"deletionTimestamp": "2026-01-04T00:00:00Z", "finalizers": ["example.com/x"]}),
            ),
        ];
        let volumes = [
            volume("v-1", "db-1", false, json!({"size": "100Gi"})),
            volume("v-2", "db-2", false, json!({"size": "10Gi", "adoptRetained": "freehold-v-9"})),
            volume("v-4", "db-4", true, json!({"size": "30Gi"})),
        ];
        let ebs = vec![shown("v-1", 90), shown("v-9", 40), shown("v-4", 30), shown("v-5", 70)];
        let asked = databases.iter().filter(|it| is_staying(it)).map(Requested::by).collect();
        let held = |database: &str, is_orphaned: bool, size: i32| Held {
            database_uid: database.to_owned(),
            is_orphaned,
            size,
        };
        let requested = |uid: &str, size: i32, adopts: Option<&str>| Requested {
            uid: uid.to_owned(),
            size,
            adopts: adopts.map(str::to_owned),
        };
        assert_eq!(
            storage(asked, &databases, &volumes, ebs),
            NamespaceStorage {
                databases: vec![requested("db-1", 1024, None), requested("db-2", 10, Some("v-9"))],
                volumes: vec![held("db-1", false, 100), held("db-2", false, 40), held("db-4", true, 30)],
                retained: vec![shown("v-5", 70)],
            }
        );
    }

    #[test]
    fn an_orphaned_node_and_its_volume_are_those_of_one_database_of_their_class() {
        let volumes = [
            volume("v-1", "db-1", true, json!({"size": "1Gi"})),
            volume("v-2", "db-2", false, json!({"size": "1Gi"})),
        ];
        let nodes = [node("n-1", "db-1", "default"), node("n-3", "db-3", "default")];
        assert_eq!(orphaned("default", &[], &nodes, &volumes), 2);
        assert_eq!(orphaned("other", &[], &nodes, &volumes), 0);
        let leaving = [database("db-3", "2026-01-01T00:00:00Z", json!({"size": "1Gi"}), json!({}))];
        assert_eq!(orphaned("default", &leaving, &nodes, &volumes), 1, "its Database is still there");
    }

    #[test]
    fn the_databases_that_were_created_before_are_those_of_the_class_by_time_and_uid() {
        let at = |uid: &str, day: &str| {
            database(uid, &format!("2026-01-{day}T00:00:00Z"), json!({"size": "1Gi"}), json!({}))
        };
        let mut of_other = at("db-0", "01");
        of_other.spec.node_class_name = "other".to_owned();
        let all = [of_other, at("db-1", "02"), at("db-2", "02"), at("db-3", "03")];
        let before: Vec<usize> = all.iter().map(|database| created_before(database, &all)).collect();
        assert_eq!(before, [0, 0, 1, 2]);
    }
}
