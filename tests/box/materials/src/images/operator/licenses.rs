//! The licenses of the libraries in the operator: who has which, and each text once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;

use super::crates::Crate;

const INTRODUCTION: &str = "The program /freehold contains these libraries. For each: its name and version, \
                            its licenses as an expression\nof SPDX, and where it is developed. Their own \
                            license files and notices follow.\n\n";

/// The list and the texts. Equal crates give equal text.
pub fn third_party(crates: &[Crate]) -> io::Result<String> {
    let mut list = INTRODUCTION.to_owned();
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for library in crates {
        let label = format!("{} {}", library.name, library.version);
        let own = library.texts()?;
        let license = library.license.as_deref().unwrap_or("license file only");
        let repository = library.repository.as_deref().unwrap_or_default();
        let remark = if own.is_empty() { ", published without a license file" } else { "" };
        let line = format!("{label} ({license}{remark}) {repository}");
        let _ = writeln!(list, "{}", line.trim_end());
        for text in own {
            texts.entry(text.trim().to_owned()).or_default().insert(label.clone());
        }
    }
    // By their first library, so that a new version of one changes few lines.
    let mut texts: Vec<_> = texts.into_iter().map(|(text, of)| (of, text)).collect();
    texts.sort();
    for (of, text) in texts {
        let of: Vec<String> = of.into_iter().collect();
        let _ = write!(list, "\n{}\nOf {}:\n\n{text}\n", "=".repeat(80), of.join(", "));
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_is_listed_and_a_text_that_two_have_stands_there_once() {
        let folder = tempfile::tempdir().unwrap();
        let library = |name: &str, text: Option<&str>| {
            let folder = folder.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            if let Some(text) = text {
                std::fs::write(folder.join("LICENSE"), text).unwrap();
            }
            Crate {
                name: name.to_owned(),
                version: "1.0.0".to_owned(),
                description: None,
                license: Some("MIT".to_owned()),
                repository: None,
                folder,
                uses: Vec::new(),
            }
        };
        let shared = "Permission is hereby granted";
        let crates = [
            library("a", Some(shared)),
            library("b", Some("Permission is hereby granted\r\n")),
            library("c", Some("Other terms")),
            library("d", None),
        ];
        let text = third_party(&crates).unwrap();
        assert_eq!(text.matches(shared).count(), 1);
        assert!(text.contains("Of a 1.0.0, b 1.0.0:\n\nPermission"), "{text}");
        assert!(text.contains("Of c 1.0.0:\n\nOther terms"), "{text}");
        assert!(text.contains("d 1.0.0 (MIT, published without a license file)\n"), "{text}");
    }
}
