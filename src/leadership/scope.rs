//! Which namespaces an operator watches, the name of the Lease that stands for them, and which scopes
//! overlap.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// The name of the Lease of an operator of all namespaces, and how that of every other one begins.
const NAME: &str = "freehold";

/// How much of the hash of its namespaces the name of a Lease has, in digits. The scope itself is in an
/// annotation: two scopes of one name could not both act, and nothing worse.
const HASH_LENGTH: usize = 10;

/// The namespaces that an operator watches; none for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope(BTreeSet<String>);

impl Scope {
    /// These namespaces, or all of them if none is named.
    pub fn new<'a>(namespaces: impl IntoIterator<Item = &'a str>) -> Self {
        let named = namespaces.into_iter().filter(|name| !name.is_empty());
        Self(named.map(str::to_owned).collect())
    }

    /// As it is written into the Lease.
    pub fn written(&self) -> String {
        self.0.iter().map(String::as_str).collect::<Vec<_>>().join(",")
    }

    /// As a Lease has it.
    pub fn read(written: &str) -> Self {
        Self::new(written.split(','))
    }

    /// The name of the Lease. The chart computes the same one, for the rights to it.
    pub fn lease_name(&self) -> String {
        if self.0.is_empty() {
            return NAME.to_owned();
        }
        let hash = HEXLOWER.encode(&Sha256::digest(self.written()));
        format!("{NAME}-{}", &hash[..HASH_LENGTH])
    }

    /// Whether a Lease of this name may be of an operator.
    pub fn is_lease(name: &str) -> bool {
        name.strip_prefix(NAME).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }

    /// Whether some namespace is in both.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.0.is_empty() || other.0.is_empty() || !self.0.is_disjoint(&other.0)
    }

    /// For a sentence.
    pub fn shown(&self) -> String {
        match self.0.len() {
            0 => "all namespaces".to_owned(),
            1 => format!("namespace {}", self.written()),
            _ => format!("namespaces {}", self.written()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_and_repetition_of_namespaces_change_nothing() {
        let (one, other) = (Scope::new(["b", "a"]), Scope::new(["a", "b", "a"]));
        assert_eq!(one.lease_name(), other.lease_name());
        assert_eq!(Scope::read(&one.written()), other);
        assert_eq!(Scope::read(""), Scope::new([]));
    }

    #[test]
    fn each_scope_has_a_lease_of_its_own() {
        assert_eq!(Scope::new([]).lease_name(), "freehold");
        // printf a,b | sha256sum
        assert_eq!(Scope::new(["a", "b"]).lease_name(), "freehold-1eb7c54d52");
        assert!(Scope::new(["a"]).lease_name() != Scope::new(["b"]).lease_name());
        for (name, expected) in
            [("freehold", true), ("freehold-1eb7c54d52", true), ("freeholder", false), ("kube", false)]
        {
            assert_eq!(Scope::is_lease(name), expected, "{name}");
        }
    }

    #[test]
    fn scopes_overlap_where_a_namespace_is_in_both() {
        let of = |names: &[&str]| Scope::new(names.iter().copied());
        for (one, other, expected) in [
            (of(&[]), of(&[]), true),
            (of(&[]), of(&["a"]), true),
            (of(&["a", "b"]), of(&["b", "c"]), true),
            (of(&["a"]), of(&["b"]), false),
        ] {
            assert_eq!(
                (one.overlaps(&other), other.overlaps(&one)),
                (expected, expected),
                "{one:?} {other:?}"
            );
        }
    }
}
