//! The steps of the demo: what is done to the database, and what must be observed then, of its rows too.

use std::path::Path;
use std::time::Duration;

use ec2sim::{Effect, Fault, Outside, TagMatch};
use freehold::api::Database;
use freehold::api::keys::DATABASE_TAG;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::common::Failure;
use super::example::{DATABASE, database};
use super::milestones::{self, Milestone};
use super::observer::{Calls, NAMESPACE, Observer};
use super::operator::Operator;
use super::parts;
use super::pod_access::{self, PodAccess};
use super::report::{Report, Rows, Step};
use super::reporter::{StepReporter, wait_with_progress};
use super::rows::{counted, served, stop};
use super::setup::no_violation;
use super::world::World;
use crate::account::node_kind::NodeKind;
use crate::base::cache::Cache;
use crate::presentation::daemon::Record;
use crate::writer::{Dialect, PACE, Source, Target, Writer};

/// How long a step may take at most.
pub const STEP_LIMIT: Duration = Duration::from_secs(300);

/// How long a disk may take to grow: the kubelet looks at a file system that is to be grown about once a
/// minute.
const GROWTH_LIMIT: Duration = Duration::from_secs(240);

/// How late EC2 answers the launch during which the operator is killed, in virtual seconds.
const ANSWER_DELAY: f64 = 60.0;

/// How often `df` is asked.
const DISK_POLL: Duration = Duration::from_secs(1);

/// How many KiB a GiB has.
const KIB: u64 = 1 << 20;

/// The table of the writer's rows.
pub const TABLE: &str = "freehold_demo";

/// All steps, and what was reported so far.
pub struct Steps<'a> {
    pub engine: Dialect,
    pub keep: bool,
    pub cache: &'a Cache,
    pub binary: &'a Path,
    pub record: &'a Record,
    pub client: Client,
    pub observer: Observer,
    pub operator: Operator,
    pub report: Report,
    /// How often each call that changes EC2 is made: no other one is.
    pub expected_calls: Calls,
}

