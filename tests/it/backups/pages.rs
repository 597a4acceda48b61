//! The pages on backups and restores: every manifest is applied and every command run, in their order.

use std::process::Command;

use freehold::api::{BackupSchedule, Database};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::kit::adopter::environment;
use crate::kit::env::Env as _;
use crate::kit::process::binary;
use crate::kit::test_env::TestEnv;

/// What a page has its reader do, in its order: the language of a block, and its text.
fn steps(page: &str) -> Vec<(String, String)> {
    let path = format!("{}/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("```").skip(1).step_by(2);
    let block = |block: &str| {
        let (language, text) = block.split_once('\n').unwrap();
        (language.to_owned(), text.to_owned())
    };
    blocks.map(block).collect()
}

/// The block as it is for this test: its namespace, cluster and NodeClass.
fn of_test(env: &TestEnv, language: &str, text: &str) -> String {
    let text = text.replace("team-a", &env.name).replace("ID_OF_THE_CLUSTER", &env.name);
    if language != "yaml" {
        return text;
    }
    let mut manifest: Value = serde_norway::from_str(&text).unwrap();
    if manifest["kind"] == "Database" {
        manifest["spec"]["nodeClassName"] = json!(env.name);
    }
    manifest.to_string()
}

/// Runs a command of the shell as a person does; gives what it printed.
async fn sh(env: &TestEnv, page: &str, script: &str) -> String {
    let programs = [env.control_plane.kubectl().clone(), binary(env.control_plane.folder())];
    let folders = programs.iter().map(|program| program.parent().unwrap().display().to_string());
    let path = folders.chain([std::env::var("PATH").unwrap()]).collect::<Vec<_>>().join(":");
    let mut command = Command::new("/bin/sh");
    command.args(["-euc", script]).envs(environment(env, &env.site.endpoint())).env("PATH", path);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{page}: {script}\n{}", text(&output.stderr));
    text(&output.stdout)
}

/// Does what the page says; gives what its commands printed.
async fn follow(env: &TestEnv, page: &str) -> String {
    let mut printed = String::new();
    for (language, text) in steps(page) {
        let text = of_test(env, &language, &text);
        let script = match language.as_str() {
            "yaml" => format!("kubectl apply --filename - <<'END'\n{text}\nEND"),
            "sh" => text,
            other => panic!("{page} has a block in {other:?}"),
        };
        printed.push_str(&sh(env, page, &script).await);
    }
    printed
}

/// The pages can be followed, one after the other; a restored database is left.
pub async fn are_followed(env: &mut TestEnv) {
    env.create("orders", &json!({"deletionPolicy": "Snapshot"})).await;
    env.ready("orders").await;
    // No engine runs on a virtual machine that could be asked for a checkpoint.
    env.edit("orders", &json!({"running": false})).await;
    env.until_condition("orders", "Ready", "False", "Paused").await;
    let printed = follow(env, "docs/backups.md").await;
    assert!(printed.contains("orders-before-the-change condition met"), "{printed}");
    let printed = follow(env, "docs/backup-schedules.md").await;
    assert!(printed.contains("orders-nightly condition met"), "{printed}");
    env.edit("orders", &json!({"running": true})).await;
    env.ready("orders").await;
    let printed = follow(env, "docs/engine-upgrade.md").await;
    assert!(printed.contains("-stopped "), "{printed}");
    let printed = follow(env, "docs/restore-in-place.md").await;
    assert!(printed.matches("orders condition met").count() == 2, "{printed}");
    env.ready("orders").await;
    env.delete("orders").await;
    env.gone("orders").await;
    let printed = follow(env, "docs/restore.md").await;
    assert!(printed.contains("orders-restored condition met"), "{printed}");
    assert!(printed.contains("orders-before-the-change") && printed.contains("(final)"), "{printed}");
    let restored = env.api::<Database>().get("orders-restored").await.unwrap();
    let restored = restored.status.unwrap().restored.unwrap();
    assert!(printed.contains(&format!("snapshotID: {}", restored.snapshot_id)), "{printed}");
    // What comes by itself comes to an end.
    env.api::<BackupSchedule>().delete("orders-nightly", &DeleteParams::default()).await.unwrap();
}
