//! The rig's API server against a real one: scripts of requests are sent to both, and the answers compared.
//!
//! A script is data, in `same_api/scripts`; the doc of [`script`] says how one is written. What differs by
//! nature (UIDs, resourceVersions, times, generated names, addresses) is masked, equal where the values are
//! equal.

mod mask;
mod run;
mod schemas;
mod script;

use std::sync::Arc;

use freehold::definitions;
use freehold_box::cluster::control_plane::{ApiServer, ControlPlaneOptions};
use freehold_rig::{Clock, Server};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::kit::test_env::run;
use crate::kit::wait::{seen, until};

/// A real API server with the resource definitions, for all scripts.
async fn real() -> Client {
    static SERVER: OnceCell<Arc<ApiServer>> = OnceCell::const_new();
    let server = SERVER.get_or_init(|| async {
        let server = ApiServer::start(ControlPlaneOptions::named("same-api")).await.unwrap();
        let api = Api::<CustomResourceDefinition>::all(server.client());
        for definition in definitions::all() {
            api.create(&PostParams::default(), &definition).await.unwrap();
        }
        for definition in definitions::all() {
            let names = definition.spec.names.plural;
            until("the resource definitions being served", || async {
                let path = format!("/apis/freehold.dev/v1alpha1/{names}");
                let request = http::Request::get(path).body(Vec::new()).unwrap();
                let answer = server.client().request_text(request).await;
                seen(answer.ok(), || format!("{names} is not served"))
            })
            .await;
        }
        Arc::new(server)
    });
    server.await.client()
}

/// The rig with the resource definitions.
fn rig() -> Client {
    let server = Server::new(Clock::of_tokio(Timestamp::UNIX_EPOCH));
    for definition in definitions::all() {
        server.define(&json!(definition));
    }
    server.client("test")
}

/// Every script of a file on both servers; all differences at once.
fn same(file: &str) {
    run(async {
        let (real, rig) = (real().await, rig());
        let mut differences = Vec::new();
        for (number, script) in script::of_file(file).into_iter().enumerate() {
            let namespace = format!("{file}-{number}");
            let wanted = mask::masked(run::answers(&real, &script, &namespace).await, &script, &namespace);
            let found = mask::masked(run::answers(&rig, &script, &namespace).await, &script, &namespace);
            differences.extend(mask::difference(&script, &wanted, &found));
        }
        assert!(differences.is_empty(), "{} scripts differ:\n{}", differences.len(), differences.join("\n"));
    });
}

/// The files of scripts; each is a test of its own, so that its name says what differs.
const FILES: [&str; 11] = [
    "create", "update", "patch", "apply", "status", "delete", "list", "watch", "custom", "kinds", "refusals",
];

#[test]
fn objects_are_created_alike() {
    same("create");
}

#[test]
fn objects_are_updated_alike() {
    same("update");
}

#[test]
fn objects_are_patched_alike() {
    same("patch");
}

#[test]
fn configurations_are_applied_alike() {
    same("apply");
}

#[test]
fn the_status_is_written_alike() {
    same("status");
}

#[test]
fn objects_are_deleted_alike() {
    same("delete");
}

#[test]
fn objects_are_listed_alike() {
    same("list");
}

#[test]
fn changes_are_watched_alike() {
    same("watch");
}

#[test]
fn custom_resources_are_checked_alike() {
    same("custom");
}

#[test]
fn each_built_in_kind_is_filled_in_alike() {
    same("kinds");
}

#[test]
fn requests_are_refused_alike() {
    same("refusals");
}

#[test]
fn every_file_of_scripts_is_run_and_each_script_has_a_name_of_its_own() {
    let mut files = script::files();
    files.sort();
    let mut known = FILES.map(str::to_owned).to_vec();
    known.sort();
    assert_eq!(files, known);
    let mut names: Vec<String> =
        FILES.iter().flat_map(|file| script::of_file(file)).map(|it| it.name).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all, "two scripts have one name");
}
