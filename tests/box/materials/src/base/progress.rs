//! Says what is going on while a person waits: a bar on a terminal, else a plain line every 15 seconds.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// How often a plain line is written where there is no terminal: often enough to see that it lives, rarely
/// enough for a CI log.
const PLAIN_LINE_EVERY: Duration = Duration::from_secs(15);

/// How often a bar is drawn while nothing changes.
const TICK: Duration = Duration::from_millis(200);

/// Shows one piece of work that takes long.
#[derive(Debug)]
pub struct Progress {
    shown: Shown,
}

#[derive(Debug)]
enum Shown {
    Bar { all: MultiProgress, bar: ProgressBar },
    Lines { started: Instant, last: Mutex<Instant> },
    Nothing,
}

impl Progress {
    /// Shows on standard error: a bar on a terminal, plain lines elsewhere.
    pub fn on_stderr() -> Self {
        let shown = if std::io::stderr().is_terminal() { bar_of(MultiProgress::new()) } else { lines() };
        Self { shown }
    }

    /// Shows nothing.
    pub fn silent() -> Self {
        Self { shown: Shown::Nothing }
    }

    /// Shows another piece of work, done at the same time, in the same place.
    #[must_use]
    pub fn beside(&self) -> Self {
        let shown = match &self.shown {
            Shown::Bar { all, .. } => bar_of(all.clone()),
            Shown::Lines { .. } => lines(),
            Shown::Nothing => Shown::Nothing,
        };
        Self { shown }
    }

    /// Says once what begins now, and about how long it takes.
    pub fn begin(&self, what: &str) {
        match &self.shown {
            Shown::Bar { all, bar } => {
                let _ = all.println(what);
                // What it showed before may have ended.
                bar.reset();
                bar.enable_steady_tick(TICK);
            }
            Shown::Lines { .. } => eprintln!("{what}"),
            Shown::Nothing => {}
        }
    }

    /// `done` of `total` pieces are ready; `what` is the current one.
    pub fn at(&self, done: u64, total: u64, what: &str) {
        match &self.shown {
            Shown::Bar { bar, .. } => {
                bar.set_length(total);
                bar.set_position(done);
                bar.set_message(what.to_owned());
            }
            Shown::Lines { started, last } => {
                let Ok(mut last) = last.lock() else { return };
                if last.elapsed() >= PLAIN_LINE_EVERY {
                    *last = Instant::now();
                    eprintln!("  {done}/{total} {what} ({} s)", started.elapsed().as_secs());
                }
            }
            Shown::Nothing => {}
        }
    }

    /// The work is over; `what` says how it ended.
    pub fn end(&self, what: &str) {
        match &self.shown {
            Shown::Bar { all, bar } => {
                let _ = all.println(what);
                bar.finish_and_clear();
            }
            Shown::Lines { .. } => eprintln!("{what}"),
            Shown::Nothing => {}
        }
    }

    /// The work is over, and what follows says so itself.
    pub fn clear(&self) {
        match &self.shown {
            Shown::Bar { bar, .. } => bar.finish_and_clear(),
            Shown::Lines { .. } | Shown::Nothing => {}
        }
    }
}

/// A bar below those that are there; it is drawn when there is something to show.
fn bar_of(all: MultiProgress) -> Shown {
    let bar = all.add(ProgressBar::new(0));
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {wide_bar} {pos}/{len} {elapsed}") {
        bar.set_style(style);
    }
    Shown::Bar { all, bar }
}

fn lines() -> Shown {
    let now = Instant::now();
    Shown::Lines { started: now, last: Mutex::new(now) }
}
