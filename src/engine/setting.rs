//! Checks one setting of a user's, whatever file it will stand in.

use super::EngineError;
use crate::api::database::ConfigValue;

/// The longest key and value: the limits of the resource definition.
const LONGEST_KEY: usize = 128;
const LONGEST_VALUE: usize = 1024;

/// Checks one setting of a user's: no key and no value may end its line or begin another.
pub fn check(key: &str, value: &ConfigValue) -> Result<(), EngineError> {
    let is_name = key.len() <= LONGEST_KEY
        && key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
    if !is_name {
        return Err(EngineError::ConfigKey { key: key.to_owned() });
    }
    if value.0.chars().count() > LONGEST_VALUE || value.0.chars().any(|c| c.is_control() && c != '\t') {
        return Err(EngineError::ConfigValue { key: key.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_break_is_refused_in_keys_and_values() {
        for value in ["a\nb", "a\rb", "a\0b", "\x1b[0m", "a\u{85}b"] {
            let refused = check("a", &ConfigValue(value.to_owned()));
            assert_eq!(refused, Err(EngineError::ConfigValue { key: "a".to_owned() }), "{value:?}");
        }
        for key in ["", "1a", ".a", "a b", "a=b", "a:b", "a\nb", "a#", "a\\", "ä", "a-b"] {
            let refused = check(key, &ConfigValue("1".to_owned()));
            assert_eq!(refused, Err(EngineError::ConfigKey { key: key.to_owned() }), "{key:?}");
        }
        assert_eq!(check("cairo.wal.x_1", &ConfigValue("a = b".to_owned())), Ok(()));
    }

    #[test]
    fn keys_and_values_have_a_longest_length() {
        assert!(check(&"a".repeat(129), &ConfigValue(String::new())).is_err());
        assert!(check(&"a".repeat(128), &ConfigValue("ä".repeat(1024))).is_ok());
        assert!(check("a", &ConfigValue("a".repeat(1025))).is_err());
    }
}
