//! The software bill of materials (SBOM) of the operator's image, as CycloneDX 1.6.
//!
//! A small part of that format (cyclonedx.org/docs/1.6/json) is enough, written as the image's own documents
//! are. It has no serial number, which would differ each time.

use serde_json::{Value, json};

use super::crates::Crate;
use super::debian::Package;

/// What the bill is of.
#[derive(Debug)]
pub struct Contents<'a> {
    /// The operator's own crate.
    pub operator: &'a Crate,
    /// Those that are compiled into it.
    pub libraries: &'a [Crate],
    /// The version of Rust, whose standard library is part of the program.
    pub rust: &'a str,
    /// Debian's packages of which files are in the image.
    pub packages: &'a [Package],
    /// When the sources were committed, as in RFC 3339.
    pub date: Option<&'a str>,
}

/// The bill.
pub fn bill(contents: &Contents<'_>) -> Value {
    let Contents { operator, libraries, rust, packages, date } = contents;
    let standard_library = json!({
        "type": "library",
        "bom-ref": format!("pkg:generic/rust-std@{rust}"),
        "name": "rust-std",
        "version": rust,
        "purl": format!("pkg:generic/rust-std@{rust}"),
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
    });
    let packages = packages.iter().map(|package| {
        json!({
            "type": "library",
            "bom-ref": package.url(),
            "name": package.name,
            "version": package.version,
            "purl": package.url(),
        })
    });
    let crates = libraries.iter().map(|library| component(library, "library"));
    let mut metadata = json!({"component": component(operator, "application")});
    if let (Some(date), Some(metadata)) = (date, metadata.as_object_mut()) {
        metadata.insert("timestamp".to_owned(), json!(date));
    }
    let uses = |of: &Crate| json!({"ref": of.url(), "dependsOn": of.uses});
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": metadata,
        "components": crates.chain([standard_library]).chain(packages).collect::<Vec<_>>(),
        "dependencies": libraries.iter().chain([*operator]).map(uses).collect::<Vec<_>>(),
    })
}

fn component(of: &Crate, kind: &str) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": of.url(),
        "name": of.name,
        "version": of.version,
        "purl": of.url(),
    });
    if let Some(component) = component.as_object_mut() {
        if let Some(license) = &of.license {
            component.insert("licenses".to_owned(), json!([{"expression": license}]));
        }
        if let Some(repository) = &of.repository {
            let reference = json!([{"type": "vcs", "url": repository}]);
            component.insert("externalReferences".to_owned(), reference);
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;

    fn named(name: &str, uses: &[&str]) -> Crate {
        Crate {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            description: None,
            license: Some("MIT".to_owned()),
            repository: None,
            folder: PathBuf::new(),
            uses: uses.iter().map(|name| format!("pkg:cargo/{name}@1.0.0")).collect(),
        }
    }

    #[test]
    fn every_reference_of_a_bill_leads_to_a_part_of_it() {
        let operator = named("freehold", &["a", "b"]);
        let libraries = [named("a", &["b"]), named("b", &[])];
        let date = Some("2026-11-23T00:00:00Z");
        let contents =
            Contents { operator: &operator, libraries: &libraries, rust: "1.95.0", packages: &[], date };
        let bill = bill(&contents);
        assert_eq!(bill["metadata"]["timestamp"], "2026-11-23T00:00:00Z");
        assert_eq!(bill["metadata"]["component"]["type"], "application");
        let components = bill["components"].as_array().unwrap();
        assert_eq!(components.len(), 3);
        let known: BTreeSet<&str> = components
            .iter()
            .chain([&bill["metadata"]["component"]])
            .map(|component| component["bom-ref"].as_str().unwrap())
            .collect();
        for entry in bill["dependencies"].as_array().unwrap() {
            let referred = [&entry["ref"]].into_iter().chain(entry["dependsOn"].as_array().unwrap());
            for reference in referred {
                assert!(known.contains(reference.as_str().unwrap()), "{reference}");
            }
        }
    }
}
