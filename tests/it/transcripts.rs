//! The reference transcripts: what the operator asks of EC2 and of the API server in five lives of a
//! database, word for word.
//!
//! A life is run on the rig, in virtual time; what the operator wrote and called is compared with two files
//! of `tests/it/transcripts`: `<life>.txt` has the writes, the calls, and the status of each condition at the
//! end; `<life>.words.txt` has everything that is said: messages, causes, reasons, events. A change of
//! wording touches the second only. `FREEHOLD_BLESS=1 cargo test --test it transcripts::` writes them anew.
//!
//! Writes and calls stand under the object whose controller made them, in their exact order: a controller
//! works on one object at a time, so this order is the protocol (finalizer, intent, call, id), across the API
//! server and EC2. Between two objects there is no order but what they wait for; the calls of all to EC2,
//! which wait for each other in these lives, are listed once more in theirs.
//!
//! Masked, each by a placeholder that is the same wherever the same thing stands: ids of instances, volumes
//! and snapshots, names of Kubernetes nodes, UIDs, names with a hash of a UID, tokens (by owner and attempt),
//! the password, the namespace, the hash of the box's user data, resourceVersions, times. What
//! has no placeholder is what it is.
//!
//! Left out, since it depends on timing alone:
//! * reads;
//! * writes that were refused because the view was old (409): the next pass decides anew;
//! * a PATCH, a DELETE, or a call that ends something, which repeats the last one about the same object to
//!   the letter: a copy of the API server's objects may be a moment old;
//! * of the closing status patch of a pass: how what it tells is spread over patches. Each of its fields is
//!   listed with its values in their order, but for `observedGeneration`, `run.since`, the conditions, and
//!   `applied`, whose fingerprints hold UIDs;
//! * the states that conditions go through: only those at the end are listed, of the objects that are there
//!   then;
//! * the order of events, and how often the same one came; the events that tell of slowness
//!   (MachineSuspected, RepairPostponed); and of NotReady what was missing first;
//! * the taints that Kubernetes puts on a node by itself, in a patch of all its taints.

mod mask;
mod sheet;
mod step;
mod writes;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ec2sim::{InstanceState, Outside};
use freehold::api::{Database, Node};
use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::Api;
use kube::api::ListParams;
use pretty_assertions::StrComparison;
use serde_json::json;

use self::sheet::{DATABASE, Mark, Transcript, transcript};
use crate::kit::env::Env as _;
use crate::kit::is_set;
use crate::kit::rig_env::{RigEnv, run};
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

/// The API group of the resources.
const GROUP: &str = "freehold.dev";

/// An environment with a database that runs, and of whose creation nothing is left to follow.
async fn running(changes: &serde_json::Value) -> RigEnv {
    let env = RigEnv::start().await;
    env.create(DATABASE, changes).await;
    env.ready(DATABASE).await;
    env.house.rest().await;
    env
}

/// Waits until this machine is over, with its Node and its Kubernetes node.
async fn over(env: &RigEnv, machine: &str) {
    within(CALM, "the old machine being over", || async {
        let nodes = env.list::<Node>().await.len();
        let state = env.ec2().instance(machine).map(|view| view.state);
        let core_nodes = Api::<CoreNode>::all(env.client())
            .list(&ListParams::default())
            .await
            .map_err(|error| error.to_string())?;
        let is_its = |node: &CoreNode| {
            node.spec
                .as_ref()
                .and_then(|spec| spec.provider_id.as_ref())
                .is_some_and(|id| id.ends_with(machine))
        };
        let held: Vec<String> =
            core_nodes.items.iter().filter(|node| is_its(node)).map(kube::ResourceExt::name_any).collect();
        let database = env.api::<Database>().get(DATABASE).await.map_err(|error| error.to_string())?;
        let replacement = database.status.and_then(|status| status.replacement);
        let is_over = nodes == 1
            && state == Some(InstanceState::Terminated)
            && held.is_empty()
            && replacement.is_none();
        seen(is_over.then_some(()), || format!("{nodes} Nodes, {state:?}, {held:?}, {replacement:?}"))
    })
    .await;
}

#[test]
fn a_creation_asks_for_what_it_always_did() {
    run(|| async {
        let env = running(&json!({"storage": {"iops": 3000, "throughput": 125}})).await;
        is_as_ever(&env, "create", "A database is created, until it is Ready", Mark::default()).await;
        env.close().await;
    });
}

