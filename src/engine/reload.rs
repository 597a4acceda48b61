//! What PostgreSQL says of a change of its settings while it runs. The server decides, and no table of ours
//! says which setting needs a restart. Pure.
//!
//! A setting that each session may have for itself (`context` in `pg_settings`) is no part of how the server
//! starts, and a session that begins with a value proves it: the server checks it as it does for clients, and
//! loads what it names. Of any other setting that runs, nothing proves that the server starts with it:
//! `min_wal_size = 16MB` is taken by a reload, and is fatal at the next start. Those are restarted into.

use std::collections::BTreeMap;

use super::verify::Row;

/// The setting that names the server's file of settings: Freehold's.
const CONFIG_FILE: &str = "config_file";

/// The settings that differ: the new value, or none where the setting is gone.
pub type Change = BTreeMap<String, Option<String>>;

/// Every setting that the server knows, as it is for the session.
pub const PARAMETERS: &str =
    "SELECT name, context, setting, source, sourcefile, boot_val FROM pg_catalog.pg_settings";

/// The file of settings as it is now.
pub const FILE: &str = "SELECT pg_catalog.pg_read_file(pg_catalog.current_setting('config_file'))";

/// When the server has loaded its files; a session has what it began with.
pub const LOADED: &str = "SELECT pg_catalog.pg_conf_load_time()";

/// Has the server load its files.
pub const RELOAD: &str = "SELECT pg_catalog.pg_reload_conf()";

/// The kinds of settings that a session may have for itself (PostgreSQL documentation, "pg_settings").
const OF_SESSIONS: [&str; 4] = ["user", "superuser", "backend", "superuser-backend"];

/// Where values come from that a file of settings wins over (`GucSource` in src/include/utils/guc.h).
const BENEATH_FILES: [&str; 2] = ["default", "environment variable"];

/// The source of what is in a file.
const OF_FILE: &str = "configuration file";

/// How many bytes of settings a session can begin with: PostgreSQL's startup packet has 10000 at most
/// (`MAX_STARTUP_PACKET_LENGTH` in src/include/libpq/pqcomm.h).
const LONGEST_OPTIONS: usize = 8000;

/// How many characters of an engine's words are repeated.
const LONGEST_MESSAGE: usize = 300;

/// What becomes of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The engine takes all of it while it runs.
    Taken,
    /// It takes it at its next start only.
    AtStart,
    /// It rejects it: why.
    Rejected(String),
}

/// A setting that the server knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    name: String,
    is_of_sessions: bool,
    /// Its value, as the server writes it.
    value: String,
    /// The one that it has where nothing sets it, if there is one.
    initial: Option<String>,
    /// The server takes it from Freehold's file.
    is_of_file: bool,
    /// It would take it from there: nothing wins over that, such as ALTER SYSTEM, or ALTER ROLE.
    is_free: bool,
}

/// Reads every setting; `None` if the answer has another form.
pub fn parameters(rows: &[Row]) -> Option<Vec<Parameter>> {
    let own = rows.iter().find(|row| row.first().is_some_and(|name| name.as_deref() == Some(CONFIG_FILE)));
    let own = own.and_then(|row| row.get(2)?.as_deref());
    let parameter = |row: &Row| -> Option<Parameter> {
        let [name, context, value, source, file, initial] = row.as_slice() else { return None };
        let (context, source) = (context.as_deref()?, source.as_deref()?);
        let is_of_file = source == OF_FILE && file.is_some() && file.as_deref() == own;
        Some(Parameter {
            name: name.clone()?,
            is_of_sessions: OF_SESSIONS.contains(&context),
            value: value.clone().unwrap_or_default(),
            initial: initial.clone(),
            is_of_file,
            is_free: is_of_file || BENEATH_FILES.contains(&source),
        })
    };
    rows.iter().map(parameter).collect()
}

/// PostgreSQL's names know no case.
fn of<'a>(parameters: &'a [Parameter], name: &str) -> Option<&'a Parameter> {
    parameters.iter().find(|it| it.name.eq_ignore_ascii_case(name))
}

