//! Every rule of the resource definitions on the real API server: a case that is refused, with the field and
//! the way out in its message, and one that passes.

mod answers;
mod backups;
mod node_class;
mod rotation;

use freehold::api::{Database, Node, Volume};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use answers::{judge, judge_created, update};

use crate::kit::objects::merge;
use crate::kit::test_env::{control_plane, run};

/// The name of a record of a kept volume.
const RECORD: &str = "freehold-6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11";

/// No operator of these tests looks here.
const NAMESPACE: &str = "default";

/// The objects that every case starts from.
fn database() -> Value {
    json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Database", "metadata": {"name": "rules-subject",
        "namespace": NAMESPACE},
        "spec": {"engine": {"type": "questdb", "version": "9.3.4"}, "storage": {"size": "100Gi"}},
    })
}

fn custom(changes: &Value) -> Value {
    let mut custom = json!({"image": "registry.example/db:1.2", "port": 5432, "dataPath": "/data"});
    merge(&mut custom, changes);
    json!({"spec": {"engine": {"type": "custom", "version": null, "custom": custom}}})
}

fn postgresql(version: &str) -> Value {
    json!({"spec": {"engine": {"type": "postgresql", "version": version}}})
}

fn volume() -> Value {
    json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Volume", "metadata": {"name": "rules-subject",
        "namespace": NAMESPACE},
        "spec": {
            "nodeClassName": "default", "size": "100Gi", "type": "gp3", "fileSystem": "xfs",
            "zone": "us-east-1a",
            "deletionPolicy": "Retain",
        },
    })
}

fn node() -> Value {
    json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Node", "metadata": {"name": "rules-subject",
        "namespace": NAMESPACE},
        "spec": {"nodeClassName": "default", "instanceTypes": ["r7i.large"], "zone": "us-east-1a"},
    })
}

/// A Database that adopts one that runs.
fn adopting(changes: &Value) -> Value {
    let adopt = json!({"statefulSetName": "pg", "claimName": "data-pg-0", "serviceName": "pg",
        "volumeID": "vol-0123456789abcdef0", "instanceID": "i-0123456789abcdef0"});
    json!({"spec": {"adopt": with(adopt, changes)}})
}

