//! Prints one step as it happens: a line for each milestone, and what is waited for meanwhile.

use std::time::{Duration, Instant};

use super::common::Failure;
use super::milestones::Milestone;
use super::observer::Observer;
use super::parts::Moments;
use super::report::Step;
use crate::base::progress::Progress;

/// How often the API server and EC2 are read.
const LOOK_EVERY: Duration = Duration::from_millis(150);

/// How long no milestone may be reached before a line says what is waited for.
const SILENCE: Duration = Duration::from_secs(2);

/// Prints one step.
pub struct StepReporter {
    observer: Observer,
    name: &'static str,
    started: Instant,
    journal_before: u64,
    moments: Moments,
}

impl StepReporter {
    /// The step begins now.
    pub async fn begin(observer: &Observer, name: &'static str) -> Result<Self, Failure> {
        let journal_before = observer.journal_end().await?;
        Ok(Self {
            observer: observer.clone(),
            name,
            started: Instant::now(),
            journal_before,
            moments: Moments::new(),
        })
    }

    /// When it began.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// When each thing was seen.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// Prints a line.
    pub fn print(&self, sentence: &str) {
        println!("  {:6.1} s  {sentence}", self.started.elapsed().as_secs_f64());
    }

    /// Prints a line for each milestone as it is reached; an error names those that were not reached within
    /// the limit, from now on.
    pub async fn wait_for(&mut self, milestones: &[Milestone], limit: Duration) -> Result<(), Failure> {
        let mut open: Vec<&Milestone> = milestones.iter().collect();
        let begun = Instant::now();
        let mut last_seen = begun;
        let mut progress: Option<Progress> = None;
        loop {
            let world = self.observer.observe().await?;
            let elapsed = self.started.elapsed();
            let mut seen = Vec::new();
            open.retain(|milestone| match (milestone.seen)(&world) {
                Some(sentence) => {
                    seen.push((milestone.what, sentence));
                    false
                }
                None => true,
            });
            if !seen.is_empty()
                && let Some(progress) = progress.take()
            {
                progress.clear();
            }
            for (what, sentence) in seen {
                self.print(&sentence);
                self.moments.insert(what, elapsed);
                last_seen = Instant::now();
            }
            if open.is_empty() {
                return Ok(());
            }
            let missing = open.iter().map(|milestone| milestone.what).collect::<Vec<_>>().join(", ");
            let waited = begun.elapsed();
            if waited > limit {
                if let Some(progress) = progress.take() {
                    progress.clear();
                }
                return Err(format!(
                    "not observed within {} s: {missing}\n{}",
                    limit.as_secs(),
                    world.conditions()
                )
                .into());
            }
            if last_seen.elapsed() > SILENCE {
                let progress = progress.get_or_insert_with(Progress::on_stderr);
                progress.at(waited.as_secs(), limit.as_secs(), &format!("waiting for: {missing}"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Ends the step and returns its row.
    pub async fn end(self) -> Result<Step, Failure> {
        let took = self.started.elapsed();
        Ok(Step::new(self.name, took, self.observer.calls_since(self.journal_before).await?))
    }
}

/// Waits for work that prints nothing itself, and prints what it is if it takes long; an error names it after
/// the limit.
pub async fn wait_with_progress<T>(
    what: &str,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Result<T, Failure> {
    let started = Instant::now();
    let mut progress: Option<Progress> = None;
    tokio::pin!(work);
    // The work has the same limit, and a better error: it may have a moment more.
    let result = loop {
        tokio::select! {
            done = &mut work => break Ok(done),
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let elapsed = started.elapsed();
        if elapsed > limit + SILENCE {
            break Err(format!("not observed within {} s: {what}", limit.as_secs()).into());
        }
        if elapsed > SILENCE {
            let progress = progress.get_or_insert_with(Progress::on_stderr);
            progress.at(elapsed.as_secs(), limit.as_secs(), &format!("waiting for: {what}"));
        }
    };
    if let Some(progress) = progress {
        progress.clear();
    }
    result
}
