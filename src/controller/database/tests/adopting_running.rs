//! How a database that runs is adopted: what was found is checked, adopted step by step, and never
//! restarted for it.

mod releasing;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::keys::INPUTS_HASH_ANNOTATION;
use crate::controller::database::observe::legacy::Legacy;

const SET_UID: &str = "legacy-set-uid";

fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A StatefulSet as a provisioner wrote it years ago.
fn legacy_set() -> StatefulSet {
    from_json(json!({
        "metadata": {
            "name": "pg-17", "namespace": "team-a", "uid": SET_UID, "resourceVersion": "77", "generation": 4,
            "labels": {"app": "pg", "app.kubernetes.io/managed-by": "provisioner"},
        },
        "spec": {
            "replicas": 1, "serviceName": "pg-17", "selector": {"matchLabels": {"app": "pg"}},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {"labels": {"app": "pg"}},
                "spec": {
                    "nodeSelector": {"example.com/database": "pg-17"},
                    "affinity": {"nodeAffinity": {}},
                    "tolerations": [{"key": "db", "operator": "Exists"}],
                    "containers": [
                        {"name": "postgres", "image": "mirror.example.com/postgres:17.5-acme",
                         "args": ["-c", "shared_buffers=4GB"],
                         "env": [{"name": "PGDATA", "value": "/var/lib/postgresql/data/pgdata"}],
                         "volumeMounts": [{"name": "data", "mountPath": "/var/lib/postgresql/data"}]},
                        {"name": "exporter", "image": "exporter:1"},
                    ],
                },
            },
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}],
        },
        "status": {"replicas": 1, "observedGeneration": 4},
    }))
}

fn legacy_pod() -> Pod {
    from_json(json!({
        "metadata": {
            "name": "pg-17-0", "uid": "legacy-pod-uid", "labels": {"app": "pg"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "pg-17", "uid": SET_UID,
                "controller": true}],
        },
        "spec": {
            "nodeName": "ip-10-0-0-1",
            "containers": [{"name": "postgres"}, {"name": "exporter"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-pg-17-0"}},
                {"name": "tmp", "emptyDir": {}}],
        },
        "status": {
            "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "exporter", "image": "i", "imageID": "i", "ready": true,
                "restartCount": 3, "state": {"running": {}}},
                {"name": "postgres", "image": "i", "imageID": "i", "ready": true, "restartCount": 0,
                "state": {"running": {"startedAt": "2021-01-01T00:00:00Z"}}}],
        },
    }))
}