impl Steps<'_> {
    /// Runs all steps.
    pub async fn run(&mut self) -> Result<(), Failure> {
        let nodes = self.record.nodes;
        let (database, change) = database(self.engine, nodes).await?;
        let writer = self.created(&database, &change, nodes).await?;
        self.grown(writer.as_ref()).await?;
        if let Some(writer) = &writer {
            self.operator_killed(writer).await?;
            self.engine_killed(writer).await?;
            self.pod_deleted(writer).await?;
        }
        self.type_changed(writer.as_ref()).await?;
        self.paused().await?;
        self.resumed(writer.as_ref()).await?;
        self.instance_killed(writer.as_ref()).await?;
        let rows = match writer {
            Some(writer) => Some(stop(writer, self.target()).await?),
            None => None,
        };
        if !self.keep {
            self.deleted(rows).await?;
        }
        self.finish().await
    }

    /// What the other callers did, and that no volume was taken from under a machine.
    pub async fn finish(&mut self) -> Result<(), Failure> {
        self.report.driver = self.observer.calls_of_others().await?;
        no_violation(self.cache, self.record)
    }

    /// This call will be made once more.
    pub fn expect_call(&mut self, action: &str) {
        *self.expected_calls.entry(action.to_owned()).or_default() += 1;
    }

    pub fn databases(&self) -> Api<Database> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    fn target(&self) -> Target {
        let source = Source::Database {
            client: self.client.clone(),
            namespace: NAMESPACE.to_owned(),
            name: DATABASE.to_owned(),
        };
        Target { dialect: self.engine, source, table: TABLE }
    }

    /// Created; with its writer, where there is something to write to.
    async fn created(
        &mut self,
        database: &Database,
        change: &str,
        nodes: NodeKind,
    ) -> Result<Option<Writer>, Failure> {
        println!("\n── kubectl apply -f examples/database.yaml{change}");
        self.expect_call("RunInstances");
        self.expect_call("CreateVolume");
        let mut reporter = StepReporter::begin(&self.observer, "created").await?;
        self.databases().create(&PostParams::default(), database).await?;
        let writer = match nodes {
            NodeKind::Real => Some(Writer::start(self.target(), PACE)),
            NodeKind::Virtual => None,
        };
        reporter.wait_for(&milestones::creation(nodes), STEP_LIMIT).await?;
        let Some(writer) = writer else {
            self.report.add(reporter.end().await?);
            return Ok(None);
        };
        served(&writer).await?;
        let answered = writer.first_answer().map(|at| at.saturating_duration_since(reporter.started()));
        if let Some(answered) = answered {
            reporter.print(&format!(
                "serving: the first query was answered after {:.1} s, and a client writes \
                    rows",
                answered.as_secs_f64()
            ));
            self.report.way = parts::way(reporter.moments(), answered);
        }
        let step = counted(&writer, reporter).await?;
        self.report.add(step);
        Ok(Some(writer))
    }

    pub async fn grown(&mut self, writer: Option<&Writer>) -> Result<(), Failure> {
        println!("\n── spec.storage: 200Gi, 6000 IOPS, 250 MiB/s");
        self.expect_call("ModifyVolume");
        let before = self.observer.observe().await?;
        let size_before = match writer {
            Some(_) => Some(self.disk(&before).await?),
            None => None,
        };
        let mut reporter = StepReporter::begin(&self.observer, "grown, with more IOPS").await?;
        self.edit(&json!({"storage": {"size": "200Gi", "iops": 6000, "throughput": 250}})).await?;
        reporter.wait_for(&milestones::growth(&before), GROWTH_LIMIT).await?;
        let step = match (writer, size_before) {
            (Some(writer), Some(size_before)) => {
                let what = "the file system in the pod to be 200 GiB";
                let size = wait_with_progress(what, STEP_LIMIT, self.disk_of_at_least(200)).await??;
                reporter.print(&format!(
                    "file system grown: df inside the pod shows {size}, and before \
                    {size_before}"
                ));
                reporter.wait_for(&milestones::nothing(&before), STEP_LIMIT).await?;
                counted(writer, reporter).await?
            }
            _ => reporter.end().await?,
        };
        self.report.add(step);
        Ok(())
    }

    async fn operator_killed(&mut self, writer: &Writer) -> Result<(), Failure> {
        println!("\n── kill -9 {}   (the operator), and start it again", self.operator.process().await?);
        let before = self.observer.observe().await?;
        let mut reporter = StepReporter::begin(&self.observer, "operator killed, started again").await?;
        self.operator.kill().await?;
        reporter.print("operator killed");
        self.operator.start_again(self.cache, self.binary, self.record).await?;
        reporter.print(&format!("operator started again, as process {}", self.operator.process().await?));
        reporter.wait_for(&milestones::nothing(&before), STEP_LIMIT).await?;
        let step = counted(writer, reporter).await?;
        self.report.add(step);
        Ok(())
    }

    async fn engine_killed(&mut self, writer: &Writer) -> Result<(), Failure> {
        let before = self.observer.observe().await?;
        let pod = before.serving_pod().ok_or("no pod serves")?;
        let reporter = StepReporter::begin(&self.observer, "engine killed").await?;
        let id = pod_access::kill_engine(pod)?;
        println!("\n── kill -9 {id}   (the engine in {})", pod.name_any());
        self.survived(reporter, &milestones::restart(&before), Some(writer)).await
    }

    async fn pod_deleted(&mut self, writer: &Writer) -> Result<(), Failure> {
        let before = self.observer.observe().await?;
        let pod = before.serving_pod().ok_or("no pod serves")?;
        println!("\n── kubectl delete pod {}", pod.name_any());
        let reporter = StepReporter::begin(&self.observer, "pod deleted").await?;
        let pods = Api::<k8s_openapi::api::core::v1::Pod>::namespaced(self.client.clone(), NAMESPACE);
        pods.delete(&pod.name_any(), &DeleteParams::default()).await?;
        self.survived(reporter, &milestones::replacement(&before), Some(writer)).await
    }

    /// The type in use leaves the list: another machine is launched, proven, and takes the database over.
    pub async fn type_changed(&mut self, writer: Option<&Writer>) -> Result<(), Failure> {
        let before = self.observer.observe().await?;
        let now = before.running_instance().ok_or("no instance runs")?.instance_type.clone();
        let types =
            before.database().map(|database| database.spec.instance_types.clone()).unwrap_or_default();
        let types: Vec<String> = types.into_iter().filter(|it| *it != now).collect();
        println!("\n── spec.instanceTypes: [{}]   (without {now}, which is in use)", types.join(", "));
        self.expect_call("RunInstances");
        self.expect_call("TerminateInstances");
        let reporter = StepReporter::begin(&self.observer, "moved to another type").await?;
        self.edit(&json!({"instanceTypes": types})).await?;
        self.survived(reporter, &milestones::type_change(&before), writer).await
    }

    /// Paused: no machine, and the volume is kept.
    pub async fn paused(&mut self) -> Result<(), Failure> {
        println!("\n── spec.running: false");
        self.expect_call("TerminateInstances");
        let before = self.observer.observe().await?;
        let mut reporter = StepReporter::begin(&self.observer, "paused").await?;
        self.edit(&json!({"running": false})).await?;
        reporter.wait_for(&milestones::pause(&before), STEP_LIMIT).await?;
        self.report.add(reporter.end().await?);
        Ok(())
    }

    /// Resumed; the operator is killed when its call has launched an instance and the answer is on its way.
    pub async fn resumed(&mut self, writer: Option<&Writer>) -> Result<(), Failure> {
        println!("\n── spec.running: true   (and the operator is killed during the launch)");
        self.expect_call("RunInstances");
        let before = self.observer.observe().await?;
        let mut reporter = StepReporter::begin(&self.observer, "resumed, operator killed").await?;
        // Of a launch for the database: the operator also sends dry runs, which are for none.
        let tag = TagMatch { key: DATABASE_TAG.to_owned(), value: Some(format!("{NAMESPACE}/{DATABASE}")) };
        let delay = Fault::on("RunInstances", Effect::Delay { seconds: ANSWER_DELAY }).count(1);
        self.observer.fault(&Fault { tag: Some(tag), ..delay }).await?;
        self.edit(&json!({"running": true})).await?;
        reporter.wait_for(&milestones::unrecorded_launch(&before), STEP_LIMIT).await?;
        self.operator.kill().await?;
        reporter.print("operator killed before it recorded the instance");
        self.operator.start_again(self.cache, self.binary, self.record).await?;
        reporter.print(&format!("operator started again, as process {}", self.operator.process().await?));
        self.survived(reporter, &milestones::resumption(&before), writer).await
    }

    /// The instance is terminated outside Freehold: on a real machine that is a power cut.
    pub async fn instance_killed(&mut self, writer: Option<&Writer>) -> Result<(), Failure> {
        let before = self.observer.observe().await?;
        let instance = before.running_instance().ok_or("no instance runs")?.id.clone();
        println!("\n── aws ec2 terminate-instances --instance-ids {instance}   (outside Freehold)");
        self.expect_call("RunInstances");
        let reporter = StepReporter::begin(&self.observer, "instance killed").await?;
        self.observer.outside(&Outside::Terminate.to(&instance)).await?;
        self.survived(reporter, &milestones::loss(&before), writer).await
    }

    pub async fn edit(&self, spec: &serde_json::Value) -> Result<(), Failure> {
        self.databases()
            .patch(DATABASE, &PatchParams::default(), &Patch::Merge(&json!({"spec": spec})))
            .await?;
        Ok(())
    }

    /// The database is back, and takes rows, where there is something to write to; then the step is over.
    async fn survived(
        &mut self,
        mut reporter: StepReporter,
        milestones: &[Milestone],
        writer: Option<&Writer>,
    ) -> Result<(), Failure> {
        reporter.wait_for(milestones, STEP_LIMIT).await?;
        let step = match writer {
            Some(writer) => {
                served(writer).await?;
                reporter.print("serving: the client's rows are acknowledged again");
                counted(writer, reporter).await?
            }
            None => reporter.end().await?,
        };
        self.report.add(step);
        Ok(())
    }

    /// Deleted; `rows`: what was read back before.
    async fn deleted(&mut self, rows: Option<Rows>) -> Result<(), Failure> {
        println!("\n── kubectl delete database {DATABASE}   (deletionPolicy: Retain)");
        self.expect_call("TerminateInstances");
        let before = self.observer.observe().await?;
        let mut reporter = StepReporter::begin(&self.observer, "deleted").await?;
        self.databases().delete(DATABASE, &DeleteParams::default()).await?;
        reporter.wait_for(&milestones::deletion(&before), STEP_LIMIT).await?;
        let step = reporter.end().await?;
        self.report.add(Step { rows, ..step });
        self.report.left_over = self.observer.observe().await?.left_over();
        Ok(())
    }

    /// What `df` in the serving pod says, in words.
    async fn disk(&self, world: &World) -> Result<String, Failure> {
        let pod = world.serving_pod().ok_or("no pod serves")?;
        let (size, path) = self.pod_access().disk(pod).await?;
        Ok(in_words(size, &path))
    }

    /// The same, once it is this many GiB but for what the file system keeps to itself: less than a
    /// twentieth.
    async fn disk_of_at_least(&self, gib: u64) -> Result<String, Failure> {
        loop {
            let world = self.observer.observe().await?;
            let pod = world.serving_pod().ok_or("no pod serves")?;
            let (size, path) = self.pod_access().disk(pod).await?;
            if size >= gib * KIB / 20 * 19 {
                return Ok(in_words(size, &path));
            }
            tokio::time::sleep(DISK_POLL).await;
        }
    }

    fn pod_access(&self) -> PodAccess {
        PodAccess {
            kubectl: self.record.programs.join("kubectl"),
            kubeconfig: self.record.kubeconfig.clone(),
        }
    }
}

/// `199.9 GiB at /var/lib/questdb`.
fn in_words(kib: u64, path: &str) -> String {
    let tenths = kib * 10 / KIB;
    format!("{}.{} GiB at {path}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_printed_in_gib() {
        assert_eq!(in_words(209_612_800, "/data"), "199.9 GiB at /data");
    }
}
