//! Release numbers of engines: their order, and the one that an image names.

/// A whole release number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Release(pub(super) u32, pub(super) u32, pub(super) u32);

impl Release {
    /// `9.3.4`, or `9.3` for `9.3.0`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|part| {
            let is_number = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            if is_number { part.parse::<u32>().ok() } else { None }
        });
        let release = Self(numbers.next()??, numbers.next()??, numbers.next().unwrap_or(Some(0))?);
        numbers.next().is_none().then_some(release)
    }
}

/// Whether one release is older than the other; false where one of them is no release number.
pub fn is_older(version: &str, than: &str) -> bool {
    Release::parse(version).zip(Release::parse(than)).is_some_and(|(version, than)| version < than)
}

/// The release that the tag of an image begins with; `None` where it names none.
pub fn of_image(image: &str) -> Option<String> {
    let (name, _) = image.split_once('@').unwrap_or((image, ""));
    let (_, tag) = name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
    let end = tag.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(tag.len());
    Some(tag[..end].to_owned()).filter(|release| Release::parse(release).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_by_their_numbers() {
        assert!(is_older("9.3.4", "9.3.10") && is_older("9.3", "9.3.1") && is_older("8.9.9", "9.0.0"));
        assert!(!is_older("9.3.4", "9.3.4") && !is_older("9.4.0", "9.3.4"));
        assert!(!is_older("latest", "9.3.4") && !is_older("9.3.4", "latest"), "nothing is known of these");
    }

    #[test]
    fn an_image_names_its_release_in_its_tag() {
        let digest = format!("registry:5000/questdb/questdb:9.3.4@sha256:{}", "a".repeat(64));
        for image in ["questdb/questdb:9.3.4", "registry:5000/q/q:9.3.4-rhel", &digest] {
            assert_eq!(of_image(image).as_deref(), Some("9.3.4"), "{image}");
        }
        for image in ["questdb/questdb", "registry:5000/questdb", "questdb/questdb:latest"] {
            assert_eq!(of_image(image), None, "{image}");
        }
    }
}
