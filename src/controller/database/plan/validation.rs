//! Checks a spec again: a stored object may be older than a rule of the resource definition. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Container;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::comparison::{self, Finding};
use super::facts::{adoption, is_outdated};
use super::started;
use crate::api::database::{
    Access, EngineType, ResourceQuantity, Resources, Restored, Storage, VOLUME_TYPES,
};
use crate::controller::database::build;
use crate::controller::database::cause::LONGEST_NAME;
use crate::controller::database::cause::{InvalidSpec, TlsRefusal, WalArchiveRefusal};
use crate::controller::database::in_place;
use crate::controller::database::observe::Observed;
use crate::controller::engine_container::engine_of;
use crate::controller::restoring::{RestoreRefusal, version_fits};
use crate::engine::Value;
use crate::engine::postgresql::DATA_DIRECTORY;
use crate::engine::release;

/// What is wrong with the spec; `None` when it can be carried out.
pub fn invalid(observed: &Observed) -> Option<InvalidSpec> {
    name(observed)
        .or_else(|| observed.profile.as_ref().err().cloned().map(InvalidSpec::Engine))
        .or_else(|| older_engine(observed))
        .or_else(|| restored_version(observed))
        .or_else(|| data_directory(observed))
        .or_else(|| data_path(observed))
        .or_else(|| user_id(observed))
        .or_else(|| adopted_image(observed))
        .or_else(|| storage(observed))
        .or_else(|| placement(observed))
        .or_else(|| access(observed))
        .or_else(|| tls(observed).map(InvalidSpec::Tls))
        .or_else(|| wal_archive(observed).map(InvalidSpec::WalArchive))
        .or_else(|| resources(observed))
}

fn name(observed: &Observed) -> Option<InvalidSpec> {
    let name = observed.names.database.as_str();
    let is_name = name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    (!is_name).then(|| InvalidSpec::Name(name.to_owned()))
}

/// A newer version of QuestDB was started on the data.
fn older_engine(observed: &Observed) -> Option<InvalidSpec> {
    // The pod may have started one since the last pass.
    let known = observed.database.status.as_ref().and_then(|status| status.engine_version.clone());
    let started = &started::newest(observed, known)?;
    let engine = &observed.database.spec.engine;
    let version = engine.version.as_ref().filter(|_| engine.kind == EngineType::Questdb)?;
    release::is_older(version, started)
        .then(|| InvalidSpec::OlderEngine { version: version.clone(), started: started.clone() })
}

/// What the data was restored from, as long as no engine has served it.
fn unserved(observed: &Observed) -> Option<&Restored> {
    let status = observed.database.status.as_ref()?;
    let is_unserved = observed.volume.ours().is_some_and(|it| in_place::is_unserved(&observed.database, it));
    status.restored.as_ref().filter(|_| status.first_ready_at.is_none() || is_unserved)
}

/// A version that does not read the data that the database began with. Until an engine has served from that
/// data, nothing else says what wrote it.
fn restored_version(observed: &Observed) -> Option<InvalidSpec> {
    let restored = unserved(observed)?;
    let engine = &observed.database.spec.engine;
    let version = engine.version.clone().unwrap_or_default();
    let wrote = restored.engine_version.as_deref();
    let refusal = version_fits(engine.kind, &version, wrote, restored.consistency).err()?;
    let RestoreRefusal::Version { wrote, same_major } = refusal else { return None };
    Some(InvalidSpec::RestoredVersion { version, wrote, same_major })
}

/// The StatefulSet as Freehold applied it. A template of this very spec that another client has changed does
/// not say where the data is; nor does that of an adopted database, which has its data where it was found.
fn template_as_applied(observed: &Observed, kind: EngineType) -> Option<&StatefulSet> {
    let spec = &observed.database.spec;
    let set = observed.stateful_set.ours().filter(|_| spec.engine.kind == kind && spec.adopt.is_none())?;
    let is_altered = comparison::stateful_set(observed) == Finding::Altered && !is_outdated(observed, set);
    (!is_altered).then_some(set)
}

