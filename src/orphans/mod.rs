//! `freehold orphans`: lists what EC2 has of this cluster and no object claims. Only reads.

mod error;
mod found;
mod inspect;
mod options;
mod report;

use jiff::Timestamp;
use kube::Client;

use crate::cloud::Cloud;
pub use error::OrphansError;
pub use options::Options;
use options::Output;

/// The list, as it is printed.
pub async fn run(
    options: &Options,
    client: &Client,
    cloud: &dyn Cloud,
    now: Timestamp,
) -> Result<String, OrphansError> {
    let found = inspect::inspect(options, client, cloud).await?;
    let orphans = found::orphans(&found);
    Ok(match options.output {
        Output::Json => format!("{}\n", serde_json::to_string_pretty(&orphans)?),
        Output::Table => report::text(&orphans, options.namespace.as_deref(), now),
    })
}

#[cfg(test)]
mod tests;
