//! Writes lines of postgresql.conf so that what is read from them is exactly what was requested.

use crate::engine::EngineError;

/// A setting's name is one word, or two with a dot between them (an extension's); anything else would stop
/// the server.
pub fn check_name(key: &str) -> Result<(), EngineError> {
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let words: Vec<&str> = key.split('.').collect();
    if words.len() <= 2 && words.into_iter().all(is_word) {
        Ok(())
    } else {
        Err(EngineError::ConfigKey { key: key.to_owned() })
    }
}

/// One line. Inside quotes a backslash begins an escape, and a quote is written twice (PostgreSQL
/// documentation, "Setting Parameters").
pub fn line(key: &str, value: &str) -> String {
    format!("{key} = '{}'\n", value.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads one line as the server's scanner does: quoted text, where `''` is a quote and a backslash begins
    /// an escape.
    fn read(line: &str) -> (String, String) {
        let (key, rest) = line.strip_suffix('\n').unwrap().split_once(" = '").unwrap();
        let mut characters = rest.strip_suffix('\'').unwrap().chars();
        let mut value = String::new();
        while let Some(character) = characters.next() {
            match character {
                '\\' => match characters.next().unwrap() {
                    'b' | 'f' | 'n' | 'r' | 't' | '0'..='7' => panic!("a control character in {line}"),
                    other => value.push(other),
                },
                '\'' => {
                    assert_eq!(characters.next(), Some('\''), "the text ends early in {line}");
                    value.push('\'');
                }
                other => value.push(other),
            }
        }
        (key.to_owned(), value)
    }

    #[test]
    fn a_hostile_value_is_read_back_as_it_was_written() {
        for value in [
            "",
            " ",
            "64MB",
            "#comment",
            "'",
            "''",
            "\\",
            "ends with \\",
            "\\'",
            "'\\'' fsync = off #",
            "\\nfsync=off",
            "\\047",
            "a\tb",
            "ünïcödé 𝄞",
            "\"$user\", public",
            "%m [%p] %q%u@%d ",
        ] {
            assert_eq!(
                read(&line("some.name", value)),
                ("some.name".to_owned(), value.to_owned()),
                "{value:?}"
            );
        }
    }

    #[test]
    fn a_name_is_one_word_or_an_extensions() {
        for name in ["work_mem", "Work_Mem", "auto_explain.log_min_duration", "a1.b2"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", ".", "a.", ".a", "a..b", "a.b.c", "a.1b", "1a", "a b", "a=b", "a'"] {
            assert_eq!(check_name(name), Err(EngineError::ConfigKey { key: name.to_owned() }), "{name}");
        }
    }
}
