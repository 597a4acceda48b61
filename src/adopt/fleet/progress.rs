//! Shows how far the adoption of many is: a line for each that ends, and on a terminal a bar.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::entry::{Entry, State};
use crate::command::progress::Output;

/// How often the bar is drawn while nothing changes.
const TICK: Duration = Duration::from_millis(500);

/// How many there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All that are to be adopted.
    pub total: usize,
    /// Adopted.
    pub adopted: usize,
    /// Not adopted, for whatever cause.
    pub failed: usize,
    /// Begun, and neither.
    pub under_way: usize,
}

impl Tally {
    /// As a sentence, after this time.
    pub fn sentence(&self, elapsed: Duration) -> String {
        let ended = self.adopted + self.failed;
        let left = u32::try_from(self.total.saturating_sub(ended)).unwrap_or(u32::MAX);
        let time_left = match u32::try_from(ended).unwrap_or(u32::MAX) {
            _ if left == 0 => "none left".to_owned(),
            0 => "time left not known yet".to_owned(),
            ended => in_words((elapsed / ended).saturating_mul(left)),
        };
        let Self { total, adopted, failed, under_way } = self;
        format!("{adopted} of {total} adopted, {failed} not adopted, {under_way} under way, {time_left}")
    }
}

fn in_words(left: Duration) -> String {
    match left.as_secs() {
        0..90 => format!("about {} s left", left.as_secs()),
        seconds => format!("about {} min left", seconds.div_ceil(60)),
    }
}

/// Shows it.
pub struct Progress {
    bar: ProgressBar,
    output: Output,
    started: Instant,
    tally: Tally,
}

impl Progress {
    /// Of so many. The bar is on the standard error, if that is a terminal.
    pub fn new(total: usize, output: Output) -> Self {
        let bar = ProgressBar::new(u64::try_from(total).unwrap_or(u64::MAX));
        let style = ProgressStyle::with_template("  {bar:30} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(TICK);
        Self { bar, output, started: Instant::now(), tally: Tally { total, ..Tally::default() } }
    }

    /// One was begun.
    pub fn begun(&mut self) {
        self.tally.under_way += 1;
        self.bar.set_message(self.tally.sentence(self.started.elapsed()));
    }

    /// One has ended.
    pub fn ended(&mut self, entry: &Entry) {
        self.tally.under_way -= 1;
        if matches!(entry.state, State::Adopted | State::AlreadyAdopted) {
            self.tally.adopted += 1;
        } else {
            self.tally.failed += 1;
        }
        let sentence = self.tally.sentence(self.started.elapsed());
        let line = format!("{}: {} ({sentence})", entry.stateful_set, entry.result());
        self.bar.suspend(|| self.output.say(&line));
        self.bar.inc(1);
        self.bar.set_message(sentence);
    }

    /// All that were begun have ended.
    pub fn close(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_left_is_that_of_the_others_at_the_same_pace() {
        let tally = Tally { total: 200, adopted: 0, failed: 0, under_way: 4 };
        let text = tally.sentence(Duration::from_secs(9));
        assert_eq!(text, "0 of 200 adopted, 0 not adopted, 4 under way, time left not known yet");
        let tally = Tally { adopted: 48, failed: 2, ..tally };
        let text = tally.sentence(Duration::from_secs(100));
        assert_eq!(text, "48 of 200 adopted, 2 not adopted, 4 under way, about 5 min left");
        let tally = Tally { adopted: 190, ..tally };
        assert!(tally.sentence(Duration::from_secs(192)).ends_with("about 8 s left"));
        let tally = Tally { adopted: 198, under_way: 0, ..tally };
        assert!(tally.sentence(Duration::from_secs(400)).ends_with("0 under way, none left"));
    }
}
