//! Checks of what the Database would be: its name, its NodeClass, and what it names. Pure.

use crate::adopt::choices::{secret, service};
use crate::adopt::engine::engine;
use crate::adopt::found::Found;
use crate::adopt::render;
use crate::adopt::wanted::Wanted;
use crate::command::finding::Finding;

pub(super) fn names(found: &Found, wanted: &Wanted) -> Vec<Finding> {
    let name = wanted.database();
    let object = format!("Database {}/{name}", wanted.stateful_set.namespace);
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let mut findings = Vec::new();
    if !(starts && name.len() <= 40 && name.bytes().all(is_plain) && !name.ends_with('-')) {
        let message =
            "the name must start with a letter, hold only a-z, 0-9 and '-', and have at most 40 characters";
        findings.push(Finding::blocker(&object, message).way_out("choose another with --database NAME"));
    }
    if let Some(there) = &found.database {
        let ours = render::database(found, wanted).and_then(|database| database.spec.adopt);
        if there.spec.adopt.is_some() && there.spec.adopt == ours {
            findings.push(Finding::note(
                object,
                "it is there already, with the same spec.adopt: it is not changed",
            ));
        } else {
            findings.push(
                Finding::blocker(
                    object,
                    "there is one of this name, which adopts something else, or nothing",
                )
                .way_out("choose another name with --database NAME, or delete the one that is there"),
            );
        }
    }
    findings
}

pub(super) fn class(found: &Found, wanted: &Wanted) -> Vec<Finding> {
    if found.node_class.is_some() {
        return Vec::new();
    }
    let message = "it is not there, or the cluster has no Freehold: the next machine is launched as it says";
    vec![
        Finding::blocker(format!("NodeClass {}", wanted.node_class), message)
            .way_out("create it (docs/install-eks.md), or name another with --node-class NAME"),
    ]
}

/// What the Database names and cannot be read from what was found.
pub(super) fn choices(found: &Found, wanted: &Wanted) -> Vec<Finding> {
    let mut findings = Vec::new();
    match engine(found, wanted) {
        Ok(engine) if engine.custom.is_some() => findings.push(Finding::warning(
            found.subject(),
            "it is adopted as an image of your own: spec.engine.type cannot change \
                later, and a new version is a new spec.engine.custom.image",
        )),
        Ok(_) => {}
        Err(finding) => findings.push(finding),
    }
    findings.extend(service(found, wanted).err());
    match secret(found, wanted) {
        Ok(None) => findings.push(Finding::note(
            found.subject(),
            "no Secret is named: Freehold creates none, and the credentials stay where they are",
        )),
        Ok(Some(_)) => {}
        Err(finding) => findings.push(finding),
    }
    findings
}
