//! Two rows of an inventory that name one instance: neither script adopts either of the two. kubectl and aws
//! are programs that print what there is. They are files of the repository: Linux executes no file that a
//! process has open for writing.

use std::fs;
use std::path::Path;
use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

const INVENTORY: &str = "\
namespace,statefulset,claim,volume_id,instance_id,engine,version,instance_types,service,secret
team,a,data-a-0,vol-0000000a,i-00000001,questdb,8.2.0,,a,
team,b,data-b-0,vol-0000000b,i-00000001,questdb,8.2.0,,b,
team,c,data-c-0,vol-0000000c,i-00000002,questdb,8.2.0,,c,
";

fn namespaced(name: &str, machine: &str) -> Vec<Value> {
    let claim = format!("data-{name}-0");
    let metadata = |name: &str| json!({"namespace": "team", "name": name, "uid": name});
    vec![
        json!({"kind": "StatefulSet", "metadata": metadata(name), "spec": {"replicas": 1}}),
        json!({
            "kind": "Pod", "metadata": metadata(&format!("{name}-0")),
            "spec": {"nodeName": machine,
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }),
        json!({"kind": "PersistentVolumeClaim", "metadata": metadata(&claim), "spec": {"volumeName": name}}),
    ]
}

fn volume(name: &str, instance: &str) -> Value {
    json!({"VolumeId": format!("vol-0000000{name}"), "Size": 1, "VolumeType": "gp2",
        "Attachments": [{"InstanceId": instance}]})
}

fn instance(id: &str) -> Value {
    json!({"InstanceId": id, "InstanceType": "r5.large", "State": {"Name": "running"}})
}

/// The folder with what the programs print.
fn facts() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let record = |name: &str| {
        json!({"kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {"csi": {"volumeHandle": format!("vol-0000000{name}")}}})
    };
    let node = |name: &str, id: &str| {
        json!({"kind": "Node", "metadata": {"name": name},
            "spec": {"providerID": format!("aws:///us-east-1b/{id}")}})
    };
    let cluster =
        [record("a"), record("b"), record("c"), node("one", "i-00000001"), node("two", "i-00000002")];
    let sets = [namespaced("a", "one"), namespaced("b", "one"), namespaced("c", "two")].concat();
    let volumes = [("a", "i-00000001"), ("b", "i-00000001"), ("c", "i-00000002")];
    let instances = ["i-00000001", "i-00000002"].map(instance);
    let files = [
        ("namespaced", json!({"items": sets})),
        ("cluster", json!({"items": cluster})),
        ("describe-snapshots", json!({"Snapshots": []})),
        ("describe-volumes", json!({"Volumes": volumes.map(|(name, id)| volume(name, id))})),
        ("describe-instances", json!({"Reservations": [{"Instances": instances}]})),
    ];
    for (name, content) in files {
        fs::write(folder.path().join(format!("{name}.json")), content.to_string()).unwrap();
    }
    folder
}

#[test]
fn two_rows_that_name_one_instance_are_blocked_by_both_scripts() {
    let folder = facts();
    let inventory = folder.path().join("inventory.csv");
    fs::write(&inventory, INVENTORY).unwrap();
    // A python3 that is a wrapper may put other programs first.
    let python = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    let python = String::from_utf8(python.stdout).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let programs = root.join("tests/it/adopting_many/programs");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    for (program, script) in [("bash", "adopt.sh"), (python.trim(), "adopt.py")] {
        let script = root.join("examples/adoption").join(script);
        let mut run = Command::new(program);
        let done =
            run.arg(&script).arg(&inventory).env("PATH", &path).env("FACTS", folder.path()).output().unwrap();
        let printed = String::from_utf8(done.stdout).unwrap();
        let blocked = "blocked: another row names i-00000001, too: a machine is of one Database";
        let expected = format!("team/a: {blocked}\nteam/b: {blocked}\nteam/c: adoptable\n");
        assert!(printed.starts_with(&expected), "{script:?}: {printed}");
        assert_eq!(done.status.code(), Some(2), "{script:?}");
    }
}
