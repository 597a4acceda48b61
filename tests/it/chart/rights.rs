//! The rights that the chart gives: to the operator no more than it uses, to tenants no more than Databases.

use std::collections::BTreeSet;

use freehold::api::Database;
use freehold::leadership::scope::Scope;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::rendered;
use crate::adoption;
use crate::kit::chart::{of_kind, template};
use crate::kit::env::Env as _;
use crate::kit::objects::{self, Told as _};
use crate::kit::rights;
use crate::kit::test_env::{self, Options, TestEnv, run};
use crate::kit::wait::{seen, until};
use crate::tenants::alone::{self, Intruder};

/// Whether this user may do that in this namespace.
async fn may(client: &Client, user: &str, verb: &str, resource: &str, namespace: &str) -> bool {
    let attributes = json!({"group": "freehold.dev", "verb": verb, "resource": resource,
    "namespace": namespace});
    let review = serde_json::from_value(json!({"spec": {"user": user,
    "resourceAttributes": attributes}}))
    .unwrap();
    let reviewed = Api::<SubjectAccessReview>::all(client.clone())
        .create(&PostParams::default(), &review)
        .await
        .unwrap();
    reviewed.status.unwrap().allowed
}

#[test]
fn no_right_is_a_wildcard_and_no_secret_is_listed() {
    run(async {
        for args in [&[][..], &["--set", "namespaces={team-a,team-b}"][..]] {
            let granted = rights::granted(&rendered(args).await);
            assert!(!granted.iter().any(|right| right.contains('*')), "{granted:?}");
            for right in [
                "list core secrets",
                "watch core secrets",
                "create core pods",
                "create core pods/exec",
                "patch core secrets/*",
            ] {
                assert!(!granted.contains(right), "{right}");
            }
            for (verb, place) in granted.iter().filter_map(|right| right.split_once(' ')) {
                let is_power =
                    ["escalate", "bind", "impersonate"].contains(&verb) || place.starts_with("rbac.");
                assert!(!is_power && place != "core nodes/proxy", "{verb} {place}");
            }
        }
    });
}

#[test]
fn the_rights_to_what_lies_in_namespaces_are_for_those_that_are_watched() {
    run(async {
        let all = rendered(&["--set", "rbac.aggregate=false"]).await;
        let some = rendered(&["--set", "rbac.aggregate=false", "--set", "namespaces={team-a,team-b}"]).await;
        let granted = rights::granted(&all);
        let of_some = rights::granted(&some);
        let more: Vec<&str> = granted.difference(&of_some).map(String::as_str).collect();
        let of_node_classes = ["patch freehold.dev nodeclasses", "patch freehold.dev nodeclasses/status"];
        assert_eq!(more, of_node_classes);
        assert!(of_some.is_subset(&granted));
        let across: Vec<Value> = of_kind(&some, "ClusterRole").into_iter().cloned().collect();
        for right in rights::granted(&across) {
            let resource = right.rsplit(' ').next().unwrap();
            // Across namespaces nothing is read but which pods a machine has and what they use, and nothing
            // done but to evict them.
            let of_the_cluster = [
                "nodeclasses",
                "nodes",
                "nodes/stats",
                "persistentvolumes",
                "storageclasses",
                "namespaces",
                "csinodes",
                "volumeattachments",
                "customresourcedefinitions",
            ];
            assert!(
                of_the_cluster.contains(&resource)
                    || ["list core pods", "delete core pods"].contains(&right.as_str()),
                "{right}"
            );
        }
        let roles: BTreeSet<_> = of_kind(&some, "Role")
            .iter()
            .map(|role| role["metadata"]["namespace"].as_str().unwrap())
            .collect();
        let expected = ["freehold-system", "kube-node-lease", "kube-system", "team-a", "team-b"];
        assert_eq!(roles, BTreeSet::from(expected));
    });
}

/// Nothing of Kubernetes' own can be taken with it: the Leases of its controllers are in the same namespace.
#[test]
fn the_operator_changes_no_lease_but_its_own() {
    run(async {
        for (namespaces, scope) in [("", vec![]), ("team-b,team-a", vec!["team-a", "team-b"])] {
            let set = format!("namespaces={{{namespaces}}}");
            let args = ["--set", set.as_str()];
            let rendered = rendered(if namespaces.is_empty() { &[] } else { &args }).await;
            let roles = of_kind(&rendered, "Role");
            let role = roles.iter().find(|role| role["metadata"]["namespace"] == "kube-system").unwrap();
            let name = Scope::new(scope).lease_name();
            let expected = json!([
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list", "create"]},
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [name],
                    "verbs": ["update"]},
                {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
            ]);
            assert_eq!(role["rules"], expected);
        }
    });
}

