//! Reads a list of databases: a line for each, with options of its own. Pure.

use std::collections::BTreeSet;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser};

use crate::adopt::error::AdoptError;
use crate::adopt::wanted::Wanted;
use crate::command::target::Target;

/// A line.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Line {
    /// The StatefulSet.
    #[arg(value_name = "NAMESPACE/NAME")]
    target: Target,

    #[command(flatten)]
    wanted: Wanted,
}

/// The databases of a list; what a line does not say is as in `common`.
pub fn parse(text: &str, common: &Wanted) -> Result<Vec<Wanted>, AdoptError> {
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let wanted = wanted(&words, common).map_err(|problem| AdoptError::Line { number, problem })?;
        if !seen.insert(wanted.stateful_set.clone()) {
            let problem = format!("StatefulSet {} is in the list twice", wanted.stateful_set);
            return Err(AdoptError::Line { number, problem });
        }
        all.push(wanted);
    }
    Ok(all)
}

fn wanted(words: &[&str], common: &Wanted) -> Result<Wanted, String> {
    let read = || {
        let matches = Line::command().try_get_matches_from(words)?;
        Ok((Line::from_arg_matches(&matches)?, matches))
    };
    let (line, matches) = read().map_err(|error: clap::Error| sentence(&error))?;
    Ok(merged(line, &matches, common))
}

/// Of clap's answer what is about the line, without the usage of a program that there is not.
fn sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines: Vec<&str> = text.lines().take_while(|line| !line.starts_with("Usage")).collect();
    lines.join(" ").trim_start_matches("error: ").trim().to_owned()
}

/// The line's options before the command's: one that is given makes those of the command void that
/// contradict it.
fn merged(line: Line, matches: &ArgMatches, common: &Wanted) -> Wanted {
    let Line { target, wanted: own } = line;
    let names_class = matches.value_source("node_class") == Some(ValueSource::CommandLine);
    Wanted {
        stateful_set: target,
        database: own.database,
        node_class: if names_class { own.node_class } else { common.node_class.clone() },
        service: own.service.or_else(|| common.service.clone()),
        no_secret: own.no_secret || common.no_secret && own.secret.is_none(),
        secret: own.secret.or_else(|| common.secret.clone().filter(|_| !own.no_secret)),
        instance_types: if own.instance_types.is_empty() {
            common.instance_types.clone()
        } else {
            own.instance_types
        },
        custom: own.custom || common.custom && own.engine_version.is_none(),
        engine_version: own.engine_version.or_else(|| common.engine_version.clone().filter(|_| !own.custom)),
        unmanaged: own.unmanaged || common.unmanaged,
        skip_snapshot: own.skip_snapshot || common.skip_snapshot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(words: &str) -> Wanted {
        let words: Vec<&str> = ["x/y"].into_iter().chain(words.split_whitespace()).collect();
        Line::try_parse_from(words).unwrap().wanted
    }

    #[test]
    fn a_line_names_a_statefulset_and_what_it_does_not_say_is_as_the_command_says() {
        let common =
            common("--node-class big --instance-type r7i.large --no-secret --custom --skip-snapshot");
        let list = "# of the provisioner\n\n team-a/orders\nteam-b/ledger --secret login --engine-version 15.7 \
            --database books --node-class small --instance-type m7i.large --instance-type m6i.large # two\n";
        let [orders, ledger] = parse(list, &common).unwrap().try_into().unwrap();
        assert_eq!((orders.stateful_set.to_string(), orders.database()), ("team-a/orders".into(), "orders"));
        assert_eq!((orders.node_class.as_str(), orders.no_secret, orders.custom), ("big", true, true));
        assert_eq!(orders.instance_types, ["r7i.large"]);
        assert_eq!((ledger.database(), ledger.node_class.as_str()), ("books", "small"));
        assert_eq!((ledger.secret.as_deref(), ledger.no_secret), (Some("login"), false));
        assert_eq!((ledger.engine_version.as_deref(), ledger.custom), (Some("15.7"), false));
        assert_eq!(ledger.instance_types, ["m7i.large", "m6i.large"]);
        assert!(orders.skip_snapshot && ledger.skip_snapshot);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        for (list, expected) in [
            ("a/b\norders", "line 2 of the list: invalid value 'orders'"),
            ("a/b --instance r7i.large", "line 1 of the list: unexpected argument '--instance'"),
            ("a/b\n#\na/b", "line 3 of the list: StatefulSet a/b is in the list twice"),
            ("a/b --secret one --no-secret", "line 1 of the list: the argument '--secret <NAME>' cannot"),
        ] {
            let error = parse(list, &common("")).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
