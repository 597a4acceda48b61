//! What must hold at the end of every scenario, whatever happened in it, judged by EC2's journal and by what
//! went to the API server.

use crate::kit::env::Env as _;
use std::collections::{BTreeMap, BTreeSet};

use ec2sim::{Fate, InstanceState, JournalEntry, Simulator};
use freehold::api::{Node, Volume};
use freehold::cloud::identity::{self, Kind};
use kube::ResourceExt as _;

use super::tap::Seen;
use super::test_env::{OPERATOR, TestEnv};

/// The tag with the UID of the object that something belongs to.
const UID_TAGS: [(&str, Kind); 2] =
    [("freehold.dev/node-uid", Kind::Node), ("freehold.dev/volume-uid", Kind::Volume)];

/// What the rules judge.
pub struct Judged<'a> {
    /// The cluster's id in tags.
    pub cluster: &'a str,
    /// EC2.
    pub ec2: &'a Simulator,
    /// What the operator requested of the API server.
    pub seen: Vec<Seen>,
    /// Object UIDs whose deletion was asked for, with the last entry of EC2's journal at that time.
    pub deleted: &'a [(String, u64)],
    /// The Nodes that are there.
    pub nodes: Vec<Node>,
    /// The Volumes that are there.
    pub volumes: Vec<Volume>,
}

impl Judged<'_> {
    /// The operator's calls.
    fn calls(&self) -> Vec<JournalEntry> {
        self.ec2.journal().into_iter().filter(|entry| entry.caller == OPERATOR).collect()
    }
}

/// Fails with the first rule that was broken in a test environment.
pub async fn check(env: &TestEnv) {
    judge(&Judged {
        cluster: &env.name,
        ec2: env.ec2(),
        seen: env.tap.seen(),
        deleted: &env.deleted,
        nodes: env.list().await,
        volumes: env.list().await,
    });
}

/// Fails with the first rule that was broken.
pub fn judge(it: &Judged<'_>) {
    let calls = it.calls();
    foreign_calls(it, &calls);
    taken_over(it, &calls);
    for entry in
        calls.iter().filter(|entry| ["RunInstances", "CreateVolume"].contains(&entry.action.as_str()))
    {
        if entry.dry_run {
            continue;
        }
        creation(it, entry);
    }
    tags(it);
    one_machine_each(it, &calls);
    recorded_tokens(it, &calls);
}

/// What others do, or what doing means that tags were forgotten at creation.
fn foreign_calls(judged: &Judged<'_>, calls: &[JournalEntry]) {
    let never = ["AttachVolume", "DetachVolume"];
    let found: Vec<_> = calls.iter().filter(|entry| never.contains(&entry.action.as_str())).collect();
    assert!(found.is_empty(), "the operator never calls these: {found:?}");
    let untags = |entry: &&JournalEntry| {
        entry.action == "DeleteTags" && !entry.resources.iter().all(|id| may_be_adopted(judged, id))
    };
    let is_requested = |entry: &JournalEntry| {
        let releases = |seen: &Seen| seen.is_write() && seen.body.contains("\"release\":true");
        judged.seen.iter().any(|seen| seen.journal < entry.seq && seen.status < 300 && releases(seen))
    };
    let found: Vec<_> = calls.iter().filter(untags).filter(|entry| !is_requested(entry)).collect();
    assert!(found.is_empty(), "tags are taken off what ran before or is released: {found:?}");
}

/// The instances and volumes that were released: untagged by the operator.
fn released(judged: &Judged<'_>) -> BTreeSet<String> {
    let calls = judged.calls().into_iter().filter(|entry| entry.action == "DeleteTags" && !entry.dry_run);
    calls.flat_map(|entry| entry.resources).collect()
}

/// Whether a person allows the adoption of this instance or volume.
fn may_be_adopted(judged: &Judged<'_>, id: &str) -> bool {
    let instance = judged.ec2.instance(id).map(|view| view.tags);
    let tags = instance.or_else(|| judged.ec2.volume(id).map(|view| view.tags));
    tags.is_some_and(|tags| tags.contains_key("freehold.dev/adopt"))
}

/// Tags are put on later for two causes. A kept volume is taken over, or what ran before is adopted, which
/// its new owner announced before; or a snapshot that a Backup has recorded is tagged with what it is.
fn taken_over(judged: &Judged<'_>, calls: &[JournalEntry]) {
    let seen = &judged.seen;
    for entry in calls.iter().filter(|entry| entry.action == "CreateTags") {
        let [resource] = entry.resources.as_slice() else { panic!("not one resource: {entry:?}") };
        let field = match resource.split_once('-') {
            Some(("i", _)) => "\"instanceID\"",
            Some(("snap", _)) => "\"snapshotID\"",
            _ => "\"volumeID\"",
        };
        let is_of_backup = entry.tags.keys().eq(["freehold.dev/consistency"]);
        assert_eq!(field == "\"snapshotID\"", is_of_backup, "{entry:?}");
        let announced = seen.iter().any(|seen| {
            let says = ["\"status\"", field, resource.as_str()];
            seen.journal < entry.seq
                && seen.status < 300
                && seen.is_write()
                && says.iter().all(|part| seen.body.contains(part))
        });
        assert!(announced, "a take-over that nobody announced: {entry:?}");
    }
}

