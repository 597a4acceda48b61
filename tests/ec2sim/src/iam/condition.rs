//! Conditions: their operators, and whether a request's context fulfils them.
//!
//! Source: IAM User Guide, "IAM JSON policy elements: Condition operators", and "Set operators for
//! multivalued context keys".

use std::cmp::Ordering;

use super::{
    context::Context,
    keys::{self, Kind},
};
use crate::wildcard;

/// How a value of the request is compared with a value of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    Equals,
    EqualsIgnoreCase,
    Like,
    /// The request's number is in one of these orders to the policy's.
    Numeric(&'static [Ordering]),
    Bool,
    Arn,
    /// Whether the key is absent.
    Null,
}

/// How the values of a key with many values are taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    All,
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Operator {
    test: Test,
    negated: bool,
    if_exists: bool,
    set: Option<Set>,
}

/// One condition: all conditions of a statement must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    operator: Operator,
    key: String,
    values: Vec<String>,
}

impl Operator {
    /// The operator of this name; `None` if it is not known here.
    fn read(name: &str) -> Option<Self> {
        let (set, name) = match name.split_once(':') {
            None => (None, name),
            Some(("ForAllValues", rest)) => (Some(Set::All), rest),
            Some(("ForAnyValue", rest)) => (Some(Set::Any), rest),
            Some(_) => return None,
        };
        let (base, if_exists) = name.strip_suffix("IfExists").map_or((name, false), |base| (base, true));
        let (test, negated) = match base {
            "StringEquals" => (Test::Equals, false),
            "StringNotEquals" => (Test::Equals, true),
            "StringEqualsIgnoreCase" => (Test::EqualsIgnoreCase, false),
            "StringLike" => (Test::Like, false),
            "StringNotLike" => (Test::Like, true),
            "NumericEquals" => (Test::Numeric(&[Ordering::Equal]), false),
            "NumericLessThan" => (Test::Numeric(&[Ordering::Less]), false),
            "NumericLessThanEquals" => (Test::Numeric(&[Ordering::Less, Ordering::Equal]), false),
            "NumericGreaterThan" => (Test::Numeric(&[Ordering::Greater]), false),
            "NumericGreaterThanEquals" => (Test::Numeric(&[Ordering::Greater, Ordering::Equal]), false),
            "Bool" => (Test::Bool, false),
            // "ArnEquals and ArnLike behave identically" (the same page).
            "ArnEquals" | "ArnLike" => (Test::Arn, false),
            // IfExists goes with every operator "except the Null condition" (the same page).
            "Null" if !if_exists && set.is_none() => (Test::Null, false),
            _ => return None,
        };
        Some(Self { test, negated, if_exists, set })
    }
}

impl Test {
    /// Whether a policy may have this value.
    fn takes(self, value: &str) -> bool {
        match self {
            Self::Equals | Self::EqualsIgnoreCase | Self::Like | Self::Arn => true,
            Self::Numeric(_) => value.parse::<f64>().is_ok_and(f64::is_finite),
            Self::Bool | Self::Null => value == "true" || value == "false",
        }
    }

    fn fits(self, policy: &str, given: &str) -> bool {
        match self {
            Self::Equals => policy == given,
            Self::EqualsIgnoreCase => policy.to_lowercase() == given.to_lowercase(),
            Self::Like => wildcard::fits(policy, given),
            Self::Numeric(orders) => match (given.parse::<f64>(), policy.parse::<f64>()) {
                (Ok(given), Ok(policy)) => {
                    given.partial_cmp(&policy).is_some_and(|order| orders.contains(&order))
                }
                _ => false,
            },
            Self::Bool => policy == given.to_lowercase(),
            Self::Arn => wildcard::fits_arn(policy, given),
            // Compared by its key alone, in `holds`.
            Self::Null => false,
        }
    }
}

