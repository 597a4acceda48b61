//! An operator on a box with many databases: changes them, and counts what the operator does.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use freehold::api::{Database, Size};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::reflector::Store;
use kube::{Client, ResourceExt as _};
use procfs::process::Process;
use serde_json::json;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::counters::Counters;
use super::floor::{changes, floor};
use super::reactions::Reactions;
use super::requests::{Requests, follows_the_clock, is_operators};
use super::stage::{Kind, Stage};
use crate::account::node_kind::NodeKind;
use crate::base::cache::Cache;
use crate::base::progress::Progress;
use crate::base::watching::Watching;
use crate::cluster::audit::{self, Request};
use crate::presentation::daemon::Record;
use crate::presentation::demo::cluster_objects;
use crate::presentation::demo::common::Failure;
use crate::presentation::demo::example;
use crate::presentation::demo::observer::{NAMESPACE, Observer};
use crate::presentation::demo::operator_process::OperatorProcess;
use crate::presentation::demo::reporter::wait_with_progress;
use crate::writer::Dialect;

/// Time passes as it does.
pub const SPEED: f64 = 1.0;

/// How long a stage may take, and a second more for each database.
const LIMIT: Duration = Duration::from_mins(3);

/// How long the operator must have written nothing until a stage is over.
const REST: Duration = Duration::from_secs(5);

/// How often is looked whether it is.
const POLL: Duration = Duration::from_millis(500);

/// After how long a line says what is waited for.
const SILENCE: Duration = Duration::from_secs(2);

/// How long the operator is watched when nothing is changed.
const MINUTE: Duration = Duration::from_mins(1);

/// How many databases are changed at the same time.
const AT_ONCE: usize = 50;

/// The size that all databases grow to.
const GROWN: i32 = 200;

/// An operator with its databases.
pub struct Bench<'a> {
    cache: &'a Cache,
    binary: &'a Path,
    record: &'a Record,
    databases: u32,
    client: Client,
    observer: Observer,
    operator: OperatorProcess,
    watching: Watching,
    store: Store<Database>,
    /// The operator's memory before there was a database, in bytes.
    memory_before: u64,
    /// How far the audit log was read, and what was read since the stage began.
    audited: u64,
    requests: Vec<Request>,
    _watch: DropGuard,
}

/// Where a stage began.
struct Mark {
    at: Instant,
    journal: u64,
    processor: Duration,
    counters: Counters,
}

impl<'a> Bench<'a> {
    /// Installs an operator in the box, which has no database yet.
    pub async fn set_up(
        cache: &'a Cache,
        record: &'a Record,
        binary: &'a Path,
        databases: u32,
    ) -> Result<Self, Failure> {
        let client = cluster_objects::client(&record.kubeconfig).await?;
        let observer = Observer::new(client.clone(), &record.endpoint)?;
        cluster_objects::install(&client).await?;
        let operator = start(cache, binary, record).await?;
        let stop = CancellationToken::new();
        let watching = Watching::new(TaskTracker::new(), stop.clone());
        let store = watching.store(Api::<Database>::namespaced(client.clone(), NAMESPACE));
        let mut bench = Self {
            cache,
            binary,
            record,
            databases,
            client,
            observer,
            operator,
            watching,
            store,
            memory_before: 0,
            audited: 0,
            requests: Vec::new(),
            _watch: stop.drop_guard(),
        };
        bench.rest().await?;
        bench.memory_before = usage(&bench.operator)?.1;
        Ok(bench)
    }

    /// Creates all databases at once.
    pub async fn create(&mut self) -> Result<Stage, Failure> {
        let mark = self.mark().await?;
        let (example, _) = example::database(Dialect::Questdb, NodeKind::Virtual).await?;
        let databases = self.api();
        let create = |name: String| {
            let (databases, mut database) = (databases.clone(), example.clone());
            database.metadata.name = Some(name);
            async move { databases.create(&PostParams::default(), &database).await.map(drop) }
        };
        self.each(create).await?;
        let until = self.until("Ready", mark.at, |all| all.iter().filter(|it| is_ready(it)).count()).await?;
        self.rest().await?;
        self.measured(Kind::Create, mark, Some(until)).await
    }

