//! What a person says of the database that is to be adopted: the options that decide what is written.

use clap::Args;

use crate::command::target::Target;

/// The options that decide what is written.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
pub struct Wanted {
    /// The StatefulSet that runs the database; of many, each has its own.
    #[arg(skip)]
    pub stateful_set: Target,

    /// The name of the Database. Default: the name of the StatefulSet.
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,

    /// The NodeClass of the next machine.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub node_class: String,

    /// The Service that clients use. Default: the one that selects the pod and is not headless.
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,

    /// The Secret with the credentials. Default: the one that the engine's container reads.
    #[arg(long, value_name = "NAME", conflicts_with = "no_secret")]
    pub secret: Option<String>,

    /// No Secret is named in the status of the Database.
    #[arg(long)]
    pub no_secret: bool,

    /// An instance type that the next machine may have; several in order of preference. The type of the
    /// machine that was found comes first in any case.
    #[arg(long = "instance-type", value_name = "TYPE")]
    pub instance_types: Vec<String>,

    /// The whole release of the engine, such as 15.7, where its image does not say it.
    #[arg(long, value_name = "RELEASE", conflicts_with = "custom")]
    pub engine_version: Option<String>,

    /// Adopts a QuestDB or a PostgreSQL as an image of your own. It can never become the other kind.
    #[arg(long)]
    pub custom: bool,

    /// The Helm release, Argo CD application or Flux object that the labels of the StatefulSet name does not
    /// write it any more.
    #[arg(long)]
    pub unmanaged: bool,

    /// Takes no snapshot before the database is adopted.
    #[arg(long)]
    pub skip_snapshot: bool,
}

impl Wanted {
    /// The name of the Database.
    pub fn database(&self) -> &str {
        self.database.as_deref().unwrap_or(&self.stateful_set.name)
    }
}
