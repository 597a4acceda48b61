//! Says what is going on while a person waits: a bar on a terminal, else a plain line every 15 seconds.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How often a plain line is written where there is no terminal: often enough to see that it lives, rarely enough for a CI log.
const PLAIN_LINE_EVERY: Duration = Duration::from_secs(15);

/// Shows one piece of work that takes long.
#[derive(Debug)]
pub struct Progress {
    shown: Shown,
}

#[derive(Debug)]
enum Shown {
    Bar(ProgressBar),
    Lines { started: Instant, last: Mutex<Instant> },
    Nothing,
}

impl Progress {
    /// Shows on standard error: a bar on a terminal, plain lines elsewhere.
    pub fn on_stderr() -> Self {
        let shown = if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(0);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {wide_bar} {pos}/{len} {elapsed}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            Shown::Bar(bar)
        } else {
            let now = Instant::now();
            Shown::Lines { started: now, last: Mutex::new(now) }
        };
        Self { shown }
    }

    /// Shows nothing.
    pub fn silent() -> Self {
        Self { shown: Shown::Nothing }
    }

    /// Says once what begins now, and about how long it takes.
    pub fn begin(&self, what: &str) {
        match &self.shown {
            Shown::Bar(bar) => bar.println(what),
            Shown::Lines { .. } => eprintln!("{what}"),
            Shown::Nothing => {}
        }
    }

    /// `done` of `total` pieces are ready; `what` is the current one.
    pub fn at(&self, done: u64, total: u64, what: &str) {
        match &self.shown {
            Shown::Bar(bar) => {
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
            Shown::Bar(bar) => {
                bar.println(what);
                bar.finish_and_clear();
            }
            Shown::Lines { .. } => eprintln!("{what}"),
            Shown::Nothing => {}
        }
    }
    /// The work is over, and what follows says so itself.
    pub fn clear(&self) {
        match &self.shown {
            Shown::Bar(bar) => bar.finish_and_clear(),
            Shown::Lines { .. } | Shown::Nothing => {}
        }
    }
}
