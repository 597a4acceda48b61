//! A campaign: many lives, each noted as it ends, so that one that is stopped goes on where it was, and a
//! report of all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::house;
use super::lies::Lies;
use super::life::{self, Plan};
use super::tally::Tally;

/// How often the progress is printed and the report written.
const PROGRESS: Duration = Duration::from_secs(60);

/// How much of a reason the report has.
const SHORT: usize = 300;

/// One life that has ended: a line of the campaign's notes.
#[derive(Serialize, Deserialize)]
struct Lived {
    seed: u64,
    /// The commit that was tried.
    commit: String,
    /// How long it took, in milliseconds of real time.
    took: u64,
    /// Why it failed, if it did.
    failed: Option<String>,
    tally: Tally,
}

/// What is known of all lives that have ended.
#[derive(Default)]
struct Sum {
    seeds: BTreeSet<u64>,
    commits: BTreeMap<String, u64>,
    took: u64,
    failed: BTreeMap<u64, String>,
    tally: Tally,
}

impl Sum {
    fn add(&mut self, lived: &Lived) {
        if !self.seeds.insert(lived.seed) {
            return;
        }
        *self.commits.entry(lived.commit.clone()).or_default() += 1;
        self.took += lived.took;
        if let Some(why) = &lived.failed {
            self.failed.insert(lived.seed, why.clone());
        }
        self.tally.add(&lived.tally);
    }
}

/// The notes, the sum of them, and when the progress was told last.
struct Notes {
    folder: PathBuf,
    file: File,
    sum: Sum,
    /// How many lives have ended in this run.
    ended: u64,
    began: Instant,
    told: Instant,
}

impl Notes {
    /// Those of the runs before, of these seeds. A line that was cut off by the end of a run is lived again.
    fn open(folder: &Path, seeds: &Range<u64>) -> Self {
        fs::create_dir_all(folder).unwrap();
        let path = folder.join("lives.jsonl");
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(&path).unwrap();
        let mut sum = Sum::default();
        for line in BufReader::new(&file).lines() {
            let lived: Option<Lived> = serde_json::from_str(&line.unwrap()).ok();
            lived.filter(|it| seeds.contains(&it.seed)).iter().for_each(|it| sum.add(it));
        }
        file.write_all(b"\n").unwrap();
        Self { folder: folder.to_owned(), file, sum, ended: 0, began: Instant::now(), told: Instant::now() }
    }

    /// Notes a life that has ended, and from time to time how far it all is.
    fn note(&mut self, lived: &Lived, story: &str, seeds: &Range<u64>) {
        let line = serde_json::to_string(lived).unwrap();
        self.file.write_all(format!("{line}\n").as_bytes()).unwrap();
        if let Some(why) = &lived.failed {
            let path = self.folder.join(format!("seed-{}.txt", lived.seed));
            fs::write(&path, format!("commit {}\n{why}\n\n{story}", lived.commit)).unwrap();
            println!("seed {} failed: {} has its story", lived.seed, path.display());
        }
        self.sum.add(lived);
        self.ended += 1;
        if self.told.elapsed() >= PROGRESS {
            self.told = Instant::now();
            self.tell(seeds);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn tell(&self, seeds: &Range<u64>) {
        let (all, done) = (seeds.end - seeds.start, self.sum.seeds.len() as u64);
        let rate = self.ended as f64 / self.began.elapsed().as_secs_f64();
        let left = (all - done) as f64 / rate / 3600.0;
        let failed = self.sum.failed.len();
        println!("{done} of {all} seeds, {failed} failed, {rate:.2} seeds/s, {left:.1} h left");
        self.report(seeds);
    }

    fn report(&self, seeds: &Range<u64>) {
        fs::write(self.folder.join("report.md"), report(&self.sum, seeds)).unwrap();
    }
}

/// Lives all seeds that the folder has no note of, on every processor. The seeds that failed, in this run or
/// before.
pub fn run(folder: &Path, seeds: &Range<u64>) -> Vec<u64> {
    let notes = Mutex::new(Notes::open(folder, seeds));
    let done = notes.lock().sum.seeds.clone();
    let (next, commit) = (AtomicU64::new(seeds.start), commit());
    let live_on = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            if done.contains(&seed) {
                continue;
            }
            let began = Instant::now();
            let (lived, tally) = house::run_at_once(|| life::live(Plan::of(seed, Lies::of(seed))));
            let took = u64::try_from(began.elapsed().as_millis()).unwrap();
            let (failed, story) = match lived {
                Ok(()) => (None, String::new()),
                Err(failure) => (Some(failure.why), failure.story),
            };
            let lived = Lived { seed, commit: commit.clone(), took, failed, tally };
            notes.lock().note(&lived, &story, seeds);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(live_on);
        }
    });
    let notes = notes.into_inner();
    notes.report(seeds);
    println!("the report: {}", notes.folder.join("report.md").display());
    notes.sum.failed.keys().copied().collect()
}

