//! What PostgreSQL says of a change of its settings. Pure.
//!
//! `pg_file_settings` reads the file anew each time, and says what a reload would find wrong with it, before
//! anything is loaded. It also marks in `pg_settings` what a restart alone would change (`pending_restart`),
//! for the same session: so it is read first (PostgreSQL documentation, "pg_file_settings", and as tried with
//! 15).

use super::{Answer, Change, MOST_REJECTED, Verdict, rejected};
use crate::api::database::RejectedSetting;
use crate::engine::postgresql::lines;
use crate::engine::verify::Row;

/// The file of settings, as the server reads it.
pub const CONFIG_FILE: &str = "/etc/freehold/postgresql.conf";

/// What ALTER SYSTEM writes: it wins over every other file.
const ALTER_SYSTEM_FILE: &str = "postgresql.auto.conf";

/// Every line of the files of settings, in order.
pub const ENTRIES: &str =
    "SELECT sourcefile, name, setting, error FROM pg_catalog.pg_file_settings ORDER BY seqno";

/// Every setting that the server knows.
pub const PARAMETERS: &str = "SELECT name, pending_restart, vartype, unit, min_val, max_val, \
    array_to_string(enumvals, ', ') FROM pg_catalog.pg_settings";

/// When the server has loaded its files; a session has what it began with.
pub const LOADED: &str = "SELECT pg_catalog.pg_conf_load_time()";

/// Has the server load its files.
pub const RELOAD: &str = "SELECT pg_catalog.pg_reload_conf()";

/// A line of a file.
struct Entry<'a> {
    file: &'a str,
    name: &'a str,
    value: &'a str,
    error: Option<&'a str>,
}

/// A setting that the server knows.
struct Parameter<'a> {
    name: &'a str,
    is_pending: bool,
    accepts: String,
}

/// Reads both answers; `None` if one has another form.
pub fn judge(change: &Change, entries: &[Row], parameters: &[Row]) -> Option<Answer> {
    let entries: Vec<Entry> = entries.iter().map(entry).collect::<Option<_>>()?;
    let parameters: Vec<Parameter> = parameters.iter().map(parameter).collect::<Option<_>>()?;
    let is_ours = |entry: &&Entry| entry.file == CONFIG_FILE;
    let written = entries.iter().filter(is_ours).map(|entry| (entry.name, entry.value));
    let wanted = lines(&change.to);
    if !written.eq(wanted.iter().map(|(key, value)| (key.as_str(), value.as_str()))) {
        return Some(Verdict::NotSeen.into());
    }
    let of = |name: &str| parameters.iter().find(|it| it.name.eq_ignore_ascii_case(name));
    let is_pending = |name: &str| of(name).is_some_and(|parameter| parameter.is_pending);
    let wrong = |entry: &Entry| -> Option<RejectedSetting> {
        let why = entry.error.filter(|_| !is_pending(entry.name))?;
        let accepts = of(entry.name).map(|it| it.accepts.as_str()).unwrap_or_default();
        Some(rejected(entry.name, entry.value, &format!("{why}{accepts}")))
    };
    let wrong: Vec<RejectedSetting> =
        entries.iter().filter(is_ours).filter_map(wrong).take(MOST_REJECTED).collect();
    let verdict = if !wrong.is_empty() {
        Verdict::Rejected(wrong)
    } else if change.keys.iter().any(|key| is_pending(key)) {
        Verdict::AtStart
    } else {
        Verdict::Taken { is_seen: true }
    };
    let is_overridden = |key: &&String| {
        let mut elsewhere = entries.iter().filter(|entry| entry.file.ends_with(ALTER_SYSTEM_FILE));
        elsewhere.any(|entry| entry.name.eq_ignore_ascii_case(key))
    };
    let overridden = change.to.keys().filter(is_overridden).cloned().collect();
    Some(Answer { verdict, overridden })
}

fn entry(row: &Row) -> Option<Entry<'_>> {
    let [file, name, value, error] = row.as_slice() else { return None };
    Some(Entry {
        file: file.as_deref().unwrap_or_default(),
        name: name.as_deref().unwrap_or_default(),
        value: value.as_deref().unwrap_or_default(),
        // Of what was taken out of the file, and needs a restart, it has no name.
        error: error.as_deref().filter(|_| name.is_some()),
    })
}

