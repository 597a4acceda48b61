//! A database with many rows and a writer, and what is done to it: by the operator, and by hand with the
//! operator stopped.

use std::path::Path;
use std::time::{Duration, Instant};

use ec2sim::{InstanceState, InstanceView, Outside};
use freehold::api::{Database, Node};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::log::Log;
use super::manual::Manual;
use super::moments::{self, Change, Loss};
use super::results::Run;
use super::variant::Variant;
use crate::account::node_kind::NodeKind;
use crate::base::cache::Cache;
use crate::presentation::daemon::Record;
use crate::presentation::demo::cluster_objects;
use crate::presentation::demo::common::Failure;
use crate::presentation::demo::example::{self, DATABASE};
use crate::presentation::demo::observer::{NAMESPACE, Observer};
use crate::presentation::demo::operator_process::OperatorProcess;
use crate::presentation::demo::reporter::wait_with_progress;
use crate::presentation::demo::rows::served;
use crate::presentation::demo::setup::no_violation;
use crate::writer::{Dialect, Gap, PACE, Source, Target, Writer};

/// Time passes as it does.
pub const SPEED: f64 = 1.0;

/// How long a database may take to serve, or to serve again, with AWS' delays.
const LIMIT: Duration = Duration::from_mins(5);

/// How often is looked whether it does.
const POLL: Duration = Duration::from_millis(200);

/// The table of the writer's rows.
const TABLE: &str = "freehold_demo";

/// The table of the many rows.
const BALLAST: &str = "ballast";

/// The types that the database changes between.
const TYPES: [&str; 2] = ["r7i.large", "m7i.large"];

/// Where the database is.
#[derive(Clone, Debug)]
struct Place {
    pod: String,
    machine: String,
    instance: InstanceView,
    volume: String,
}

/// A running database with its operator and a writer, on which the variants are measured.
pub struct Experiment<'a> {
    cache: &'a Cache,
    record: &'a Record,
    client: Client,
    observer: Observer,
    operator: Option<OperatorProcess>,
    log: Log,
    target: Target,
    writer: Writer,
    rows: u64,
    /// The Kubernetes node of the machine that waits.
    standby: Option<String>,
}

impl<'a> Experiment<'a> {
    /// Installs the operator, makes the database, and fills it.
    pub async fn set_up(
        cache: &'a Cache,
        record: &'a Record,
        binary: &Path,
        engine: Dialect,
        rows: u64,
    ) -> Result<Self, Failure> {
        let client = cluster_objects::client(&record.kubeconfig).await?;
        let observer = Observer::new(client.clone(), &record.endpoint)?;
        cluster_objects::install(&client).await?;
        let operator = OperatorProcess::start(cache, binary, record, SPEED).await?;
        let log = Log::start(&client, NAMESPACE);
        let (mut database, _) = example::database(engine, NodeKind::Real).await?;
        database.spec.instance_types = vec![TYPES[0].to_owned()];
        Api::<Database>::namespaced(client.clone(), NAMESPACE)
            .create(&PostParams::default(), &database)
            .await?;
        let source = Source::Database {
            client: client.clone(),
            namespace: NAMESPACE.to_owned(),
            name: DATABASE.to_owned(),
        };
        let target = Target { dialect: engine, source, table: TABLE };
        let writer = Writer::start(target.clone(), PACE);
        wait_with_progress("the database to serve", LIMIT, writer.is_served(LIMIT)).await??;
        wait_with_progress("the database to be filled", LIMIT, target.fill(BALLAST, rows, LIMIT)).await??;
        println!(
            "a database of {engine} serves; it has {rows} rows, and a client writes a row each {} ms",
            PACE.as_millis()
        );
        Ok(Self {
            cache,
            record,
            client,
            observer,
            operator: Some(operator),
            log,
            target,
            writer,
            rows,
            standby: None,
        })
    }

