//! Recognises an engine by the name of its image. Pure.

use crate::api::database::EngineType;

/// What the image's repository and tag say.
#[derive(Debug, PartialEq, Eq)]
pub struct Recognised<'a> {
    /// The engine; `Custom` for any other image.
    pub kind: EngineType,
    /// The whole release, if the tag begins with one.
    pub version: Option<&'a str>,
}

/// Only the images that a later version is pulled from as well: another vendor's image of PostgreSQL keeps
/// its data elsewhere and takes other variables, so the published one would not start with its data.
pub fn recognise(image: &str) -> Recognised<'_> {
    let without_digest = image.split('@').next().unwrap_or_default();
    let name = without_digest.rsplit('/').next().unwrap_or_default();
    let (name, tag) = name.split_once(':').unwrap_or((name, ""));
    let vendor = without_digest.rsplit('/').nth(1).unwrap_or("library");
    let kind = match name {
        "questdb" => EngineType::Questdb,
        "postgres" if !matches!(vendor, "bitnami" | "bitnamilegacy") => EngineType::Postgresql,
        _ => EngineType::Custom,
    };
    let version = tag.split('-').next().filter(|release| is_whole(kind, release));
    Recognised { kind, version }
}

fn is_whole(kind: EngineType, release: &str) -> bool {
    let parts: Vec<&str> = release.split('.').collect();
    let are_numbers = parts.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let wanted = if kind == EngineType::Questdb { 2..=3 } else { 2..=2 };
    are_numbers && wanted.contains(&parts.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_published_images_are_an_engine_and_only_a_whole_release_is_a_version() {
        use EngineType::{Custom, Postgresql, Questdb};
        for (image, kind, version) in [
            ("questdb/questdb:8.2.0", Questdb, Some("8.2.0")),
            ("mirror.example.com:5000/questdb/questdb:8.2.0-rhel", Questdb, Some("8.2.0")),
            ("questdb/questdb:latest", Questdb, None),
            ("questdb/questdb", Questdb, None),
            ("postgres:15", Postgresql, None),
            ("postgres:15.7", Postgresql, Some("15.7")),
            ("docker.io/library/postgres:15.7-alpine3.19", Postgresql, Some("15.7")),
            ("mirror.example.com/postgres:15.7@sha256:00", Postgresql, Some("15.7")),
            ("postgres:16beta1", Postgresql, None),
            ("bitnami/postgresql:15.4.0-debian-11-r0", Custom, None),
            ("bitnami/postgres:15.4", Custom, None),
            ("timescale/timescaledb:2.11.0-pg15", Custom, None),
            ("", Custom, None),
        ] {
            let recognised = recognise(image);
            assert_eq!(recognised.kind, kind, "{image}");
            if kind != Custom {
                assert_eq!(recognised.version, version, "{image}");
            }
        }
    }
}
