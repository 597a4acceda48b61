//! A set of row numbers, kept as ranges: a writer's rows are a few long runs, however many they are.

use std::collections::BTreeMap;
use std::fmt;

/// How many ranges a person is shown.
const SHOWN: usize = 10;

/// A set of row numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// First to last number of each range; ranges neither overlap nor touch.
    ranges: BTreeMap<i64, i64>,
}

impl Rows {
    /// Adds a number; says whether it is new.
    pub fn insert(&mut self, number: i64) -> bool {
        if self.contains(number) {
            return false;
        }
        let mut first = number;
        let mut last = number;
        if let Some((&start, &end)) = self.ranges.range(..number).next_back()
            && end.checked_add(1) == Some(number)
        {
            first = start;
        }
        if let Some(next) = number.checked_add(1)
            && let Some(end) = self.ranges.remove(&next)
        {
            last = end;
        }
        self.ranges.insert(first, last);
        true
    }

    /// Whether the number is in it.
    pub fn contains(&self, number: i64) -> bool {
        self.ranges.range(..=number).next_back().is_some_and(|(_, &last)| number <= last)
    }

    /// How many numbers are in it.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|(&first, &last)| last.abs_diff(first) + 1).sum()
    }

    /// Whether none is in it.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The numbers that are not in the other set.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut left = Self::default();
        for (&first, &last) in &self.ranges {
            let mut next = Some(first);
            let before = other.ranges.range(..first).next_back();
            for (&hole_first, &hole_last) in before.into_iter().chain(other.ranges.range(first..=last)) {
                let Some(from) = next else { break };
                if hole_last < from {
                    continue;
                }
                if hole_first > from {
                    left.ranges.insert(from, hole_first - 1);
                }
                next = hole_last.checked_add(1).filter(|next| *next <= last);
            }
            if let Some(from) = next {
                left.ranges.insert(from, last);
            }
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
        for (place, (first, last)) in self.ranges.iter().take(SHOWN).enumerate() {
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
            assert_eq!(set.ranges, BTreeMap::from([(1, 3), (7, 7)]), "{numbers:?}");
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
