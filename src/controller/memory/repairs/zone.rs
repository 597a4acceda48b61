//! Whether a zone itself may be down, as its machines show it. Pure.

use std::collections::BTreeMap;

/// A zone with fewer machines is not judged: half of two is one machine that died.
const SMALLEST_ZONE: usize = 4;

/// Machines of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Machines {
    /// Those that have joined.
    pub joined: usize,
    /// Those of them that look lost.
    pub lost: usize,
}

impl std::iter::Sum for Machines {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, next| Self {
            joined: sum.joined + next.joined,
            lost: sum.lost + next.lost,
        })
    }
}

impl Machines {
    /// More than half of them look lost.
    fn mostly_lost(self) -> bool {
        self.lost * 2 > self.joined
    }
}

/// Whether the zone itself may be down, to a machine of this namespace that looks lost: most machines of the
/// zone look lost, and most of the others still do when the machines of any one namespace are left out. One
/// tenant who loses all machines, or breaks them, proves nothing of a zone.
pub(super) fn zone_looks_down(namespace: &str, others: &BTreeMap<String, Machines>) -> bool {
    let all: Machines =
        others.values().copied().chain(std::iter::once(Machines { joined: 1, lost: 1 })).sum();
    let without = |left_out: &str| -> Machines {
        others.iter().filter(|(name, _)| *name != left_out).map(|(_, machines)| *machines).sum()
    };
    // Where no other namespace has a machine, only its own machines can be judged by.
    let is_alone = without(namespace).joined == 0;
    all.joined >= SMALLEST_ZONE
        && all.mostly_lost()
        && (is_alone || others.keys().chain([&namespace.to_owned()]).all(|it| without(it).mostly_lost()))
}
