//! What faults look at in a call.

use crate::view::Tags;

/// What a fault can look at in a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallFacts {
    pub(crate) action: String,
    pub(crate) caller: String,
    pub(crate) resources: Vec<String>,
    pub(crate) tags: Vec<(String, String)>,
}

/// What a request names and gives: the ids and the tags in its parameters, and the tags that `tags_of` knows
/// of those ids.
pub(crate) fn facts<'a>(
    caller: &str,
    params: &[(String, String)],
    tags_of: impl Fn(&str) -> Option<&'a Tags>,
) -> CallFacts {
    let find = |name: &str| params.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let mut facts = CallFacts {
        action: find("Action").unwrap_or_default(),
        caller: caller.to_owned(),
        ..CallFacts::default()
    };
    for (name, value) in params {
        let is_id = ["i-", "vol-", "snap-"].iter().any(|prefix| value.starts_with(prefix));
        let is_id_field = name.contains("Id") || name.starts_with("Filter.");
        if is_id && is_id_field && !facts.resources.contains(value) {
            facts.resources.push(value.clone());
            let known = tags_of(value).into_iter().flatten();
            facts.tags.extend(known.map(|(key, value)| (key.clone(), value.clone())));
        }
        if let Some(at) = name.strip_suffix(".Key").filter(|at| at.contains("Tag.")) {
            facts.tags.push((value.clone(), find(&format!("{at}.Value")).unwrap_or_default()));
        }
        if let Some(key) = value.strip_prefix("tag:").filter(|_| name.ends_with(".Name")) {
            let values = format!("{}.Value.", name.trim_end_matches(".Name"));
            let given = params.iter().filter(|(name, _)| name.starts_with(&values));
            facts.tags.extend(given.map(|(_, value)| (key.to_owned(), value.clone())));
        }
    }
    facts
}
