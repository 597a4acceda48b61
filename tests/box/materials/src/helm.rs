//! `cargo box helm`: the helm that the tests run, for people and for `.ci/chart`.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use clap::Args;

use crate::base::cache::Cache;
use crate::base::progress::Progress;
use crate::tools::{Bundle, Program, Tools};

type Failure = Box<dyn StdError + Send + Sync>;

/// Runs the helm that the tests run, built if it is missing, with the settings of the user who runs it.
#[derive(Clone, Debug, Args)]
pub struct Helm {
    /// As helm takes them: `cargo box helm template freehold charts/freehold`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Helm {
    /// Becomes helm.
    pub async fn run(self) -> Result<Infallible, Failure> {
        let cache = Cache::from_environment();
        let tools = Tools::ensure(&cache, &[Bundle::Helm], &Progress::on_stderr()).await?;
        Err(Command::new(tools.program(Program::Helm)).args(self.arguments).exec().into())
    }
}