/// The options of a session that begins with the change, as far as a session may have it: what is gone comes
/// first, with the value that is left, since the server compares some settings with others as it reads them.
/// No text at all is left out: the server does not take it for each setting from a client (`lc_messages`).
pub fn options(change: &Change, parameters: &[Parameter]) -> String {
    let (gone, set): (Vec<_>, Vec<_>) = change.iter().partition(|(_, value)| value.is_none());
    let mut options = String::new();
    for (key, value) in gone.into_iter().chain(set) {
        let Some(known) = of(parameters, key).filter(|it| it.is_of_sessions) else { continue };
        let left = || known.initial.as_ref().filter(|initial| !initial.is_empty());
        let Some(value) = value.as_ref().or_else(left) else { continue };
        options.extend(["-c ", key, "="]);
        for character in value.chars() {
            // The server divides options at what C calls space (`pg_split_opts`), a vertical tab among it.
            if character.is_ascii_whitespace() || ['\\', '\x0B'].contains(&character) {
                options.push('\\');
            }
            options.push(character);
        }
        options.push(' ');
    }
    options
}

/// Whether a session can begin with so many options.
pub const fn fits(options: &str) -> bool {
    options.len() <= LONGEST_OPTIONS
}

/// Whether the server takes all of this while it runs, if sessions begin with it.
pub fn judge(change: &Change, parameters: &[Parameter]) -> Verdict {
    let is_taken = |key: &String| of(parameters, key).is_some_and(|it| it.is_of_sessions && it.is_free);
    let is_tried = fits(&options(change, parameters));
    if is_tried && change.keys().all(is_taken) { Verdict::Taken } else { Verdict::AtStart }
}

/// What the engine says against a change, as far as it is repeated.
pub fn rejected(words: &str) -> Verdict {
    Verdict::Rejected(words.chars().take(LONGEST_MESSAGE).collect())
}

