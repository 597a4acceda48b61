//! The chart's admission policies: what another tenant, and who has taken the operator's token, try and are
//! refused; and that the operator, Kubernetes and the platform team are not.

use std::sync::Arc;

use freehold::api::keys::FINALIZER;
use freehold::api::{Database, Node, Volume};
use freehold_box::account::{Site, SiteOptions};
use freehold_box::cluster::control_plane::{ControlPlane, ControlPlaneOptions};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::kit::chart::{of_kind, template};
use crate::kit::env::Env as _;
use crate::kit::objects::merge;
use crate::kit::permits::{self, Share};
use crate::kit::rights::acting_as;
use crate::kit::test_env::{Options, TestEnv, install, run};
use crate::kit::wait::{seen, until};

/// The namespace of the release, of the operator and of the database.
const OURS: &str = "admission";
/// Another tenant's.
const THEIRS: &str = "admission-b";
/// Who may write nearly everything, and no NodeClass.
const TENANT: &str = "jane";
/// A cluster administrator that is no member of system:masters, as on EKS.
const PLATFORM: &str = "platform";
/// The operator's service account.
const OPERATOR: &str = "system:serviceaccount:admission:freehold";

/// The API of the kind of this object, in this namespace or in none.
fn api_of(client: Client, object: &Value, namespace: Option<&str>) -> Api<DynamicObject> {
    let (group, version) = match object["apiVersion"].as_str().unwrap().split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", object["apiVersion"].as_str().unwrap()),
    };
    let kind = GroupVersionKind::gvk(group, version, object["kind"].as_str().unwrap());
    let resource = ApiResource::from_gvk(&kind);
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

/// What the API server answers to the creation of this object, which is not carried out.
async fn try_to_create(client: &Client, object: &Value, namespace: Option<&str>) -> Result<(), String> {
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let typed = serde_json::from_value(object.clone()).unwrap();
    let created = api_of(client.clone(), object, namespace).create(&params, &typed).await;
    created.map(drop).map_err(|error| error.to_string())
}

/// Applies the policies of the chart as a release in the namespace of this test environment has them.
pub(super) async fn policies(env: &TestEnv) {
    let watched = format!("namespaces={{{}}}", env.name);
    let rendered = template(&env.name, &["--set", &watched]).await.unwrap();
    for policy in of_kind(&rendered, "ValidatingAdmissionPolicy") {
        let policy = serde_json::from_value::<ValidatingAdmissionPolicy>(policy.clone()).unwrap();
        Api::all(env.client.clone()).create(&PostParams::default(), &policy).await.unwrap();
    }
    for binding in of_kind(&rendered, "ValidatingAdmissionPolicyBinding") {
        let binding = serde_json::from_value::<ValidatingAdmissionPolicyBinding>(binding.clone()).unwrap();
        Api::all(env.client.clone()).create(&PostParams::default(), &binding).await.unwrap();
    }
}

/// Lets the tenant write everything that the policies are about, and the platform team everything.
async fn users(env: &TestEnv) {
    let namespaces = Api::<Namespace>::all(env.client.clone());
    let theirs = serde_json::from_value(json!({"metadata": {"name": THEIRS}})).unwrap();
    namespaces.create(&PostParams::default(), &theirs).await.unwrap();
    let all = ["*"];
    let rules = json!([
        {"apiGroups": ["", "apps", "batch"], "resources": all, "verbs": all},
        {"apiGroups": ["freehold.dev"], "resources": ["nodes", "volumes"], "verbs": all},
        {"apiGroups": ["freehold.dev"], "resources": ["databases"],
            "verbs": ["get", "list", "create", "update", "patch", "delete"]},
    ]);
    let role = serde_json::from_value(json!({"metadata": {"name": "tenant"}, "rules": rules})).unwrap();
    Api::<ClusterRole>::all(env.client.clone()).create(&PostParams::default(), &role).await.unwrap();
    for (user, role) in [(TENANT, "tenant"), (PLATFORM, "cluster-admin")] {
        let binding = json!({
            "metadata": {"name": user},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        });
        let binding = serde_json::from_value(binding).unwrap();
        let bindings = Api::<ClusterRoleBinding>::all(env.client.clone());
        bindings.create(&PostParams::default(), &binding).await.unwrap();
    }
}

fn pod_spec(changes: &Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "c:1"}]});
    merge(&mut spec, changes);
    spec
}

fn pod(changes: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray"}, "spec": pod_spec(changes)})
}

/// A workload of this kind with this pod.
fn workload(api: &str, kind: &str, changes: &Value) -> Value {
    let labels = json!({"app": "stray"});
    let mut pod = pod_spec(changes);
    if kind == "Job" {
        pod["restartPolicy"] = json!("Never");
    }
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let mut spec = json!({"template": template});
    if kind != "Job" {
        spec["selector"] = json!({"matchLabels": labels});
    }
    if kind == "StatefulSet" {
        spec["serviceName"] = json!("stray");
    }
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": "stray"}, "spec": spec})
}

