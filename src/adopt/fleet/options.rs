//! The options that name many databases, and say how they are adopted.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args, value_parser};

/// How many databases are adopted at once unless another number is given: what a person can still look at
/// when something goes wrong.
const AT_ONCE: u16 = 4;

/// The options for many databases.
#[derive(Args, Clone, Debug)]
#[command(group(ArgGroup::new("several").args(["selector", "from"])))]
#[command(group(ArgGroup::new("scope").args(["namespace", "all_namespaces"])))]
pub struct Many {
    /// Every StatefulSet with these labels, such as app=questdb,tier!=test.
    #[arg(short = 'l', long, value_name = "LABELS", requires = "scope", conflicts_with = "database")]
    pub selector: Option<String>,

    /// A list, - for the standard input: a line for each database, NAMESPACE/NAME of its StatefulSet, then
    /// options of its own such as --instance-type r7i.large --secret orders-login. They replace those of the
    /// command. # begins a comment.
    #[arg(long, value_name = "FILE", conflicts_with = "database")]
    pub from: Option<PathBuf>,

    /// The namespace that --selector selects in.
    #[arg(short, long, requires = "selector", conflicts_with_all = ["stateful_set", "from"])]
    pub namespace: Option<String>,

    /// --selector selects in every namespace.
    #[arg(short = 'A', long, requires = "selector", conflicts_with_all = ["stateful_set", "from"])]
    pub all_namespaces: bool,

    /// How many databases are adopted at once.
    #[arg(long, value_name = "NUMBER", default_value_t = AT_ONCE,
        value_parser = value_parser!(u16).range(1..=100))]
    pub concurrency: u16,

    /// Begins no other database once one could not be adopted; those under way are finished.
    #[arg(long, requires = "several")]
    pub pause_on_failure: bool,

    /// Writes what became of each database to this file, anew after each: NAME.json or NAME.md.
    #[arg(long, value_name = "FILE", requires = "several")]
    pub report: Option<ReportFile>,
}

/// Where the report is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFile {
    /// The file.
    pub path: PathBuf,
    /// Markdown, not JSON.
    pub is_markdown: bool,
}

impl FromStr for ReportFile {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = PathBuf::from(text);
        match path.extension().and_then(|end| end.to_str()) {
            Some("json") => Ok(Self { path, is_markdown: false }),
            Some("md") => Ok(Self { path, is_markdown: true }),
            Some(_) | None => Err("expected a name that ends with .json or .md"),
        }
    }
}
