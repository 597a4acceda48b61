//! The numbers by which a test kills: from a seed, so that they can be had again.

/// The number that a variable of the environment says.
pub fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().map_or(otherwise, |value| value.parse().unwrap())
}

/// Numbers by a seed (splitmix64, Steele, Lea and Flood 2014).
pub struct Random(pub u64);

impl Random {
    /// The next one, below the bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((bits ^ (bits >> 31)) % u64::try_from(bound).unwrap()).unwrap()
    }
}
