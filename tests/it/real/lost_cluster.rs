//! A cluster is lost with everything but the snapshots, and another one has the databases again by the tags
//! of these.

use freehold::api::Backup;
use freehold_box::writer::{PACE, Writer, Written};
use kube::Api;

use super::backup::{complete, request};
use super::kept::{ENGINES, Kept, NAMESPACE, folder, serve};
use crate::kit::aws;
use crate::kit::process::environment;
use crate::kit::real::{LIMIT, in_turn};
use crate::kit::shell;
use crate::kit::wait::{seen, within};

#[test]
fn what_was_backed_up_of_a_cluster_that_is_lost_is_restored_on_another_by_the_printed_commands() {
    in_turn("databases of a cluster that is lost", |real| async move {
        let (account, former, next) = (folder(), folder(), folder());
        let mut lost = Kept::up(former.path(), account.path(), real, "lost").await;
        lost.create(real).await;
        let writers = ENGINES.map(|dialect| Writer::start(lost.target(dialect), PACE));
        serve(&writers).await;
        let backups = Api::<Backup>::namespaced(lost.control_plane.client(), NAMESPACE);
        let mut backed_up = Vec::new();
        for (dialect, writer) in ENGINES.into_iter().zip(writers) {
            let acknowledged = writer.written().acknowledged;
            let name = format!("of-{}", dialect.as_str());
            request(&backups, &name, dialect.as_str()).await;
            complete(&backups, &name).await;
            backed_up.push(Written { acknowledged, ..writer.stop().await });
        }
        let cluster_id = lost.control_plane.cluster_id().await.unwrap();
        lose(&mut lost).await;
        lost.down().await;

        let other = Kept::up(next.path(), account.path(), real, "other").await;
        other.create_class().await;
        let find = format!("freehold backups --from-ec2 --cluster-id {cluster_id}");
        let listed = carried_out(&other, &format!("{find} --all-namespaces")).await;
        for dialect in ENGINES {
            assert!(listed.contains(&format!("of-{}", dialect.as_str())), "{listed}");
        }
        let manifests = carried_out(&other, &format!("{find} --namespace {NAMESPACE} --output yaml")).await;
        let commands: Vec<&str> =
            manifests.lines().filter_map(|line| line.strip_prefix("# First: ")).collect();
        assert_eq!(commands.len(), ENGINES.len(), "{manifests}");
        carried_out(&other, &commands.join("\n")).await;
        carried_out(&other, &format!("kubectl apply --filename - <<'END'\n{manifests}\nEND")).await;
        for (dialect, written) in ENGINES.into_iter().zip(&backed_up) {
            let tally = written.verify(&other.target(dialect), LIMIT).await.unwrap();
            tally.check().unwrap();
            let acknowledged = written.acknowledged.len();
            println!("{}: {acknowledged} rows, all of them are there", dialect.as_str());
        }
        other.down().await;
    });
}

/// Ends the operator, and all that the account has but its snapshots.
async fn lose(cluster: &mut Kept) {
    cluster.kill_operator();
    let simulator = cluster.site.simulator();
    let (instances, volumes) = (simulator.instances(), simulator.volumes());
    let instances: Vec<&str> = instances.iter().map(|it| it.id.as_str()).collect();
    carried_out(cluster, &format!("aws ec2 terminate-instances --instance-ids {}", instances.join(" ")))
        .await;
    // Those of its machines go with them.
    let data: Vec<String> = volumes.into_iter().map(|it| it.id).collect();
    within(LIMIT, "no volume being left", || async {
        for id in &data {
            let _ = typed(cluster, &format!("aws ec2 delete-volume --volume-id {id}")).await;
        }
        let left: Vec<String> = cluster.site.simulator().volumes().into_iter().map(|it| it.id).collect();
        seen(left.is_empty().then_some(()), || format!("{left:?}"))
    })
    .await;
}

/// What is printed for what a person types, with their rights in the cluster and at AWS.
async fn typed(on: &Kept, line: &str) -> Result<String, String> {
    let programs = aws::program().await.parent().unwrap().display();
    let line = format!("export PATH={programs}:$PATH AWS_DEFAULT_REGION=$AWS_REGION\n{line}");
    let (kubeconfig, site) = (on.control_plane.kubeconfig(), &on.site);
    let rights = environment(kubeconfig, &site.endpoint(), site.region(), "a-person");
    shell::run(&on.control_plane, rights, &line).await
}

async fn carried_out(on: &Kept, line: &str) -> String {
    typed(on, line).await.unwrap_or_else(|said| panic!("{line}: {said}"))
}
