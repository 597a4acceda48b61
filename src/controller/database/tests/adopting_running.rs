//! How a database that runs is adopted: what was found is checked, adopted step by step, and never
//! restarted for it.

mod going_back;
mod guarding;
mod noting;
mod refusing;
mod releasing;

use k8s_openapi::api::core::v1::{PersistentVolume, Service};
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
        "status": {"replicas": 1, "observedGeneration": 4, "updateRevision": "pg-17-1"},
    }))
}

/// The same, as it is recorded: as it can be created again.
fn as_recorded() -> StatefulSet {
    let mut set = StatefulSet { status: None, ..legacy_set() };
    (set.metadata.uid, set.metadata.resource_version, set.metadata.generation) = (None, None, None);
    set
}

/// The same as a newer API server sends it, with a field that the types do not know.
fn raw() -> Value {
    let mut raw = json!(legacy_set());
    raw["spec"]["template"]["spec"]["fieldOfTomorrow"] = json!("kept");
    raw
}

fn legacy_pod() -> Pod {
    from_json(json!({
        "metadata": {
            "name": "pg-17-0", "uid": "legacy-pod-uid", "creationTimestamp": "2021-01-01T00:01:00Z",
            "labels": {"app": "pg", "controller-revision-hash": "pg-17-1"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "pg-17", "uid": SET_UID,
                "controller": true}],
        },
        "spec": {
            "nodeName": "ip-10-0-0-1",
            "containers": [{"name": "postgres", "volumeMounts": [{"name": "data", "mountPath": "/d"}]},
                {"name": "exporter"}],
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
        raw: Some(raw()),
        pod: Some(legacy_pod()),
        core_node: from_json(json!({
            "metadata": {"name": "ip-10-0-0-1", "uid": "ip-10-0-0-1-uid",
                "labels": {"topology.kubernetes.io/zone": ZONE}},
            "spec": {"providerID": "aws:///us-east-1b/i-0123456789abcdef0"},
        })),
        claim: Some(from_json(json!({
            "metadata": {"name": "data-pg-17-0", "uid": "claim-uid",
                "creationTimestamp": "2021-01-01T00:00:00Z"},
            "spec": {"volumeName": "pvc-1"},
        }))),
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
    let mut world = adopted_from(prepared());
    world.pod = Some(legacy_pod());
    world
}

/// The same of this world, without a pod.
fn adopted_from(mut world: Observed) -> Observed {
    let plan = plan(&world, now());
    let Some(Action::AdoptStatefulSet(set, adoption)) = plan.actions.last() else { panic!("{plan:?}") };
    let set = with_uid(StatefulSet { status: legacy_set().status, ..set.as_ref().clone() }, SET_UID);
    world.database.status.get_or_insert_default().adoption = Some(adoption.as_ref().clone());
    world.stateful_set = ours(seen(set));
    world.legacy = Some(Legacy {
        stateful_set: None,
        raw: None,
        pod: None,
        core_node: None,
        persistent_volume: None,
        ..legacy()
    });
    world.labelled = vec![core_node("ip-10-0-0-1", true)];
    as_applied(&mut world);
    world
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
    assert_eq!(recorded, as_recorded());
    assert_eq!(adoption.stateful_set["spec"]["template"]["spec"]["fieldOfTomorrow"], "kept");

    let mut expected = legacy_set().spec.unwrap();
    expected.update_strategy = from_json(json!({"type": "OnDelete"}));
    expected.persistent_volume_claim_retention_policy =
        from_json(json!({"whenDeleted": "Retain", "whenScaled": "Retain"}));
    let made = set.spec.as_ref().unwrap();
    expected.template.metadata.clone_from(&made.template.metadata);
    let pod = expected.template.spec.as_mut().unwrap();
    pod.affinity = None;
    pod.node_selector = Some(BTreeMap::from([(DATABASE_NODE_LABEL.to_owned(), UID.to_owned())]));
    pod.tolerations = from_json(json!([
        {"key": "db", "operator": "Exists"}, {"key": "freehold.dev/dedicated", "operator": "Exists"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
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
    let kept =
        "update orders-gqmgm-1 orders-gqmgm-1-uid {\"release\":null}, update volume-uid {\"release\":null}";
    assert_eq!(line(&plan(&world, now())), format!("[{kept}] as wanted"));
    let mut refused = world.clone();
    refused.database.spec.instance_types.clear();
    assert_eq!(
        line(&plan(&refused, now())),
        format!("[{kept}] stalled InvalidSpec"),
        "whatever else is wrong"
    );
    let mut deleted = world.clone();
    deleting(&mut deleted.database, 1);
    let ends = line(&plan(&deleted, now()));
    assert!(ends.starts_with(&format!("[{kept}, scale legacy-set-uid to 0]")), "by its policy: {ends}");
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
    assert_eq!(pod.containers[0].image.as_deref(), Some("mirror.example.com/postgres:17.6-acme"));
    assert_eq!(pod.containers[0].args.as_ref().unwrap()[1], "shared_buffers=4GB");
    assert_eq!(pod.containers[1].image.as_deref(), Some("exporter:1"));
}

#[test]
fn a_stateful_set_that_loses_its_owner_is_adopted_again_as_it_was_recorded() {
    let before = adopted();
    let first = before.database.status.as_ref().unwrap().adoption.clone().unwrap();
    let mut orphaned = Observed { stateful_set: Child::Absent, pod: None, ..before.clone() };
    let changed = before.stateful_set.ours().cloned().unwrap();
    legacy_of(&mut orphaned).stateful_set =
        Some(StatefulSet { metadata: without_owner(changed.metadata.clone()), ..changed });
    // Where it runs since is another machine.
    orphaned.nodes[0].spec.instance_id = None;
    orphaned.database.spec.engine.version = Some("17.6".to_owned());
    let again = plan(&orphaned, now());
    let Some(Action::AdoptStatefulSet(set, adoption)) = again.actions.last() else { panic!("{again:?}") };
    assert_eq!(**adoption, first, "the engine, too, that its image is of");
    let image = &set.spec.as_ref().unwrap().template.spec.as_ref().unwrap().containers[0].image;
    assert_eq!(image.as_deref(), Some("mirror.example.com/postgres:17.6-acme"));
}

#[test]
fn how_it_was_found_is_recorded_again_while_freehold_has_not_changed_it() {
    // It ended between the record and the write, and another client has changed it since.
    let mut edited = prepared();
    edited.database.status.as_mut().unwrap().adoption = adopted().database.status.unwrap().adoption;
    let set = legacy_of(&mut edited).stateful_set.as_mut().unwrap();
    set.spec.as_mut().unwrap().min_ready_seconds = Some(9);
    legacy_of(&mut edited).raw.as_mut().unwrap()["spec"]["minReadySeconds"] = json!(9);
    let plan = plan(&edited, now());
    let Some(Action::AdoptStatefulSet(_, adoption)) = plan.actions.last() else { panic!("{plan:?}") };
    assert_eq!(adoption.stateful_set["spec"]["minReadySeconds"], 9);
}

#[test]
fn a_version_is_changed_only_in_a_tag_that_names_it() {
    for (image, expected) in [
        ("postgres:17.5", Some("postgres:17.6")),
        ("localhost:5000/pg:v17.5-alpine", Some("localhost:5000/pg:v17.6-alpine")),
        ("postgres:latest", None),
        ("localhost:5000/pg", None),
        ("postgres:17.5@sha256:00", None),
    ] {
        let changed = build::of_version(image, Some("17.5"), Some("17.6"));
        assert_eq!(changed.as_deref(), expected, "{image}");
    }
    let mut world = adopted();
    let adoption = world.database.status.as_mut().unwrap().adoption.as_mut().unwrap();
    adoption.stateful_set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("pg:latest");
    world.database.spec.engine.version = Some("17.6".to_owned());
    let plan = plan(&world, now());
    assert!(line(&plan).ends_with("stalled InvalidSpec"), "{}", line(&plan));
}

fn without_owner(metadata: ObjectMeta) -> ObjectMeta {
    ObjectMeta { owner_references: None, ..metadata }
}