#[test]
fn tenants_write_databases_and_never_what_they_are_made_of() {
    run(async {
        let client = test_env::control_plane().await.client();
        let name = "tenants";
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        let aggregated = template(name, &["--set", "rbac.create=false"]).await.unwrap();
        rights::give(&client, aggregated, &json!([])).await;
        for role in ["admin", "edit", "view"] {
            let binding = json!({
                "metadata": {"name": role}, "subjects": [{"kind": "User", "name": role}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            });
            let bindings = Api::<RoleBinding>::namespaced(client.clone(), name);
            bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
        }
        until("the built-in roles being added to", || async {
            // What is added to one of them is added to the next one later.
            let is_added = may(&client, "view", "get", "databases", name).await
                && may(&client, "edit", "create", "databases", name).await
                && may(&client, "admin", "delete", "databases", name).await
                && may(&client, "admin", "list", "databases", name).await;
            seen(is_added.then_some(()), || "not yet".to_owned())
        })
        .await;
        let writes = ["create", "update", "patch", "delete", "deletecollection"];
        for user in ["admin", "edit", "view"] {
            for resource in ["databases", "databaseusers", "backups", "backupschedules", "nodes", "volumes"] {
                assert!(may(&client, user, "list", resource, name).await, "{user} reads {resource}");
                for verb in writes {
                    let expected = !["nodes", "volumes"].contains(&resource) && user != "view";
                    assert_eq!(
                        may(&client, user, verb, resource, name).await,
                        expected,
                        "{user} {verb} {resource}"
                    );
                }
            }
            assert!(!may(&client, user, "release", "databases", name).await, "{user} releases databases");
            for resource in [
                "databases/status",
                "nodes/status",
                "volumes/status",
                "backupschedules/status",
                "databaseusers/status",
                "nodeclasses",
            ] {
                for verb in writes {
                    assert!(!may(&client, user, verb, resource, name).await, "{user} {verb} {resource}");
                }
            }
        }
    });
}

#[test]
fn an_operator_of_two_namespaces_runs_the_databases_of_both_and_needs_no_rights_in_others() {
    run(async {
        let options = Options {
            has_own_rights: true,
            second_namespace: Some("both-further"),
            ..Options::with([("foreign-pod-grace", 2)])
        };
        let mut env = TestEnv::start_with("both", options).await;
        env.create("orders", &json!({"deletionPolicy": "Snapshot"})).await;
        env.ready("orders").await;
        // Another tenant's pod is deleted from the machine, though its namespace is not watched.
        let intruder = Intruder::settle(&env).await;
        intruder.squat("stray", &alone::machine(&env).await).await;
        intruder.is_evicted("stray").await;
        until("the event about it", || async {
            let events = alone::events(&env, "ForeignPodEvicted").await;
            let names = events.iter().any(|note| note.contains("pod both-b/stray is deleted"));
            seen(names.then_some(()), || format!("{events:?}"))
        })
        .await;
        assert_eq!(env.live_instances().len(), 1, "the database serves on");
        in_the_second_namespace(&env).await;
        env.edit("orders", &json!({"running": false})).await;
        env.until_condition("orders", "Ready", "False", "Paused").await;
        env.delete("orders").await;
        env.gone("orders").await;
        intruder.leave().await;
        env.close().await;
    });
}

/// A database lives and ends in the second namespace, and its volume is listed as retained.
async fn in_the_second_namespace(env: &TestEnv) {
    let databases = Api::<Database>::namespaced(env.client.clone(), "both-further");
    adoption::nothing_is_listed(env.control_plane.kubeconfig(), "both-further");
    let further = objects::database("both-further", &env.name, "orders", &json!({}));
    databases.create(&PostParams::default(), &serde_json::from_value(further).unwrap()).await.unwrap();
    until("the database of the second namespace being Ready", || async {
        let condition = databases.get("orders").await.unwrap().condition("Ready");
        seen((condition.0 == "True").then_some(()), || format!("{condition:?}"))
    })
    .await;
    databases.delete("orders", &DeleteParams::default()).await.unwrap();
    until("the database of the second namespace being gone", || async {
        let left = databases.get_opt("orders").await.unwrap();
        seen(left.is_none().then_some(()), || format!("{:?}", left.unwrap().condition("Ready")))
    })
    .await;
    adoption::is_listed(env, "both-further").await;
}

#[test]
fn the_operator_may_act_as_one_other_account_which_may_read_statistics_and_nothing_else() {
    run(async {
        let documents = rendered(&[]).await;
        let rules = |of: &Value| of["rules"].as_array().cloned().unwrap_or_default();
        let of_tokens = |rule: &Value| rule["resources"].to_string().contains("serviceaccounts/token");
        let of_account: Vec<&Value> = documents.iter().filter(|it| rules(it).iter().any(of_tokens)).collect();
        let [role] = of_account.as_slice() else { panic!("{of_account:#?}") };
        assert_eq!((role["kind"].as_str(), rules(role).len()), (Some("Role"), 1), "of one namespace");
        let account = rules(role)[0]["resourceNames"].clone();
        assert_eq!(account, json!(["freehold-kubelets"]));
        let is_of_account = |it: &&Value| {
            it["subjects"].to_string().contains("freehold-kubelets") && it["roleRef"].is_object()
        };
        let bound: Vec<&Value> = documents.iter().filter(is_of_account).map(|it| &it["roleRef"]).collect();
        let [bound] = bound.as_slice() else { panic!("{bound:#?}") };
        let has = documents
            .iter()
            .find(|it| it["kind"] == bound["kind"] && it["metadata"]["name"] == bound["name"]);
        let expected = json!([{"apiGroups": [""], "resources": ["nodes/stats"], "verbs": ["get"]}]);
        assert_eq!(has.unwrap()["rules"], expected);
    });
}

#[test]
#[ignore = "it judges a whole run of the other tests: .ci/run runs it after them"]
fn the_operator_has_no_right_that_it_does_not_use() {
    run(async {
        let granted = rights::granted(&rendered(&["--set", "rbac.aggregate=false"]).await);
        let used = rights::used();
        assert!(!used.is_empty(), "nothing was noted: run `cargo test` first");
        // Not the API server but kubelets decide by this one:
        // real::faults::a_full_disk_grows_by_itself_and_brings_the_database_back_without_a_restart needs it.
        let of_kubelets = BTreeSet::from(["get core nodes/stats".to_owned()]);
        assert!(granted.is_superset(&of_kubelets));
        let used = &used | &of_kubelets;
        let unused: Vec<_> = granted.difference(&used).collect();
        assert!(
            unused.is_empty(),
            "no test made the operator use these rights of the chart (templates/_rules.tpl): {unused:#?}"
        );
    });
}