fn legacy() -> Legacy {
    Legacy {
        stateful_set: Some(legacy_set()),
        pod: Some(legacy_pod()),
        core_node: from_json(json!({
            "metadata": {"name": "ip-10-0-0-1", "uid": "ip-10-0-0-1-uid",
                "labels": {"topology.kubernetes.io/zone": ZONE}},
            "spec": {"providerID": "aws:///us-east-1b/i-0123456789abcdef0"},
        })),
        claim: Some(PersistentVolumeClaim::default()),
        persistent_volume: Some(from_json(json!({
            "metadata": {"name": "pvc-1"},
            "spec": {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-0123456789abcdef0"}},
        }))),
        service: from_json(json!({"metadata": {"name": "pg"}, "spec": {"ports": [{"port": 5432}]}})),
        credentials: Some(Credentials::Read(ours(HeldSecret(Secret::default())))),
    }
}

fn spec() -> Value {
    json!({
        "engine": {"type": "postgresql", "version": "17.5"},
        "adopt": {
            "statefulSetName": "pg-17", "claimName": "data-pg-17-0", "volumeID": "vol-0123456789abcdef0",
            "instanceID": "i-0123456789abcdef0", "serviceName": "pg", "credentialsSecretName": "pg-secret",
        },
    })
}

/// The database runs, and the Database that adopts it was just created.
fn found() -> Observed {
    Observed { legacy: Some(legacy()), ..empty(spec(), json!({})) }
}

/// The same, once Volume and Node are as they are awaited.
fn prepared() -> Observed {
    let mut world = Observed { legacy: Some(legacy()), ..empty(spec(), json!({"zone": ZONE})) };
    let adopt = world.database.spec.adopt.clone().unwrap();
    let mut volume = ready_volume(&world);
    volume.spec = build::adopted_volume(&world.database, &world.names, &adopt, "pvc-1", ZONE).spec;
    world.volume = ours(volume);
    let mut node = ready_node(&world, 1);
    node.spec = build::adopted_node(&world.database, &world.names, &adopt, 1, ZONE).spec;
    world.nodes = vec![node];
    world.core_nodes = vec![core_node("ip-10-0-0-1", false)];
    world
}

/// The same, after the StatefulSet was adopted.
fn adopted() -> Observed {
    let mut world = prepared();
    let plan = plan(&world, now());
    let Some(Action::AdoptStatefulSet(set, adoption)) = plan.actions.last() else { panic!("{plan:?}") };
    let set = with_uid(StatefulSet { status: legacy_set().status, ..set.as_ref().clone() }, SET_UID);
    world.database.status.get_or_insert_default().adoption = Some(adoption.as_ref().clone());
    world.stateful_set = ours(seen(set));
    world.legacy = Some(Legacy {
        stateful_set: None,
        pod: None,
        core_node: None,
        claim: None,
        persistent_volume: None,
        ..legacy()
    });
    world.pod = Some(legacy_pod());
    world.labelled = vec![core_node("ip-10-0-0-1", true)];
    as_applied(&mut world);
    world
}

fn refused(change: impl FnOnce(&mut Observed)) -> (String, String) {
    let mut world = found();
    change(&mut world);
    let plan = plan(&world, now());
    assert!(plan.requeue.is_some(), "what was found is not watched");
    let message = plan.waiting.as_ref().unwrap().message();
    (line(&plan), message)
}

fn legacy_of(world: &mut Observed) -> &mut Legacy {
    world.legacy.as_mut().unwrap()
}

#[test]
fn volume_and_node_come_first_with_their_ids_and_are_given_back_until_the_last_step() {
    let world = found();
    let first = plan(&world, now());
    assert_eq!(line(&first), "[record us-east-1b, create volume 100Gi in us-east-1b] AwaitingVolume");
    let Some(Action::CreateVolume(volume)) = first.actions.last() else { panic!("{first:?}") };
    let adopt = volume.spec.adopt.as_ref().unwrap();
    assert_eq!(
        (adopt.volume_id.0.as_str(), adopt.persistent_volume_name.as_str(), adopt.claim_name.as_str()),
        ("vol-0123456789abcdef0", "pvc-1", "data-pg-17-0")
    );
    assert!(volume.spec.release);

    let second = Observed { nodes: Vec::new(), core_nodes: Vec::new(), ..prepared() };
    let second = plan(&second, now());
    assert_eq!(line(&second), "[create node 1 orders-gqmgm-1 in us-east-1b] AwaitingNode");
    let Some(Action::CreateNode(_, node, _)) = second.actions.last() else { panic!("{second:?}") };
    assert_eq!(node.spec.instance_id.as_ref().unwrap().0, "i-0123456789abcdef0");
    assert!(node.spec.release);
}

#[test]
fn the_stateful_set_is_adopted_last_and_is_what_it_was_but_for_where_its_pod_runs() {
    let world = prepared();
    let last = plan(&world, now());
    assert_eq!(line(&last), "[label ip-10-0-0-1 ip-10-0-0-1-uid, adopt legacy-set-uid] Adopting");
    let Some(Action::AdoptStatefulSet(set, adoption)) = last.actions.last() else { panic!("{last:?}") };
    assert_eq!(set.metadata.resource_version.as_deref(), Some("77"), "what was changed since is not lost");
    let recorded: StatefulSet = from_json(adoption.stateful_set.clone());
    assert_eq!(recorded, StatefulSet { status: None, ..legacy_set() });

    let mut expected = legacy_set().spec.unwrap();
    expected.update_strategy = from_json(json!({"type": "OnDelete"}));
    let made = set.spec.as_ref().unwrap();
    expected.template.metadata.clone_from(&made.template.metadata);
    let pod = expected.template.spec.as_mut().unwrap();
    pod.affinity = None;
    pod.node_selector = Some(BTreeMap::from([(DATABASE_NODE_LABEL.to_owned(), UID.to_owned())]));
    pod.tolerations = from_json(json!([
        {"key": "db", "operator": "Exists"}, {"key": "freehold.dev/dedicated", "operator": "Exists"},
    ]));
    assert_eq!(*made, expected);
    let labels = made.template.metadata.as_ref().unwrap().labels.as_ref().unwrap();
    assert_eq!(labels["app"], "pg", "the selector still selects it");
    assert!(set.annotations().contains_key(INPUTS_HASH_ANNOTATION));
    assert_eq!(set.owner_references()[0].uid, UID);
    assert_eq!(build_again(&world, set), **set, "what is built from what was built is the same");
}

fn build_again(world: &Observed, set: &StatefulSet) -> StatefulSet {
    let profile = world.profile.as_ref().unwrap();
    let mut again = build::adopted_set(set, &world.database, &world.names, profile, None);
    again.metadata.uid.clone_from(&set.metadata.uid);
    again.metadata.resource_version.clone_from(&set.metadata.resource_version);
    again
}

#[test]
fn an_adopted_database_is_ready_without_a_restart_and_its_machine_and_volume_are_kept() {
    let world = adopted();
    let settles = plan(&world, now());
    assert_eq!(
        line(&settles),
        "[update volume-uid {\"release\":null}, update orders-gqmgm-1 orders-gqmgm-1-uid {\"release\":null}] \
         Progressing"
    );
    let mut settled = world;
    change(&mut settled.volume, |volume| volume.spec.release = false);
    settled.nodes[0].spec.release = false;
    assert_eq!(line(&plan(&settled, now())), "[] as wanted");
    let status = settled.database.status.clone().unwrap();
    assert!(status.adoption.is_some());
}

#[test]
fn a_changed_spec_restarts_the_adopted_pod_with_what_was_found_and_the_change() {
    let mut world = adopted();
    change(&mut world.volume, |volume| volume.spec.release = false);
    world.nodes[0].spec.release = false;
    world.database.spec.engine.version = Some("17.6".to_owned());
    world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
    let changed = plan(&world, now());
    assert_eq!(line(&changed), "[apply set legacy-set-uid x1] RestartPending");
    let Some(Action::ApplyStatefulSet(set)) = changed.actions.last() else { panic!("{changed:?}") };
    let pod = set.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    assert_eq!(pod.containers[0].image, Some(world.profile.as_ref().unwrap().image.clone()));
    assert_eq!(pod.containers[0].args.as_ref().unwrap()[1], "shared_buffers=4GB");
    assert_eq!(pod.containers[1].image.as_deref(), Some("exporter:1"));
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_changed() {
    let stalled = "[] stalled AdoptionRefused";
    let table: Vec<(&str, Box<dyn FnOnce(&mut Observed)>, &str)> = vec![
        ("paused", Box::new(|it| it.database.spec.running = false), "Set spec.running to true"),
        ("no set", Box::new(|it| legacy_of(it).stateful_set = None), "StatefulSet pg-17"),
        (
            "owned",
            Box::new(|it| {
                let owners = json!([{"apiVersion": "v1", "kind": "Cluster", "name": "pg", "uid": "u",
                    "controller": true}]);
                let set = legacy_of(it).stateful_set.as_mut().unwrap();
                set.metadata.owner_references = from_json(owners);
            }),
            "controlled by Cluster pg",
        ),
        (
            "replicas",
            Box::new(|it| {
                legacy_of(it).stateful_set.as_mut().unwrap().spec.as_mut().unwrap().replicas = Some(2);
            }),
            "has 2 replicas",
        ),
        (
            "another machine",
            Box::new(|it| {
                let id = "aws:///us-east-1b/i-0fffffffffffffff0".to_owned();
                legacy_of(it).core_node.as_mut().unwrap().spec.as_mut().unwrap().provider_id = Some(id);
            }),
            "which is instance \"i-0fffffffffffffff0\"",
        ),
        (
            "no zone",
            Box::new(|it| legacy_of(it).core_node.as_mut().unwrap().metadata.labels = None),
            "topology.kubernetes.io/zone",
        ),
        (
            "another volume",
            Box::new(|it| {
                let csi = json!({"driver": "ebs.csi.aws.com", "volumeHandle": "vol-0fffffffffffffff0"});
                let spec = legacy_of(it).persistent_volume.as_mut().unwrap().spec.as_mut().unwrap();
                spec.csi = from_json(csi);
            }),
            "names EBS volume \"vol-0fffffffffffffff0\"",
        ),
        (
            "not bound",
            Box::new(|it| legacy_of(it).persistent_volume = None::<PersistentVolume>),
            "is not bound",
        ),
        (
            "another claim",
            Box::new(|it| it.database.spec.adopt.as_mut().unwrap().claim_name = "other".to_owned()),
            "does not mount claim other",
        ),
        (
            "two claims",
            Box::new(|it| {
                let second = json!({"name": "wal", "persistentVolumeClaim": {"claimName": "wal-pg-17-0"}});
                let spec = legacy_of(it).pod.as_mut().unwrap().spec.as_mut().unwrap();
                spec.volumes.as_mut().unwrap().push(from_json(second));
            }),
            "more than one volume",
        ),
        ("no service", Box::new(|it| legacy_of(it).service = None::<Service>), "Service pg"),
        (
            "no secret",
            Box::new(|it| legacy_of(it).credentials = Some(Credentials::Read(Child::Absent))),
            "Secret pg-secret",
        ),
    ];
    for (name, change, said) in table {
        let (row, message) = refused(change);
        assert_eq!(row, stalled, "{name}");
        assert!(message.contains(said), "{name}: {message}");
        assert!(message.starts_with("the database is not adopted, and its pod is left alone"));
    }
    let (row, _) = refused(|it| legacy_of(it).pod = None);
    assert_eq!(row, "[] AdoptionRefused", "a pod may come back");
    let (row, _) = refused(|it| legacy_of(it).pod.as_mut().unwrap().status = None);
    assert_eq!(row, "[] AdoptionRefused");
    let mut other_type = prepared();
    other_type.nodes[0].status.as_mut().unwrap().instance_type = Some("c5.large".to_owned());
    let plan = plan(&other_type, now());
    assert_eq!(line(&plan), "[] stalled AdoptionRefused");
    assert!(plan.waiting.unwrap().message().contains("Add c5.large to spec.instanceTypes"));
}

#[test]
fn a_volume_of_the_driver_in_kubernetes_is_the_same_volume() {
    for id in ["aws://us-east-1b/vol-0123456789abcdef0", "vol-0123456789abcdef0"] {
        let mut world = found();
        let spec = legacy_of(&mut world).persistent_volume.as_mut().unwrap().spec.as_mut().unwrap();
        spec.csi = None;
        spec.aws_elastic_block_store = from_json(json!({"volumeID": id}));
        assert_eq!(
            line(&plan(&world, now())),
            "[record us-east-1b, create volume 100Gi in us-east-1b] AwaitingVolume"
        );
    }
}

#[test]
fn how_it_was_found_is_recorded_again_only_while_freehold_has_not_changed_it() {
    let first = adopted().database.status.unwrap().adoption;
    // The StatefulSet lost its owner reference after it was adopted.
    let mut orphaned = prepared();
    orphaned.database.status.as_mut().unwrap().adoption.clone_from(&first);
    let changed = adopted().stateful_set.ours().cloned();
    legacy_of(&mut orphaned).stateful_set =
        changed.map(|set| StatefulSet { metadata: without_owner(set.metadata.clone()), ..set });
    let plan_of = |world: &Observed| {
        let plan = plan(world, now());
        let Some(Action::AdoptStatefulSet(_, adoption)) = plan.actions.last() else { panic!("{plan:?}") };
        adoption.stateful_set.clone()
    };
    assert_eq!(plan_of(&orphaned), first.as_ref().unwrap().stateful_set);
    // It ended between the record and the write, and another client has changed it since.
    let mut edited = prepared();
    edited.database.status.as_mut().unwrap().adoption = first;
    let set = legacy_of(&mut edited).stateful_set.as_mut().unwrap();
    set.spec.as_mut().unwrap().min_ready_seconds = Some(9);
    assert_eq!(plan_of(&edited)["spec"]["minReadySeconds"], 9);
}

fn without_owner(metadata: ObjectMeta) -> ObjectMeta {
    ObjectMeta { owner_references: None, ..metadata }
}
