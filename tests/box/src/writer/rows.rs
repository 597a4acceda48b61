//! A set of row numbers, kept as ranges: a writer's rows are a few long runs, however many they are.

use std::fmt;

use rangemap::RangeInclusiveSet;

/// How many ranges a person is shown.
const SHOWN: usize = 10;

/// A set of row numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    ranges: RangeInclusiveSet<i64>,
}

impl Rows {
    /// Adds a number; says whether it is new.
    pub fn insert(&mut self, number: i64) -> bool {
        let is_new = !self.contains(number);
        if is_new {
            self.ranges.insert(number..=number);
        }
        is_new
    }

    /// Whether the number is in it.
    pub fn contains(&self, number: i64) -> bool {
        self.ranges.contains(&number)
    }

    /// How many numbers are in it.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|range| range.end().abs_diff(*range.start()) + 1).sum()
    }

    /// Whether none is in it.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The numbers that are not in the other set.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut left = self.clone();
        for range in other.ranges.iter() {
            left.ranges.remove(range.clone());
        }
        left
    }
}

impl FromIterator<i64> for Rows {
    fn from_iter<T: IntoIterator<Item = i64>>(numbers: T) -> Self {
        let mut rows = Self::default();
        for number in numbers {
            rows.insert(number);
        }
        rows
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, range) in self.ranges.iter().take(SHOWN).enumerate() {
            let (first, last) = (range.start(), range.end());
            let comma = if place == 0 { "" } else { ", " };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first} to {last}")?;
            }
        }
        match self.ranges.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more ranges"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn rows(numbers: &[i64]) -> Rows {
        numbers.iter().copied().collect()
    }

    #[test]
    fn neighbours_become_one_range_in_whatever_order_they_come() {
        for numbers in [[1, 2, 3, 7], [3, 1, 2, 7], [7, 3, 2, 1], [2, 7, 1, 3]] {
            let set = rows(&numbers);
            assert_eq!(set.ranges.iter().cloned().collect::<Vec<_>>(), [1..=3, 7..=7], "{numbers:?}");
            assert_eq!(set.to_string(), "1 to 3, 7");
            assert_eq!(set.len(), 4);
        }
    }

    #[test]
    fn a_number_is_new_once() {
        let mut set = rows(&[1, 2, 3]);
        assert!(!set.insert(1));
        assert!(!set.insert(2));
        assert!(!set.insert(3));
        assert!(set.insert(4));
        assert!(set.insert(i64::MAX) && set.insert(i64::MIN) && !set.insert(i64::MAX));
    }

    #[test]
    fn a_difference_is_the_one_of_the_plain_sets() {
        // All pairs of sets of the numbers 0 to 5.
        for left in 0..64_u8 {
            for right in 0..64_u8 {
                let members = |bits: u8| (0..6_i64).filter(move |bit| bits & (1 << bit) != 0);
                let wanted: Rows = members(left & !right).collect();
                let difference = members(left).collect::<Rows>().without(&members(right).collect());
                assert_eq!(
                    difference,
                    wanted,
                    "{:?} without {:?}",
                    members(left).collect::<BTreeSet<_>>(),
                    members(right).collect::<BTreeSet<_>>()
                );
            }
        }
    }

    #[test]
    fn only_the_first_ranges_are_shown() {
        let set: Rows = (0..30).map(|number| number * 2).collect();
        assert_eq!(set.to_string(), "0, 2, 4, 6, 8, 10, 12, 14, 16, 18 and 20 more ranges");
    }
}
