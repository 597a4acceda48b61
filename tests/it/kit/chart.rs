//! The chart: helm as people run it, and what it renders.

use std::path::{Path, PathBuf};

use freehold_box::cache::Cache;
use freehold_box::progress::Progress;
use freehold_box::tools::{Bundle, Program, Tools};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::process::Command;
use tokio::sync::OnceCell;

/// Where the chart is.
pub const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/charts/freehold");

/// The program helm, built if need be.
async fn program() -> &'static Path {
    static HELM: OnceCell<PathBuf> = OnceCell::const_new();
    let ensure = || async {
        let tools = Tools::ensure(&Cache::from_environment(), &[Bundle::Helm], &Progress::on_stderr()).await.unwrap();
        tools.program(Program::Helm)
    };
    HELM.get_or_init(ensure).await
}

/// Runs helm, away from the settings of whoever runs the tests; what it printed, or all that it said when it failed.
pub async fn helm<S: AsRef<str>>(args: &[S]) -> Result<String, String> {
    let mut helm = Command::new(program().await);
    for home in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        helm.env(home, Path::new(env!("CARGO_TARGET_TMPDIR")).join("helm"));
    }
    let output = helm.args(args.iter().map(AsRef::as_ref)).env_remove("KUBECONFIG").kill_on_drop(true).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stdout) + &text(output.stderr)) }
}

/// What a release called `freehold` in this namespace consists of, with these further arguments.
pub async fn template(namespace: &str, args: &[&str]) -> Result<Vec<Value>, String> {
    let rendered = helm(&[&["template", "freehold", CHART, "--namespace", namespace], args].concat()).await?;
    Ok(documents(&rendered))
}

/// The documents of a YAML file.
pub fn documents(yaml: &str) -> Vec<Value> {
    let all = serde_norway::Deserializer::from_str(yaml).map(|document| Value::deserialize(document).unwrap());
    all.filter(|document| !document.is_null()).collect()
}

/// Those of one kind.
pub fn of_kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents.iter().filter(|document| document["kind"] == kind).collect()
}
