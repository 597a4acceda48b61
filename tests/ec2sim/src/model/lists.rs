//! What all lists have in common: ids, filters, pages, and their limits.
//!
//! Source: API reference of the Describe actions; EC2 developer guide, "Filtering" and "Pagination".

use std::ops::RangeInclusive;

use super::{Effects, Model};
use crate::{Page, Refusal, Truth, Truths, params::Reader, view::Tags, wildcard};

/// The most filters in a request, and the most values in a filter.
const FILTERS: usize = 50;
const VALUES: usize = 200;

/// How a list takes `MaxResults`.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    pub(super) range: RangeInclusive<u32>,
    /// More than this is answered with this many.
    pub(super) at_most: u32,
}

/// Instances and most other lists: 5 to 1000.
pub(super) const USUAL: Sizes = Sizes { range: 5..=1000, at_most: 1000 };

/// Volumes and snapshots: more than 500 is answered with 500.
pub(super) const VOLUMES: Sizes = Sizes { range: 5..=1000, at_most: 500 };

/// Instance types: 5 to 100.
pub(super) const TYPES: Sizes = Sizes { range: 5..=100, at_most: 100 };

/// What a list was asked for.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) ids: Vec<String>,
    filters: Vec<(String, Vec<String>)>,
    max: Option<usize>,
    after: u64,
}

/// Reads the filters; refuses a name that is not known, and too many.
fn read_filters(
    reader: &mut Reader,
    known: &[&str],
    truths: &Truths,
) -> Result<Vec<(String, Vec<String>)>, Refusal> {
    let mut filters = Vec::new();
    for index in reader.indexes("Filter") {
        let name = reader.required(&format!("Filter.{index}.Name"))?;
        let values = reader.list(&format!("Filter.{index}.Value"));
        let is_known = known.contains(&name.as_str())
            || (known.contains(&"tag:") && name.len() > 4 && name.starts_with("tag:"));
        if is_known {
            filters.push((name, values));
        } else if truths.holds(Truth::UnknownRefused) && truths.holds(Truth::TokenFilterOnlyOnInstances) {
            return Err(Refusal::value(format!("The filter '{name}' is invalid")));
        }
    }
    let too_many = filters.len() > FILTERS || filters.iter().any(|(_, values)| values.len() > VALUES);
    if truths.holds(Truth::FilterLimits) && too_many {
        return Err(Refusal::new(
            "FilterLimitExceeded",
            format!(
                "The request has more than {FILTERS} filters, or more than {VALUES} values in a \
                filter"
            ),
        ));
    }
    Ok(filters)
}

impl Query {
    /// Reads ids, filters and page; refuses filter names that are not in `known` (where `tag:` stands for all
    /// of them).
    pub(super) fn read(
        reader: &mut Reader,
        id_key: &str,
        known: &[&str],
        sizes: &Sizes,
        truths: &Truths,
    ) -> Result<Self, Refusal> {
        let ids = reader.list(id_key);
        let filters = read_filters(reader, known, truths)?;
        let max: Option<u32> = reader.number("MaxResults")?;
        if let Some(max) = max {
            // A page of more than 500 volumes is cut, not refused, whatever the number.
            let upper_is_refused = sizes.at_most == *sizes.range.end();
            let out = max < *sizes.range.start() || (upper_is_refused && max > *sizes.range.end());
            if truths.holds(Truth::MaxResultsRange) && out {
                return Err(Refusal::value(format!(
                    "Value ( {max} ) for parameter maxResults is invalid. Expecting a value between {} and \
                        {}.",
                    sizes.range.start(),
                    sizes.range.end()
                )));
            }
            if truths.holds(Truth::MaxResultsWithoutIds) && !ids.is_empty() {
                return Err(Refusal::combination(format!(
                    "The parameter {id_key} cannot be used with the \
                    parameter maxResults"
                )));
            }
        }
        let at_most = if truths.holds(Truth::VolumePagesOf500) { sizes.at_most } else { u32::MAX };
        let after = match reader.text("NextToken") {
            None => 0,
            Some(token) => place(&token).ok_or_else(|| {
                Refusal::value(format!(
                    "Value ({token}) for parameter \
                nextToken is invalid."
                ))
            })?,
        };
        let max = max.map(|max| usize::try_from(max.min(at_most)).unwrap_or(usize::MAX));
        Ok(Self { ids, filters, max, after })
    }

