//! Whether a full sync shows so few of the resources that statuses name that it may be the list of another
//! account or Region, or their tags may have been taken off. Pure.

/// With fewer named it is not judged: two machines that ended while no operator ran are no sign of anything.
const FEWEST_NAMED: usize = 3;

/// How many of the resources that statuses name a full sync shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Coverage {
    /// How many are named.
    pub named: usize,
    /// How many of these it shows.
    pub shown: usize,
}

impl Coverage {
    /// Whether so few of so many are shown that the sync alone proves no absence: fewer than half.
    pub fn is_suspect(self) -> bool {
        self.named >= FEWEST_NAMED && self.shown * 2 < self.named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_than_half_of_three_or_more_are_suspect() {
        for (named, shown, is_suspect) in [
            (0, 0, false),
            (2, 0, false),
            (3, 0, true),
            (3, 1, true),
            (3, 2, false),
            (4, 1, true),
            (4, 2, false),
            (5000, 2499, true),
            (5000, 2500, false),
        ] {
            assert_eq!(Coverage { named, shown }.is_suspect(), is_suspect, "{shown} of {named}");
        }
    }
}