impl Condition {
    /// Reads `{operator: {key: values}}`, or says what of it is not known.
    pub(super) fn read(operator: &str, key: &str, values: Vec<String>) -> Result<Self, String> {
        let known =
            Operator::read(operator).ok_or_else(|| format!("the operator {operator} is not known here"))?;
        match keys::kind(key) {
            None => return Err(format!("the condition key {key} is not known here")),
            // Without one it is not said how the values are compared (IAM User Guide, "Single-valued vs.
            // multivalued context keys").
            Some(Kind::Many) if known.set.is_none() && known.test != Test::Null => {
                return Err(format!(
                    "the condition key {key} has many values: {operator} needs ForAllValues or ForAnyValue"
                ));
            }
            Some(Kind::Single | Kind::Many) => {}
        }
        if let Some(wrong) = values.iter().find(|value| !known.test.takes(value)) {
            return Err(format!("{operator} of {key} can't be compared with {wrong:?}"));
        }
        Ok(Self { operator: known, key: key.to_owned(), values })
    }

    /// Whether the context fulfils it.
    pub(super) fn holds(&self, context: &Context) -> bool {
        let Operator { test, negated, if_exists, set } = self.operator;
        let given = context.get(&self.key);
        if test == Test::Null {
            return self.values.iter().any(|absent| (absent == "true") == given.is_none());
        }
        let fits = |value: &String| self.values.iter().any(|policy| test.fits(policy, value)) != negated;
        match (given, set) {
            (None, _) if if_exists => true,
            // Absent keys: ForAllValues is true of no values, ForAnyValue is not; otherwise they don't match,
            // which is what a negated operator demands.
            (None, Some(Set::All)) => true,
            (None, Some(Set::Any)) => false,
            (None, None) => negated,
            (Some(values), Some(Set::Any)) => values.iter().any(fits),
            (Some(values), Some(Set::All) | None) => values.iter().all(fits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(operator: &str, key: &str, values: &[&str]) -> Condition {
        Condition::read(operator, key, values.iter().map(|value| (*value).to_owned()).collect()).unwrap()
    }

    #[test]
    fn each_operator_compares_as_iam_does() {
        let context = Context::default()
            .with("ec2:InstanceType", "r7i.large")
            .with("ec2:VolumeSize", "100")
            .with("ec2:Encrypted", "true")
            .with("ec2:Vpc", "arn:aws:ec2:us-east-1:123456789012:vpc/vpc-1");
        for (operator, key, values, holds) in [
            ("StringEquals", "ec2:InstanceType", &["r7i.large"][..], true),
            ("StringEquals", "EC2:instancetype", &["r7i.large"], true),
            ("StringEquals", "ec2:InstanceType", &["R7I.large"], false),
            ("StringEquals", "ec2:InstanceType", &["r7i.*"], false),
            ("StringEquals", "ec2:InstanceType", &["a", "r7i.large"], true),
            ("StringNotEquals", "ec2:InstanceType", &["a", "r7i.large"], false),
            ("StringNotEquals", "ec2:InstanceType", &["a", "b"], true),
            ("StringEqualsIgnoreCase", "ec2:InstanceType", &["R7I.LARGE"], true),
            ("StringLike", "ec2:InstanceType", &["r7?.*"], true),
            ("StringNotLike", "ec2:InstanceType", &["r7?.*"], false),
            ("NumericEquals", "ec2:VolumeSize", &["100.0"], true),
            ("NumericLessThan", "ec2:VolumeSize", &["100"], false),
            ("NumericLessThanEquals", "ec2:VolumeSize", &["100"], true),
            ("NumericGreaterThan", "ec2:VolumeSize", &["99"], true),
            ("NumericGreaterThanEquals", "ec2:VolumeSize", &["101"], false),
            // As texts, "9" would be more than "100".
            ("NumericLessThan", "ec2:VolumeSize", &["9"], false),
            ("NumericEquals", "ec2:InstanceType", &["1"], false),
            ("Bool", "ec2:Encrypted", &["true"], true),
            ("Bool", "ec2:Encrypted", &["false"], false),
            ("ArnEquals", "ec2:Vpc", &["arn:aws:ec2:*:123456789012:vpc/*"], true),
            ("ArnLike", "ec2:Vpc", &["arn:aws:ec2:*:123456789012:vpc/vpc-2"], false),
            ("Null", "ec2:Vpc", &["false"], true),
            ("Null", "ec2:Vpc", &["true"], false),
        ] {
            let read = condition(operator, key, values);
            assert_eq!(read.holds(&context), holds, "{operator} {key} {values:?}");
        }
    }

    #[test]
    fn an_absent_key_fits_no_operator_but_the_negated_and_those_that_allow_for_it() {
        for (operator, values, holds) in [
            ("StringEquals", &["a"][..], false),
            ("StringLike", &["*"], false),
            ("StringNotEquals", &["a"], true),
            ("StringNotLike", &["*"], true),
            ("NumericLessThanEquals", &["1"], false),
            ("Bool", &["false"], false),
            ("ArnLike", &["arn:aws:*:*:*:*"], false),
            ("Null", &["true"], true),
            ("StringEqualsIfExists", &["a"], true),
            ("NumericLessThanEqualsIfExists", &["1"], true),
            ("BoolIfExists", &["true"], true),
            ("ForAllValues:StringEquals", &["a"], true),
            ("ForAnyValue:StringEquals", &["a"], false),
            ("ForAnyValue:StringNotEquals", &["a"], false),
        ] {
            let read = condition(operator, "ec2:InstanceType", values);
            assert_eq!(read.holds(&Context::default()), holds, "{operator}");
        }
    }

    #[test]
    fn many_values_are_taken_together_as_the_set_operator_says() {
        let tagged = |keys: &[&str]| {
            let keys = keys.iter().map(|key| (*key).to_owned()).collect();
            Context::default().with_list("aws:TagKeys", keys)
        };
        for (operator, given, holds) in [
            ("ForAllValues:StringEquals", &["a", "b"][..], true),
            ("ForAllValues:StringEquals", &["a", "c"], false),
            ("ForAllValues:StringEquals", &[], true),
            ("ForAllValues:StringNotEquals", &["c", "d"], true),
            ("ForAllValues:StringNotEquals", &["c", "b"], false),
            ("ForAnyValue:StringEquals", &["a", "c"], true),
            ("ForAnyValue:StringEquals", &["c"], false),
            ("ForAnyValue:StringEquals", &[], false),
            ("ForAnyValue:StringNotEquals", &["a", "c"], true),
            ("ForAllValues:StringEqualsIgnoreCase", &["A"], true),
        ] {
            let read = condition(operator, "aws:TagKeys", &["a", "b"]);
            assert_eq!(read.holds(&tagged(given)), holds, "{operator} {given:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused_by_its_name() {
        for (operator, key, value, what) in [
            ("StringMatches", "ec2:Vpc", "a", "the operator StringMatches"),
            ("stringequals", "ec2:Vpc", "a", "the operator stringequals"),
            ("NumericNotEquals", "ec2:VolumeSize", "1", "the operator NumericNotEquals"),
            ("DateLessThan", "ec2:SnapshotTime", "2026-01-01", "the operator DateLessThan"),
            ("IpAddress", "ec2:Vpc", "10.0.0.0/8", "the operator IpAddress"),
            ("NullIfExists", "ec2:Vpc", "true", "the operator NullIfExists"),
            ("ForAllValues:Null", "aws:TagKeys", "true", "the operator ForAllValues:Null"),
            ("ForSomeValues:StringEquals", "aws:TagKeys", "a", "the operator ForSomeValues:StringEquals"),
            ("StringEquals", "aws:PrincipalTag/team", "a", "the condition key aws:PrincipalTag/team"),
            ("StringEquals", "aws:RequestTag/", "a", "the condition key aws:RequestTag/"),
            ("StringEquals", "ec2:Colour", "a", "the condition key ec2:Colour"),
            ("StringEquals", "aws:TagKeys", "a", "needs ForAllValues or ForAnyValue"),
            ("NumericEquals", "ec2:VolumeSize", "many", "\"many\""),
            ("Bool", "ec2:Encrypted", "yes", "\"yes\""),
            ("Null", "ec2:Vpc", "1", "\"1\""),
        ] {
            let said = Condition::read(operator, key, vec![value.to_owned()]).unwrap_err();
            assert!(said.contains(what), "{operator} {key}: {said}");
        }
    }
}
