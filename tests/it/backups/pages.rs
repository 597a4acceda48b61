//! The pages on backups and restores: every manifest is applied and every command run, in their order.

use freehold::api::{BackupSchedule, Database};
use kube::api::DeleteParams;
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::page::follow;
use crate::kit::test_env::TestEnv;

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
