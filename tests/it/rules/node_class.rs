//! The rules of a NodeClass.

use freehold::api::NodeClass;
use serde_json::{Value, json};

use super::answers::judge_created;
use crate::kit::test_env::{control_plane, run};

fn node_class() -> Value {
    json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "NodeClass", "metadata": {"name": "rules-subject"},
        "spec": {"imageID": "ami-1", "subnets": [{"id": "subnet-1", "zone": "us-east-1a"}], "userData": "",
            "instanceTypes": ["r7i.*"]},
    })
}

#[test]
fn a_node_class_with_what_aws_does_not_know_is_refused_with_the_field() {
    let cases: Vec<(Value, &[&str])> = vec![
        (json!({}), &[]),
        (json!({"spec": {"imageID": "latest"}}), &["spec.imageID", "ami-"]),
        (json!({"spec": {"subnets": []}}), &["spec.subnets"]),
        (json!({"spec": {"subnets": [{"id": "vpc-1", "zone": "us-east-1a"}]}}), &["spec.subnets", "subnet-"]),
        (json!({"spec": {"securityGroupIDs": ["default"]}}), &["spec.securityGroupIDs", "sg-"]),
        (json!({"spec": {"securityGroupIDs": ["sg-1"]}}), &[]),
        (json!({"spec": {"tags": {"": "x"}}}), &["spec.tags", "1 to 128 characters"]),
        (json!({"spec": {"tags": {"aws:x": "x"}}}), &["spec.tags", "reserved"]),
        (json!({"spec": {"tags": {"freehold.dev/node-uid": "x"}}}), &["spec.tags", "reserved"]),
        (json!({"spec": {"tags": {"kubernetes.io/created-for/pvc/name": "x"}}}), &["spec.tags", "reserved"]),
        (json!({"spec": {"tags": {"team": "platform", "kubernetes.io/cluster/prod": "owned"}}}), &[]),
        (json!({"spec": {"userData": "x".repeat(16385)}}), &["spec.userData", "16384"]),
        (json!({"spec": {"additionalVolumes": [{"deviceName": "/dev/xvdb", "size": 20}]}}), &[]),
        (
            json!({"spec": {"additionalVolumes": [{"deviceName": "/dev/xvda", "size": 20}]}}),
            &["spec.additionalVolumes", "spec.rootVolume"],
        ),
        (
            json!({"spec": {"additionalVolumes": [{"deviceName": "/dev/b", "size": 20},
            {"deviceName": "/dev/b", "size": 30}]}}),
            &["spec.additionalVolumes", "give each volume its own"],
        ),
        (json!({"spec": {"images": {"registry": "registry.example:5000/mirror"}}}), &[]),
        (
            json!({"spec": {"images": {"registry": "https://registry.example"}}}),
            &["spec.images.registry", "no https://"],
        ),
        (
            json!({"spec": {"images": {"registry": "registry.example/"}}}),
            &["spec.images.registry", "at its end"],
        ),
        (json!({"spec": {"images": {"questdb": {"repository": "mirror/questdb"}}}}), &[]),
        (
            json!({"spec": {"images": {"questdb": {"repository": "questdb:9.3.4"}}}}),
            &["repository", "without a host"],
        ),
        (
            json!({"spec": {"images": {"postgresql": {"digests": {"17.6": format!("sha256:{}", "0".repeat(64))}}}}}),
            &[],
        ),
        (
            json!({"spec": {"images": {"postgresql": {"digests": {"17.6": "sha256:0"}}}}}),
            &["digest", "64 hexadecimal digits"],
        ),
        (
            json!({"spec": {"images": {"pullSecrets": ["Pull"]}}}),
            &["spec.images.pullSecrets", "name of a Secret"],
        ),
        (json!({"spec": {"images": {"pullPolicy": "Never"}}}), &["pullPolicy", "IfNotPresent"]),
        (json!({"spec": {"custom": {"enabled": false}}}), &[]),
        (json!({"spec": {"instanceTypes": []}}), &["spec.instanceTypes"]),
        (json!({"spec": {"instanceTypes": null}}), &["spec.instanceTypes", "Required"]),
        (json!({"spec": {"instanceTypes": ["*"]}}), &[]),
        (json!({"spec": {"namespaceSelector": {"matchLabels": {"tenant": "yes"}}}}), &[]),
        (
            json!({"spec": {"limits": {"databases": 3, "storage": "2Ti", "totalStorage": "10Ti",
                "iops": 16000, "throughput": 500, "volumeTypes": ["gp3"], "engines": ["postgresql"]}}}),
            &[],
        ),
        (json!({"spec": {"limits": {"storage": "2TB"}}}), &["spec.limits.storage", "for example 100Gi"]),
        (
            json!({"spec": {"limits": {"totalStorage": "2TB"}}}),
            &["spec.limits.totalStorage", "for example 100Gi"],
        ),
        (json!({"spec": {"limits": {"databases": -1}}}), &["spec.limits.databases"]),
        (json!({"spec": {"limits": {"engines": ["mysql"]}}}), &["spec.limits.engines", "questdb"]),
        (json!({"spec": {"custom": {"allowedImages": ["registry.example/*"]}}}), &[]),
        (
            json!({"spec": {"custom": {"enabled": false, "allowedImages": ["registry.example/*"]}}}),
            &["spec.custom.allowedImages", "remove it"],
        ),
    ];
    run(async {
        let client = control_plane().await.client();
        let mut failures = Vec::new();
        judge_created::<NodeClass>(&client, &node_class(), cases, &mut failures).await;
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    });
}
