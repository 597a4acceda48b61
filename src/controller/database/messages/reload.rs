//! The sentences of settings that an engine takes while it runs, or rejects. Pure.

use crate::api::database::RejectedSetting;
use crate::controller::database::wait::ReloadWait;

/// Why a setting counts as rejected by an engine that does not say what is wrong with it.
pub const NOT_TAKEN: &str = "the engine has gone on without it for some minutes after it was written; the \
    engine's log says why";

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
            Self::FileAwaited => {
                "waiting for the engine's file to have the settings of spec.config: the kubelet updates it \
                 within about two minutes"
                    .to_owned()
            }
            Self::Loading => {
                "the engine is loading the settings of spec.config, and goes on serving".to_owned()
            }
            Self::Rejected(settings) => rejected(settings),
        }
    }
}

/// The engine rejects these settings.
pub fn rejected(settings: &[RejectedSetting]) -> String {
    let one = |it: &RejectedSetting| format!("{} = {:?}: {}", it.key, it.value, it.message);
    let all: Vec<String> = settings.iter().map(one).collect();
    format!(
        "the engine rejects settings of spec.config, and goes on with those of status.config.inForce; change \
         spec.config: {}",
        all.join("; ")
    )
}

/// The engine took these keys while it ran; some it takes from elsewhere.
pub fn taken(keys: &[String], overridden: &[String]) -> String {
    let others = if overridden.is_empty() {
        String::new()
    } else {
        let keys = overridden.join(", ");
        format!("; what ALTER SYSTEM has set wins until the next restart over {keys}")
    };
    format!("the engine has taken other settings while it ran: {}{others}", keys.join(", "))
}
