//! What real machines are made of: programs and images.

use crate::base::cache::Cache;
use crate::base::progress::Progress;
use crate::images::{self, Containerd, Template};
use crate::tools::{self, Bundle, Program, Tools};

/// What real machines are made of.
#[derive(Clone, Debug)]
pub struct Real {
    /// Their programs, and those of the CSI driver.
    pub tools: Tools,
    /// The images of every machine.
    pub template: Template,
}

/// Why the programs or images of real machines could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MaterialsError {
    /// Their programs.
    #[error(transparent)]
    Tools(#[from] tools::Error),

    /// Their images.
    #[error(transparent)]
    Images(#[from] images::Error),
}

/// Something that is made once and kept.
#[derive(Clone, Debug)]
pub struct Piece {
    /// What it is.
    pub what: String,
    /// How long it takes on two cores that do nothing else.
    pub seconds: u64,
}

impl Piece {
    pub(crate) fn of(bundle: Bundle) -> Self {
        Self { what: bundle.contents(), seconds: bundle.seconds() }
    }
}

/// A time as people are told it.
pub fn about(seconds: u64) -> String {
    format!("about {} min", seconds.div_ceil(60))
}

impl Real {
    /// From the cache; builds the programs and makes the images that are not in it, showing progress.
    pub async fn ensure(cache: &Cache, progress: &Progress) -> Result<Self, MaterialsError> {
        // First, since it unpacks the images, which are made while the other programs are built.
        let containerd = containerd(&Tools::ensure(cache, &[Bundle::Node], progress).await?);
        let tools = async { Ok::<_, MaterialsError>(Tools::ensure(cache, Bundle::REAL, progress).await?) };
        let template = async { Ok(Template::ensure(cache, &containerd, &progress.beside()).await?) };
        let (tools, template) = tokio::try_join!(tools, template)?;
        Ok(Self { tools, template })
    }

    /// What of it is not in the cache. An error also names what this host lacks to make it.
    pub async fn missing(cache: &Cache) -> Result<Vec<Piece>, MaterialsError> {
        let tools = Tools::find(cache, Bundle::REAL).await?;
        let mut missing: Vec<Piece> = tools.missing().map(Piece::of).collect();
        if !Template::is_made(cache, &containerd(&tools))? {
            missing.push(Piece { what: images::WHAT.to_owned(), seconds: images::SECONDS });
        }
        Ok(missing)
    }
}

fn containerd(tools: &Tools) -> Containerd {
    Containerd { daemon: tools.program(Program::Containerd), ctr: tools.program(Program::Ctr) }
}