    /// Whether each filter has a value that one of the resource's values matches.
    pub(super) fn matches(&self, values: impl Fn(&str) -> Vec<String>) -> bool {
        self.filters.iter().all(|(name, patterns)| {
            let found = values(name);
            patterns.iter().any(|pattern| found.iter().any(|value| wildcard::fits_filter(pattern, value)))
        })
    }

    /// Whether nothing narrows the list down.
    pub(super) fn is_without_ids(&self) -> bool {
        self.ids.is_empty()
    }
}

/// The values of the filters `tag:<key>` and `tag-key`.
pub(super) fn tag_values(name: &str, tags: &Tags) -> Vec<String> {
    match name.strip_prefix("tag:") {
        Some(key) => tags.get(key).cloned().into_iter().collect(),
        None if name == "tag-key" => tags.keys().cloned().collect(),
        None => Vec::new(),
    }
}

/// The part of `items` (with their order, ascending) that the query's page holds, of those that `matches`
/// lets through.
///
/// EC2 cuts pages before it filters them: a page may hold less than was asked for, or nothing, and still name
/// a next one.
pub(super) fn page<T>(
    query: &Query,
    items: Vec<(u64, T)>,
    truths: &Truths,
    effects: &Effects,
    matches: impl Fn(&T) -> bool,
) -> Page<T> {
    let mut left: Vec<(u64, T)> = items.into_iter().filter(|(order, _)| *order > query.after).collect();
    if effects.empty_page && truths.holds(Truth::EmptyPages) && query.is_without_ids() {
        return Page { items: Vec::new(), next_token: Some(token(query.after)) };
    }
    if !truths.holds(Truth::EmptyPages) {
        left.retain(|(_, item)| matches(item));
    }
    let mut next_token = None;
    if let Some(max) = query.max.filter(|max| *max < left.len()) {
        left.truncate(max);
        next_token = left.last().map(|(order, _)| token(*order));
    }
    Page { items: left.into_iter().map(|(_, item)| item).filter(|item| matches(item)).collect(), next_token }
}

impl Model {
    /// While a zone is disrupted, a list that does not name ids fails; one with ids fails if one of them is
    /// there.
    pub(super) fn refuse_disrupted<'a>(
        &self,
        query: &Query,
        effects: &Effects,
        zone_of: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<(), Refusal> {
        if effects.zones_down.is_empty() || !self.holds(Truth::ZoneDownFailsSweeps) {
            return Ok(());
        }
        let is_down =
            |id: &String| zone_of(id).is_some_and(|zone| effects.zones_down.iter().any(|down| down == zone));
        if query.is_without_ids() || query.ids.iter().any(is_down) {
            return Err(unavailable());
        }
        Ok(())
    }
}

pub(super) fn unavailable() -> Refusal {
    Refusal::new("Unavailable", "The server is overloaded and can't handle the request.")
}

fn token(order: u64) -> String {
    data_encoding::BASE64URL_NOPAD.encode(format!("after:{order}").as_bytes())
}

fn place(token: &str) -> Option<u64> {
    let decoded = data_encoding::BASE64URL_NOPAD.decode(token.as_bytes()).ok()?;
    std::str::from_utf8(&decoded).ok()?.strip_prefix("after:")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_its_token() {
        assert_eq!(place(&token(17)), Some(17));
        assert_eq!(place("nonsense"), None);
    }
}
