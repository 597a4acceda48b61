//! Why an engine cannot be run as the spec wants it.

/// Why an engine cannot be run as it is asked for. The text names the field and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The engine needs a version.
    #[error("spec.engine.version is required for {engine}, for example {example}")]
    VersionMissing {
        /// The engine.
        engine: &'static str,
        /// A release of it.
        example: &'static str,
    },
    /// The version is not a release.
    #[error("spec.engine.version {version:?} is not a whole release: write it as {example}")]
    VersionForm {
        /// What was written.
        version: String,
        /// A release.
        example: &'static str,
    },
    /// The major version is not among those that can be run.
    #[error(
        "spec.engine.version {version} is of a major version that this Freehold does not run: use one of \
        {known}"
    )]
    VersionUnknown {
        /// What was written.
        version: String,
        /// Those that can be run.
        known: &'static str,
    },
    /// The release cannot be run safely.
    #[error("spec.engine.version {version} is too old: {reason}; use {minimum} or later")]
    VersionTooOld {
        /// What was written.
        version: String,
        /// Why it does not do.
        reason: &'static str,
        /// The first release that does.
        minimum: &'static str,
    },
    /// The custom engine is not described.
    #[error("spec.engine.custom (image, port, dataPath) is required for the type custom")]
    CustomMissing,
    /// A field of the custom engine cannot be used.
    #[error("spec.engine.custom.{field} {value:?} cannot be used: {way_out}")]
    CustomField {
        /// The field.
        field: &'static str,
        /// What was written.
        value: String,
        /// What to write instead.
        way_out: &'static str,
    },
    /// The engine takes no settings.
    #[error(
        "spec.config is not for the type custom: build the settings into spec.engine.custom.image, and \
        remove spec.config"
    )]
    ConfigUnsupported,
    /// A setting that the operator decides.
    #[error("spec.config: {key} is set by the operator and cannot be changed: {way_out}")]
    ConfigOwned {
        /// The setting.
        key: String,
        /// What to do instead.
        way_out: &'static str,
    },
    /// A key that is not the name of a setting.
    #[error(
        "spec.config: {key:?} is not the name of a setting: use letters, digits, '.' and '_', a letter \
        first, at most 128 characters"
    )]
    ConfigKey {
        /// The key.
        key: String,
    },
    /// A value that is not one line of text.
    #[error(
        "spec.config: the value of {key} must be one line of text without control characters, at most \
        1024 characters"
    )]
    ConfigValue {
        /// The setting.
        key: String,
    },
}
