//! The options of `freehold orphans`.

use clap::{Args, ValueEnum};

/// The options of `freehold orphans`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Of Databases of this namespace alone. Default: of all namespaces.
    #[arg(short, long)]
    pub(super) namespace: Option<String>,

    /// Identifies the cluster in tags, as the operator's --cluster-id does. Default: the UID of the namespace
    /// kube-system.
    #[arg(long, value_name = "ID")]
    pub(super) cluster_id: Option<String>,

    /// How the list is printed.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub(super) output: Output,
}

/// How the list is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// A line for each resource, and what a person can do about it.
    Table,
    /// The same for programs.
    Json,
}