fn parameter(row: &Row) -> Option<Parameter<'_>> {
    let [name, pending, kind, unit, least, most, values] = row.as_slice() else { return None };
    Some(Parameter {
        name: name.as_deref()?,
        is_pending: pending.as_deref() == Some("t"),
        accepts: accepts(
            kind.as_deref()?,
            unit.as_deref(),
            least.as_deref(),
            most.as_deref(),
            values.as_deref(),
        ),
    })
}

/// What the server says it accepts, to follow its error.
fn accepts(
    kind: &str,
    unit: Option<&str>,
    least: Option<&str>,
    most: Option<&str>,
    values: Option<&str>,
) -> String {
    let unit = unit.map(|unit| format!(", in units of {unit}")).unwrap_or_default();
    match (values, least, most) {
        (Some(values), _, _) => format!(" (one of {values})"),
        (None, Some(least), Some(most)) => format!(" ({kind} from {least} to {most}{unit})"),
        (None, _, _) => format!(" ({kind}{unit})"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::api::database::{ConfigValue, EngineType};

    type Cells<'a> = &'a [Option<&'a str>];

    fn settings(entries: &[(&str, &str)]) -> BTreeMap<String, ConfigValue> {
        entries.iter().map(|(key, value)| ((*key).to_owned(), ConfigValue((*value).to_owned()))).collect()
    }

    fn change(from: &[(&str, &str)], to: &[(&str, &str)]) -> Change {
        Change::new(EngineType::Postgresql, settings(from), settings(to), &[])
    }

    fn rows(all: &[Cells]) -> Vec<Row> {
        all.iter().map(|row| row.iter().map(|cell| cell.map(str::to_owned)).collect()).collect()
    }

    /// The file with these settings, and what is wrong with one of them.
    fn file(to: &[(&str, &str)], wrong: Option<(&str, &str)>) -> Vec<Row> {
        let error = |key: &str| wrong.filter(|(wrong, _)| *wrong == key).map(|(_, error)| error.to_owned());
        let row = |(key, value): (String, String)| {
            let error = error(&key);
            vec![Some(CONFIG_FILE.to_owned()), Some(key), Some(value), error]
        };
        lines(&settings(to)).into_iter().map(row).collect()
    }

    /// What the server knows: whether these three settings wait for a restart.
    fn known(pending: &[&str]) -> Vec<Row> {
        let mark = |name: &str| if pending.contains(&name) { Some("t") } else { Some("f") };
        rows(&[
            &[
                Some("work_mem"),
                mark("work_mem"),
                Some("integer"),
                Some("kB"),
                Some("64"),
                Some("2147483647"),
                None,
            ],
            &[
                Some("max_connections"),
                mark("max_connections"),
                Some("integer"),
                None,
                Some("1"),
                Some("262143"),
                None,
            ],
            &[
                Some("wal_level"),
                mark("wal_level"),
                Some("enum"),
                None,
                None,
                None,
                Some("minimal, replica, logical"),
            ],
            &[Some("autovacuum"), mark("autovacuum"), Some("bool"), None, None, None, None],
        ])
    }

    const WRONG: &str = "setting could not be applied";

    fn refused(key: &str, value: &str, message: &str) -> Option<Answer> {
        Some(Verdict::Rejected(vec![rejected(key, value, message)]).into())
    }

    #[test]
    fn a_file_that_the_server_does_not_see_yet_is_awaited() {
        let change = change(&[("work_mem", "8MB")], &[("work_mem", "16MB")]);
        let before = file(&[("work_mem", "8MB")], None);
        assert_eq!(judge(&change, &before, &known(&[])), Some(Verdict::NotSeen.into()));
        let without = file(&[], None);
        assert_eq!(judge(&change, &without, &known(&[])), Some(Verdict::NotSeen.into()));
    }

    #[test]
    fn what_the_server_would_reload_is_taken_while_it_runs() {
        let taken = Some(Verdict::Taken { is_seen: true }.into());
        let new = change(&[], &[("work_mem", "16MB")]);
        assert_eq!(judge(&new, &file(&[("work_mem", "16MB")], None), &known(&[])), taken);
        let gone = change(&[("work_mem", "16MB")], &[]);
        assert_eq!(judge(&gone, &file(&[], None), &known(&[])), taken);
        let of_extension = change(&[], &[("auto_explain.log_analyze", "on")]);
        let entries = file(&[("auto_explain.log_analyze", "on")], None);
        assert_eq!(judge(&of_extension, &entries, &known(&[])), taken, "no setting of this name is known");
    }

    #[test]
    fn what_the_server_marks_for_a_restart_restarts_also_beside_what_it_takes() {
        let at_start = Some(Verdict::AtStart.into());
        let to = [("max_connections", "60"), ("work_mem", "16MB")];
        let mixed = change(&[], &to);
        let entries = file(&to, Some(("max_connections", WRONG)));
        assert_eq!(judge(&mixed, &entries, &known(&["max_connections"])), at_start);
        let gone = change(&[("max_connections", "60")], &[]);
        let mut entries = file(&[], None);
        let why = "parameter \"max_connections\" cannot be changed without restarting the server";
        entries.extend(rows(&[&[None, None, None, Some(why)]]));
        assert_eq!(judge(&gone, &entries, &known(&["max_connections"])), at_start);
        let named = change(&[], &[("Max_Connections", "60")]);
        let entries = file(&[("Max_Connections", "60")], Some(("Max_Connections", WRONG)));
        assert_eq!(judge(&named, &entries, &known(&["max_connections"])), at_start, "names know no case");
    }

    #[test]
    fn a_restart_that_another_setting_awaits_is_not_made_for_this_one() {
        let change = change(&[], &[("work_mem", "16MB")]);
        let mut entries = file(&[("work_mem", "16MB")], None);
        let auto = "/var/lib/freehold/15/data/postgresql.auto.conf";
        entries.extend(rows(&[&[Some(auto), Some("max_connections"), Some("70"), Some(WRONG)]]));
        let taken = Some(Verdict::Taken { is_seen: true }.into());
        assert_eq!(judge(&change, &entries, &known(&["max_connections"])), taken);
    }

    #[test]
    fn what_is_wrong_is_rejected_with_the_servers_words_and_what_it_accepts() {
        let of = |key: &str, value: &str, error: &str| {
            let to = [(key, value)];
            judge(&change(&[], &to), &file(&to, Some((key, error))), &known(&[]))
        };
        let message = "setting could not be applied (integer from 64 to 2147483647, in units of kB)";
        assert_eq!(of("work_mem", "lots", WRONG), refused("work_mem", "lots", message));
        let message = "setting could not be applied (one of minimal, replica, logical)";
        assert_eq!(of("wal_level", "all", WRONG), refused("wal_level", "all", message));
        let message = "setting could not be applied (bool)";
        assert_eq!(of("autovacuum", "maybe", WRONG), refused("autovacuum", "maybe", message));
        let unknown = "unrecognized configuration parameter";
        assert_eq!(of("work_memm", "8MB", unknown), refused("work_memm", "8MB", unknown));
        let restarts = "setting could not be applied (integer from 1 to 262143)";
        assert_eq!(of("max_connections", "many", WRONG), refused("max_connections", "many", restarts));
    }

    #[test]
    fn what_alter_system_has_set_is_named() {
        let change = change(&[], &[("work_mem", "16MB")]);
        let mut entries = file(&[("work_mem", "16MB")], None);
        let auto = "/var/lib/freehold/15/data/postgresql.auto.conf";
        entries.extend(rows(&[&[Some(auto), Some("work_mem"), Some("1GB"), None]]));
        let answer = judge(&change, &entries, &known(&[])).unwrap();
        assert_eq!(answer.overridden, ["work_mem"]);
        assert_eq!(answer.verdict, Verdict::Taken { is_seen: true });
    }

    #[test]
    fn an_answer_of_another_form_is_none() {
        let change = change(&[], &[]);
        assert_eq!(judge(&change, &rows(&[&[Some("a")]]), &known(&[])), None);
        assert_eq!(judge(&change, &file(&[], None), &rows(&[&[Some("a")]])), None);
    }
}
