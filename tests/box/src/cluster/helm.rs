//! helm, as people run it, without the settings of the user who runs it here.

use std::path::PathBuf;

use tokio::process::Command;

use crate::base::cache::Cache;
use crate::base::progress::Progress;
use crate::cluster::tools::{self, Bundle, Program, Tools};

/// The chart of the operator.
pub const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/freehold");

/// The program.
#[derive(Clone, Debug)]
pub struct Helm {
    program: PathBuf,
    home: PathBuf,
}

/// helm failed; all that it printed.
#[derive(Debug, thiserror::Error)]
#[error("`helm {command}` failed: {said}")]
pub struct Failed {
    /// Its arguments.
    pub command: String,
    /// What it printed.
    pub said: String,
}

impl Helm {
    /// From the cache; built if it is not there.
    pub async fn ensure(cache: &Cache) -> Result<Self, tools::Error> {
        let tools = Tools::ensure(cache, &[Bundle::Helm], &Progress::on_stderr()).await?;
        Ok(Self { program: tools.program(Program::Helm), home: cache.tools().join("helm-home") })
    }

    /// Runs it and gives what it printed.
    pub async fn run<S: AsRef<str>>(&self, args: &[S]) -> Result<String, Failed> {
        let args: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
        let failed = |said: String| Failed { command: args.join(" "), said };
        let mut helm = Command::new(&self.program);
        for home in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            helm.env(home, &self.home);
        }
        let output = helm.args(&args).env_remove("KUBECONFIG").kill_on_drop(true).output().await;
        let output = output.map_err(|error| failed(error.to_string()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(failed(text(&output.stdout) + &text(&output.stderr)))
        }
    }
}
