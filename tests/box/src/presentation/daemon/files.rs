//! What a named box leaves in its folder, so that other processes find it again.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{Error, system};
use crate::account::node_kind::NodeKind;
use crate::base::cache::Cache;
use crate::base::process::Identity;
use crate::cluster::control_plane::Component;

/// What a running box says about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// Its process.
    pub identity: Identity,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The kubeconfig of the operator.
    pub operator_kubeconfig: PathBuf,
    /// The API server's audit log, for [`crate::cluster::audit`].
    pub audit_log: PathBuf,
    /// What its machines are.
    pub nodes: NodeKind,
    /// EC2's URL.
    pub endpoint: String,
    /// EC2's region.
    pub region: String,
    /// The host as real machines see it: EC2 is there at the same port.
    pub gateway: Option<Ipv4Addr>,
    /// The folder of the programs, kubectl among them.
    pub programs: PathBuf,
    /// Its processes.
    pub components: Vec<Component>,
    /// The log of the box itself.
    pub log: PathBuf,
}

impl Record {
    /// Lines for a shell that point kubectl and the AWS tools at this box. The access key is the caller's
    /// name in EC2's journal.
    pub fn exports(&self) -> String {
        format!(
            "export KUBECONFIG={}\nexport AWS_ENDPOINT_URL_EC2={}\nexport AWS_ACCESS_KEY_ID=freehold\nexport \
             AWS_SECRET_ACCESS_KEY=box\n\
             export AWS_REGION={}\nexport PATH={}:$PATH\n",
            self.kubeconfig.display(),
            self.endpoint,
            self.region,
            self.programs.display(),
        )
    }
}

/// The folder of a box, and the files in it.
pub(super) struct Files {
    pub(super) folder: PathBuf,
}

impl Files {
    pub(super) fn of(cache: &Cache, name: &str) -> Self {
        Self { folder: cache.boxes().join(name) }
    }

    /// Written when the box is ready.
    pub(super) fn record(&self) -> PathBuf {
        self.folder.join("record.json")
    }

    /// Written first: the identity of the box's process.
    pub(super) fn identity(&self) -> PathBuf {
        self.folder.join("identity")
    }

    /// Held as long as the box lives.
    pub(super) fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// What was done to a disk that EC2 would have let go wrong, a line each.
    pub(super) fn violations(&self) -> PathBuf {
        self.folder.join("violations")
    }

    /// The identity of the operator that a demo runs in the box; so also the mark of a demo's box.
    pub(super) fn operator(&self) -> PathBuf {
        self.folder.join("operator")
    }
}

/// The process that this file names, if it still runs.
pub(super) fn living(file: &Path) -> Option<Identity> {
    Identity::parse(&std::fs::read_to_string(file).ok()?).filter(|identity| identity.lives())
}

/// The record of a box that is up.
pub fn running(cache: &Cache, name: &str) -> Option<Record> {
    let text = std::fs::read(Files::of(cache, name).record()).ok()?;
    serde_json::from_slice::<Record>(&text).ok().filter(|record| record.identity.lives())
}

/// What was done to a disk of this box that would have lost data in EC2; a file that is not there has none.
pub fn violations(cache: &Cache, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(Files::of(cache, name).violations()).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Remembers the operator that a demo runs in this box, so that [`down`](super::down) ends both; an error if
/// it cannot be written down.
pub fn remember_operator(cache: &Cache, name: &str, operator: Identity) -> Result<(), Error> {
    std::fs::write(Files::of(cache, name).operator(), operator.to_string())
        .map_err(system("write the operator's identity"))
}

/// Whether a demo ran, or runs, its operator in this box.
pub fn is_of_a_demo(cache: &Cache, name: &str) -> bool {
    Files::of(cache, name).operator().exists()
}

pub(super) fn write_identity(files: &Files, identity: Identity) -> Result<(), Error> {
    std::fs::write(files.identity(), identity.to_string()).map_err(system("write the box's identity"))
}

/// Whole or not at all: another process may be reading it.
pub(super) fn write_record(files: &Files, record: &Record) -> Result<(), Error> {
    let new = files.folder.join("record.new");
    let text =
        serde_json::to_vec_pretty(record).map_err(|error| system("write the box's record")(error.into()))?;
    std::fs::write(&new, text)
        .and_then(|()| std::fs::rename(&new, files.record()))
        .map_err(system("write the box's record"))
}
