//! The request context: what an authorisation request says of itself, by condition key.

use std::collections::BTreeMap;

use crate::view::Tags;

/// The values by condition key.
///
/// Names of keys are compared without regard to case (IAM User Guide, "IAM JSON policy elements: Condition").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Context {
    values: BTreeMap<String, Vec<String>>,
}

impl Context {
    /// This context with a key of one value.
    #[must_use]
    pub(crate) fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.values.insert(key.to_lowercase(), vec![value.into()]);
        self
    }

    /// This context with a key, if it has a value.
    #[must_use]
    pub(crate) fn with_some(self, key: &str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// This context with a key of many values; without any value the key is absent.
    #[must_use]
    pub(crate) fn with_list(mut self, key: &str, values: Vec<String>) -> Self {
        if !values.is_empty() {
            self.values.insert(key.to_lowercase(), values);
        }
        self
    }

    /// This context with a key for each tag, such as `aws:RequestTag/<tag>`.
    ///
    /// Tags whose names differ in case alone would be one key: they are left out, since a condition fits one
    /// of them, "but not both" (IAM User Guide, "AWS global condition context keys", `aws:RequestTag`).
    #[must_use]
    pub(crate) fn with_tags(mut self, prefix: &str, tags: &Tags) -> Self {
        for (name, value) in tags {
            let is_one_of_many =
                tags.keys().any(|other| other != name && other.to_lowercase() == name.to_lowercase());
            if !is_one_of_many {
                self = self.with(&format!("{prefix}{name}"), value);
            }
        }
        self
    }

    /// This context without some of its keys.
    #[must_use]
    pub(crate) fn without(mut self, keys: &[&str]) -> Self {
        self.values.retain(|key, _| !keys.iter().any(|gone| gone.to_lowercase() == *key));
        self
    }

    /// The values of a key; `None` if it is absent.
    pub(crate) fn get(&self, key: &str) -> Option<&[String]> {
        self.values.get(&key.to_lowercase()).map(Vec::as_slice)
    }

    /// Every key with its values, in lower case.
    pub(crate) fn all(&self) -> &BTreeMap<String, Vec<String>> {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_any_case_and_tags_that_differ_in_case_alone_are_left_out() {
        let tags = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), "v".to_owned())).collect();
        let context = Context::default().with_tags("aws:ResourceTag/", &tags(&["Owner", "Team", "team"]));
        assert_eq!(context.get("AWS:resourcetag/OWNER"), Some(["v".to_owned()].as_slice()));
        assert_eq!(context.get("aws:ResourceTag/team"), None);
        assert_eq!(context.with_list("aws:TagKeys", Vec::new()).get("aws:TagKeys"), None);
    }
}
