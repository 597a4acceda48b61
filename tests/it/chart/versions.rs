//! The chart's version, and that another one can take its place.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::file;
use crate::kit::chart::{CHART, documents, helm, of_kind, template};
use crate::kit::test_env::run;

#[test]
fn the_chart_has_the_operators_version() {
    let chart = documents(&file("Chart.yaml")).remove(0);
    assert_eq!(
        (&chart["version"], &chart["appVersion"]),
        (&json!(env!("CARGO_PKG_VERSION")), &json!(env!("CARGO_PKG_VERSION")))
    );
}

#[test]
fn another_version_changes_nothing_that_cannot_be_edited() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().display().to_string();
        helm(&["package", CHART, "--version", "9.8.7", "--app-version", "9.8.7", "--destination", &to])
            .await
            .unwrap();
        let next =
            helm(&["template", "freehold", &format!("{to}/freehold-9.8.7.tgz"), "--namespace", "here"])
                .await
                .unwrap();
        let fixed = |documents: &[Value]| -> Vec<Value> {
            let parts = |document: &Value| {
                json!([
                    document["kind"],
                    document["metadata"]["name"],
                    document["roleRef"],
                    document["spec"]["selector"],
                    document["spec"]["clusterIP"]
                ])
            };
            documents
                .iter()
                .filter(|document| document["kind"] != "CustomResourceDefinition")
                .map(parts)
                .collect()
        };
        let next = documents(&next);
        assert_eq!(fixed(&template("here", &[]).await.unwrap()), fixed(&next));
        assert_eq!(
            of_kind(&next, "CustomResourceDefinition").len(),
            7,
            "a packaged chart has the definitions, too"
        );
        let image =
            of_kind(&next, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]["image"].clone();
        assert!(image.as_str().is_some_and(|image| image.ends_with(":9.8.7")), "{image}");
    });
}
