//! The state folder: the whole state in one file, replaced in one step.

use std::{borrow::Cow, fs, io, path::Path};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::State;

/// The file in the state folder.
const STATE_FILE: &str = "state.json";

/// A send that is carried out after the client gave up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Late {
    pub(crate) at: Timestamp,
    pub(crate) caller: String,
    pub(crate) params: Vec<(String, String)>,
    pub(crate) sent: u64,
}

/// What is kept in the state folder.
#[derive(Serialize, Deserialize)]
pub(crate) struct Kept<'a> {
    pub(crate) model: Cow<'a, State>,
    pub(crate) late: Cow<'a, [Late]>,
}

impl Kept<'_> {
    /// What the folder holds, which is made if it is not there.
    pub(crate) fn take_up(folder: &Path) -> io::Result<Option<Self>> {
        fs::create_dir_all(folder)?;
        match fs::read(folder.join(STATE_FILE)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces what the folder holds, so that a reader finds the old state or the new one, whole.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        let (path, partial) = (folder.join(STATE_FILE), folder.join("state.partial"));
        fs::write(&partial, serde_json::to_vec(self)?)?;
        fs::rename(partial, path)
    }
}
