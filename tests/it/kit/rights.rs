//! The operator's rights: in every test it has those that the chart gives it and no others, and which of them
//! it used is noted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use freehold_box::cluster::audit::{self, Request};
use freehold_box::cluster::control_plane::{ControlPlane, OPERATOR_USER};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::chart::{of_kind, template};
use super::notes;

/// The service account of a chart that is installed by a test ends with this.
const ACCOUNT: &str = ":freehold";

/// The namespace of the release whose rights the operator's user has.
const RELEASE: &str = "tests";

/// As which the operators of tests ask kubelets.
pub const KUBELET_ACCOUNT: &str = "tests/freehold-kubelets";

/// Gives the operator's user what the chart gives its service account.
pub async fn grant(control_plane: &ControlPlane) {
    let mut rendered = template(RELEASE, &["--set", "rbac.aggregate=false"]).await.unwrap();
    // It is the operator of every test's namespaces, each of which has a Lease of another name.
    for rule in rendered.iter_mut().filter_map(|document| document["rules"].as_array_mut()).flatten() {
        rule.as_object_mut().unwrap().remove("resourceNames");
    }
    let client = control_plane.client();
    make(&Api::<Namespace>::all(client.clone()), json!({"metadata": {"name": RELEASE}})).await;
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), RELEASE);
    make(&accounts, of_kind(&rendered, "ServiceAccount")[1].clone()).await;
    give(&client, rendered, &json!([{"kind": "User", "name": OPERATOR_USER}])).await;
}

/// Makes the service account of a release of the chart in this namespace that watches these ones, with its
/// rights; gives a token of it.
pub async fn account(client: &Client, namespace: &str, watched: &[&str]) -> String {
    let watched = format!("namespaces={{{}}}", watched.join(","));
    let rendered = template(namespace, &["--set", &watched, "--set", "rbac.aggregate=false"]).await.unwrap();
    let subjects = of_kind(&rendered, "ClusterRoleBinding")[0]["subjects"].clone();
    let name = subjects[0]["name"].as_str().unwrap().to_owned();
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
    make(&accounts, of_kind(&rendered, "ServiceAccount")[0].clone()).await;
    give(client, rendered, &subjects).await;
    let request = serde_json::from_value(json!({"spec": {"audiences": []}})).unwrap();
    let answer = accounts.create_token_request(&name, &PostParams::default(), &request).await.unwrap();
    answer.status.unwrap().token
}

/// A client that acts as this user.
pub async fn acting_as(control_plane: &ControlPlane, user: &str) -> Client {
    let mut kubeconfig = Kubeconfig::read_from(control_plane.kubeconfig()).unwrap();
    let auth = kubeconfig.auth_infos[0].auth_info.as_mut().unwrap();
    auth.impersonate = Some(user.to_owned());
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// Makes the roles among these documents, and their bindings for these subjects.
pub async fn give(client: &Client, documents: Vec<Value>, subjects: &Value) {
    for mut document in documents {
        // The account as which kubelets are asked keeps its own.
        let is_of_kubelets =
            document["subjects"][0]["name"].as_str().is_some_and(|it| it.ends_with("-kubelets"));
        if document["subjects"].is_array() && !is_of_kubelets {
            document["subjects"].clone_from(subjects);
        }
        match document["kind"].as_str() {
            Some("ClusterRole") => make::<ClusterRole>(&Api::all(client.clone()), document).await,
            Some("ClusterRoleBinding") => {
                make::<ClusterRoleBinding>(&Api::all(client.clone()), document).await;
            }
            Some("Role") => {
                make::<Role>(&Api::namespaced(client.clone(), &namespace_of(&document)), document).await;
            }
            Some("RoleBinding") => {
                make::<RoleBinding>(&Api::namespaced(client.clone(), &namespace_of(&document)), document)
                    .await;
            }
            Some(_) | None => {}
        }
    }
}

fn namespace_of(document: &Value) -> String {
    document["metadata"]["namespace"].as_str().unwrap_or_default().to_owned()
}

async fn make<K>(api: &Api<K>, document: Value)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(document).unwrap()).await.unwrap();
}

/// A right in words: `verb group resource`.
fn right(verb: &str, group: &str, resource: &str) -> String {
    format!("{verb} {} {resource}", if group.is_empty() { "core" } else { group })
}

/// The rights that the roles among these documents give.
pub fn granted(documents: &[Value]) -> BTreeSet<String> {
    let texts = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    let mut all = BTreeSet::new();
    for rule in documents.iter().filter_map(|document| document["rules"].as_array()).flatten() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                all.extend(texts(&rule["verbs"]).iter().map(|verb| right(verb, &group, &resource)));
            }
        }
    }
    all
}

/// The name of the notes.
const NOTES: &str = "rights-used";

/// The rights that were noted.
pub fn used() -> BTreeSet<String> {
    notes::read(NOTES)
}

/// What the operators on this control plane requested of the API server since this was last called.
fn requests(control_plane: &ControlPlane) -> Vec<Request> {
    static READ: Mutex<BTreeMap<PathBuf, u64>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let log = control_plane.audit_log();
    let requests = audit::requests_since(&log, read.entry(log.clone()).or_default()).unwrap();
    let is_operator = |user: &str| {
        user == OPERATOR_USER || user.starts_with("system:serviceaccount:") && user.ends_with(ACCOUNT)
    };
    requests.into_iter().filter(|request| is_operator(&request.user)).collect()
}

/// Leaves out what was requested since the last note: helm removes the rights of an operator while it is
/// still being stopped.
pub fn leave_out(control_plane: &ControlPlane) {
    requests(control_plane);
}

/// Notes what the operators on this control plane have asked of the API server so far; fails when they lacked
/// a right.
pub fn note(control_plane: &ControlPlane) {
    let ours = requests(control_plane);
    let lacked: BTreeSet<_> = ours
        .iter()
        .filter(|request| request.is_forbidden)
        .map(|request| {
            format!("{} in {}", right(&request.verb, &request.group, &request.resource), request.namespace)
        })
        .collect();
    assert!(
        lacked.is_empty(),
        "the chart does not give the operator what it asks for (templates/_rules.tpl): {lacked:?}"
    );
    notes::add(NOTES, &ours.iter().flat_map(requested).collect());
}

/// The rights that a request took: an apply that makes the object needs the right to create it, too.
fn requested(request: &Request) -> impl Iterator<Item = String> + use<> {
    let creates = request.verb == "patch" && request.code == 201;
    let place = |verb: &str| right(verb, &request.group, &request.resource);
    [Some(place(&request.verb)), creates.then(|| place("create"))].into_iter().flatten()
}
