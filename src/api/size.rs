//! A storage size as people write it: whole GiB or TiB.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A size in whole GiB (`100Gi`) or TiB (`2Ti`), in the form in which it was written. EBS sizes are whole GiB
/// (API_CreateVolume), so no other form of a Kubernetes quantity is accepted: what is written is what is
/// created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Size(#[schemars(length(max = 8))] pub String);

impl Size {
    /// A size of this many GiB.
    pub fn from_gib(gib: i32) -> Self {
        Self(format!("{gib}Gi"))
    }

    /// The size in GiB; `None` when the text is not a whole number of GiB or TiB above zero that EC2's field
    /// can hold.
    pub fn gib(&self) -> Option<i32> {
        let (digits, factor) = match (self.0.strip_suffix("Gi"), self.0.strip_suffix("Ti")) {
            (Some(digits), _) => (digits, 1),
            (None, Some(digits)) => (digits, 1024),
            (None, None) => return None,
        };
        if digits.is_empty() || digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        digits.parse::<i32>().ok()?.checked_mul(factor)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_gib_and_tib_are_sizes() {
        let rows = [
            ("100Gi", Some(100)),
            ("2Ti", Some(2048)),
            ("0Gi", None),
            ("010Gi", None),
            ("-1Gi", None),
            ("+1Gi", None),
            ("1.5Gi", None),
            ("1024Mi", None),
            ("1e9", None),
            ("Gi", None),
            ("", None),
            ("99999999999Ti", None),
        ];
        for (text, gib) in rows {
            assert_eq!(Size(text.to_owned()).gib(), gib, "{text}");
        }
    }
}
