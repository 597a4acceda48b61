//! What QuestDB says of a change of its settings. Pure.
//!
//! `SHOW PARAMETERS` has each setting as its file has it, and whether it can be reloaded; `reload_config()`
//! reads the file. What is wrong with a value only its log says: the setting stays as it was, and so it does
//! while the file is the old one. As tried with 9.2.3 and 9.3.4; 8.2.0 calls the column `dynamic`, reloads
//! nothing, and does not know the function.

use super::{Change, Verdict};
use crate::engine::verify::Row;

/// Every setting: its key, its variable, its value, where that is from, whether it is a secret, and whether
/// it can be reloaded.
pub const PARAMETERS: &str = "SHOW PARAMETERS";

/// Has the server read its file.
pub const RELOAD: &str = "SELECT reload_config()";

/// A value that the server has by itself.
const DEFAULT: &str = "default";

/// A setting.
struct Parameter<'a> {
    key: &'a str,
    value: &'a str,
    source: &'a str,
    is_reloadable: bool,
}

/// Reads the settings; `None` if the answer has another form.
pub fn judge(change: &Change, parameters: &[Row]) -> Option<Verdict> {
    let parameters: Vec<Parameter> = parameters.iter().map(parameter).collect::<Option<_>>()?;
    let of = |key: &str| parameters.iter().find(|parameter| parameter.key == key);
    let keys = &change.keys;
    if !keys.iter().all(|key| of(key).is_some_and(|parameter| parameter.is_reloadable)) {
        return Some(Verdict::AtStart);
    }
    let is_taken = |key: &String| of(key).is_some_and(|parameter| has(parameter, change));
    Some(Verdict::Taken { is_seen: keys.iter().all(is_taken) })
}

/// Whether the server runs with the new value, or without one. An empty value counts as none.
fn has(parameter: &Parameter, change: &Change) -> bool {
    match change.to.get(parameter.key).map(|value| value.0.trim()).filter(|value| !value.is_empty()) {
        Some(value) => parameter.value.trim() == value && parameter.source != DEFAULT,
        None => parameter.source == DEFAULT,
    }
}

fn parameter(row: &Row) -> Option<Parameter<'_>> {
    let [key, _, value, source, _, reloadable] = row.as_slice() else { return None };
    Some(Parameter {
        key: key.as_deref()?,
        value: value.as_deref().unwrap_or_default(),
        source: source.as_deref()?,
        is_reloadable: reloadable.as_deref() == Some("t"),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::api::database::{ConfigValue, EngineType};

    fn settings(entries: &[(&str, &str)]) -> BTreeMap<String, ConfigValue> {
        entries.iter().map(|(key, value)| ((*key).to_owned(), ConfigValue((*value).to_owned()))).collect()
    }

    fn shown(send_buffer: (&str, &str)) -> Vec<Row> {
        let row = |key: &str, value: &str, source: &str, reloadable: &str| {
            [key, "QDB_X", value, source, "f", reloadable].map(|cell| Some(cell.to_owned())).to_vec()
        };
        vec![
            row("http.send.buffer.size", send_buffer.0, send_buffer.1, "t"),
            row("cairo.max.uncommitted.rows", "500000", DEFAULT, "f"),
        ]
    }

    fn verdict(from: &[(&str, &str)], to: &[(&str, &str)], parameters: &[Row]) -> Option<Verdict> {
        let change = Change::new(EngineType::Questdb, settings(from), settings(to), &[]);
        judge(&change, parameters)
    }

    const BUFFER: &str = "http.send.buffer.size";

    #[test]
    fn what_it_calls_reloadable_is_taken_while_it_runs_and_shown_once_it_is() {
        let (taken, awaited) =
            (Some(Verdict::Taken { is_seen: true }), Some(Verdict::Taken { is_seen: false }));
        let before = shown(("2097152", DEFAULT));
        let after = shown(("4M", "conf"));
        assert_eq!(verdict(&[], &[(BUFFER, "4M")], &before), awaited);
        assert_eq!(verdict(&[], &[(BUFFER, "4M")], &after), taken);
        assert_eq!(verdict(&[], &[(BUFFER, " 4M ")], &after), taken);
        assert_eq!(verdict(&[(BUFFER, "4M")], &[], &after), awaited);
        assert_eq!(verdict(&[(BUFFER, "4M")], &[], &before), taken);
        assert_eq!(verdict(&[(BUFFER, "4M")], &[(BUFFER, "")], &before), taken);
        assert_eq!(verdict(&[], &[(BUFFER, "2097152")], &before), awaited, "its default is not the file's");
    }

    #[test]
    fn what_it_does_not_reload_or_does_not_know_restarts_also_beside_what_it_takes() {
        let (parameters, at_start) = (shown(("2097152", DEFAULT)), Some(Verdict::AtStart));
        assert_eq!(verdict(&[], &[("cairo.max.uncommitted.rows", "1")], &parameters), at_start);
        assert_eq!(verdict(&[], &[("no.such", "1")], &parameters), at_start);
        let mixed = [("cairo.max.uncommitted.rows", "1"), (BUFFER, "4M")];
        assert_eq!(verdict(&[], &mixed, &parameters), at_start);
    }

    #[test]
    fn an_answer_of_another_form_is_none() {
        assert_eq!(verdict(&[], &[], &[vec![Some("a".to_owned())]]), None);
    }
}