    /// Grows the volumes of all.
    pub async fn grow(&mut self) -> Result<Stage, Failure> {
        let mark = self.mark().await?;
        let size = Size::from_gib(GROWN);
        let patch = json!({"spec": {"storage": {"size": &size}}});
        let databases = self.api();
        let grow = |name: String| {
            let (databases, patch) = (databases.clone(), Patch::Merge(patch.clone()));
            async move { databases.patch(&name, &PatchParams::default(), &patch).await.map(drop) }
        };
        self.each(grow).await?;
        let is_grown = |it: &Database| is_ready(it) && it.spec.storage.size == size;
        let until = self.until("grown", mark.at, |all| all.iter().filter(|it| is_grown(it)).count()).await?;
        self.rest().await?;
        self.measured(Kind::Grow, mark, Some(until)).await
    }

    /// Stops the operator and starts it again; its first minute.
    pub async fn restart(&mut self) -> Result<Stage, Failure> {
        wait_with_progress("the operator's end", LIMIT, self.operator.stop()).await??;
        self.look()?;
        self.requests.clear();
        let mark = Mark {
            at: Instant::now(),
            journal: self.observer.journal_end().await?,
            processor: Duration::ZERO,
            counters: Counters::default(),
        };
        self.operator = start(self.cache, self.binary, self.record).await?;
        self.minute("the first minute after the start", mark.at).await?;
        self.measured(Kind::Restart, mark, None).await
    }

    /// A minute in which nothing is changed.
    pub async fn idle(&mut self) -> Result<Stage, Failure> {
        let mark = self.mark().await?;
        self.minute("a minute without a change", mark.at).await?;
        self.measured(Kind::Idle, mark, None).await
    }

    /// Deletes all databases.
    pub async fn delete(&mut self) -> Result<Stage, Failure> {
        let mark = self.mark().await?;
        let databases = self.api();
        let delete = |name: String| {
            let databases = databases.clone();
            async move { databases.delete(&name, &DeleteParams::default()).await.map(drop) }
        };
        self.each(delete).await?;
        let of = usize::try_from(self.databases)?;
        let until = self.until("gone", mark.at, |all| of.saturating_sub(all.len())).await?;
        self.rest().await?;
        self.measured(Kind::Delete, mark, Some(until)).await
    }

    /// Stops the operator, in good order.
    pub async fn tear_down(mut self) -> Result<(), Failure> {
        wait_with_progress("the operator's end", LIMIT, self.operator.stop()).await?
    }

    fn api(&self) -> Api<Database> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Does something to each database, at once.
    async fn each<F>(&self, deed: impl Fn(String) -> F) -> Result<(), Failure>
    where
        F: Future<Output = kube::Result<()>>,
    {
        let names = (0..self.databases).map(|number| format!("db-{number:04}"));
        let deeds = futures::stream::iter(names.map(deed)).buffer_unordered(AT_ONCE).try_collect::<()>();
        Ok(wait_with_progress("all databases to be changed", LIMIT, deeds).await??)
    }

    /// Waits until so many databases are there that all are; how long it took since that moment.
    async fn until(
        &self,
        what: &str,
        since: Instant,
        counted: impl Fn(&[Arc<Database>]) -> usize,
    ) -> Result<Duration, Failure> {
        let limit = LIMIT + Duration::from_secs(self.databases.into());
        let mut progress: Option<Progress> = None;
        loop {
            let all = self.store.state();
            let done = u64::try_from(counted(&all))?;
            let took = since.elapsed();
            if done >= u64::from(self.databases) {
                if let Some(progress) = progress {
                    progress.clear();
                }
                return Ok(took);
            }
            if took > limit {
                return Err(format!(
                    "only {done} of {} databases are {what} after {} s{}; the operator's log ends with:\n{}",
                    self.databases,
                    limit.as_secs(),
                    all.iter().find_map(|it| unready(it)).unwrap_or_default(),
                    self.operator.tail()
                )
                .into());
            }
            if took > SILENCE {
                let progress = progress.get_or_insert_with(Progress::on_stderr);
                progress.at(done, self.databases.into(), &format!("databases are {what}"));
            }
            self.watching.changed(POLL).await;
        }
    }

