//! The sentences of settings that an engine takes while it runs, or rejects. Pure.

use crate::controller::database::wait::ReloadWait;

impl ReloadWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::Asking => {
                "waiting for the engine to say whether it takes the settings of spec.config while it runs"
                    .to_owned()
            }
            Self::Unanswered(why) => format!(
                "the engine has not said whether it takes the settings of spec.config while it runs, and is \
                 restarted with them if that lasts: {why}"
            ),
            Self::Loading => "the engine goes on serving, and loads the settings of spec.config as soon as \
                 its file has them: the kubelet updates it within about two minutes"
                .to_owned(),
            Self::Rejected(why) => format!(
                "the engine rejects settings of spec.config, none of which is applied; it goes on with those \
                 of status.config.inForce: change spec.config: {why}"
            ),
        }
    }
}

/// The engine took these keys while it ran.
pub fn taken<'a>(keys: impl Iterator<Item = &'a String>) -> String {
    let keys: Vec<&str> = keys.map(String::as_str).collect();
    format!("the engine has taken other settings while it ran: {}", keys.join(", "))
}
