//! The person who runs `freehold adopt`.

use std::process::Command;

use super::test_env::TestEnv;

/// The access key id of the person: who EC2's journal says it was.
pub const PERSON: &str = "AKIAPERSON";

/// Runs the command for `orders` with these arguments more; gives its exit code and what it printed.
pub async fn adopt(env: &TestEnv, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freehold"));
    command
        .args(["adopt", "--statefulset", &format!("{}/orders", env.name), "--node-class", &env.name])
        .args(["--cluster-id", &env.name])
        .args(arguments)
        .env("KUBECONFIG", env.control_plane.kubeconfig())
        .env("AWS_ENDPOINT_URL_EC2", env.site.endpoint())
        .env("AWS_REGION", env.site.region())
        .env("AWS_ACCESS_KEY_ID", PERSON)
        .env("AWS_SECRET_ACCESS_KEY", "of-nothing")
        .env("AWS_EC2_METADATA_DISABLED", "true");
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}
