//! Where an engine's image is pulled from: the registry, repositories and digests of a NodeClass.

use super::Profile;
use crate::api::database::{Engine, EngineType};
use crate::api::node_class::Images;

/// The registry of the images that their projects publish.
const DOCKER_HUB: &str = "docker.io";

/// The profile with the image from where the NodeClass says. An image of a tenant's own names its registry
/// itself.
pub fn from_class(mut profile: Profile, engine: &Engine, images: &Images) -> Profile {
    profile.pull_policy = images.pull_policy;
    profile.pull_secrets.clone_from(&images.pull_secrets);
    let (published, of_class) = match engine.kind {
        EngineType::Questdb => ("questdb/questdb", &images.questdb),
        EngineType::Postgresql => ("library/postgres", &images.postgresql),
        EngineType::Custom => return profile,
    };
    if images.registry.is_none() && of_class.is_none() {
        return profile;
    }
    let version = engine.version.as_deref().unwrap_or_default();
    let registry = images.registry.as_deref().unwrap_or(DOCKER_HUB);
    let repository = of_class.as_ref().and_then(|image| image.repository.as_deref()).unwrap_or(published);
    let digest = of_class.as_ref().and_then(|image| image.digests.get(version));
    let digest = digest.map(|digest| format!("@{}", digest.0)).unwrap_or_default();
    profile.image = format!("{registry}/{repository}:{version}{digest}");
    profile
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::engine::profile;

    /// The image of this engine with this `spec.images`, and what goes with it.
    fn image(engine: Value, images: Value) -> (String, &'static str, Vec<String>) {
        let engine: Engine = serde_json::from_value(engine).unwrap();
        let profile = profile(&engine, &BTreeMap::new()).unwrap();
        let images: Images = serde_json::from_value(images).unwrap();
        let Profile { image, pull_policy, pull_secrets, .. } = from_class(profile, &engine, &images);
        (image, pull_policy.as_str(), pull_secrets)
    }

    #[test]
    fn registry_repository_and_digest_are_the_classs_and_the_version_is_the_specs() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let mirror = json!({
            "registry": "registry.example:5000/mirror",
            "postgresql": {"repository": "db/postgres", "digests": {"17.6": digest}},
        });
        let questdb = || json!({"type": "questdb", "version": "9.3.4"});
        let postgresql = |version: &str| json!({"type": "postgresql", "version": version});
        for (engine, images, expected) in [
            (questdb(), json!({}), "questdb/questdb:9.3.4".to_owned()),
            (postgresql("17.6"), json!({}), "docker.io/library/postgres:17.6".to_owned()),
            (questdb(), mirror.clone(), "registry.example:5000/mirror/questdb/questdb:9.3.4".to_owned()),
            (
                postgresql("17.6"),
                mirror.clone(),
                format!("registry.example:5000/mirror/db/postgres:17.6@{digest}"),
            ),
            (postgresql("17.5"), mirror, "registry.example:5000/mirror/db/postgres:17.5".to_owned()),
            (
                questdb(),
                json!({"questdb": {"repository": "acme/questdb"}}),
                "docker.io/acme/questdb:9.3.4".to_owned(),
            ),
        ] {
            assert_eq!(image(engine, images.clone()).0, expected, "{images}");
        }
    }

    #[test]
    fn an_image_of_a_tenants_own_takes_only_the_credentials_and_the_policy_of_the_class() {
        let custom = json!({"type": "custom",
            "custom": {"image": "registry.example/db:1", "port": 5555, "dataPath": "/data"}});
        let images = json!({"registry": "mirror.example", "pullSecrets": ["pull"], "pullPolicy": "Always"});
        let expected = ("registry.example/db:1".to_owned(), "Always", vec!["pull".to_owned()]);
        assert_eq!(image(custom, images), expected);
    }
}