fn cron_job(changes: &Value) -> Value {
    let job = workload("batch/v1", "Job", changes);
    json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "stray"},
        "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": job["spec"]}}})
}

fn persistent_volume(labels: &Value, source: &Value) -> Value {
    let mut spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "claimRef": {"namespace": OURS, "name": "orders"}});
    merge(&mut spec, source);
    json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": "stray", "labels": labels}, "spec": spec})
}

/// Who tries to create what, in which namespace, and what the refusal says; nothing when it is allowed.
type Try = (&'static str, Value, Option<&'static str>, &'static str);

fn tries_of_pods() -> Vec<Try> {
    let explicit = json!({"tolerations": [{"key": "freehold.dev/dedicated", "operator": "Exists"}]});
    let blanket = json!({"tolerations": [{"operator": "Exists"}]});
    let chosen = |operator: &str| {
        let term = json!({"matchExpressions": [{"key": "freehold.dev/dedicated", "operator": operator}]});
        let required = json!({"nodeSelectorTerms": [term]});
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
    };
    let of_database = json!({"freehold.dev.node-restriction.kubernetes.io/database": "uid"});
    let mut placed = blanket.clone();
    placed["nodeName"] = json!("ip-10-0-0-1");
    let (theirs, tolerates) = (Some(THEIRS), "tolerates the taint freehold.dev/dedicated");
    let selects = "selects nodes by a label of Freehold's";
    vec![
        (TENANT, pod(&explicit), theirs, tolerates),
        (TENANT, workload("apps/v1", "Deployment", &explicit), theirs, tolerates),
        (TENANT, workload("apps/v1", "StatefulSet", &explicit), theirs, tolerates),
        (TENANT, workload("apps/v1", "DaemonSet", &explicit), theirs, tolerates),
        (TENANT, workload("batch/v1", "Job", &explicit), theirs, tolerates),
        (TENANT, cron_job(&explicit), theirs, tolerates),
        (PLATFORM, workload("apps/v1", "DaemonSet", &explicit), theirs, ""),
        (TENANT, pod(&json!({"nodeSelector": of_database})), theirs, selects),
        (TENANT, pod(&chosen("Exists")), theirs, selects),
        (TENANT, pod(&chosen("DoesNotExist")), theirs, ""),
        (TENANT, pod(&placed), theirs, "names its node and tolerates every taint"),
        (TENANT, pod(&blanket), theirs, ""),
        (TENANT, workload("apps/v1", "Deployment", &blanket), theirs, ""),
        (TENANT, pod(&json!({})), theirs, ""),
    ]
}

fn tries_of_children_and_volumes() -> Vec<Try> {
    let node = json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "Node", "metadata": {"name": "stray"},
        "spec": {"nodeClassName": OURS, "instanceTypes": ["r7i.large"]}});
    let volume = json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "Volume",
        "metadata": {"name": "stray"}, "spec": {"size": "100Gi", "type": "gp3", "fileSystem": "xfs",
        "zone": "us-east-1a", "nodeClassName": OURS, "deletionPolicy": "Retain"}});
    let ours = json!({"freehold.dev/volume-uid": "of-another"});
    let ebs = json!({"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}});
    let (here, alone) = (Some(OURS), "written by the Freehold operator alone");
    let record = "are written by the Freehold operator and by Kubernetes' own controllers";
    vec![
        (TENANT, node.clone(), here, alone),
        (PLATFORM, node.clone(), here, alone),
        (OPERATOR, node.clone(), here, ""),
        (TENANT, node, Some(THEIRS), ""),
        (TENANT, volume, here, alone),
        (TENANT, persistent_volume(&ours, &ebs), None, record),
        (PLATFORM, persistent_volume(&ours, &ebs), None, ""),
        (TENANT, persistent_volume(&json!({}), &ebs), None, ""),
        (OPERATOR, persistent_volume(&ours, &ebs), None, ""),
    ]
}

fn tries_of_the_operator() -> Vec<Try> {
    let host = json!({"hostPath": {"path": "/"}});
    let secret = |kind: &str| {
        let annotations = json!({"kubernetes.io/service-account.name": "default"});
        json!({"apiVersion": "v1", "kind": "Secret", "type": kind,
            "metadata": {"name": "stray", "annotations": annotations}})
    };
    let set = |changes: Value| {
        let mut pod = json!({"automountServiceAccountToken": false, "containers": [{"name": "c",
            "image": "c:1", "securityContext": {"allowPrivilegeEscalation": false}}]});
        merge(&mut pod, &changes);
        workload("apps/v1", "StatefulSet", &pod)
    };
    let idle = |command: Value| {
        json!({"name": "c", "image": "c:1", "command": command,
            "securityContext": {"allowPrivilegeEscalation": false}})
    };
    let pulls = |changes: Value| {
        let mut spec = json!({"automountServiceAccountToken": false, "containers": [idle(json!(["true"]))]});
        merge(&mut spec, &changes);
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray"}, "spec": spec})
    };
    let mounted = || json!({"volumes": [{"name": "host", "hostPath": {"path": "/"}}]});
    let privileged = json!({"containers": [{"name": "c", "image": "c:1",
        "securityContext": {"privileged": true}}]});
    let here = Some(OURS);
    vec![
        (OPERATOR, secret("kubernetes.io/service-account-token"), here, "servicebinding.io/* only"),
        (OPERATOR, secret("servicebinding.io/postgresql"), here, ""),
        (OPERATOR, persistent_volume(&json!({}), &host), None, "of the EBS CSI driver only"),
        (OPERATOR, set(json!({})), here, ""),
        (OPERATOR, set(json!({"automountServiceAccountToken": true})), here, "service account's token"),
        (OPERATOR, set(mounted()), here, "without hostPath"),
        (OPERATOR, set(json!({"hostNetwork": true})), here, "without hostPath"),
        (OPERATOR, set(privileged), here, "without privileged containers"),
        (OPERATOR, pulls(json!({})), here, ""),
        (OPERATOR, pulls(mounted()), here, "run nothing only"),
        (OPERATOR, pulls(json!({"containers": [idle(json!(["sh"]))]})), here, "run nothing only"),
    ]
}

/// What was refused otherwise than it should be.
async fn wrong(env: &TestEnv, tries: Vec<Try>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (user, object, namespace, says) in tries {
        let client = acting_as(&env.control_plane, user).await;
        let answer = try_to_create(&client, &object, namespace).await;
        let is_right = match &answer {
            Ok(()) => says.is_empty(),
            Err(said) => !says.is_empty() && said.contains(says),
        };
        if !is_right {
            wrong.push(format!("{user}, {object}: {answer:?}, and not {says:?}"));
        }
    }
    wrong
}

/// A test environment on a control plane of its own, whose operator watches its namespace alone.
pub(super) async fn own_control_plane(name: &str) -> TestEnv {
    // The policies are the whole cluster's.
    let control_plane = Arc::new(ControlPlane::start(ControlPlaneOptions::named(name)).await.unwrap());
    install(&control_plane).await;
    let options = Options { has_own_rights: true, ..Options::default() };
    let clock = ec2sim::Clock::Running { speed: f64::from(options.scale) };
    let simulator =
        ec2sim::Options { clock, delays: ec2sim::Delays::realistic(), ..ec2sim::Options::default() };
    let site = Site::start(&control_plane, SiteOptions { simulator, ..SiteOptions::fast() }).await.unwrap();
    TestEnv::build_at(control_plane, site, name, options).await
}

#[test]
fn tenants_and_a_stolen_token_are_refused_with_a_sentence_and_databases_live_as_ever() {
    run(async {
        let _permit = permits::of_virtual_machines(Share::One).await;
        let mut env = own_control_plane(OURS).await;
        users(&env).await;
        policies(&env).await;
        let tenant = acting_as(&env.control_plane, TENANT).await;
        let explicit = json!({"tolerations": [{"key": "freehold.dev/dedicated", "operator": "Exists"}]});
        until("the policies being in force", || async {
            let answer = try_to_create(&tenant, &pod(&explicit), Some(THEIRS)).await;
            seen(answer.is_err().then_some(()), || format!("{answer:?}"))
        })
        .await;
        let tries = [tries_of_pods(), tries_of_children_and_volumes(), tries_of_the_operator()].concat();
        let wrong = wrong(&env, tries).await;
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));

        env.start_operator();
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        existing_objects(&env, &tenant).await;
        orphaning(&env).await;
        super::release::takes_a_right_of_its_own(&env, TENANT).await;
        secrets(&env).await;
        env.edit("orders", &json!({"storage": {"size": "200Gi"}})).await;
        env.ready("orders").await;
        env.edit("orders", &json!({"access": {"passwordGeneration": 2}})).await;
        env.ready("orders").await;
        env.edit("orders", &json!({"engine": {"version": "9.3.5"}})).await;
        env.ready("orders").await;
        env.edit("orders", &json!({"running": false})).await;
        env.until_condition("orders", "Ready", "False", "Paused").await;
        env.edit("orders", &json!({"running": true})).await;
        env.ready("orders").await;
        env.delete("orders").await;
        env.gone("orders").await;
        env.close().await;
    });
}

