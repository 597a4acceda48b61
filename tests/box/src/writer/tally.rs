//! What a writer sent, what was acknowledged, and what is found: and whether that is all true.

use std::fmt;

use super::rows::Rows;

/// The three sets of row numbers, and what was found more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Sent, answered or not.
    pub sent: Rows,
    /// Answered with success.
    pub acknowledged: Rows,
    /// Read back.
    pub found: Rows,
    /// Read back more than once.
    pub twice: Rows,
}

/// How a tally is untrue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untrue {
    /// Acknowledged and not found.
    pub lost: Rows,
    /// Found and never sent.
    pub foreign: Rows,
    /// Found more than once.
    pub twice: Rows,
}

impl Tally {
    /// An error unless what was acknowledged is found, what is found was sent, and nothing is there twice.
    pub fn check(&self) -> Result<(), Untrue> {
        let Self { sent, acknowledged, found, twice } = self;
        let untrue =
            Untrue { lost: acknowledged.without(found), foreign: found.without(sent), twice: twice.clone() };
        if untrue.lost.is_empty() && untrue.foreign.is_empty() && untrue.twice.is_empty() {
            Ok(())
        } else {
            Err(untrue)
        }
    }
}

impl std::error::Error for Untrue {}

impl fmt::Display for Untrue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, foreign, twice } = self;
        let parts = [
            ("acknowledged and lost", lost),
            ("found and never sent", foreign),
            ("found more than once", twice),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, rows)| !rows.is_empty())
            .map(|(what, rows)| {
                format!("{} {} {what}: {rows}", rows.len(), if rows.len() == 1 { "row" } else { "rows" })
            })
            .collect();
        f.write_str(&parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(numbers: &[i64]) -> Rows {
        numbers.iter().copied().collect()
    }

    #[test]
    fn each_way_of_being_untrue_is_named_with_its_numbers() {
        // Sent, acknowledged, found, found twice.
        type Numbers = [&'static [i64]; 4];
        let table: [(&str, Numbers, Option<&str>); 9] = [
            ("nothing was written", [&[], &[], &[], &[]], None),
            ("all is well", [&[1, 2, 3], &[1, 2, 3], &[1, 2, 3], &[]], None),
            ("a row in doubt is there", [&[1, 2, 3], &[1, 3], &[1, 2, 3], &[]], None),
            ("a row in doubt is not there", [&[1, 2, 3], &[1, 3], &[1, 3], &[]], None),
            ("lost", [&[1, 2, 3], &[1, 2, 3], &[1, 3], &[]], Some("1 row acknowledged and lost: 2")),
            (
                "lost at the end",
                [&[1, 2, 3], &[1, 2, 3], &[1], &[]],
                Some("2 rows acknowledged and lost: 2 to 3"),
            ),
            ("foreign", [&[1, 2], &[1, 2], &[0, 1, 2, 9], &[]], Some("2 rows found and never sent: 0, 9")),
            ("twice", [&[1, 2], &[1, 2], &[1, 2], &[2]], Some("1 row found more than once: 2")),
            (
                "all three",
                [&[1, 2], &[1, 2], &[1, 3], &[1]],
                Some(
                    "1 row acknowledged and lost: 2; 1 row found and never sent: 3; 1 row found more than \
                    once: 1",
                ),
            ),
        ];
        for (name, numbers, said) in table {
            let [sent, acknowledged, found, twice] = numbers.map(rows);
            let tally = Tally { sent, acknowledged, found, twice };
            assert_eq!(tally.check().err().map(|untrue| untrue.to_string()).as_deref(), said, "{name}");
        }
    }
}
