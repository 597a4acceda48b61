//! Writes a Java properties file so that what is read from it is exactly what was requested.

use std::fmt::Write as _;

/// One line of a properties file (`java.util.Properties.load`): a backslash is doubled, leading white space
/// is kept by escaping, and what is not printable ASCII becomes `\uXXXX` (the file is read as ISO 8859-1).
pub fn line(key: &str, value: &str) -> String {
    let mut line = format!("{key}=");
    let mut is_leading = true;
    for character in value.chars() {
        match character {
            '\\' => line.push_str("\\\\"),
            ' ' if is_leading => line.push_str("\\ "),
            ' '..='~' => line.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a String cannot fail.
                    let _ = write!(line, "\\u{unit:04x}");
                }
            }
        }
        is_leading = is_leading && character == ' ';
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Reads a properties file as the documentation of `java.util.Properties.load` says.
    pub fn read(text: &str) -> BTreeMap<String, String> {
        let mut lines: Vec<String> = Vec::new();
        let mut continued = false;
        for natural in text.split(['\n', '\r']) {
            let natural = natural.trim_start_matches([' ', '\t', '\x0c']);
            if !continued && (natural.is_empty() || natural.starts_with(['#', '!'])) {
                continue;
            }
            let slashes = natural.chars().rev().take_while(|c| *c == '\\').count();
            let body = if slashes % 2 == 1 { &natural[..natural.len() - 1] } else { natural };
            if continued {
                lines.last_mut().unwrap().push_str(body);
            } else {
                lines.push(body.to_owned());
            }
            continued = slashes % 2 == 1;
        }
        let unescape = |text: &str| {
            let mut units: Vec<u16> = Vec::new();
            let mut characters = text.chars();
            while let Some(character) = characters.next() {
                let out = match character {
                    '\\' => match characters.next().unwrap() {
                        'u' => {
                            let digits: String = characters.by_ref().take(4).collect();
                            units.push(u16::from_str_radix(&digits, 16).unwrap());
                            continue;
                        }
                        't' => '\t',
                        'n' => '\n',
                        'r' => '\r',
                        'f' => '\x0c',
                        other => other,
                    },
                    other => other,
                };
                units.extend(out.encode_utf16(&mut [0; 2]).iter());
            }
            String::from_utf16(&units).unwrap()
        };
        lines
            .iter()
            .map(|line| {
                let bytes = line.as_bytes();
                let mut end = 0;
                while end < bytes.len() && !matches!(bytes[end], b'=' | b':' | b' ' | b'\t' | b'\x0c') {
                    end += if bytes[end] == b'\\' { 2 } else { 1 };
                }
                let key = &line[..end];
                let rest = line[end..].trim_start_matches([' ', '\t', '\x0c']);
                let rest =
                    rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start_matches([' ', '\t', '\x0c']);
                (unescape(key), unescape(rest))
            })
            .collect()
    }

    #[test]
    fn a_hostile_value_is_read_back_as_it_was_written_and_adds_no_setting() {
        let values = [
            "",
            " ",
            "   leading and trailing   ",
            "#comment",
            "!comment",
            "=x",
            ": x",
            "a=b:c d",
            "ends with \\",
            "\\\\",
            "\\npg.password=quest",
            "\\u000apg.password=quest",
            "\ttab",
            "ünïcödé 𝄞",
            "'\";$(){}%{x}${y}",
            "\u{2028}line\u{85}",
        ];
        for value in values {
            let text = line("a.b_c", value);
            let read = read(&format!("first=1\n{text}last=2\n"));
            let expected = BTreeMap::from([
                ("first".to_owned(), "1".to_owned()),
                ("a.b_c".to_owned(), value.to_owned()),
                ("last".to_owned(), "2".to_owned()),
            ]);
            assert_eq!(read, expected, "{value:?}");
        }
    }
}
