//! The chapter on adoption: a database that Freehold never made is adopted while it takes rows, released as
//! it was found, adopted again, and lives on as any other.

mod files;
mod milestones;
mod unchanged;

use std::time::{Duration, Instant};

use ec2sim::World as Surroundings;
use kube::api::DeleteParams;
use serde_json::json;
use tokio::process::Command;

use super::common::Failure;
use super::example::DATABASE;
use super::observer::{Calls, NAMESPACE, PERSON};
use super::report::{Fact, Facts, Step};
use super::reporter::{StepReporter, wait_with_progress};
use super::rows::{counted, served, stop};
use super::steps::{STEP_LIMIT, Steps, TABLE};
use crate::account::node_kind::NodeKind;
use crate::legacy::{Account, Disk, FileSystem, Legacy, Order};
use crate::machines::images;
use crate::writer::{Dialect, PACE, Target, Writer};
use unchanged::Found;

/// The instance type that it moves to.
const NEXT_TYPE: &str = "m7i.large";

/// How long objects may take to be as they were, once those of Freehold are gone: the provisioner's finalizer
/// follows the reclaim policy a little later.
const AS_FOUND_LIMIT: Duration = Duration::from_secs(60);

/// How often they are read.
const AS_FOUND_POLL: Duration = Duration::from_millis(500);

