//! Lives in which a machine is left in good time, or one after the other is lost.

use std::time::Duration;

use ec2sim::{JournalEntry, Outside};

use super::house::House;
use super::life::CALM;
use super::named::{AT_ONCE, Named, sleep};
use super::person::uncordon;

/// The lives.
pub const LEFT: &[Named] = &[
    ("a machine is cordoned and stays so, and the database moves", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Retain").await;
            let cordoned = it.cordon();
            it.until("the machine is gone", CALM, |it| !it.has_kubernetes_node(&cordoned)).await;
            false
        })
    }),
    ("a machine is cordoned, and uncordoned while its successor boots", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Retain").await;
            let cordoned = it.cordon();
            it.until("there is a successor", CALM, |it| it.ec2.instances().len() > 1).await;
            uncordon(&it.server, &cordoned);
            it.until_ready(CALM).await;
            assert!(it.has_kubernetes_node(&cordoned), "the database stays");
            false
        })
    }),
    ("a retirement is announced, and the database moves long before", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Retain").await;
            let announced: Vec<String> = it.ec2.instances().into_iter().map(|it| it.id).collect();
            let not_before = it.ec2.now() + Duration::from_secs(14 * 86_400);
            it.strike(&Outside::Schedule { code: "instance-retirement".to_owned(), not_before });
            let is_left = |it: &House| {
                let live = |id: &String| it.live().iter().any(|instance| instance.id == *id);
                !announced.iter().any(live)
            };
            it.until("the machine is left", Duration::from_secs(1800), is_left).await;
            false
        })
    }),
    ("machine after machine is terminated as soon as it serves", AT_ONCE, |it| {
        Box::pin(async move {
            it.grown_up("Retain").await;
            let begun = it.ec2.journal().len();
            let end = tokio::time::Instant::now() + Duration::from_secs(3 * 3600);
            while tokio::time::Instant::now() < end {
                it.strike(&Outside::Terminate);
                sleep(120).await;
                it.until_ready(CALM).await;
            }
            let journal = it.ec2.journal();
            let is_launch = |it: &&JournalEntry| it.action == "RunInstances" && !it.dry_run;
            let launches = journal[begun..].iter().filter(is_launch).count();
            assert!((5..=8).contains(&launches), "{launches} launches in three hours");
            false
        })
    }),
];

impl House {
    /// Whether a Kubernetes node of one of these names is there.
    fn has_kubernetes_node(&self, names: &[String]) -> bool {
        let all = self.server.objects("nodes");
        all.iter().any(|node| names.iter().any(|name| node["metadata"]["name"] == *name))
    }
}
