//! What every object of the release has, and the objects that a user adds to it.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{EVERY_VALUE, everything, rendered};
use crate::kit::chart::{documents, of_kind};
use crate::kit::test_env::run;

#[test]
fn labels_and_annotations_of_the_user_are_on_every_object() {
    run(async {
        let all = documents(&everything().await);
        let ours: Vec<&Value> = all.iter().filter(|document| document["kind"] != "ExternalSecret").collect();
        assert!(ours.len() > 12, "{}", ours.len());
        for document in ours {
            let metadata = &document["metadata"];
            let found = (&metadata["labels"]["team"], &metadata["annotations"]["example.com/owner"]);
            assert_eq!(found, (&json!("platform"), &json!("databases-on-call")), "{document:#}");
        }
        let pod = &of_kind(&all, "Deployment")[0]["spec"]["template"]["metadata"];
        assert_eq!(pod["annotations"], json!({"example.com/seen": "yes"}));
    });
}

#[test]
fn an_annotation_of_one_object_wins_over_that_of_every_object() {
    run(async {
        let own = r"deploymentAnnotations.example\.com/owner=operators-on-call";
        let all = rendered(&["--values", EVERY_VALUE, "--set", own]).await;
        let owner =
            |kind: &str| of_kind(&all, kind)[0]["metadata"]["annotations"]["example.com/owner"].clone();
        assert_eq!(
            (owner("Deployment"), owner("Service")),
            (json!("operators-on-call"), json!("databases-on-call"))
        );
    });
}

#[test]
fn extra_objects_are_templates_as_objects_and_as_text() {
    run(async {
        let values = json!({"extraObjects": [
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "{{ .Release.Name }}-object"}},
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ include \"freehold.fullname\" . }}-text\n",
        ]});
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&path, values.to_string()).unwrap();
        let rendered = rendered(&["--values", path.path().to_str().unwrap()]).await;
        let names: Vec<&Value> =
            of_kind(&rendered, "Secret").into_iter().map(|secret| &secret["metadata"]["name"]).collect();
        assert_eq!(names, [&json!("freehold-object"), &json!("freehold-text")]);
    });
}
