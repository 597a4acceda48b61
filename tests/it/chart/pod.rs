//! The operator's pod: what it may do, where it runs, and that Kubernetes knows every field of it.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::Api;
use kube::api::PostParams;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{EVERY_VALUE, rendered};
use crate::kit::chart::{of_kind, template};
use crate::kit::test_env::{self, run};

/// The pod of a rendered chart.
fn pod_of(rendered: &[Value]) -> Value {
    of_kind(rendered, "Deployment")[0]["spec"]["template"]["spec"].clone()
}

#[test]
fn the_operators_pod_meets_the_restricted_standard() {
    run(async {
        let client = test_env::control_plane().await.client();
        let name = "restricted-operator";
        let namespace = json!({"metadata": {"name": name,
        "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
        Api::<Namespace>::all(client.clone())
            .create(&PostParams::default(), &serde_json::from_value(namespace).unwrap())
            .await
            .unwrap();
        let rendered = template(name, &[]).await.unwrap();
        let account = serde_json::from_value(of_kind(&rendered, "ServiceAccount")[0].clone()).unwrap();
        Api::<ServiceAccount>::namespaced(client.clone(), name)
            .create(&PostParams::default(), &account)
            .await
            .unwrap();
        let mut pod = of_kind(&rendered, "Deployment")[0]["spec"]["template"].clone();
        pod["metadata"]["name"] = json!("freehold");
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let trial = PostParams { dry_run: true, ..PostParams::default() };
        Api::<Pod>::namespaced(client, name).create(&trial, &pod).await.unwrap();

        let spec = pod.spec.unwrap();
        assert_eq!(
            (spec.automount_service_account_token, account.automount_service_account_token),
            (Some(true), Some(false))
        );
        let security = spec.containers[0].security_context.clone().unwrap();
        assert_eq!(security.read_only_root_filesystem, Some(true));
    });
}

/// A field in a wrong place or with a wrong name is not in the type, and would be left out in silence.
#[test]
fn kubernetes_knows_every_field_of_the_pod() {
    run(async {
        let client = test_env::control_plane().await.client();
        let name = "every-field";
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        let trial = PostParams { dry_run: true, ..PostParams::default() };
        for args in [&[][..], &["--values", EVERY_VALUE][..]] {
            let rendered = template(name, args).await.unwrap();
            let deployment = of_kind(&rendered, "Deployment")[0];
            let typed: Deployment = serde_json::from_value(deployment.clone()).unwrap();
            assert_eq!(&serde_json::to_value(&typed).unwrap(), deployment);
            Api::<Deployment>::namespaced(client.clone(), name).create(&trial, &typed).await.unwrap();
        }
    });
}

/// The restricted SecurityContextConstraints refuse ids that they did not choose.
#[test]
fn openshift_may_choose_the_ids() {
    run(async {
        let ids = ["runAsUser", "runAsGroup", "fsGroup"];
        let none = ids.map(|id| format!("podSecurityContext.{id}=null")).join(",");
        let default = pod_of(&rendered(&[]).await);
        let mut chosen = default.clone();
        for id in ids {
            let removed = chosen["securityContext"].as_object_mut().unwrap().remove(id);
            assert_eq!(removed, Some(json!(65532)));
        }
        assert_eq!(pod_of(&rendered(&["--set", &none]).await), chosen);
    });
}

/// One acts, and another one is there before it ends: in an upgrade, in a drain, and when a zone is lost.
#[test]
fn two_replicas_are_spread_and_end_one_after_the_other() {
    run(async {
        let default = rendered(&[]).await;
        let deployment = &of_kind(&default, "Deployment")[0]["spec"];
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
        assert_eq!((&deployment["replicas"], &deployment["strategy"]), (&json!(2), &rolling));
        let selector = &deployment["selector"];
        let spread = |topology: &str| {
            json!({"maxSkew": 1, "topologyKey": topology, "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": selector})
        };
        let expected = json!([spread("topology.kubernetes.io/zone"), spread("kubernetes.io/hostname")]);
        assert_eq!(pod_of(&default)["topologySpreadConstraints"], expected);
        let budget = &of_kind(&default, "PodDisruptionBudget")[0]["spec"];
        assert_eq!((&budget["maxUnavailable"], &budget["selector"]), (&json!(1), selector));
        let one = rendered(&["--set", "replicas=1"]).await;
        assert_eq!(of_kind(&one, "PodDisruptionBudget").len(), 0, "it would keep every drain from ending");
    });
}

/// The replicas of one release know each other, and no other release.
#[test]
fn each_pod_leads_under_its_own_name_and_for_its_release() {
    run(async {
        let container = &pod_of(&rendered(&[]).await)["containers"][0];
        assert!(
            container["args"].as_array().unwrap().contains(&json!("--installation=freehold-system/freehold"))
        );
        let named = json!({"name": "FREEHOLD_LEADER_ELECT_IDENTITY",
            "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
        assert!(container["env"].as_array().unwrap().contains(&named), "{container:#}");
    });
}

#[test]
fn the_operator_stays_on_a_node_that_is_not_ready_as_long_as_other_pods_do() {
    run(async {
        let pod = pod_of(&rendered(&[]).await);
        assert_eq!(pod.get("tolerations"), None);
        assert_eq!(pod["nodeSelector"], json!({"kubernetes.io/os": "linux"}));
    });
}