/// Whether a session that began after the load has what one has that began with the new values, and has it
/// from the file with this text.
pub fn is_in_force(change: &Change, file: &str, tried: &[Parameter], loaded: &[Parameter]) -> bool {
    let names = |key: &str| {
        file.lines().filter_map(|line| line.split([' ', '=']).next()).any(|it| it.eq_ignore_ascii_case(key))
    };
    change.iter().all(|(key, value)| {
        let (Some(tried), Some(loaded)) = (of(tried, key), of(loaded, key)) else { return false };
        match value {
            Some(_) => loaded.is_of_file && loaded.value == tried.value,
            // Freehold's own lines are in the file, too.
            None => loaded.is_of_file == names(key),
        }
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn change(entries: &[(&str, Option<&str>)]) -> Change {
        entries.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect()
    }

    const OWN: &str = "/etc/freehold/postgresql.conf";

    /// What each is where nothing sets it.
    fn initial(name: &str) -> Option<String> {
        let initial = match name {
            "log_statement" => "none",
            "search_path" => r#""$user", public"#,
            "lc_messages" => "",
            _ => return None,
        };
        Some(initial.to_owned())
    }

    fn known(rows: &[[&str; 5]]) -> Vec<Parameter> {
        let cell = |cell: &&str| (!cell.is_empty()).then(|| (*cell).to_owned());
        let cells = |row: &[&str; 5]| row.iter().map(cell).chain([initial(row[0])]).collect();
        let own = ["config_file", "postmaster", OWN, "command line", ""];
        let rows: Vec<Row> = [rows, &[own]].concat().iter().map(cells).collect();
        parameters(&rows).unwrap()
    }

    fn server() -> Vec<Parameter> {
        known(&[
            ["work_mem", "user", "4096", "default", ""],
            ["log_statement", "superuser", "all", OF_FILE, OWN],
            ["log_connections", "superuser-backend", "off", "default", ""],
            ["autovacuum", "sighup", "on", "default", ""],
            ["max_connections", "postmaster", "100", "default", ""],
            ["random_page_cost", "user", "1", OF_FILE, "/data/postgresql.auto.conf"],
            ["search_path", "user", "a", "user", ""],
            ["lc_messages", "superuser", "C", OF_FILE, OWN],
            ["timezone", "user", "Etc/UTC", OF_FILE, OWN],
        ])
    }

    #[test]
    fn what_a_session_may_have_for_itself_is_taken_while_the_server_runs_and_anything_else_is_not() {
        for (entries, expected) in [
            (&[("work_mem", Some("16MB"))][..], Verdict::Taken),
            (&[("Work_Mem", Some("16MB")), ("log_statement", None)], Verdict::Taken),
            (&[("log_connections", Some("on"))], Verdict::Taken),
            (&[("autovacuum", Some("off"))], Verdict::AtStart),
            (&[("max_connections", Some("60")), ("work_mem", Some("16MB"))], Verdict::AtStart),
            (&[("random_page_cost", Some("2"))], Verdict::AtStart),
            (&[("search_path", Some("b"))], Verdict::AtStart),
            (&[("auto_explain.log_analyze", Some("on"))], Verdict::AtStart),
        ] {
            assert_eq!(judge(&change(entries), &server()), expected, "{entries:?}");
        }
        let long = "x".repeat(LONGEST_OPTIONS);
        assert_eq!(judge(&change(&[("work_mem", Some(&long))]), &server()), Verdict::AtStart, "not tried");
    }

    #[test]
    fn a_session_begins_with_the_new_values_as_they_are_and_before_them_with_what_is_left() {
        let of = |entries: &[(&str, Option<&str>)]| options(&change(entries), &server());
        let all = [
            ("lc_messages", None),
            ("log_statement", None),
            ("max_connections", Some("60")),
            ("search_path", Some(r"a, b\c")),
            ("work_mem", Some("16MB")),
        ];
        assert_eq!(of(&all), r"-c log_statement=none -c search_path=a,\ b\\c -c work_mem=16MB ");
        assert_eq!(of(&[("search_path", None), ("log_statement", Some("all"))]), {
            r#"-c search_path="$user",\ public -c log_statement=all "#
        });
        assert_eq!(of(&[("lc_messages", None), ("work_mem", None), ("autovacuum", Some("off"))]), "");
        assert_eq!(of(&[("work_mem", Some("1MB\x0B"))]), "-c work_mem=1MB\\\x0B ", "one word for the server");
    }

    #[test]
    fn in_force_is_what_a_later_session_has_from_the_file() {
        let tried = known(&[
            ["work_mem", "user", "16384", "client", ""],
            ["timezone", "user", "Etc/UTC", OF_FILE, OWN],
        ]);
        let after = |value: &str, file: &str| {
            known(&[
                ["work_mem", "user", value, OF_FILE, file],
                ["timezone", "user", "Etc/UTC", OF_FILE, OWN],
            ])
        };
        let is_so = |entries: &[(&str, Option<&str>)], loaded: &[Parameter]| {
            is_in_force(&change(entries), "timezone = 'Etc/UTC'\nwork_mem = '16MB'\n", &tried, loaded)
        };
        let new = [("work_mem", Some("16MB"))];
        assert!(is_so(&new, &after("16384", OWN)));
        assert!(!is_so(&new, &after("4096", OWN)), "it has another value");
        assert!(!is_so(&new, &after("16384", "/data/postgresql.auto.conf")), "from elsewhere");
        assert!(!is_so(&new, &[]), "it is not known any more");
        assert!(is_so(&[("timezone", None)], &after("4096", OWN)), "Freehold's own line");
        assert!(is_in_force(&change(&[("work_mem", None)]), "", &tried, &server()));
        assert!(!is_in_force(&change(&[("work_mem", None)]), "", &tried, &after("1", OWN)));
    }

    #[test]
    fn an_answer_of_another_form_is_none_and_words_are_bounded() {
        assert_eq!(parameters(&[vec![Some("a".to_owned())]]), None);
        assert_eq!(rejected(&"ä".repeat(5000)), Verdict::Rejected("ä".repeat(300)));
    }
}
