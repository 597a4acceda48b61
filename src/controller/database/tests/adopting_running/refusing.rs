//! What a database that runs is not adopted for.

use pretty_assertions::assert_eq;

use super::*;

/// What is otherwise, and what the refusal says of it.
type Row = (&'static str, Box<dyn FnOnce(&mut Observed)>, &'static str);

fn refused(change: impl FnOnce(&mut Observed)) -> (String, String) {
    let mut world = found();
    change(&mut world);
    let plan = plan(&world, now());
    assert!(plan.requeue.is_some(), "what was found is not watched");
    let message = plan.waiting.as_ref().unwrap().message();
    (line(&plan), message)
}

fn of_the_set_and_its_machine() -> Vec<Row> {
    vec![
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
    ]
}

/// The spec names the engine's container.
fn named(world: &mut Observed, container: &str) {
    world.database.spec.adopt.as_mut().unwrap().container_name = Some(container.to_owned());
    world.names = Names::of(&world.database);
}

#[test]
fn an_engine_that_is_not_the_first_container_is_adopted_by_its_name() {
    let mut world = found();
    let reversed = |containers: &mut Vec<k8s_openapi::api::core::v1::Container>| containers.reverse();
    let set = legacy_of(&mut world).stateful_set.as_mut().unwrap();
    reversed(&mut set.spec.as_mut().unwrap().template.spec.as_mut().unwrap().containers);
    reversed(&mut legacy_of(&mut world).pod.as_mut().unwrap().spec.as_mut().unwrap().containers);
    assert!(line(&plan(&world, now())).ends_with("stalled AdoptionRefused"));
    named(&mut world, "postgres");
    assert!(line(&plan(&world, now())).starts_with("[record us-east-1b, create volume"));
}

fn of_the_pod_and_its_volumes() -> Vec<Row> {
    vec![
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
        (
            "a folder of the machine",
            Box::new(|it| {
                let folder = json!({"name": "wal", "hostPath": {"path": "/mnt"}});
                let spec = legacy_of(it).pod.as_mut().unwrap().spec.as_mut().unwrap();
                spec.volumes.as_mut().unwrap().push(from_json(folder));
            }),
            "volume wal",
        ),
        (
            "a proxy first",
            Box::new(|it| {
                legacy_of(it).pod.as_mut().unwrap().spec.as_mut().unwrap().containers.reverse();
                let status = legacy_of(it).pod.as_mut().unwrap().status.as_mut().unwrap();
                status.container_statuses.as_mut().unwrap().reverse();
            }),
            "container exporter of pod pg-17-0 is taken for the engine",
        ),
        (
            "a name of no container",
            Box::new(|it| named(it, "pg")),
            "has no container pg (spec.adopt.containerName)",
        ),
        (
            "another template",
            Box::new(|it| {
                let status = legacy_of(it).stateful_set.as_mut().unwrap().status.as_mut().unwrap();
                status.update_revision = Some("pg-17-2".to_owned());
            }),
            "has never run",
        ),
        (
            "being deleted",
            Box::new(|it| deleting(legacy_of(it).stateful_set.as_mut().unwrap(), 1)),
            "is being deleted",
        ),
        (
            "another zone",
            Box::new(|it| it.database.spec.zones = vec!["us-east-1c".to_owned()]),
            "add us-east-1b to spec.zones",
        ),
        ("no service", Box::new(|it| legacy_of(it).service = None::<Service>), "Service pg"),
        (
            "no secret",
            Box::new(|it| legacy_of(it).credentials = Some(Credentials::Read(Child::Absent))),
            "Secret pg-secret",
        ),
    ]
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_changed() {
    let stalled = "[] stalled AdoptionRefused";
    for (name, change, said) in of_the_set_and_its_machine().into_iter().chain(of_the_pod_and_its_volumes()) {
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