    /// One run.
    pub async fn run(&mut self, variant: Variant) -> Result<Run, Failure> {
        let run = match variant {
            Variant::PlannedReplacement => self.planned_replacement().await,
            Variant::KilledInstance => self.killed_instance().await,
            Variant::BareMove => self.bare_move().await,
            Variant::BareLoss => self.bare_loss().await,
        };
        match (run, &self.operator) {
            (Err(error), Some(operator)) => {
                Err(format!("{error}\nthe operator's log ends with:\n{}", operator.tail()).into())
            }
            (run, _) => run,
        }
    }

    /// The operator ends, in good order; its objects stay.
    pub async fn stop_operator(&mut self) -> Result<(), Failure> {
        match self.operator.take() {
            Some(mut operator) => operator.stop().await,
            None => Ok(()),
        }
    }

    /// Stops the operator and the writer; an error if a volume was detached while it was mounted.
    pub async fn tear_down(mut self) -> Result<(), Failure> {
        self.stop_operator().await?;
        drop(self.writer);
        no_violation(self.cache, self.record)
    }

    async fn planned_replacement(&mut self) -> Result<Run, Failure> {
        let before = self.place().await?;
        let other = TYPES.iter().find(|it| **it != before.instance.instance_type).unwrap_or(&TYPES[0]);
        let patch = json!({"spec": {"instanceTypes": [other]}});
        self.begin();
        self.databases().patch(DATABASE, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        let (change, run) = self.moved(&before).await?;
        let way = moments::of_move(&change, &self.log.seen());
        wait_with_progress("one machine to be left", LIMIT, self.settled()).await??;
        Ok(Run { way, ..run })
    }

    async fn killed_instance(&mut self) -> Result<Run, Failure> {
        let before = self.place().await?;
        self.begin();
        let loss = self.kill(&before).await?;
        let (change, run) = self.moved(&before).await?;
        wait_with_progress("one machine to be left", LIMIT, self.settled()).await??;
        Ok(run.lost(moments::of_loss(&change, &loss, true, &self.log.seen())))
    }

    async fn bare_move(&mut self) -> Result<Run, Failure> {
        let before = self.place().await?;
        let standby = self.open_standby(&before).await?;
        self.begin();
        self.pods().delete(&pod_name(), &DeleteParams::default()).await?;
        let (change, run) = self.moved(&before).await?;
        is_there(&change.to, &standby)?;
        self.standby = Some(before.machine);
        Ok(Run { way: moments::of_move(&change, &self.log.seen()), ..run })
    }

    async fn bare_loss(&mut self) -> Result<Run, Failure> {
        let before = self.place().await?;
        let standby = self.open_standby(&before).await?;
        self.begin();
        let loss = self.kill(&before).await?;
        self.manual().declare_dead(&before.machine, &pod_name()).await?;
        let (change, run) = self.moved(&before).await?;
        is_there(&change.to, &standby)?;
        self.manual().forget(&before.machine).await?;
        Ok(run.lost(moments::of_loss(&change, &loss, false, &self.log.seen())))
    }

    /// The outages until now are not those of this run.
    fn begin(&self) {
        let _ = self.writer.observed();
    }

    /// Terminates the instance outside Freehold.
    async fn kill(&self, place: &Place) -> Result<Loss, Failure> {
        let killed = Instant::now();
        self.observer.outside(&Outside::Terminate.to(&place.instance.id)).await?;
        let terminated = wait_with_progress(
            "the end of the instance",
            LIMIT,
            self.manual().terminated(&place.instance.id),
        )
        .await??;
        Ok(Loss { killed, terminated })
    }

    /// The machine that waits, launched if there is none; the pod's next place is there.
    async fn open_standby(&mut self, place: &Place) -> Result<String, Failure> {
        let standby = match self.standby.take() {
            Some(standby) => standby,
            None => {
                wait_with_progress(
                    "a machine launched by hand",
                    LIMIT,
                    self.manual().launch_like(&place.instance),
                )
                .await??
            }
        };
        let uid = self.databases().get(DATABASE).await?.uid().unwrap_or_default();
        self.manual().open(&place.machine, &standby, &uid).await?;
        Ok(standby)
    }

    /// Waits until the database serves on another machine, and reads all rows back.
    async fn moved(&self, before: &Place) -> Result<(Change, Run), Failure> {
        let after =
            wait_with_progress("the database on another machine", LIMIT, self.place_other_than(before))
                .await??;
        served(&self.writer).await?;
        let outage = self.writer.observed().outage.ok_or("nothing was written")?;
        let tally =
            wait_with_progress("all rows to be read back", LIMIT, self.writer.verify(LIMIT)).await??;
        tally
            .check()
            .map_err(|untrue| format!("the rows read back differ from the rows written: {untrue}"))?;
        let count = self.target.count(BALLAST, LIMIT).await?;
        if count < self.rows {
            return Err(format!("the table {BALLAST} had {} rows, and has {count}", self.rows).into());
        }
        let Gap { length, .. } = outage;
        let change = Change {
            from: before.machine.clone(),
            pod: before.pod.clone(),
            to: after.machine,
            successor: after.pod,
            volume: after.volume,
            outage,
        };
        let run = Run::new(length, tally.sent.len(), tally.acknowledged.len(), tally.found.len());
        Ok((change, run))
    }

    async fn place_other_than(&self, before: &Place) -> Result<Place, Failure> {
        loop {
            match self.try_place().await? {
                Some(place) if place.pod != before.pod && place.machine != before.machine => {
                    return Ok(place);
                }
                Some(_) | None => tokio::time::sleep(POLL).await,
            }
        }
    }

    async fn place(&self) -> Result<Place, Failure> {
        Ok(self.try_place().await?.ok_or("no pod serves")?)
    }

    /// Where the database serves, if it does.
    async fn try_place(&self) -> Result<Option<Place>, Failure> {
        let Some(pod) = self.pods().get_opt(&pod_name()).await? else { return Ok(None) };
        let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let is_ready = conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True");
        let machine = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let (true, None, Some(machine), Some(pod)) =
            (is_ready, pod.metadata.deletion_timestamp.as_ref(), machine, pod.uid())
        else {
            return Ok(None);
        };
        let ec2 = self.observer.ec2().await?;
        let instance = ec2
            .instances
            .into_iter()
            .find(|it| it.private_dns == machine && it.state == InstanceState::Running);
        let volume = ec2.volumes.iter().find(|volume| volume.tags.contains_key("freehold.dev/volume-uid"));
        Ok(instance.zip(volume).map(|(instance, volume)| Place {
            pod,
            machine,
            instance,
            volume: volume.id.clone(),
        }))
    }

    /// Waits until the operator has nothing left to do: one Node, its instance, and the Database Ready.
    async fn settled(&self) -> Result<(), Failure> {
        loop {
            let nodes = Api::<Node>::namespaced(self.client.clone(), NAMESPACE)
                .list(&ListParams::default())
                .await?
                .items;
            let ec2 = self.observer.ec2().await?;
            let lives = |it: &&InstanceView| {
                it.state != InstanceState::Terminated && it.tags.contains_key("freehold.dev/node-uid")
            };
            if nodes.len() == 1
                && ec2.instances.iter().filter(lives).count() == 1
                && self.observer.observe().await?.is_ready()
            {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn manual(&self) -> Manual<'_> {
        Manual {
            client: &self.client,
            observer: &self.observer,
            endpoint: &self.record.endpoint,
            region: &self.record.region,
        }
    }

    fn databases(&self) -> Api<Database> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }
}

fn pod_name() -> String {
    format!("{DATABASE}-0")
}

fn is_there(machine: &str, standby: &str) -> Result<(), Failure> {
    if machine == standby {
        Ok(())
    } else {
        Err(format!(
            "the pod came to {machine}, and {standby} was to \
        have it"
        )
        .into())
    }
}
