//! How long PostgreSQL may take to stop: by how much it may have to write then. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::database::ConfigValue;

/// What its stop may have to write at most: what was changed since the last checkpoint, and each page that
/// was changed stands in the log of that time (`full_page_writes` is always on), which is what this bounds.
const SETTING: &str = "max_wal_size";

/// What a gp3 writes in a second at least is 125 MiB (AWS, "General Purpose SSD volumes"). Pages are written
/// where they lie, and the file system has its own: less than half of it.
const MEBIBYTES_A_SECOND: f64 = 60.0;

/// Long enough for 17 GiB; the default of the setting is one.
const LEAST: f64 = 300.0;

/// An engine that hangs keeps a move waiting for so long. Cut off, the next start repeats the log; nothing is
/// lost.
const MOST: f64 = 1800.0;

/// How long it may take with these settings.
pub(super) fn of(config: &BTreeMap<String, ConfigValue>) -> Duration {
    // Its names know no case.
    let all = config.iter().filter(|(key, _)| key.eq_ignore_ascii_case(SETTING));
    let mebibytes = all.filter_map(|(_, value)| mebibytes(&value.0)).fold(0.0, f64::max);
    Duration::from_secs_f64((mebibytes / MEBIBYTES_A_SECOND).ceil().clamp(LEAST, MOST))
}

/// A size as PostgreSQL reads it, of a setting that counts in MB (PostgreSQL documentation, "Setting
/// Parameters").
fn mebibytes(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit.trim() {
        "B" => 1.0 / 1_048_576.0,
        "kB" => 1.0 / 1024.0,
        "" | "MB" => 1.0,
        "GB" => 1024.0,
        "TB" => 1_048_576.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_may_have_more_to_write_has_more_time() {
        for (value, seconds) in [
            ("1GB", 300),
            ("16GB", 300),
            ("64GB", 1093),
            ("65536", 1093),
            (" 65536 MB ", 1093),
            ("67108864kB", 1093),
            ("68719476736B", 1093),
            ("0.5TB", 1800),
            ("1e5", 300),
            ("lots", 300),
            ("", 300),
            ("-5GB", 300),
        ] {
            let config = BTreeMap::from([("Max_WAL_size".to_owned(), ConfigValue(value.to_owned()))]);
            assert_eq!(of(&config), Duration::from_secs(seconds), "{value}");
        }
        let other = BTreeMap::from([("work_mem".to_owned(), ConfigValue("64GB".to_owned()))]);
        assert_eq!(of(&other), Duration::from_secs(300));
        assert_eq!(of(&BTreeMap::new()), Duration::from_secs(300));
    }
}
