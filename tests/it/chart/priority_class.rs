//! The PriorityClass of the chart is the one that databases' pods name.

use k8s_openapi::api::scheduling::v1::PriorityClass;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::rendered;
use crate::kit::chart::of_kind;
use crate::kit::test_env::run;

/// What the operator is told.
fn argument(rendered: &[Value]) -> Option<String> {
    let pod = &of_kind(rendered, "Deployment")[0]["spec"]["template"]["spec"];
    let args: Vec<String> = serde_json::from_value(pod["containers"][0]["args"].clone()).unwrap();
    args.iter().find_map(|arg| arg.strip_prefix("--database-priority-class=").map(str::to_owned))
}

#[test]
fn databases_have_the_highest_class_of_a_user_and_it_stays() {
    run(async {
        let rendered = rendered(&[]).await;
        let class = of_kind(&rendered, "PriorityClass")[0];
        let typed: PriorityClass = serde_json::from_value(class.clone()).unwrap();
        assert_eq!(&serde_json::to_value(&typed).unwrap(), class, "Kubernetes knows every field");
        assert_eq!(typed.metadata.name, argument(&rendered));
        assert_eq!((typed.value, typed.global_default), (1_000_000_000, None));
        assert_eq!(class["metadata"]["annotations"], json!({"helm.sh/resource-policy": "keep"}));
    });
}

#[test]
fn a_class_of_ones_own_is_used_and_none_is_none() {
    run(async {
        let own = rendered(&["--set", "databasePriorityClass.create=false"]).await;
        assert_eq!(of_kind(&own, "PriorityClass").len(), 0);
        assert_eq!(argument(&own).as_deref(), Some("freehold-database"));
        let none = rendered(&["--set", "databasePriorityClass.name="]).await;
        assert_eq!((of_kind(&none, "PriorityClass").len(), argument(&none)), (0, None));
    });
}