/// The commit that is tried.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let is_changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|it| !it.is_empty());
    if is_changed { format!("{commit} with changes") } else { commit }
}

/// The report in Markdown.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn report(sum: &Sum, seeds: &Range<u64>) -> String {
    let tally = &sum.tally;
    let lived = sum.seeds.len() as u64;
    let commits: Vec<String> = sum.commits.iter().map(|(commit, of)| format!("{commit} ({of})")).collect();
    let mut text = format!(
        "# {lived} lives of a database with two operators\n\n\
         The seeds {}..{}, each a life of `tests/it/lives/life.rs` with the lies that it draws; the\n\
         command is in [docs/testing.md](../testing.md#campaigns).\n\n\
         | what | how many |\n|---|---|\n",
        seeds.start, seeds.end
    );
    let mut row = |what: &str, how_many: String| writeln!(text, "| {what} | {how_many} |").unwrap();
    row("seeds that were lived", lived.to_string());
    row("lives that failed", sum.failed.len().to_string());
    row("virtual time", format!("{:.0} days", tally.seconds as f64 / 86400.0));
    row("requests of the operators to the API server", tally.requests.to_string());
    row("of them writes, without Leases and events", tally.writes.to_string());
    row("calls of the operators to EC2", tally.calls.to_string());
    row("of them calls that may change something", tally.changing_calls.to_string());
    row("starts of an operator", tally.starts.to_string());
    row("time of one processor's thread", format!("{:.1} h", sum.took as f64 / 3_600_000.0));
    row("commits, with their lives", commits.join(", "));
    for (title, counts) in [("blow to an operator", &tally.blows), ("lie", &tally.lies)] {
        write!(text, "\n| {title} | how often |\n|---|---|\n").unwrap();
        for (name, number) in counts {
            writeln!(text, "| {name} | {number} |").unwrap();
        }
    }
    if !sum.failed.is_empty() {
        text.push_str("\n| failed | why |\n|---|---|\n");
    }
    for (seed, why) in &sum.failed {
        let why: String = why.replace(['|', '\n'], " ").chars().take(SHORT).collect();
        writeln!(text, "| {seed} | {why} |").unwrap();
    }
    text
}

#[test]
fn a_campaign_goes_on_where_it_was_and_a_line_that_was_cut_off_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let lived = |seed: u64, failed: Option<&str>| Lived {
        seed,
        commit: "c0ffee".to_owned(),
        took: 500,
        failed: failed.map(str::to_owned),
        tally: Tally { seconds: 86400, requests: 7, ..Tally::default() },
    };
    let (seeds, all) = (0..3, [lived(0, None), lived(1, Some("it does | not come to rest"))]);
    let mut notes = Notes::open(folder.path(), &seeds);
    for it in &all {
        notes.note(it, "the story", &seeds);
    }
    notes.file.write_all(br#"{"seed": 2, "comm"#).unwrap();
    let mut notes = Notes::open(folder.path(), &seeds);
    assert_eq!(notes.sum.seeds, BTreeSet::from([0, 1]));
    notes.note(&lived(2, None), "", &seeds);
    let sum = Notes::open(folder.path(), &seeds).sum;
    assert_eq!(sum.seeds, BTreeSet::from([0, 1, 2]));
    assert_eq!((sum.tally.requests, sum.took), (21, 1500));
    let report = report(&sum, &seeds);
    for line in ["# 3 lives of", "| lives that failed | 1 |", "| virtual time | 3 days |", "| c0ffee (3) |"] {
        assert!(report.contains(line), "{line}: {report}");
    }
    assert!(report.contains("| 1 | it does   not come to rest |"), "{report}");
    let story = fs::read_to_string(folder.path().join("seed-1.txt")).unwrap();
    assert!(story.ends_with("the story"), "{story}");
}