/// The engine's container in it.
fn engine_as_applied(observed: &Observed, kind: EngineType) -> Option<&Container> {
    let set = template_as_applied(observed, kind)?;
    engine_of(&set.spec.as_ref()?.template.spec.as_ref()?.containers, observed.engine())
}

/// An image has its data in one place. Under another path of the same image the volume is empty to it, and
/// where the image declares a volume of its own, containerd gives it one that goes with the container. Until
/// the database was ready for the first time, the path may have been the wrong one.
fn data_path(observed: &Observed) -> Option<InvalidSpec> {
    observed.database.status.as_ref()?.first_ready_at.as_ref()?;
    let engine = engine_as_applied(observed, EngineType::Custom)?;
    let profile = observed.profile.as_ref().ok()?;
    let made = &engine.volume_mounts.iter().flatten().find(|mount| mount.name == build::DATA)?.mount_path;
    let is_moved = engine.image.as_deref() == Some(&profile.image) && *made != profile.data_path;
    is_moved.then(|| InvalidSpec::DataPath { wanted: profile.data_path.clone(), made: made.clone() })
}

/// The files on the volume belong to the user that wrote them. With another fsGroup the kubelet changes the
/// group of every file before the container starts, and the owner stays. Until the database was ready for the
/// first time, the user may have been the wrong one.
fn user_id(observed: &Observed) -> Option<InvalidSpec> {
    observed.database.status.as_ref()?.first_ready_at.as_ref()?;
    let set = template_as_applied(observed, EngineType::Custom)?;
    let made = set.spec.as_ref()?.template.spec.as_ref()?.security_context.as_ref()?.fs_group?;
    let wanted = observed.profile.as_ref().ok()?.user_id;
    (made != wanted).then_some(InvalidSpec::UserId { wanted, made })
}

/// One major version of PostgreSQL cannot read the data of another, and each has a directory of its own on
/// the volume.
fn data_directory(observed: &Observed) -> Option<InvalidSpec> {
    let engine = engine_as_applied(observed, EngineType::Postgresql)?;
    let made =
        engine.env.iter().flatten().find(|variable| variable.name == DATA_DIRECTORY)?.value.as_deref()?;
    let wanted = observed
        .profile
        .as_ref()
        .ok()?
        .environment
        .iter()
        .find(|variable| variable.name == DATA_DIRECTORY)?;
    let Value::Text(wanted) = &wanted.value else { return None };
    (made != wanted).then(|| InvalidSpec::DataDirectory { wanted: wanted.clone(), made: made.to_owned() })
}

/// The image of an adopted database is changed in its tag only, which must name the version that it has.
fn adopted_image(observed: &Observed) -> Option<InvalidSpec> {
    let adoption = adoption(observed)?;
    let (then, now) = (&adoption.engine, &observed.database.spec.engine);
    if now.kind == EngineType::Custom || then.version == now.version {
        return None;
    }
    let found = adoption.found_set()?;
    let image = engine_of(&found.spec?.template.spec?.containers, observed.engine())?.image.clone()?;
    let (then, now) = (then.version.as_deref(), now.version.as_deref());
    build::of_version(&image, then, now)
        .is_none()
        .then(|| InvalidSpec::AdoptedImage { image, version: then.unwrap_or_default().to_owned() })
}

