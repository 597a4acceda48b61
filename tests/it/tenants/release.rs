//! Who may release a database: not everybody who may write it, since what is released costs as before and
//! counts in no limit.

use freehold::api::Database;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::Kubeconfig;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::adopter::{self, PERSON};
use crate::kit::env::Env as _;
use crate::kit::objects;
use crate::kit::process;
use crate::kit::rights::acting_as;
use crate::kit::test_env::TestEnv;
use crate::kit::wait::{seen, until};

/// Who has the verb `release` on the Database `orders` beside the rights of a tenant.
const RELEASER: &str = "releaser";

/// `spec.release` of `orders`, and of a new Database, is set by who has the right, and not by this tenant,
/// who may write Databases; each of the two sets it back.
pub(super) async fn takes_a_right_of_its_own(env: &TestEnv, tenant: &str) {
    give_the_right(env).await;
    for (user, is_allowed) in [(tenant, false), (RELEASER, true)] {
        let databases = databases_of(env, user).await;
        let released = write(&databases, json!({"spec": {"release": true}}), true).await;
        is_refused_unless(is_allowed, released);
        write(&databases, json!({"spec": {"release": false}}), true).await.unwrap();
    }
    let databases = databases_of(env, tenant).await;
    let new = objects::database(&env.name, &env.name, "further", &json!({"release": true}));
    let new = serde_json::from_value(new).unwrap();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let created = databases.create(&dry, &new).await.map(drop).map_err(|error| error.to_string());
    is_refused_unless(false, created);

    let (code, report) = release(env, tenant, &["--write"]).await;
    assert_eq!(code, Some(2), "{report}");
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the verb release on databases.freehold.dev"), "{report}");
    let of_releaser = release(env, RELEASER, &[]).await;
    assert_eq!(of_releaser.0, Some(0), "{}", of_releaser.1);

    // What the platform team has set stays through another edit, and is set back by the tenant.
    let admins = env.api::<Database>();
    write(&admins, json!({"spec": {"release": true}}), false).await.unwrap();
    write(&databases, json!({"metadata": {"labels": {"team": "a"}}}), true).await.unwrap();
    write(&databases, json!({"spec": {"release": false}}), false).await.unwrap();

    // Without the policy everybody may who may write the Database.
    let policies = Api::<ValidatingAdmissionPolicyBinding>::all(env.client.clone());
    let all = policies.list(&ListParams::default()).await.unwrap();
    let policy = all.items.iter().find(|it| it.name_any().ends_with("-release")).unwrap().name_any();
    policies.delete(&policy, &DeleteParams::default()).await.unwrap();
    until("the policy being gone", || async {
        let (code, report) = release(env, tenant, &[]).await;
        seen((code == Some(0)).then_some(()), || report)
    })
    .await;
}

/// Who may write Databases and release `orders`.
async fn give_the_right(env: &TestEnv) {
    let rules = json!([
        {"apiGroups": ["freehold.dev"], "resources": ["databases"], "verbs": ["get", "list", "patch"]},
        {"apiGroups": ["freehold.dev"], "resources": ["databases"], "resourceNames": ["orders"],
            "verbs": ["release"]},
        {"apiGroups": ["freehold.dev"], "resources": ["nodes", "volumes"], "verbs": ["get", "list"]},
        {"apiGroups": ["", "apps"], "resources": ["persistentvolumes", "pods", "statefulsets"],
            "verbs": ["get"]},
    ]);
    let role = json!({"metadata": {"name": RELEASER}, "rules": rules});
    let granted = Api::<ClusterRole>::all(env.client.clone());
    granted.create(&PostParams::default(), &serde_json::from_value(role).unwrap()).await.unwrap();
    let binding = json!({
        "metadata": {"name": RELEASER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": RELEASER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": RELEASER}],
    });
    let binding = serde_json::from_value(binding).unwrap();
    Api::<ClusterRoleBinding>::all(env.client.clone())
        .create(&PostParams::default(), &binding)
        .await
        .unwrap();
}

async fn databases_of(env: &TestEnv, user: &str) -> Api<Database> {
    Api::namespaced(acting_as(&env.control_plane, user).await, &env.name)
}

async fn write(databases: &Api<Database>, patch: Value, dry_run: bool) -> Result<(), String> {
    let params = PatchParams { dry_run, ..PatchParams::default() };
    let answer = databases.patch("orders", &params, &Patch::Merge(patch)).await;
    answer.map(drop).map_err(|error| error.to_string())
}

fn is_refused_unless(is_allowed: bool, answer: Result<(), String>) {
    let refused = answer.err().unwrap_or_default();
    let says = if is_allowed { "" } else { "users with the verb release on databases.freehold.dev" };
    assert!(refused.is_empty() == is_allowed && refused.contains(says), "{refused:?}, and not {says:?}");
}

/// Runs `freehold release` for `orders` as this user.
async fn release(env: &TestEnv, user: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let mut kubeconfig = Kubeconfig::read_from(env.control_plane.kubeconfig()).unwrap();
    kubeconfig.auth_infos[0].auth_info.as_mut().unwrap().impersonate = Some(user.to_owned());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), serde_json::to_string(&kubeconfig).unwrap()).unwrap();
    let environment = process::environment(file.path(), &env.site.endpoint(), env.site.region(), PERSON);
    let target = format!("{}/orders", env.name);
    adopter::freehold_in(&environment, &[&["release", &target], arguments].concat()).await
}
