//! Tells one step as it happens: a line for each thing that is seen, and what is awaited meanwhile.

use std::time::{Duration, Instant};

use super::common::Failure;
use super::parts::Moments;
use super::report::Step;
use super::story::Milestone;
use super::world::Eyes;
use crate::base::progress::Progress;

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(150);

/// How long nothing may be seen before it is said what is awaited.
const SILENCE: Duration = Duration::from_secs(2);

/// Tells one step.
pub struct Teller {
    eyes: Eyes,
    name: &'static str,
    started: Instant,
    journal_before: u64,
    moments: Moments,
}

impl Teller {
    /// The step begins now.
    pub async fn begin(eyes: &Eyes, name: &'static str) -> Result<Self, Failure> {
        let journal_before = eyes.journal_end().await?;
        Ok(Self { eyes: eyes.clone(), name, started: Instant::now(), journal_before, moments: Moments::new() })
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
    pub fn say(&self, sentence: &str) {
        println!("  {:6.1} s  {sentence}", self.started.elapsed().as_secs_f64());
    }

    /// Prints a line for each milestone as it comes true; an error names those that did not within the limit, from now on.
    pub async fn tell(&mut self, milestones: &[Milestone], limit: Duration) -> Result<(), Failure> {
        let mut open: Vec<&Milestone> = milestones.iter().collect();
        let begun = Instant::now();
        let mut last_seen = begun;
        let mut progress: Option<Progress> = None;
        loop {
            let world = self.eyes.look().await?;
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
                self.say(&sentence);
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
                return Err(format!("not seen within {} s: {missing}\n{}", limit.as_secs(), world.words()).into());
            }
            if last_seen.elapsed() > SILENCE {
                let progress = progress.get_or_insert_with(Progress::on_stderr);
                progress.at(waited.as_secs(), limit.as_secs(), &format!("awaited: {missing}"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The step is over: its row.
    pub async fn end(self) -> Result<Step, Failure> {
        let took = self.started.elapsed();
        Ok(Step::new(self.name, took, self.eyes.calls_since(self.journal_before).await?))
    }
}

/// Waits for something that shows nothing by itself, and says so if it takes long; an error names it after the limit.
pub async fn patiently<T>(what: &str, limit: Duration, work: impl Future<Output = T>) -> Result<T, Failure> {
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
            break Err(format!("not seen within {} s: {what}", limit.as_secs()).into());
        }
        if elapsed > SILENCE {
            let progress = progress.get_or_insert_with(Progress::on_stderr);
            progress.at(elapsed.as_secs(), limit.as_secs(), &format!("awaited: {what}"));
        }
    };
    if let Some(progress) = progress {
        progress.clear();
    }
    result
}