fn storage(observed: &Observed) -> Option<InvalidSpec> {
    let Storage {
        size,
        volume_type,
        iops,
        throughput,
        file_system,
        auto_grow,
        adopt_retained: _,
        start_empty: _,
        new_credentials: _,
    } = &observed.database.spec.storage;
    let Some(gib) = size.gib() else { return Some(InvalidSpec::SizeForm(size.clone())) };
    if !VOLUME_TYPES.contains(&volume_type.as_str()) {
        return Some(InvalidSpec::VolumeType(volume_type.clone()));
    }
    if throughput.is_some() && volume_type != "gp3" {
        return Some(InvalidSpec::ThroughputNotAllowed);
    }
    if iops.is_some() && ["gp2", "st1", "sc1", "standard"].contains(&volume_type.as_str()) {
        return Some(InvalidSpec::IopsNotAllowed(volume_type.clone()));
    }
    if iops.is_none() && ["io1", "io2"].contains(&volume_type.as_str()) {
        return Some(InvalidSpec::IopsMissing(volume_type.clone()));
    }
    if let Some(policy) = auto_grow.as_ref().filter(|policy| policy.max_size.gib().is_none()) {
        return Some(InvalidSpec::AutoGrowMaximum(policy.max_size.clone()));
    }
    let made = &observed.volume.ours()?.spec;
    if made.size.gib().is_some_and(|made| gib < made) {
        return Some(InvalidSpec::Shrink { size: size.clone(), made: made.size.clone() });
    }
    (*file_system != made.file_system).then(|| InvalidSpec::FileSystem(made.file_system.as_str()))
}

fn placement(observed: &Observed) -> Option<InvalidSpec> {
    let spec = &observed.database.spec;
    if spec.instance_types.is_empty() {
        return Some(InvalidSpec::NoInstanceTypes);
    }
    let zone = observed.database.status.as_ref().and_then(|status| status.zone.as_ref())?;
    (!spec.zones.is_empty() && !spec.zones.contains(zone)).then(|| InvalidSpec::ZoneExcluded(zone.clone()))
}

/// The API server would refuse the NetworkPolicy, and with it all that follows.
fn access(observed: &Observed) -> Option<InvalidSpec> {
    let Access { from, cidrs, password_generation: _ } = &observed.database.spec.access;
    if let Some(cidr) = cidrs.iter().find(|cidr| !is_cidr(cidr)) {
        return Some(InvalidSpec::AccessCidr(cidr.clone()));
    }
    let peers = from.iter().flatten();
    let selectors = peers.flat_map(|peer| [&peer.namespace_selector, &peer.pod_selector]).flatten();
    selectors.into_iter().any(|selector| !is_selector(selector)).then_some(InvalidSpec::AccessSelector)
}

/// What the engine has no TLS for, or not as requested.
fn tls(observed: &Observed) -> Option<TlsRefusal> {
    let spec = &observed.database.spec;
    let tls = spec.tls.as_ref()?;
    if spec.adopt.is_some() {
        return Some(TlsRefusal::Adopted);
    }
    match spec.engine.kind {
        EngineType::Questdb => Some(TlsRefusal::Questdb),
        EngineType::Custom => tls.required.then_some(TlsRefusal::CustomRequired),
        EngineType::Postgresql => None,
    }
}

/// What keeps the engine from archiving its write-ahead log. A server whose wal_level is minimal does not
/// start with an archive (PostgreSQL documentation, "wal_level").
fn wal_archive(observed: &Observed) -> Option<WalArchiveRefusal> {
    let spec = &observed.database.spec;
    let Some(archive) = &spec.wal_archive else {
        let is_recovered = unserved(observed).is_some_and(|restored| restored.recovery.is_some());
        return is_recovered.then_some(WalArchiveRefusal::Recovering);
    };
    if !is_bucket(&archive.destination) || build::archive_port(archive).is_none() {
        return Some(WalArchiveRefusal::Form);
    }
    if spec.engine.kind != EngineType::Postgresql {
        return Some(WalArchiveRefusal::Engine);
    }
    if spec.adopt.is_some() {
        return Some(WalArchiveRefusal::Adopted);
    }
    let mut levels = spec.config.iter().filter(|(key, _)| key.eq_ignore_ascii_case("wal_level"));
    levels.any(|(_, value)| value.0.eq_ignore_ascii_case("minimal")).then_some(WalArchiveRefusal::WalLevel)
}

fn is_bucket(destination: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"._=/-".contains(&byte);
    let path = destination.strip_prefix("s3://").unwrap_or_default();
    path.bytes().all(is_known) && path.split('/').all(|part| !part.is_empty())
}

