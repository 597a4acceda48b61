//! Wildcards of policies and of filters: `*` is any run of characters, none included, and `?` is one
//! character.

/// In what the patterns of policies, resources and filters differ.
#[derive(Clone, Copy, Default)]
struct Syntax {
    /// Wildcards stay within a segment of an ARN.
    has_segments: bool,
    /// A `\` takes the next character as it is.
    has_escapes: bool,
}

/// Whether a text fits a pattern; a wildcard takes any character.
pub(crate) fn fits(pattern: &str, value: &str) -> bool {
    walk(&chars(pattern), &chars(value), Syntax::default())
}

/// Whether a text fits the pattern of a filter.
///
/// Source: API reference, `Filter`: `*`, `?`, and `\` before a character that is meant as it is.
pub(crate) fn fits_filter(pattern: &str, value: &str) -> bool {
    walk(&chars(pattern), &chars(value), Syntax { has_escapes: true, ..Syntax::default() })
}

/// Whether an ARN fits the pattern of a `Resource` element.
///
/// Source: IAM User Guide, "IAM JSON policy elements: Resource", "Using wildcards in resource ARNs":
/// wildcards stay within a segment (the parts between colons); a `*` that ends a segment may go on beyond the
/// colon.
pub(crate) fn fits_resource(pattern: &str, arn: &str) -> bool {
    walk(&chars(pattern), &chars(arn), Syntax { has_segments: true, ..Syntax::default() })
}

/// Whether an ARN fits the pattern of an ARN condition.
///
/// Source: IAM User Guide, "IAM JSON policy elements: Condition operators", "Amazon Resource Name (ARN)
/// condition operators": each of the six parts between colons is compared by itself.
pub(crate) fn fits_arn(pattern: &str, arn: &str) -> bool {
    let (patterns, parts): (Vec<&str>, Vec<&str>) =
        (pattern.splitn(6, ':').collect(), arn.splitn(6, ':').collect());
    patterns.len() == 6
        && parts.len() == 6
        && patterns.iter().zip(parts).all(|(pattern, part)| fits(pattern, part))
}

fn chars(text: &str) -> Vec<char> {
    text.chars().collect()
}

fn walk(pattern: &[char], value: &[char], syntax: Syntax) -> bool {
    match pattern {
        [] => value.is_empty(),
        ['*', rest @ ..] => {
            let is_bound = syntax.has_segments && !matches!(rest, [] | [':', ..]);
            let colon = value.iter().position(|character| *character == ':').filter(|_| is_bound);
            let most = colon.unwrap_or(value.len());
            (0..=most).any(|taken| walk(rest, &value[taken..], syntax))
        }
        ['?', rest @ ..] => {
            let takes = |character: &char| !syntax.has_segments || *character != ':';
            value.first().is_some_and(takes) && walk(rest, &value[1..], syntax)
        }
        ['\\', literal, rest @ ..] if syntax.has_escapes => {
            value.first() == Some(literal) && walk(rest, &value[1..], syntax)
        }
        [literal, rest @ ..] => value.first() == Some(literal) && walk(rest, &value[1..], syntax),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_knows_stars_and_question_marks() {
        for (pattern, value, expected) in [
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("abc", "ABC", false),
            ("a*", "a", true),
            ("a*c", "abbc", true),
            ("*b*", "abc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("", "a", false),
            ("a*c", "a:b:c", true),
        ] {
            assert_eq!(fits(pattern, value), expected, "{pattern} {value}");
        }
    }

    #[test]
    fn a_pattern_knows_stars_question_marks_and_backslashes() {
        for (pattern, value, expected) in [
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            (r"a\*c", "a*c", true),
            (r"a\*c", "abc", false),
            ("", "", true),
        ] {
            assert_eq!(fits_filter(pattern, value), expected, "{pattern} {value}");
        }
    }

    #[test]
    fn a_resources_wildcards_stay_within_a_segment_unless_they_end_it() {
        let arn = "arn:aws:ec2:us-east-1:123456789012:volume/vol-1";
        let snapshot = "arn:aws:ec2:us-east-1::snapshot/snap-1";
        for (pattern, arn, expected) in [
            ("*", arn, true),
            ("arn:aws:ec2:us-east-1:123456789012:volume/*", arn, true),
            ("arn:aws:ec2:*:*:volume/*", arn, true),
            ("arn:aws:ec2:*:*:snapshot/*", snapshot, true),
            ("arn:aws:ec2:*", arn, true),
            ("arn:aws:ec2:us-*-1:123456789012:volume/vol-?", arn, true),
            ("arn:aws:ec2:us-*:volume/vol-1", arn, true),
            ("arn:aws:ec2:us-*2:volume/vol-1", arn, false),
            ("arn:aws:ec2:us-east-1?123456789012:volume/vol-1", arn, false),
            ("arn:aws:ec2:us-east-1:123456789012:instance/*", arn, false),
            ("arn:aws:ec2:us-west-2:123456789012:volume/*", arn, false),
        ] {
            assert_eq!(fits_resource(pattern, arn), expected, "{pattern} {arn}");
        }
    }

    #[test]
    fn the_parts_of_an_arn_condition_are_compared_one_by_one() {
        let arn = "arn:aws:ec2:us-east-1:123456789012:subnet/subnet-1";
        for (pattern, expected) in [
            (arn, true),
            ("arn:aws:ec2:*:*:subnet/*", true),
            ("arn:aws:ec2:us-*:subnet/subnet-1", false),
            ("arn:aws:ec2:*", false),
            ("arn:aws:ec2:us-east-1:123456789012:subnet/subnet-2", false),
        ] {
            assert_eq!(fits_arn(pattern, arn), expected, "{pattern}");
        }
    }
}
