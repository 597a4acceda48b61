//! `freehold adopt` for many databases: a look at all of them, and with `--write` their adoption, a few at
//! once. What is done is known by the cluster alone, so that any run goes on where another ended.

mod adopt;
mod entry;
mod list;
mod look;
mod options;
mod progress;
mod report;
mod select;

#[cfg(test)]
mod tests;

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::error::AdoptError;
use super::inspect::uid_of_cluster;
use super::outcome::Outcome;
use super::wanted::Wanted;
use crate::clock::{Clock as _, SystemClock};
use crate::cloud::Cloud;
use crate::command::progress::Output;
use adopt::Adopter;
use entry::{Entry, State};
use look::{Job, Look};
pub use options::Many;
use options::ReportFile;
use progress::Progress;

/// The exit code of a program that SIGINT ended, by the shells' convention.
const INTERRUPTED: i32 = 130;

/// With what many databases are adopted.
pub struct Fleet<'a> {
    /// The API server.
    pub client: &'a Client,
    /// EC2, with the credentials of the caller.
    pub cloud: &'a dyn Cloud,
    /// The id of the cluster, if it was given.
    pub cluster_id: Option<&'a String>,
    /// How long one database may take until it is Ready.
    pub timeout: Duration,
    /// How it is printed.
    pub output: Output,
}

impl Fleet<'_> {
    /// Prints the table, and with `write` adopts what can be adopted.
    pub async fn run(&self, many: &Many, common: &Wanted, write: bool) -> Result<Outcome, AdoptError> {
        let cluster_id = match self.cluster_id {
            Some(id) => id,
            None => &uid_of_cluster(self.client).await?,
        };
        let look = Look { client: self.client, cloud: self.cloud, cluster_id };
        let jobs = look.at(select::select(self.client, many, common).await?).await?;
        let mut entries: Vec<Entry> = jobs.iter().map(|job| job.entry.clone()).collect();
        if self.output == Output::Text {
            print!("{}\n{}", report::table(&entries), report::problems(&entries));
            println!("{}. {}", report::sum(&entries), next_step(&entries, write));
        }
        save(many.report.as_ref(), &entries)?;
        if write {
            let stop = CancellationToken::new();
            let listening = tokio::spawn(stop_when_interrupted(stop.clone()));
            let adopted = self.adopt(jobs, &mut entries, many, look, &stop).await;
            listening.abort();
            adopted?;
            if self.output == Output::Text {
                print!("\n{}{}.", report::problems(&entries), report::sum(&entries));
                println!(" {}", afterwards(&entries));
            }
        }
        if self.output == Output::Json {
            print!("{}", report::json(&entries, SystemClock.now())?);
        }
        Ok(outcome(&entries, write))
    }

    /// Adopts what can be adopted, so many at once, until there is no more or a cause not to begin another.
    async fn adopt(
        &self,
        jobs: Vec<Job>,
        entries: &mut [Entry],
        many: &Many,
        look: Look<'_>,
        stop: &CancellationToken,
    ) -> Result<(), AdoptError> {
        let adopter = Adopter { client: self.client, cloud: self.cloud, look, timeout: self.timeout };
        let is_next = |(_, job): &(usize, Job)| job.entry.state == State::Adoptable;
        let mut waiting: Vec<(usize, Job)> = jobs.into_iter().enumerate().filter(is_next).rev().collect();
        let mut progress = Progress::new(waiting.len(), self.output);
        let mut under_way = FuturesUnordered::new();
        let mut saved = Ok(());
        loop {
            let has_cause = many.pause_on_failure && entries.iter().any(has_failed);
            let is_paused = stop.is_cancelled() || has_cause || saved.is_err();
            while !is_paused && under_way.len() < usize::from(many.concurrency) {
                let Some((index, job)) = waiting.pop() else { break };
                progress.begun();
                let adopter = &adopter;
                under_way.push(async move { (index, adopter.adopt(job).await) });
            }
            let Some((index, entry)) = under_way.next().await else { break };
            progress.ended(&entry);
            if let Some(there) = entries.get_mut(index) {
                *there = entry;
            }
            saved = saved.and_then(|()| save(many.report.as_ref(), entries));
        }
        progress.close();
        saved
    }
}

/// Writes the report beside its place and moves it there: a run that is killed leaves a whole one.
fn save(file: Option<&ReportFile>, entries: &[Entry]) -> Result<(), AdoptError> {
    let Some(ReportFile { path, is_markdown }) = file else { return Ok(()) };
    let now = SystemClock.now();
    let text = if *is_markdown { report::markdown(entries, now) } else { report::json(entries, now)? };
    let mut beside = path.clone();
    beside.as_mut_os_string().push(".new");
    let written = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|source| AdoptError::Report { path: path.clone(), source })
}

/// Whether it is a cause to begin no other. A blocker is none: it was in the table.
fn has_failed(entry: &Entry) -> bool {
    matches!(entry.state, State::Failed | State::Unknown)
}

fn outcome(entries: &[Entry], write: bool) -> Outcome {
    let is_left = |entry: &Entry| write && entry.state == State::Adoptable;
    if entries.iter().any(|entry| has_failed(entry) || is_left(entry)) {
        Outcome::Failed
    } else if entries.iter().any(|entry| entry.state == State::Blocked) {
        Outcome::Blocked
    } else {
        Outcome::Adoptable
    }
}

/// What follows the table.
fn next_step(entries: &[Entry], write: bool) -> &'static str {
    let is_adoptable = entries.iter().any(|entry| entry.state == State::Adoptable);
    match (is_adoptable, write) {
        (true, true) => "Adopting those that are adoptable:",
        (true, false) => {
            "Nothing was changed; the same command with --write adopts those that are adoptable."
        }
        (false, _) => "Nothing was changed.",
    }
}

/// What is done once no other is begun.
fn afterwards(entries: &[Entry]) -> &'static str {
    if entries.iter().any(|entry| matches!(entry.state, State::Failed | State::Adoptable)) {
        "Run the same command again: it goes on with those that are not adopted."
    } else {
        "Check that clients are connected, and put the Databases into Git."
    }
}

/// The first SIGINT or SIGTERM lets what is under way finish, the second ends the program.
async fn stop_when_interrupted(stop: CancellationToken) {
    let signals = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
    let [Ok(mut interrupt), Ok(mut terminate)] = signals else { return };
    for is_first in [true, false] {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if !is_first {
            std::process::exit(INTERRUPTED);
        }
        stop.cancel();
        eprintln!(
            "interrupted: no other adoption is begun; those under way are finished (again: end at once)"
        );
    }
}
