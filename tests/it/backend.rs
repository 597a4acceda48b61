//! The code of `examples/backend`, which `docs/backend.md` shows to authors of backends: run, or parsed.

#[path = "../../examples/backend/client.rs"]
mod client;

use std::path::Path;
use std::process::Command;

use kube::ResourceExt as _;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::objects;
use crate::kit::rig_env::{self, RigEnv};
use crate::lives::life::CALM;

#[test]
fn the_code_in_rust_has_one_database_however_often_it_is_created_and_tells_ready_from_stalled() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let (client, namespace) = (env.client(), env.namespace());
        let api = client::databases(&client, namespace);
        let spec = |class: &str| {
            let changes = json!({"deletionPolicy": "Delete"});
            objects::database(namespace, class, "any", &changes)["spec"].clone()
        };
        let first = client::create(&api, "orders", &spec(env.class())).await.unwrap();
        let again = client::create(&api, "orders", &spec(env.class())).await.unwrap();
        assert_eq!(first.uid(), again.uid());
        let ready = client::ready(&api, "orders", CALM).await.unwrap();
        let credentials = client::credentials(&client, &ready).await.unwrap();
        let expected = format!(
            "postgresql://{}:{}@{}:{}/qdb",
            credentials["username"], credentials["password"], credentials["host"], credentials["port"]
        );
        assert_eq!(credentials["uri"], expected);

        let engine = json!({"type": "postgresql", "version": "17.6"});
        let changes = json!({"deletionPolicy": "Delete", "engine": engine, "applicationUser": {}});
        let of_application = objects::database(namespace, env.class(), "any", &changes)["spec"].clone();
        client::create(&api, "shop", &of_application).await.unwrap();
        let ready = client::ready(&api, "shop", CALM).await.unwrap();
        assert_eq!(client::credentials(&client, &ready).await.unwrap()["username"], "app");

        client::create(&api, "ledger", &spec("no-such-class")).await.unwrap();
        let stalled = client::ready(&api, "ledger", CALM).await.unwrap_err().to_string();
        assert!(stalled.contains("NodeClass no-such-class does not exist"), "{stalled}");

        for name in ["orders", "shop", "ledger", "never-created"] {
            client::delete(&api, name, CALM).await.unwrap();
        }
        assert_eq!((env.live_instances().len(), env.data_volumes().len()), (0, 0));
        env.close().await;
    });
}

/// Runs a program on a file of the examples; what it printed.
fn done(program: &str, args: &[&str], file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/backend").join(file);
    let output = Command::new(program)
        .args(args)
        .arg(path)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; the tests need Go and Python 3"));
    let [said, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success() && errors.is_empty(), "{program} {file}: {said}{errors}");
    said
}

#[test]
fn the_code_in_go_and_python_is_read_without_fault() {
    assert_eq!(done("gofmt", &["-l", "-e"], "client.go"), "");
    let parse = "import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])";
    assert_eq!(done("python3", &["-c", parse], "client.py"), "");
}