fn is_cidr(text: &str) -> bool {
    let Some((address, prefix)) = text.split_once('/') else { return false };
    let longest = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    prefix.parse::<u8>().is_ok_and(|prefix| prefix <= longest)
}

fn is_selector(selector: &LabelSelector) -> bool {
    let are_labels =
        selector.match_labels.iter().flatten().all(|(key, value)| is_key(key) && is_value(value));
    let is_requirement = |it: &LabelSelectorRequirement| {
        let values = it.values.as_deref().unwrap_or_default();
        let has_its_values = match it.operator.as_str() {
            "In" | "NotIn" => !values.is_empty(),
            "Exists" | "DoesNotExist" => values.is_empty(),
            _ => false,
        };
        has_its_values && is_key(&it.key) && values.iter().all(|value| is_value(value))
    };
    are_labels && selector.match_expressions.iter().flatten().all(is_requirement)
}

/// The key of a label: a name, and a domain before it if need be.
fn is_key(key: &str) -> bool {
    let (domain, name) = key.split_once('/').unwrap_or(("domain", key));
    !name.is_empty() && is_value(name) && !domain.is_empty() && domain.len() <= 253
}

/// The value of a label (Kubernetes docs, "Labels and Selectors").
fn is_value(text: &str) -> bool {
    let is_end = |end: Option<char>| end.is_none_or(|end| end.is_ascii_alphanumeric());
    text.len() <= 63
        && is_end(text.chars().next())
        && is_end(text.chars().last())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn resources(observed: &Observed) -> Option<InvalidSpec> {
    let Resources { requests, limits } = observed.database.spec.resources.as_ref()?;
    let wrong = |field: &'static str, asked: &BTreeMap<String, ResourceQuantity>| {
        let (name, quantity) = asked.iter().find(|(_, quantity)| !is_quantity(&quantity.0))?;
        Some(InvalidSpec::Quantity { field, name: name.clone(), quantity: quantity.0.clone() })
    };
    wrong("requests", requests).or_else(|| wrong("limits", limits))
}

/// A number with a binary or decimal suffix or an exponent (Kubernetes' `resource.Quantity`).
fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let is_number = number.bytes().any(|b| b.is_ascii_digit()) && number.matches('.').count() <= 1;
    let is_exponent = |text: &str| {
        let power =
            text.strip_prefix(['e', 'E']).map(|power| power.strip_prefix(['+', '-']).unwrap_or(power));
        power.is_some_and(|power| !power.is_empty() && power.bytes().all(|b| b.is_ascii_digit()))
    };
    let suffixes = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    is_number && (suffixes.contains(&suffix) || is_exponent(suffix))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_kubernetes_refuses_in_a_network_policy_is_found_before() {
        for (cidr, is_good) in [
            ("10.0.0.0/8", true),
            ("fd00::/64", true),
            ("10.0.0.0", false),
            ("10.0.0.0/33", false),
            ("300.0.0.0/8", false),
        ] {
            assert_eq!(is_cidr(cidr), is_good, "{cidr}");
        }
        for (selector, is_good) in [
            (json!({}), true),
            (json!({"matchLabels": {"example.com/app": "web", "tier": ""}}), true),
            (json!({"matchLabels": {"": "web"}}), false),
            (json!({"matchLabels": {"app": "two words"}}), false),
            (json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}), true),
            (json!({"matchExpressions": [{"key": "app", "operator": "In"}]}), false),
            (json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), true),
            (json!({"matchExpressions": [{"key": "app", "operator": "Like", "values": ["a"]}]}), false),
        ] {
            let parsed = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(is_selector(&parsed), is_good, "{selector}");
        }
    }

    #[test]
    fn quantities_are_what_kubernetes_takes_for_them() {
        for text in ["2", "0.5", "500m", "4Gi", "1e3", "1E-3", "-1", ".5", "5."] {
            assert!(is_quantity(text), "{text}");
        }
        for text in ["", "lots", "4 GB", "4GiB", "1.2.3", "e3", "1e", "."] {
            assert!(!is_quantity(text), "{text}");
        }
    }
}