#[test]
fn a_growth_asks_for_what_it_always_did() {
    run(|| async {
        let env = running(&json!({"storage": {"iops": 3000, "throughput": 125}})).await;
        let from = Mark::of(&env);
        env.edit(DATABASE, &json!({"storage": {"size": "200Gi", "iops": 6000}})).await;
        env.ready(DATABASE).await;
        is_as_ever(&env, "grow", "The disk of a database grows and becomes faster", from).await;
        env.close().await;
    });
}

#[test]
fn a_move_asks_for_what_it_always_did() {
    run(|| async {
        let env = running(&json!({"instanceTypes": ["r7i.large"]})).await;
        let machine = env.live_instances().remove(0).id;
        let from = Mark::of(&env);
        env.edit(DATABASE, &json!({"instanceTypes": ["m7i.large"]})).await;
        over(&env, &machine).await;
        env.ready(DATABASE).await;
        is_as_ever(&env, "move", "A database moves to a machine of another type", from).await;
        env.close().await;
    });
}

#[test]
fn a_loss_asks_for_what_it_always_did() {
    run(|| async {
        let env = running(&json!({})).await;
        let machine = env.live_instances().remove(0).id;
        let from = Mark::of(&env);
        env.ec2().outside(&Outside::Terminate.to(&machine)).unwrap();
        over(&env, &machine).await;
        env.ready(DATABASE).await;
        is_as_ever(
            &env,
            "loss",
            "The machine of a database is terminated outside Freehold, and is replaced",
            from,
        )
        .await;
        env.close().await;
    });
}

#[test]
fn a_deletion_asks_for_what_it_always_did_under_each_policy() {
    for policy in ["Retain", "Snapshot", "Delete"] {
        run(|| async move {
            let env = running(&json!({"deletionPolicy": policy})).await;
            let from = Mark::of(&env);
            env.delete(DATABASE).await;
            env.gone(DATABASE).await;
            let life = format!("delete-{}", policy.to_lowercase());
            let title = format!("A database is deleted under deletionPolicy {policy}");
            is_as_ever(&env, &life, &title, from).await;
            env.close().await;
        });
    }
}

fn golden(life: &str) -> [PathBuf; 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/transcripts");
    [folder.join(format!("{life}.txt")), folder.join(format!("{life}.words.txt"))]
}

/// Compares a life with its transcript, once nothing follows any more; or writes that down.
async fn is_as_ever(env: &RigEnv, life: &str, title: &str, from: Mark) {
    env.house.rest().await;
    let [calls, words] = golden(life);
    let found = transcript(env, title, from).await;
    if is_set("FREEHOLD_BLESS") {
        std::fs::write(&calls, found.calls).unwrap();
        std::fs::write(&words, found.words).unwrap();
        return;
    }
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let expected = Transcript { calls: read(&calls), words: read(&words) };
    let differences = [
        differences(&calls, &expected.calls, &found.calls),
        differences(&words, &expected.words, &found.words),
    ]
    .concat();
    assert!(
        differences.is_empty(),
        "{title}: what is asked for has changed (left: the transcript; right: this run); \
            FREEHOLD_BLESS=1 writes it anew\n{differences}"
    );
}

/// The sections of a transcript that are not as expected, each with its lines compared: the expected ones on
/// the left.
fn differences(path: &Path, expected: &str, found: &str) -> String {
    if expected == found {
        return String::new();
    }
    let sections = |text: &str| -> Vec<String> { text.split("\n== ").map(str::to_owned).collect() };
    let head = |section: &str| section.lines().next().unwrap_or_default().to_owned();
    let (expected, found) = (sections(expected), sections(found));
    let mut heads: Vec<String> = expected.iter().chain(&found).map(|section| head(section)).collect();
    heads.sort();
    heads.dedup();
    let of = |sections: &[String], wanted: &str| {
        sections.iter().find(|section| head(section) == wanted).cloned().unwrap_or_default()
    };
    let mut text = String::new();
    for wanted in heads {
        let (expected, found) = (of(&expected, &wanted), of(&found, &wanted));
        if expected != found {
            writeln!(text, "{}, {wanted}\n{}", path.display(), StrComparison::new(&expected, &found))
                .unwrap();
        }
    }
    text
}