impl Steps<'_> {
    /// Runs all steps of the chapter.
    pub async fn run_adoption(&mut self) -> Result<(), Failure> {
        let found = self.provisioned().await?;
        let mut files = vec![self.looked_at(&found).await?];
        self.expect_call("CreateSnapshot");
        files.push(self.adopted("adopted", &found).await?);
        files.push(self.released(&found).await?);
        files.push(self.adopted("adopted again", &found).await?);
        self.compared(&found, files.into_iter().flatten().collect());

        let writer = found.writer.as_ref();
        self.grown(writer).await?;
        self.type_changed(writer).await?;
        self.instance_killed(writer).await?;
        self.paused().await?;
        self.resumed(writer).await?;
        let now = self.as_it_runs_now(found).await?;
        self.released_as_it_runs(&now).await?;
        self.adopted("adopted as it runs now", &now).await?;
        if let Some(writer) = now.writer {
            let started = Instant::now();
            let rows = stop(writer, target(&now.legacy)).await?;
            let step = Step::new("all rows read back", started.elapsed(), Calls::new());
            self.report.add(Step { rows: Some(rows), ..step });
        }
        self.finish().await
    }

    /// Reports what was the same after each of the steps so far.
    fn compared(&mut self, found: &Found, files: Vec<Fact>) {
        let title = "Before the adoption, and the same after each step until it is adopted again:".to_owned();
        self.report.facts.insert(0, Facts { title, facts: found.facts.clone() });
        if !files.is_empty() {
            let title = "The files of the volume, after each step, as the host sees them; no process but the \
                engine has one open:";
            self.report.facts.push(Facts { title: title.to_owned(), facts: files });
        }
    }

    /// A provisioner has made it, and it serves.
    async fn provisioned(&mut self) -> Result<Found, Failure> {
        println!(
            "\n── a database without Freehold: RunInstances, kubectl apply -f statefulset.yaml   (a \
             volumeClaimTemplate, the EBS CSI driver's provisioner)"
        );
        let reporter = StepReporter::begin(&self.observer, "made without Freehold").await?;
        let account = Account { endpoint: self.record.endpoint.clone(), world: Surroundings::default() };
        let order = Order {
            engine: self.engine,
            namespace: NAMESPACE,
            name: DATABASE,
            file_system: FileSystem::Xfs,
            disk: Disk::Claimed,
        };
        let legacy = Legacy::create(&self.client, &account, order).await?;
        reporter.print(&format!("RunInstances: {}", legacy.instance));
        wait_with_progress("the pod to be ready", STEP_LIMIT, legacy.serves(STEP_LIMIT)).await??;
        reporter.print(&format!("StatefulSet {DATABASE} running, with claim {}", legacy.claim()));
        let (writer, step) = match self.record.nodes {
            NodeKind::Real => {
                let writer = Writer::start(target(&legacy), PACE);
                served(&writer).await?;
                reporter.print("serving: a client writes rows");
                let step = counted(&writer, reporter).await?;
                (Some(writer), step)
            }
            NodeKind::Virtual => (None, reporter.end().await?),
        };
        self.report.add(step);
        Found::of(legacy, writer, &self.observer.observe().await?).await
    }

    /// What would be done is shown, and nothing is changed.
    async fn looked_at(&mut self, found: &Found) -> Result<Option<Fact>, Failure> {
        let reporter = StepReporter::begin(&self.observer, "freehold adopt, a dry run").await?;
        self.freehold_adopt(&[]).await?;
        if let Err(difference) = found.is_released(&self.observer.observe().await?).await? {
            return Err(format!("a dry run changed something: {difference}").into());
        }
        reporter.print("nothing was changed");
        self.ended(found, reporter).await
    }

    /// Adopted by the command of a person, and not disturbed.
    async fn adopted(&mut self, name: &'static str, found: &Found) -> Result<Option<Fact>, Failure> {
        let mut reporter = StepReporter::begin(&self.observer, name).await?;
        self.freehold_adopt(&["--write"]).await?;
        reporter.wait_for(&milestones::adoption(&found.legacy), STEP_LIMIT).await?;
        // By the person, and by the operator: of the machine and of the volume.
        for _ in 0..4 {
            self.expect_call("CreateTags");
        }
        self.ended(found, reporter).await
    }

    /// Released: everything is as it was found, and goes on.
    async fn released(&mut self, found: &Found) -> Result<Option<Fact>, Failure> {
        println!(
            "\n── kubectl patch database {DATABASE} --type merge --patch '{{\"spec\": {{\"release\": true}}}}'\n\
             ── kubectl delete database {DATABASE}"
        );
        let mut reporter = StepReporter::begin(&self.observer, "released").await?;
        self.edit(&json!({"release": true})).await?;
        self.databases().delete(DATABASE, &DeleteParams::default()).await?;
        reporter.wait_for(&milestones::release(&found.legacy), STEP_LIMIT).await?;
        let what = "everything to be as it was found";
        let facts = wait_with_progress(what, AS_FOUND_LIMIT, self.as_found(found)).await??;
        let names: Vec<&str> = facts.iter().map(|fact| fact.what.as_str()).collect();
        reporter.print(&format!("byte for byte as they were found: {}", names.join(", ")));
        let title = "Before the adoption and after the release, byte for byte the same:".to_owned();
        self.report.facts.push(Facts { title, facts });
        for _ in 0..2 {
            self.expect_call("DeleteTags");
        }
        self.ended(found, reporter).await
    }

    /// The database on the machine that Freehold launched last.
    async fn as_it_runs_now(&self, found: Found) -> Result<Found, Failure> {
        let world = self.observer.observe().await?;
        let instance = world.running_instance().ok_or("no instance runs")?.id.clone();
        Found::of(found.legacy.on(instance), found.writer, &world).await
    }

    /// Released by the command of a person, with the template that it has now, and not disturbed.
    async fn released_as_it_runs(&mut self, found: &Found) -> Result<(), Failure> {
        let mut reporter = StepReporter::begin(&self.observer, "released as it runs now").await?;
        self.freehold(&["release", &format!("{NAMESPACE}/{DATABASE}"), "--write"]).await?;
        reporter.wait_for(&milestones::release(&found.legacy), STEP_LIMIT).await?;
        for _ in 0..2 {
            self.expect_call("DeleteTags");
        }
        self.ended(found, reporter).await?;
        Ok(())
    }

    /// Waits until all manifests are as they were found.
    async fn as_found(&self, found: &Found) -> Result<Vec<Fact>, Failure> {
        let started = Instant::now();
        loop {
            match found.is_released(&self.observer.observe().await?).await? {
                Ok(facts) => return Ok(facts),
                Err(difference) if started.elapsed() > AS_FOUND_LIMIT => {
                    return Err(format!("not as it was found: {difference}").into());
                }
                Err(_) => tokio::time::sleep(AS_FOUND_POLL).await,
            }
        }
    }

    /// Ends a step that the database does not notice; gives what the files of its volume say, where there are
    /// any.
    async fn ended(&mut self, found: &Found, reporter: StepReporter) -> Result<Option<Fact>, Failure> {
        let files = found.runs_as_found(&self.observer.observe().await?)?;
        reporter.print("the same pod, container, instance, volume and attachment; no restart");
        if let Some(files) = &files {
            reporter.print(
                "the client had no error, and no process but the engine has a file of the volume open",
            );
            reporter.print(files);
        }
        let step = match &found.writer {
            Some(writer) => counted(writer, reporter).await?,
            None => reporter.end().await?,
        };
        let files = files.map(|files| Fact { what: step.name.clone(), value: files });
        self.report.add(step);
        Ok(files)
    }

    /// `freehold adopt` with these arguments more.
    async fn freehold_adopt(&self, more: &[&str]) -> Result<(), Failure> {
        let target = format!("{NAMESPACE}/{DATABASE}");
        let mut arguments = vec!["adopt", "--statefulset", &target, "--instance-type", NEXT_TYPE];
        // The tag of its image does not say the release.
        let version = match self.engine {
            Dialect::Postgresql => Some(images::postgresql_version().await?),
            Dialect::Questdb => None,
        };
        if let Some(version) = &version {
            arguments.extend(["--engine-version", version]);
        }
        arguments.extend(more);
        self.freehold(&arguments).await
    }

    /// `freehold` with these arguments, as a person runs it; it must end well.
    async fn freehold(&self, arguments: &[&str]) -> Result<(), Failure> {
        println!("\n── freehold {}", arguments.join(" "));
        let status = Command::new(self.binary)
            .args(arguments)
            .env("KUBECONFIG", &self.record.kubeconfig)
            .env("AWS_ENDPOINT_URL_EC2", &self.record.endpoint)
            .env("AWS_REGION", &self.record.region)
            .env("AWS_ACCESS_KEY_ID", PERSON)
            .env("AWS_SECRET_ACCESS_KEY", "box")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .kill_on_drop(true)
            .status();
        let status = tokio::time::timeout(STEP_LIMIT, status).await;
        let status = status.map_err(|_| format!("freehold took longer than {STEP_LIMIT:?}"))??;
        if status.success() { Ok(()) } else { Err(format!("freehold ended with {status}").into()) }
    }
}

/// What the client writes to: the Service that the provisioner made, with the credentials of its Secret.
fn target(legacy: &Legacy) -> Target {
    Target { dialect: legacy.engine, source: legacy.source(), table: TABLE }
}
