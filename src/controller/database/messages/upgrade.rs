//! The sentences of a Database whose engine changes behind a backup. Pure.

use crate::api::database::{Engine, Upgrade};
use crate::controller::database::wait::UpgradeWait;

/// Why an upgrade that its user has taken back is not completed.
pub const TAKEN_BACK: &str =
    "spec.engine was set back to the engine before it, before the changed one accepted connections";

/// Why an upgrade is not completed whose user requests another engine, which may not read its data.
pub const CHANGED: &str = "spec.engine was changed once more before the changed engine accepted connections, to one that may not read \
    what that has written";

/// Why an upgrade ends whose backup has no snapshot in time.
pub fn not_backed_up(backup: &str, message: Option<&str>) -> String {
    let why = message.map(|message| format!(": {message}")).unwrap_or_default();
    format!("Backup {backup} of the stopped database has no snapshot{why}")
}

/// The engine is stopped for a change.
pub fn begun(upgrade: &Upgrade) -> String {
    let Upgrade { from, to, backup_name, .. } = upgrade;
    format!(
        "the engine changes from {} to {}, and is stopped for Backup {backup_name}",
        named(&from.engine),
        named(to)
    )
}

/// The changed engine accepts connections.
pub fn done(upgrade: &Upgrade) -> String {
    let Upgrade { from, to, backup_name, .. } = upgrade;
    format!(
        "the engine changed from {} to {}; Backup {backup_name} has the data of before",
        named(&from.engine),
        named(to)
    )
}

/// The version, or the image of a custom engine.
fn named(engine: &Engine) -> String {
    let image = engine.custom.as_ref().map(|custom| custom.image.as_str());
    let version = engine.version.as_deref().or(image).unwrap_or("the default version");
    format!("{} {version}", engine.kind.as_str())
}

impl UpgradeWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::AwaitingBackup(name) => format!(
                "the engine changes once Backup {name} is complete, and goes on until then: the snapshot that \
                is taken of the stopped database is complete the sooner"
            ),
            Self::BackupFailed(name) => format!(
                "the engine does not change, since Backup {name}, which was to be complete before, has failed: \
                delete that Backup, and another one is taken; or remove spec.upgrade to change the engine \
                without a backup"
            ),
            Self::NothingServed(image) => format!(
                "the engine does not change, since status.served does not say what the database would go \
                back to: set spec.engine to what runs ({image}), and request the change again once the \
                database is Ready; or remove spec.upgrade to change the engine without a backup"
            ),
            Self::Opening => {
                "the engine accepts connections, and the Service is about to let clients in".to_owned()
            }
            Self::Recording => "recording that the engine changes".to_owned(),
            Self::BackingUp(name, None) => format!("the engine is stopped for Backup {name}"),
            Self::BackingUp(name, Some(message)) => {
                format!("the engine is stopped for Backup {name}: {message}")
            }
            Self::GoingBack(why) => format!("the database goes back to the engine that it had: {why}"),
            Self::AwaitingSnapshot(id) => format!(
                "the database goes back to the data of snapshot {id}, from before the engine changed, as soon \
                as EC2 has completed that"
            ),
            Self::NoWayBack(id, refusal) => format!(
                "the database cannot go back to the data of snapshot {id}, from before the engine changed: {}. \
                Restore another backup (spec.restoreInPlace)",
                refusal.why()
            ),
            Self::WentBack { at, message, data_restored: true } => format!(
                "the database went back at {at} to the engine, the settings and the data from before the \
                engine changed: {message}. The volume that the changed engine wrote to is retained. \
                spec.engine is not tried again until engine, settings or resources change: set spec.engine \
                back, or to one that serves"
            ),
            Self::WentBack { at, message, data_restored: false } => format!(
                "the database went back at {at} to the engine and the settings from before, and no changed \
                engine was started: {message}. spec.engine is not tried again until engine, settings or \
                resources change: set spec.engine back, or to one that serves"
            ),
        }
    }
}
