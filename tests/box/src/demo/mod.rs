//! The demo: a database's life on a box of its own, told as it happens and checked on the API server and in EC2.

mod operator;
mod report;
mod story;
mod world;

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use freehold::api::{Database, NodeClass};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};

use crate::cache::Cache;
use crate::daemon::{self, Pace, Record, Settings};
use crate::progress::Progress;
use crate::tools::Tools;
use operator::Operator;
use report::{Report, Step};
use story::Teller;
use world::Eyes;

/// The demo's box, beside any box of the developer's own.
const BOX: &str = "demo";

/// How many times faster than real time the operator and EC2's clock run.
const SPEED: f64 = 5.0;

/// How long a step may take at most.
const STEP_LIMIT: Duration = Duration::from_secs(120);

/// What `cargo demo` takes.
#[derive(Debug, Args)]
pub struct Demo {
    /// Leave everything running at the end, and print the lines that point kubectl at it. The database is not deleted then.
    #[arg(long)]
    keep: bool,

    /// Write the table as JSON to this file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

type Failure = Box<dyn StdError + Send + Sync>;

impl Demo {
    /// Runs it; an error means that something was not seen to be true.
    pub async fn run(self, cache: &Cache) -> Result<(), Failure> {
        Tools::ensure(cache, &Progress::on_stderr()).await?;
        let binary = operator::build().await?;
        if daemon::running(cache, BOX).is_some() {
            println!("a demo of before is still up and is stopped first: {}", daemon::down(cache, BOX).await?);
        }
        let record = self.box_up(cache).await?;
        let outcome = self.live(&record, &binary).await;
        match outcome {
            Ok((report, operator)) => {
                self.write_report(&report)?;
                if self.keep {
                    print!("{}", kept(&record, &operator.leave_running()));
                } else {
                    operator.stop().await?;
                    println!("{}", daemon::down(cache, BOX).await?);
                }
                println!("every step was seen to be true on the API server and in EC2");
                Ok(())
            }
            Err(error) => {
                if !self.keep {
                    daemon::down(cache, BOX).await?;
                }
                Err(error)
            }
        }
    }

    async fn box_up(&self, cache: &Cache) -> Result<Record, Failure> {
        let progress = Progress::on_stderr();
        let settings = Settings { name: BOX.to_owned(), speed: SPEED, pace: Pace::Fast, state: None };
        let record = daemon::up(cache, &settings, &progress).await?;
        progress.end("");
        println!("box: a real Kubernetes control plane and a simulated EC2 are up ({})", record.endpoint);
        Ok(record)
    }

    /// The database's life.
    async fn live(&self, record: &Record, binary: &Path) -> Result<(Report, Operator), Failure> {
        let client = client(&record.kubeconfig).await?;
        let eyes = Eyes::new(client.clone(), &record.endpoint)?;
        let mut report = Report::default();

        let started = Instant::now();
        install(&client).await?;
        let mut operator = Operator::start(binary, record, SPEED).await?;
        println!("operator: {} runs as process {}, its log is {}", binary.display(), operator.id(), operator.log().display());
        report.add(Step::new("operator installed and ready", started.elapsed(), eyes.calls_since(0).await?));

        let told = self.chapters(&client, &eyes, &mut report).await;
        if let Err(error) = told {
            eprintln!("the operator's log ends with:\n{}", operator.tail());
            operator.kill();
            return Err(error);
        }
        println!("\n{report}");
        report::judge(&eyes.calls_since(0).await?, self.keep)?;
        Ok((report, operator))
    }

    async fn chapters(&self, client: &Client, eyes: &Eyes, report: &mut Report) -> Result<(), Failure> {
        let database: Database = serde_norway::from_str(include_str!("../../../../examples/database.yaml"))?;
        let name = database.metadata.name.clone().unwrap_or_default();
        let databases = Api::<Database>::namespaced(client.clone(), "default");

        println!("\n── kubectl apply -f examples/database.yaml");
        let teller = Teller::begin(eyes).await?;
        databases.create(&kube::api::PostParams::default(), &database).await?;
        let created = teller.tell("created", &story::creation(), STEP_LIMIT).await?;
        report.add(created);

        println!("\n── spec.storage: 200Gi, 6000 IOPS, 250 MiB/s");
        let before = eyes.look().await?;
        let teller = Teller::begin(eyes).await?;
        let patch = serde_json::json!({"spec": {"storage": {"size": "200Gi", "iops": 6000, "throughput": 250}}});
        databases.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        report.add(teller.tell("grown, with more IOPS", &story::growth(before.pod_uid()), STEP_LIMIT).await?);

        if self.keep {
            return Ok(());
        }
        println!("\n── kubectl delete database {name}   (deletionPolicy: Retain)");
        let before = eyes.look().await?;
        let teller = Teller::begin(eyes).await?;
        databases.delete(&name, &kube::api::DeleteParams::default()).await?;
        report.add(teller.tell("deleted", &story::deletion(&before), STEP_LIMIT).await?);
        report.left_over = eyes.look().await?.left_over();
        Ok(())
    }

    fn write_report(&self, report: &Report) -> Result<(), Failure> {
        let Some(path) = &self.report else { return Ok(()) };
        std::fs::write(path, serde_json::to_vec_pretty(report)?).map_err(|error| format!("failed to write {}: {error}", path.display()))?;
        println!("the table is in {}", path.display());
        Ok(())
    }
}

async fn client(kubeconfig: &Path) -> Result<Client, Failure> {
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// The resource definitions and the NodeClass of the box.
async fn install(client: &Client) -> Result<(), Failure> {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::ResourceExt as _;

    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let apply = PatchParams::apply("freehold-demo").force();
    for definition in freehold::definitions::all() {
        let name = definition.name_any();
        definitions.patch(&name, &apply, &Patch::Apply(&definition)).await?;
        let established = kube::runtime::conditions::is_crd_established();
        let wait = kube::runtime::wait::await_condition(definitions.clone(), &name, established);
        tokio::time::timeout(Duration::from_secs(30), wait)
            .await
            .map_err(|_| format!("the API server did not establish {name} within 30 s"))??;
    }
    let class: NodeClass = serde_norway::from_str(include_str!("../../../../examples/nodeclass.yaml"))?;
    Api::<NodeClass>::all(client.clone()).patch(&class.name_any(), &apply, &Patch::Apply(&class)).await?;
    Ok(())
}

/// How to go on by hand, and how to end it.
fn kept(record: &Record, operator: &str) -> String {
    format!(
        "everything goes on running. To look around:\n\n{}\n    kubectl get databases,nodes.freehold.dev,volumes.freehold.dev\n\n\
         To end it: kill {operator}; cargo box down --name {BOX}\n",
        crate::cli::exports(record)
    )
}
