//! The chart: helm as people run it, and what it renders.

use freehold_box::base::cache::Cache;
pub use freehold_box::cluster::helm::CHART;
use freehold_box::cluster::helm::Helm;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::sync::OnceCell;

/// Runs helm; what it printed, or all that it said when it failed.
pub async fn helm<S: AsRef<str>>(args: &[S]) -> Result<String, String> {
    static HELM: OnceCell<Helm> = OnceCell::const_new();
    let helm = HELM.get_or_init(|| async { Helm::ensure(&Cache::from_environment()).await.unwrap() }).await;
    helm.run(args).await.map_err(|failed| failed.to_string())
}

/// What a release called `freehold` in this namespace consists of, with these further arguments.
pub async fn template(namespace: &str, args: &[&str]) -> Result<Vec<Value>, String> {
    let rendered = helm(&[&["template", "freehold", CHART, "--namespace", namespace], args].concat()).await?;
    Ok(documents(&rendered))
}

/// The documents of a YAML file.
pub fn documents(yaml: &str) -> Vec<Value> {
    let all =
        serde_norway::Deserializer::from_str(yaml).map(|document| Value::deserialize(document).unwrap());
    all.filter(|document| !document.is_null()).collect()
}

/// Those of one kind.
pub fn of_kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents.iter().filter(|document| document["kind"] == kind).collect()
}
