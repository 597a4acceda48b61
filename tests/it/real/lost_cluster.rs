//! A cluster is lost with everything but the snapshots, and another one has the databases again by the tags
//! of these.

use std::process::Stdio;

use freehold::api::Backup;
use freehold_box::account::Real;
use freehold_box::base::cache::Cache;
use freehold_box::base::progress::Progress;
use freehold_box::writer::{Dialect, PACE, Writer, Written};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::kept::{ENGINES, Kept, NAMESPACE, serve};
use crate::kit::aws;
use crate::kit::objects::Told as _;
use crate::kit::permits;
use crate::kit::process::{binary, environment};
use crate::kit::real::LIMIT;
use crate::kit::test_env;
use crate::kit::wait::{seen, within};

#[test]
fn what_was_backed_up_of_a_cluster_that_is_lost_is_restored_on_another_by_the_printed_commands() {
    if !freehold_box::account::node_kind::can_be_real("databases of a cluster that is lost") {
        return;
    }
    test_env::run(async {
        let _permit = permits::of_real_machines().await;
        let cache = Cache::from_environment();
        let real = Real::ensure(&cache, &Progress::on_stderr()).await.unwrap();
        let folder = || tempfile::Builder::new().prefix("lost-").tempdir_in(cache.images()).unwrap();
        let (account, former, next) = (folder(), folder(), folder());
        let mut lost = Kept::up(former.path(), account.path(), &real, "lost").await;
        lost.create(&real).await;
        let writers = ENGINES.map(|dialect| Writer::start(lost.target(dialect), PACE));
        serve(&writers).await;
        let mut backed_up = Vec::new();
        for (dialect, writer) in ENGINES.into_iter().zip(writers) {
            let acknowledged = writer.written().acknowledged;
            back_up(&lost, dialect).await;
            backed_up.push(Written { acknowledged, ..writer.stop().await });
        }
        let cluster_id = lost.control_plane.cluster_id().await.unwrap();
        lose(&mut lost).await;
        lost.down().await;

        let other = Kept::up(next.path(), account.path(), &real, "other").await;
        other.create_class().await;
        let program = binary(other.control_plane.folder());
        let find = format!("{} backups --from-ec2 --cluster-id {cluster_id}", program.display());
        let listed = carried_out(&other, &format!("{find} --all-namespaces"), "").await;
        for dialect in ENGINES {
            assert!(listed.contains(&format!("of-{}", dialect.as_str())), "{listed}");
        }
        let manifests =
            carried_out(&other, &format!("{find} --namespace {NAMESPACE} --output yaml"), "").await;
        let commands: Vec<&str> =
            manifests.lines().filter_map(|line| line.strip_prefix("# First: ")).collect();
        assert_eq!(commands.len(), ENGINES.len(), "{manifests}");
        carried_out(&other, &commands.join("\n"), "").await;
        let kubectl = other.control_plane.kubectl();
        carried_out(&other, &format!("{} apply -f -", kubectl.display()), &manifests).await;
        for (dialect, written) in ENGINES.into_iter().zip(&backed_up) {
            let tally = written.verify(&other.target(dialect), LIMIT).await.unwrap();
            tally.check().unwrap();
            let acknowledged = written.acknowledged.len();
            println!("{}: {acknowledged} rows, all of them are there", dialect.as_str());
        }
        other.down().await;
    });
}

/// Backs a database up, and waits until that is complete.
async fn back_up(of: &Kept, dialect: Dialect) {
    let backups = Api::<Backup>::namespaced(of.control_plane.client(), NAMESPACE);
    let name = format!("of-{}", dialect.as_str());
    let backup = json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Backup", "metadata": {"name": name},
        "spec": {"databaseName": dialect.as_str()},
    });
    backups.create(&PostParams::default(), &serde_json::from_value(backup).unwrap()).await.unwrap();
    within(LIMIT, &format!("Backup {name} being complete"), || async {
        let backup = backups.get(&name).await.map_err(|error| error.to_string())?;
        let condition = backup.condition("Complete");
        seen((condition.0 == "True").then_some(()), || format!("{condition:?}"))
    })
    .await;
}

/// Ends the operator, and all that the account has but its snapshots.
async fn lose(cluster: &mut Kept) {
    cluster.kill_operator();
    let simulator = cluster.site.simulator();
    let (instances, volumes) = (simulator.instances(), simulator.volumes());
    let instances: Vec<&str> = instances.iter().map(|it| it.id.as_str()).collect();
    carried_out(cluster, &format!("aws ec2 terminate-instances --instance-ids {}", instances.join(" ")), "")
        .await;
    // Those of its machines go with them.
    let data: Vec<String> = volumes.into_iter().map(|it| it.id).collect();
    within(LIMIT, "no volume being left", || async {
        for id in &data {
            let _ = command(cluster, &format!("aws ec2 delete-volume --volume-id {id}")).await.output().await;
        }
        let left: Vec<String> = cluster.site.simulator().volumes().into_iter().map(|it| it.id).collect();
        seen(left.is_empty().then_some(()), || format!("{left:?}"))
    })
    .await;
}

/// What a person types, with their rights in the cluster and at AWS.
async fn command(on: &Kept, line: &str) -> Command {
    let programs = aws::program().await.parent().unwrap().display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("/bin/sh");
    let (kubeconfig, site) = (on.control_plane.kubeconfig(), &on.site);
    command.args(["-ec", line]).env("PATH", path);
    command.envs(environment(kubeconfig, &site.endpoint(), site.region(), "a-person"));
    command.env("AWS_DEFAULT_REGION", site.region());
    command
}

/// What it prints, once it has succeeded with this input.
async fn carried_out(on: &Kept, line: &str, input: &str) -> String {
    let mut command = command(on, line).await;
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let output = process.wait_with_output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
    String::from_utf8(output.stdout).unwrap()
}