/// One creating call, sent, whatever became of it.
fn creation(judged: &Judged<'_>, entry: &JournalEntry) {
    let owner = UID_TAGS.iter().find_map(|(tag, kind)| Some((entry.tags.get(*tag)?, *kind)));
    let (uid, kind) = owner.unwrap_or_else(|| panic!("a creating call without its owner's tag: {entry:?}"));
    let attempt =
        entry.tags.get("freehold.dev/attempt").and_then(|attempt| attempt.parse().ok()).unwrap_or_default();
    let token = identity::token(judged.cluster, kind, uid, attempt).0;
    assert_eq!(entry.token.as_ref(), Some(&token), "the token is the identity's");
    assert_eq!(
        entry.tags.get("freehold.dev/cluster-id").map(String::as_str),
        Some(judged.cluster),
        "{entry:?}"
    );
    let before: Vec<&Seen> =
        judged.seen.iter().filter(|seen| seen.is_write() && seen.journal < entry.seq).collect();
    let wrote = |parts: &[&str]| {
        before.iter().position(|seen| seen.status < 300 && parts.iter().all(|part| seen.body.contains(part)))
    };
    let intent = wrote(&["\"creation\"", &token]);
    let finalizer = wrote(&["\"finalizers\"", "freehold.dev/", uid]);
    assert!(intent.is_some(), "the intent with token {token} was written before the call {entry:?}");
    assert!(finalizer.is_some() && finalizer < intent, "the finalizer of {uid} comes before the intent");
    let deleted = judged.deleted.iter().find(|(deleted, last)| deleted == uid && entry.seq > *last);
    assert!(deleted.is_none(), "nothing is created for an object that is being deleted: {entry:?}");
}

/// Everything that the operator made says whose it is: all but what was found and is adopted, and the disks
/// of those machines.
fn tags(judged: &Judged<'_>) {
    let machines = judged.ec2.instances().into_iter().map(|view| (view.id.clone(), view.id, view.tags));
    let of_machine = |view: ec2sim::VolumeView| {
        let machine = view.attachment.map(|held| held.instance_id).unwrap_or_default();
        (machine, view.id, view.tags)
    };
    let disks = judged.ec2.volumes().into_iter().map(of_machine);
    let found = |id: &str| {
        let machine = judged.ec2.instance(id);
        machine.is_some_and(|machine| !machine.tags.contains_key("freehold.dev/attempt"))
    };
    let released = released(judged);
    for (machine, id, tags) in machines.chain(disks) {
        if found(&machine) || may_be_adopted(judged, &id) || released.contains(&id) {
            continue;
        }
        let says = ["freehold.dev/cluster-id", "freehold.dev/database", "freehold.dev/attempt", "Name"];
        assert!(says.iter().all(|key| tags.contains_key(*key)), "{id} does not say whose it is: {tags:?}");
        assert!(UID_TAGS.iter().any(|(key, _)| tags.contains_key(*key)), "{id} has no owner: {tags:?}");
    }
}

/// At most one live instance for each Node, and a second one only after the first was released or lost.
fn one_machine_each(judged: &Judged<'_>, calls: &[JournalEntry]) {
    let mut live: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for instance in judged.ec2.instances() {
        if ![InstanceState::ShuttingDown, InstanceState::Terminated].contains(&instance.state)
            && let Some(uid) = instance.tags.get("freehold.dev/node-uid")
        {
            live.entry(uid.clone()).or_default().insert(instance.id);
        }
    }
    assert!(
        live.values().all(|instances| instances.len() == 1),
        "a Node has more than one instance: {live:?}"
    );

    let mut made: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut volumes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in calls.iter().filter(|entry| matches!(entry.fate, Fate::Committed | Fate::Lost)) {
        let of = |prefix: &str| {
            entry.resources.iter().filter(|id| id.starts_with(prefix)).cloned().collect::<BTreeSet<_>>()
        };
        match entry.action.as_str() {
            "RunInstances" => {
                made.entry(entry.tags["freehold.dev/node-uid"].clone()).or_default().extend(of("i-"));
            }
            "CreateVolume" => {
                volumes.entry(entry.tags["freehold.dev/volume-uid"].clone()).or_default().extend(of("vol-"));
            }
            _ => {}
        }
    }
    assert!(volumes.values().all(|ids| ids.len() == 1), "a Volume has more than one EBS volume: {volumes:?}");
    let ended = |id: &String| {
        judged.ec2.instance(id).is_none_or(|instance| {
            [InstanceState::ShuttingDown, InstanceState::Terminated].contains(&instance.state)
        })
    };
    for (uid, instances) in made {
        let open = instances.iter().filter(|id| !ended(id)).count();
        assert!(open <= 1, "Node {uid} has {open} of {instances:?}");
    }
}

/// What an object's status says of its creation is what EC2 was asked.
fn recorded_tokens(judged: &Judged<'_>, calls: &[JournalEntry]) {
    let of_nodes = judged.nodes.iter().filter_map(|node| {
        Some((node.name_any(), node.uid()?, node.status.as_ref()?.creation.as_ref()?.client_token.0.clone()))
    });
    let of_volumes = judged.volumes.iter().filter_map(|volume| {
        Some((
            volume.name_any(),
            volume.uid()?,
            volume.status.as_ref()?.creation.as_ref()?.client_token.0.clone(),
        ))
    });
    for (name, uid, token) in of_nodes.chain(of_volumes) {
        let last = calls
            .iter()
            .rev()
            .find(|entry| entry.token.is_some() && entry.tags.values().any(|value| *value == uid));
        if let Some(last) = last {
            assert_eq!(
                last.token.as_ref(),
                Some(&token),
                "{name}: EC2's last token is the one in its status; caller {OPERATOR}"
            );
        }
    }
}