/// The deletion of a Database with the propagation policy Orphan is refused, whoever tries and however the
/// policy is given, and with the policy Foreground that of one that is to be released; any other is not.
async fn orphaning(env: &TestEnv) {
    let databases = env.api::<Database>();
    let params = |propagation_policy: Option<PropagationPolicy>| DeleteParams {
        dry_run: true,
        propagation_policy,
        ..DeleteParams::default()
    };
    let by_options = databases.delete("orders", &params(Some(PropagationPolicy::Orphan))).await;
    databases.delete("orders", &params(None)).await.unwrap();
    let finalizers = |it: &[&str]| Patch::Merge(json!({"metadata": {"finalizers": it}}));
    let write = PatchParams::default();
    databases.patch("orders", &write, &finalizers(&[FINALIZER, "orphan"])).await.unwrap();
    let by_finalizer = databases.delete("orders", &params(None)).await;
    databases.delete("orders", &params(Some(PropagationPolicy::Background))).await.unwrap();
    databases.patch("orders", &write, &finalizers(&[FINALIZER])).await.unwrap();
    for answer in [by_options, by_finalizer] {
        let refused = answer.unwrap_err().to_string();
        assert!(refused.contains("propagation policy Orphan"), "{refused}");
    }
}

/// The operator changes no Secret but those of its databases, whatever their types.
async fn secrets(env: &TestEnv) {
    let foreign = json!({"apiVersion": "v1", "kind": "Secret", "type": "servicebinding.io/postgresql",
        "metadata": {"name": "foreign"}});
    env.api::<Secret>()
        .create(&PostParams::default(), &serde_json::from_value(foreign).unwrap())
        .await
        .unwrap();
    let operator = acting_as(&env.control_plane, OPERATOR).await;
    let secrets = Api::<Secret>::namespaced(operator, OURS);
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    let changed = Patch::Merge(json!({"data": {"password": "bmV3"}}));
    let refused = secrets.patch("foreign", &dry, &changed).await.unwrap_err().to_string();
    assert!(refused.contains("the Secrets of its databases only"), "{refused}");
    secrets.patch("orders-admin", &dry, &changed).await.unwrap();
}