fn with(mut object: Value, changes: &Value) -> Value {
    merge(&mut object, changes);
    object
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_database_that_contradicts_itself_is_refused_with_the_field_and_the_way_out() {
    let cases: Vec<(Value, &[&str])> = vec![
        (json!({}), &[]),
        (json!({"metadata": {"name": "a".repeat(40)}}), &[]),
        (json!({"metadata": {"name": "a".repeat(41)}}), &["metadata.name", "at most 40 characters"]),
        (json!({"metadata": {"name": "1st"}}), &["metadata.name", "must start with a letter"]),
        (json!({"metadata": {"name": "a.b"}}), &["metadata.name", "hold only a-z, 0-9 and '-'"]),
        (json!({"spec": {"engine": {"version": null}}}), &["spec.engine.version", "for example 9.3.4"]),
        (json!({"spec": {"engine": {"version": "latest"}}}), &["spec.engine.version", "such as 9.3.4"]),
        (json!({"spec": {"engine": {"version": "9.3"}}}), &[]),
        (json!({"spec": {"nodeClassName": "al2023.v2"}}), &[]),
        (json!({"spec": {"nodeClassName": "no such thing"}}), &["spec.nodeClassName", "name of a NodeClass"]),
        (json!({"spec": {"nodeClassName": "../pods"}}), &["spec.nodeClassName", "name of a NodeClass"]),
        (
            json!({"spec": {"engine": {"custom": {"image": "a:1", "port": 5432, "dataPath": "/data"}}}}),
            &["spec.engine.custom", "remove it"],
        ),
        (
            json!({"spec": {"engine": {"type": "custom", "version": null}}}),
            &["spec.engine.custom", "is required"],
        ),
        (postgresql("17.6"), &[]),
        (postgresql("14.0"), &[]),
        (postgresql("18.1"), &[]),
        (postgresql("13.23"), &["spec.engine.version of postgresql", "14 to 18"]),
        (postgresql("19.0"), &["spec.engine.version of postgresql", "14 to 18"]),
        (postgresql("17.6.1"), &["spec.engine.version of postgresql", "for example 17.6"]),
        (
            json!({"spec": {"engine": {"type": "postgresql", "version": null}}}),
            &["spec.engine.version is required", "for example 17.6"],
        ),
        (
            with(
                postgresql("17.6"),
                &json!({"spec": {"engine": {"custom": {"image": "a:1", "port": 5432,
            "dataPath": "/data"}}}}),
            ),
            &["spec.engine.custom", "remove it"],
        ),
        (custom(&json!({})), &[]),
        (
            with(custom(&json!({})), &json!({"spec": {"engine": {"version": "1.2"}}})),
            &["spec.engine.version", "spec.engine.custom.image"],
        ),
        (
            custom(&json!({"image": "registry.example/db"})),
            &["spec.engine.custom.image", "needs a tag or a digest"],
        ),
        (
            custom(&json!({"image": "registry.example/db:latest"})),
            &["spec.engine.custom.image", "must not be latest"],
        ),
        (custom(&json!({"image": format!("registry.example/db@sha256:{}", "0".repeat(64))})), &[]),
        (custom(&json!({"port": 1023})), &["spec.engine.custom.port", "1024"]),
        (custom(&json!({"dataPath": "data"})), &["spec.engine.custom.dataPath", "absolute path"]),
        (custom(&json!({"dataPath": "/data/../etc"})), &["spec.engine.custom.dataPath", "without '..'"]),
        (custom(&json!({"credentials": {}})), &["spec.engine.custom.credentials", "exactly one of"]),
        (
            custom(&json!({"credentials": {"passwordVariable": "A", "passwordFileVariable": "B"}})),
            &["spec.engine.custom.credentials", "exactly one of"],
        ),
        (custom(&json!({"credentials": {"passwordFileVariable": "PASSWORD_FILE"}})), &[]),
        (json!({"spec": {"instanceTypes": []}}), &["spec.instanceTypes"]),
        (json!({"spec": {"instanceTypes": ["large"]}}), &["spec.instanceTypes", "such as r7i.large"]),
        (
            json!({"spec": {"instanceTypes": ["r7i.large", "r7i.large"]}}),
            &["spec.instanceTypes", "listed once"],
        ),
        (json!({"spec": {"instanceTypes": ["u-6tb1.112xlarge", "m7i-flex.large"]}}), &[]),
        (json!({"spec": {"storage": {"size": "100G"}}}), &["spec.storage.size", "for example 100Gi"]),
        (json!({"spec": {"storage": {"size": "1.5Ti"}}}), &["spec.storage.size", "for example 100Gi"]),
        (json!({"spec": {"storage": {"size": "2Ti"}}}), &[]),
        (
            json!({"spec": {"storage": {"type": "io2", "iops": 5000, "throughput": 125}}}),
            &["spec.storage.throughput", "remove it"],
        ),
        (json!({"spec": {"storage": {"type": "gp2", "iops": 5000}}}), &["spec.storage.iops", "remove it"]),
        (json!({"spec": {"storage": {"type": "io2"}}}), &["spec.storage.iops", "is required"]),
        (json!({"spec": {"storage": {"type": "io2", "iops": 5000}}}), &[]),
        (json!({"spec": {"storage": {"type": "gp4"}}}), &["spec.storage.type", "gp2, gp3, io1"]),
        (
            json!({"spec": {"storage": {"adoptRetained": "pv/1"}}}),
            &["spec.storage.adoptRetained", "freehold retained"],
        ),
        (json!({"spec": {"storage": {"adoptRetained": RECORD}}}), &[]),
        (json!({"spec": {"storage": {"startEmpty": true}}}), &[]),
        (json!({"spec": {"storage": {"adoptRetained": RECORD, "newCredentials": true}}}), &[]),
        (
            json!({"spec": {"storage": {"newCredentials": true}}}),
            &["spec.storage.newCredentials", "adoptRetained"],
        ),
        (
            json!({"spec": {"storage": {"adoptRetained": RECORD, "startEmpty": true}}}),
            &["spec.storage.startEmpty", "exclude each other"],
        ),
        (json!({"spec": {"storage": {"adoptRetained": "pvc-1"}}}), &[]),
        (json!({"spec": {"config": {"a-b": "1"}}}), &["spec.config", "letters, digits"]),
        (json!({"spec": {"config": {"a.b": "1\n2"}}}), &["spec.config", "one line"]),
        (
            json!({"spec": {"config": {"http.password": "x"}}}),
            &["spec.config", "status.credentialsSecretName"],
        ),
        (json!({"spec": {"config": {"cairo.max.uncommitted.rows": "1000"}}}), &[]),
        (
            json!({"spec": {"applicationUser": {}}}),
            &["spec.applicationUser is for spec.engine.type: postgresql", "docs/users.md"],
        ),
        (with(postgresql("17.5"), &json!({"spec": {"applicationUser": {}}})), &[]),
        (
            with(postgresql("17.5"), &json!({"spec": {"applicationUser": {"username": "admin"}}})),
            &["spec.applicationUser.username", "reserved"],
        ),
        (json!({"spec": {"zones": ["us-east-1a", "us-east-1a"]}}), &["spec.zones", "listed once"]),
        (
            json!({"spec": {"resources": {"requests": {"cpu": "lots"}}}}),
            &["spec.resources.requests", "for example"],
        ),
        (
            json!({"spec": {"resources": {"limits": {"memory": "4 GB"}}}}),
            &["spec.resources.limits", "for example"],
        ),
        (
            json!({"spec": {"resources": {"requests": {"cpu": "500m", "memory": "4Gi"},
        "limits": {"cpu": "2"}}}}),
            &[],
        ),
        (json!({"spec": {"deletionPolicy": "Shred"}}), &["spec.deletionPolicy", "Retain"]),
        (adopting(&json!({})), &[]),
        (adopting(&json!({"containerName": "postgres"})), &[]),
        (
            adopting(&json!({"containerName": "Postgres"})),
            &["spec.adopt.containerName", "the name of a container"],
        ),
    ];
    run(async {
        let client = control_plane().await.client();
        let mut failures = Vec::new();
        judge_created::<Database>(&client, &database(), cases, &mut failures).await;
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    });
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn what_is_decided_once_cannot_change_and_everything_else_can() {
    run(async {
        let client = control_plane().await.client();
        // Names of their own: the dry runs of the other tests ask whether theirs is free.
        let decided = with(database(), &json!({"metadata": {"name": "rules-decided"}}));
        let placed = with(database(), &json!({"metadata": {"name": "rules-placed"}}));
        let elephant =
            with(database(), &with(postgresql("17.5"), &json!({"metadata": {"name": "rules-elephant"}})));
        let adopting = with(
            database(),
            &json!({"metadata": {"name": "rules-adopting"},
        "spec": {"storage": {"adoptRetained": RECORD}}}),
        );
        let adopted = with(adopting.clone(), &json!({"metadata": {"name": "rules-adopted"}}));
        let of_image =
            with(database(), &with(custom(&json!({})), &json!({"metadata": {"name": "rules-of-image"}})));
        let objects = [&decided, &placed, &elephant, &adopting, &adopted, &of_image];
        let databases = Api::<Database>::namespaced(client.clone(), NAMESPACE);
        for object in objects.map(Clone::clone) {
            databases.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        }
        let zone = Patch::Merge(json!({"status": {"zone": "us-east-1a"}}));
        databases.patch_status("rules-placed", &PatchParams::default(), &zone).await.unwrap();
        let ready = Patch::Merge(json!({"status": {"firstReadyAt": "2026-11-22T01:00:00Z"}}));
        databases.patch_status("rules-of-image", &PatchParams::default(), &ready).await.unwrap();
        let made = Patch::Merge(json!({"status": {"volumeName": "rules-adopted-aaaaa"}}));
        databases.patch_status("rules-adopted", &PatchParams::default(), &made).await.unwrap();
        let volumes = Api::<Volume>::namespaced(client.clone(), NAMESPACE);
        volumes.create(&PostParams::default(), &serde_json::from_value(volume()).unwrap()).await.unwrap();
        let nodes = Api::<Node>::namespaced(client.clone(), NAMESPACE);
        nodes.create(&PostParams::default(), &serde_json::from_value(node()).unwrap()).await.unwrap();

        let mut failures = Vec::new();
        let of_database: [(Value, &[&str]); 11] = [
            (
                json!({"storage": {"adoptRetained": RECORD}}),
                &["spec.storage.adoptRetained", "only when the Database is created"],
            ),
            (
                json!({"engine": {"type": "custom", "version": null, "custom": {"image": "a:1", "port": 5432,
                "dataPath": "/d"}}}),
                &["spec.engine.type", "create a new Database"],
            ),
            (json!({"storage": {"size": "99Gi"}}), &["spec.storage.size", "only grow"]),
            (json!({"storage": {"size": "200Gi"}}), &[]),
            (json!({"storage": {"size": "1Ti"}}), &[]),
            (json!({"storage": {"fileSystem": "ext4"}}), &["spec.storage.fileSystem", "formatted once"]),
            (json!({"storage": {"type": "io2", "iops": 5000}}), &[]),
            (json!({"engine": {"version": "9.4.0"}}), &[]),
            (json!({"instanceTypes": ["m7i.large"]}), &[]),
            (json!({"running": false, "deletionPolicy": "Delete"}), &[]),
            (json!({"zones": ["us-east-1b"]}), &[]),
        ];
        for (changes, says) in of_database {
            let answer = update::<Database>(&client, decided.clone(), &json!({"spec": changes})).await;
            judge(&changes, answer.as_ref(), says, &mut failures);
        }
        let of_placed: [(Value, &[&str]); 4] = [
            (json!({"zones": []}), &[]),
            (json!({"zones": ["us-east-1b", "us-east-1a"]}), &[]),
            (json!({"zones": ["us-east-1b"]}), &["spec.zones", "status.zone"]),
            (json!({"storage": {"size": "200Gi"}}), &[]),
        ];
        for (changes, says) in of_placed {
            let answer = update::<Database>(&client, placed.clone(), &json!({"spec": changes})).await;
            judge(&changes, answer.as_ref(), says, &mut failures);
        }
        let of_image_changes: [(Value, &[&str]); 3] = [
            (json!({"port": 5433}), &["spec.engine.custom.port", "set the port back"]),
            (json!({"userId": 999}), &["spec.engine.custom.userId", "set it back"]),
            (json!({"image": "registry.example/db:1.3"}), &[]),
        ];
        for (changes, says) in of_image_changes {
            let changed = json!({"spec": {"engine": {"custom": changes}}});
            let answer = update::<Database>(&client, of_image.clone(), &changed).await;
            judge(&changes, answer.as_ref(), says, &mut failures);
        }
        let another = RECORD.replace('6', "7");
        let of_adopting: [(&Value, Value, &[&str]); 5] = [
            (
                &adopting,
                json!({"storage": {"adoptRetained": another}}),
                &["spec.storage.adoptRetained", "only when"],
            ),
            (
                &adopting,
                json!({"storage": {"adoptRetained": null}}),
                &["cannot be removed before", "status.volumeName"],
            ),
            (&adopting, json!({"storage": {"size": "200Gi"}}), &[]),
            (
                &adopted,
                json!({"storage": {"adoptRetained": another}}),
                &["spec.storage.adoptRetained", "only when"],
            ),
            (&adopted, json!({"storage": {"adoptRetained": null}}), &[]),
        ];
        for (object, changes, says) in of_adopting {
            let answer = update::<Database>(&client, object.clone(), &json!({"spec": changes})).await;
            judge(&changes, answer.as_ref(), says, &mut failures);
        }
        let of_elephant: [(Value, &[&str]); 3] = [
            (json!({"engine": {"version": "17.6"}}), &[]),
            (
                json!({"engine": {"version": "18.0"}}),
                &["spec.engine.version cannot change to another major", "set the major version back"],
            ),
            (
                json!({"engine": {"type": "questdb", "version": "9.3.4"}}),
                &["spec.engine.type", "create a new Database"],
            ),
        ];
        for (changes, says) in of_elephant {
            let answer = update::<Database>(&client, elephant.clone(), &json!({"spec": changes})).await;
            judge(&changes, answer.as_ref(), says, &mut failures);
        }
        let of_volume: [(Value, &[&str]); 8] = [
            (json!({"adoptRetained": RECORD}), &["spec.adoptRetained", "decided once"]),
            (json!({"zone": "us-east-1b"}), &["spec.zone", "cannot leave its zone"]),
            (json!({"size": "99Gi"}), &["spec.size", "only grow"]),
            (json!({"size": "lots"}), &["spec.size", "for example 100Gi"]),
            (json!({"fileSystem": "ext4"}), &["spec.fileSystem", "formatted once"]),
            (json!({"snapshotID": "snap-1"}), &["spec.snapshotID", "filled once"]),
            (json!({"size": "200Gi", "iops": 6000, "throughput": 500}), &[]),
            (json!({"deletionPolicy": "Delete"}), &[]),
        ];
        for (changes, says) in of_volume {
            let answer = update::<Volume>(&client, volume(), &json!({"spec": changes})).await;
            judge(&changes, answer.as_ref(), says, &mut failures);
        }
        let of_node: [(Value, &[&str]); 3] = [
            (json!({"zone": "us-east-1b"}), &["spec.zone", "zone of the volume"]),
            (json!({"zone": null}), &["spec.zone", "zone of the volume"]),
            (json!({"instanceTypes": ["m7i.large"]}), &[]),
        ];
        for (changes, says) in of_node {
            let answer = update::<Node>(&client, node(), &json!({"spec": changes})).await;
            judge(&changes, answer.as_ref(), says, &mut failures);
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    });
}
