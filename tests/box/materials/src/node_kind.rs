//! Which kind of machines a box has, and what decides it.

use std::io::Write as _;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::base::cache::Cache;
use crate::base::progress::Progress;
use crate::real::{MaterialsError, Piece, Real};
use crate::requirements;
use crate::tools::{Bundle, Tools};

/// What the machines of a box are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    /// Namespaces on this host, with a kubelet, containers and disks.
    Real,

    /// Nodes of the API server's only: pods run in name.
    #[default]
    Virtual,
}

impl NodeKind {
    /// The name, as the command line has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Virtual => "virtual",
        }
    }

    /// Builds and makes what such machines need and is not in the cache, showing progress; gives what real
    /// ones are made of.
    pub async fn prepare(self, cache: &Cache, progress: &Progress) -> Result<Option<Real>, MaterialsError> {
        match self {
            Self::Real => Ok(Some(Real::ensure(cache, progress).await?)),
            Self::Virtual => {
                Tools::ensure(cache, Bundle::VIRTUAL, progress).await?;
                Ok(None)
            }
        }
    }

    /// What of it is not in the cache.
    pub async fn missing(self, cache: &Cache) -> Result<Vec<Piece>, MaterialsError> {
        match self {
            Self::Real => Real::missing(cache).await,
            Self::Virtual => {
                Ok(Tools::find(cache, Bundle::VIRTUAL).await?.missing().map(Piece::of).collect())
            }
        }
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Wanted {
    /// Real machines where this host allows them, otherwise virtual ones.
    #[default]
    Auto,

    /// Real machines, or an error that names what is missing.
    Real,

    /// Virtual machines: pods run in name only.
    Virtual,
}

/// This host cannot have real machines.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("real machines cannot run on this host; missing: {0}")]
pub struct Unable(String);

impl Wanted {
    /// Decides, given what this host lacks for real machines.
    pub fn decide(self, missing: &[String]) -> Result<NodeKind, Unable> {
        match self {
            Self::Virtual => Ok(NodeKind::Virtual),
            Self::Auto if !missing.is_empty() => Ok(NodeKind::Virtual),
            Self::Real if !missing.is_empty() => Err(Unable(missing.join("; "))),
            Self::Auto | Self::Real => Ok(NodeKind::Real),
        }
    }
}

/// The variable by which tests ask for real machines: with `real` a host that cannot have them fails them,
/// instead of passing them by.
pub const VARIABLE: &str = "FREEHOLD_NODES";

/// Whether a test on real machines can run on this host. Says aloud which one cannot, and why.
///
/// # Panics
/// If it cannot, and [`VARIABLE`] insists: such a test has failed.
pub fn can_be_real(test: &str) -> bool {
    let missing = requirements::missing(&Cache::from_environment()).join("; ");
    let insists = std::env::var(VARIABLE).is_ok_and(|value| value == NodeKind::Real.as_str());
    assert!(missing.is_empty() || !insists, "{test} needs real machines, and this host lacks: {missing}");
    if !missing.is_empty() {
        // Not by a macro: what those print is kept back when a test passes.
        let _ = writeln!(
            std::io::stderr(),
            "NOT RUN, for it needs real machines and this host lacks {missing}: {test}"
        );
    }
    missing.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_takes_what_the_host_allows_and_real_insists() {
        let lacks = ["root".to_owned(), "mkfs.xfs".to_owned()];
        for (wanted, able, unable) in [
            (Wanted::Auto, Ok(NodeKind::Real), Ok(NodeKind::Virtual)),
            (Wanted::Real, Ok(NodeKind::Real), Err(Unable("root; mkfs.xfs".to_owned()))),
            (Wanted::Virtual, Ok(NodeKind::Virtual), Ok(NodeKind::Virtual)),
        ] {
            assert_eq!(wanted.decide(&[]), able, "{wanted:?}");
            assert_eq!(wanted.decide(&lacks), unable, "{wanted:?}");
        }
    }
}
