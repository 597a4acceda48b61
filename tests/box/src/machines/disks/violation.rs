//! What must never happen to a volume.

use k8s_openapi::jiff::Timestamp;

/// A volume was taken from a machine that had it mounted, while EC2 did not show that machine as ended: in
/// life, data is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When it was seen.
    pub at: Timestamp,
    /// `vol-…`.
    pub volume: String,
    /// `i-…`.
    pub instance: String,
    /// Where it was mounted.
    pub places: Vec<String>,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let places = self.places.join(", ");
        write!(
            formatter,
            "{}: volume {} was detached from {}, which had it mounted at {places}",
            self.at, self.volume, self.instance
        )
    }
}
