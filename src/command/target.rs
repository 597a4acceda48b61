//! An object that a command is about: NAMESPACE/NAME.

use std::fmt;
use std::str::FromStr;

/// An object with its namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl FromStr for Target {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (namespace, name) = text.split_once('/').ok_or("expected NAMESPACE/NAME")?;
        if namespace.is_empty() || name.is_empty() || name.contains('/') {
            return Err("expected NAMESPACE/NAME");
        }
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_namespace_and_a_name() {
        let expected = Target { namespace: "team-a".to_owned(), name: "pg".to_owned() };
        assert_eq!("team-a/pg".parse(), Ok(expected));
        for text in ["pg", "/pg", "team-a/", "team-a/statefulset/pg"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
