//! The person who runs `freehold adopt`, and other commands of the shipped binary.

use std::process::Command;

use super::process;
use super::test_env::TestEnv;

/// The access key id of the person: who EC2's journal says it was.
pub const PERSON: &str = "AKIAPERSON";

/// Runs `freehold adopt` for `orders` with these arguments more; gives its exit code and what it printed.
pub async fn adopt(env: &TestEnv, arguments: &[&str]) -> (Option<i32>, String) {
    let target = format!("{}/orders", env.name);
    let fixed = ["adopt", "--statefulset", &target, "--node-class", &env.name, "--cluster-id", &env.name];
    freehold(env, &[&fixed[..], arguments].concat()).await
}

/// Runs the shipped binary with these arguments; gives its exit code and what it printed.
pub async fn freehold(env: &TestEnv, arguments: &[&str]) -> (Option<i32>, String) {
    freehold_in(&environment(env, &env.site.endpoint()), arguments).await
}

/// The same in this environment.
pub async fn freehold_in(
    environment: &[(&'static str, String)],
    arguments: &[&str],
) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freehold"));
    command.args(arguments).envs(environment.iter().cloned());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// The environment of a person's command: the administrator's kubeconfig, and this address of EC2.
pub fn environment(env: &TestEnv, endpoint: &str) -> [(&'static str, String); 6] {
    process::environment(env.control_plane.kubeconfig(), endpoint, env.site.region(), PERSON)
}