/// What exists is not edited by others; that it may be deleted, and a finalizer removed, stays.
async fn existing_objects(env: &TestEnv, tenant: &Client) {
    let node = env.list::<Node>().await.remove(0).name_any();
    let nodes = Api::<Node>::namespaced(tenant.clone(), OURS);
    let volume = env.list::<Volume>().await.remove(0);
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    let spec = Patch::Merge(json!({"spec": {"instanceTypes": ["p5.48xlarge"]}}));
    let refused = nodes.patch(&node, &dry, &spec).await.unwrap_err().to_string();
    assert!(refused.contains("edit the Database"), "{refused}");
    let annotated = Patch::Merge(json!({"metadata": {"annotations": {"example.com/seen": "yes"}}}));
    nodes.patch(&node, &dry, &annotated).await.unwrap();
    nodes.delete(&node, &DeleteParams { dry_run: true, ..DeleteParams::default() }).await.unwrap();
    disks(env, tenant, &volume).await;

    let volumes = Api::<PersistentVolume>::all(tenant.clone());
    let record = freehold::api::names::persistent_volume(&volume.uid().unwrap());
    let params = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let refused = volumes.delete(&record, &params).await.unwrap_err().to_string();
    assert!(refused.contains("freehold.dev/volume-uid"), "{refused}");
    let bare = Patch::Merge(json!({"metadata": {"labels": {"freehold.dev/volume-uid": null}}}));
    let refused = volumes.patch(&record, &dry, &bare).await.unwrap_err().to_string();
    assert!(refused.contains("freehold.dev/volume-uid"), "{refused}");
}

/// A Volume is deleted with its Database alone, and the size of its claim is the Database's: another tenant
/// can do neither, and the platform team can.
async fn disks(env: &TestEnv, tenant: &Client, volume: &Volume) {
    let platform = acting_as(&env.control_plane, PLATFORM).await;
    let (name, dry) = (volume.name_any(), DeleteParams { dry_run: true, ..DeleteParams::default() });
    let deleted =
        async |client: &Client| Api::<Volume>::namespaced(client.clone(), OURS).delete(&name, &dry).await;
    let refused = deleted(tenant).await.unwrap_err().to_string();
    assert!(refused.contains("delete the Database"), "{refused}");
    deleted(&platform).await.unwrap();
    let larger = Patch::Merge(json!({"spec": {"resources": {"requests": {"storage": "2Ti"}}}}));
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    let grown = async |client: &Client| {
        Api::<PersistentVolumeClaim>::namespaced(client.clone(), OURS).patch(&name, &dry, &larger).await
    };
    let refused = grown(tenant).await.unwrap_err().to_string();
    assert!(refused.contains("spec.storage.size"), "{refused}");
    grown(&platform).await.unwrap();
}