    /// Waits until the operator has written nothing for a while.
    async fn rest(&mut self) -> Result<(), Failure> {
        let what = "the operator to come to rest";
        wait_with_progress(what, LIMIT, async {
            let mut last = Instant::now();
            while last.elapsed() < REST {
                tokio::time::sleep(POLL).await;
                let is_write = |it: &Request| is_operators(it) && it.is_write() && !follows_the_clock(it);
                if self.look()?.iter().any(is_write) {
                    last = Instant::now();
                }
            }
            Ok(())
        })
        .await?
    }

    /// Waits until a minute has passed since then.
    async fn minute(&self, what: &str, since: Instant) -> Result<(), Failure> {
        wait_with_progress(what, MINUTE, tokio::time::sleep(MINUTE.saturating_sub(since.elapsed()))).await
    }

    /// Reads on in the audit log; what was new in it.
    fn look(&mut self) -> Result<&[Request], Failure> {
        let before = self.requests.len();
        self.requests.extend(audit::requests_since(&self.record.audit_log, &mut self.audited)?);
        Ok(self.requests.get(before..).unwrap_or_default())
    }

    /// A stage begins.
    async fn mark(&mut self) -> Result<Mark, Failure> {
        let counters = Counters::read(&self.operator.metrics().await?);
        let journal = self.observer.journal_end().await?;
        self.look()?;
        self.requests.clear();
        Ok(Mark { at: Instant::now(), journal, processor: usage(&self.operator)?.0, counters })
    }

    /// A stage is over.
    async fn measured(&mut self, kind: Kind, mark: Mark, until: Option<Duration>) -> Result<Stage, Failure> {
        let (processor, memory) = usage(&self.operator)?;
        let counted = mark.at.elapsed();
        self.look()?;
        let counters = Counters::read(&self.operator.metrics().await?).since(&mark.counters);
        Ok(Stage {
            kind,
            databases: self.databases,
            counted,
            until,
            floor: floor(&changes(&self.observer.journal(mark.journal).await?)),
            reactions: Reactions::of(&self.requests),
            processor: processor.saturating_sub(mark.processor),
            memory,
            memory_before: self.memory_before,
            counters,
            requests: Requests::of_operator(&self.requests),
            calls: self.observer.calls_since(mark.journal).await?,
        })
    }
}

async fn start(cache: &Cache, binary: &Path, record: &Record) -> Result<OperatorProcess, Failure> {
    let start = OperatorProcess::start(cache, binary, record, SPEED);
    wait_with_progress("the operator to be ready", LIMIT, start).await?
}

/// The processor time that the operator has used since its start, and its memory in bytes (proc(5)).
fn usage(operator: &OperatorProcess) -> Result<(Duration, u64), Failure> {
    let process = Process::new(i32::try_from(operator.id())?)?;
    let stat = process.stat()?;
    let ticks = Duration::from_secs(stat.utime + stat.stime);
    let processor = ticks / u32::try_from(procfs::ticks_per_second())?;
    Ok((processor, stat.rss * procfs::page_size()))
}

/// Whether a Database is Ready, with its volume as it is wanted, in its present generation.
fn is_ready(database: &Database) -> bool {
    let generation = database.metadata.generation;
    database.status.as_ref().is_some_and(|status| {
        let is_true = |kind: &str| {
            let mut conditions = status.conditions.iter();
            conditions
                .any(|it| it.type_ == kind && it.status == "True" && it.observed_generation == generation)
        };
        status.observed_generation == generation && is_true("Ready") && is_true("VolumeReady")
    })
}

/// A Database that is not Ready, and why.
fn unready(database: &Database) -> Option<String> {
    let mut conditions = database.status.iter().flat_map(|status| &status.conditions);
    let ready = conditions.find(|it| it.type_ == "Ready" && it.status != "True")?;
    Some(format!(", such as {}: {}: {}", database.name_any(), ready.reason, ready.message))
}
