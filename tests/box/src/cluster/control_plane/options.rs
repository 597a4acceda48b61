//! What a control plane is started with.

use std::path::PathBuf;

use super::timing::NodeTiming;
use crate::base::cache::Cache;

/// The options of one control plane.
#[derive(Clone, Debug)]
pub struct ControlPlaneOptions {
    /// A short name; part of the run folder's name.
    pub name: String,
    /// Where the tools and the run folder are.
    pub cache: Cache,
    /// How fast a silent Node is noticed.
    pub timing: NodeTiming,
    /// Where etcd's data is kept beyond this run; in the run folder if none.
    pub state: Option<PathBuf>,
}

impl ControlPlaneOptions {
    /// A control plane with the cache of the environment, fast node timing and no kept state.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            cache: Cache::from_environment(),
            timing: NodeTiming::fast(),
            state: None,
        }
    }
}
