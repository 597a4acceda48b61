//! Each rule is seen to be broken, alone, by a small world: a good one in which one thing is otherwise.

mod world;

use ec2sim::{Fate, InstanceState, Phase};
use freehold_rig::Verb;
use serde_json::json;

use super::record::Record;
use super::{RULES, broken};
use world::{World, at, good};

/// A world in which one thing is otherwise.
type Otherwise = fn(&mut World);

/// Which rule is broken by what.
const WORLDS: [(&str, Otherwise); 24] = [
    ("a Node has at most one live instance", |it| {
        it.phase(30, "i-9", Some(Phase::Instance(InstanceState::Running)), &[("node-uid", "n1")]);
        it.phase(60, "i-9", Some(Phase::Instance(InstanceState::Terminated)), &[("node-uid", "n1")]);
    }),
    ("a second machine is launched only as the replacement that the status names", |it| {
        it.edit("d", 100, 220, |database| database["status"]["replacement"] = json!(null));
    }),
    ("a second machine is launched only as the replacement that the status names", |it| {
        it.edit("d", 100, 220, |database| database["status"]["replacement"]["to"] = json!("node-3"));
    }),
    ("an attempt makes one resource", |it| it.call_at(4, "RunInstances").resources.push("i-9".to_owned())),
    ("another attempt begins after the end of what the former made", |it| {
        it.intent(49, "n1", 2);
        it.create(50, "n1", 2, Fate::Refused, &[]);
    }),
    ("what is in doubt stays so until it cannot happen any more", |it| {
        it.node(300, "n3", "node-3");
        it.create(304, "n3", 1, Fate::Blocked, &[]);
        it.change(1000, "operator-1", "nodes.freehold.dev", "n3", |node| {
            node["metadata"]["finalizers"] = json!([]);
        });
    }),
    ("what is in doubt stays so until it cannot happen any more", |it| {
        it.node(300, "n3", "node-3");
        it.create(304, "n3", 1, Fate::Blocked, &[]);
        it.intent(999, "n3", 2);
        it.create(1000, "n3", 2, Fate::Refused, &[]);
    }),
    ("the finalizer is set before the first call", |it| {
        it.edit("n1", 0, 60, |node| node["metadata"]["finalizers"] = json!([]));
    }),
    ("the intent is written before the call", |it| {
        it.edit("n1", 0, 60, |node| node["status"] = json!(null));
    }),
    ("the intent is written before the call", |it| {
        it.call_at(4, "RunInstances").token = Some("of-its-own".to_owned());
    }),
    ("the intent is written before the call", |it| {
        it.call(1010, "CreateSnapshot", Fate::Committed, &["vol-1"], &[("volume-uid", "v")]);
    }),
    ("a call is the request that its intent says", |it| {
        it.call_at(4, "RunInstances").parameters.insert("InstanceType".to_owned(), "r7i.xlarge".to_owned());
    }),
    ("a call is the request that its intent says", |it| {
        it.call_at(4, "CreateVolume").parameters.insert("Iops".to_owned(), "16000".to_owned());
    }),
    ("a call is the request that its intent says", |it| {
        it.call_at(4, "RunInstances").tags.insert("team".to_owned(), "b".to_owned());
    }),
    ("the finalizer is removed when nothing is left", |it| {
        it.later("i-1", &Phase::Instance(InstanceState::Terminated), 215);
    }),
    ("a Volume ends when its EBS volume is gone or retained", |it| it.later_gone("vol-1", 1160)),
    ("an instance that joined is ended only when its Node is deleted or fenced", |it| {
        it.edit("n1", 150, 170, |node| node["metadata"]["deletionTimestamp"] = json!(null));
    }),
    ("what holds data is deleted only after its owner", |it| {
        it.edit("v", 1000, 1125, |volume| volume["metadata"]["deletionTimestamp"] = json!(null));
    }),
    ("what holds data is deleted only after its owner", |it| {
        it.change(500, "operator-1", "secrets", "s", |secret| {
            secret["metadata"]["deletionTimestamp"] = json!("now");
        });
    }),
    ("a volume is destroyed only as its policy says", |it| {
        it.edit("d", 0, 9999, |database| database["spec"]["deletionPolicy"] = json!("Retain"));
    }),
    ("a volume leaves its machine only when nothing uses it", |it| {
        it.record
            .violations
            .push((at(160), "vol-1 is detached from i-1 while orders-0 runs there".to_owned()));
    }),
    ("a deletion names the object's UID", |it| {
        it.write(150, Verb::Delete, "nodes.freehold.dev", "node-1", &json!({}));
    }),
    ("credentials change only by a rotation", |it| {
        it.change(500, "operator-1", "secrets", "s", |secret| secret["data"]["password"] = json!("b3RoZXI="));
    }),
    ("the operator keeps to its own fields and calls", |it| {
        it.change(500, "operator-1", "databases.freehold.dev", "d", |it| it["spec"]["paused"] = json!(true));
    }),
];

/// The rest of [`WORLDS`].
const MORE_WORLDS: [(&str, Otherwise); 10] = [
    ("a snapshot is deleted only with its Backup", |it| {
        it.call(500, "DeleteSnapshot", Fate::Committed, &["snap-1"], &[]);
    }),
    ("an operator sends only while it holds the Lease", |it| it.sends(899, "operator-2")),
    ("an operator sends only while it holds the Lease", |it| it.sends(901, "operator-1")),
    ("the operator keeps to its own fields and calls", |it| {
        it.change(500, "operator-1", "pods", "p", |pod| pod["status"]["phase"] = json!("Failed"));
    }),
    ("the operator keeps to its own fields and calls", |it| {
        it.call(500, "AttachVolume", Fate::Refused, &["vol-1", "i-2"], &[]);
    }),
    ("no secret leaves its Secret", |it| {
        it.write(500, Verb::Patch, "databases.freehold.dev", "orders", &json!({"status": "secret-word"}));
    }),
    ("no secret leaves its Secret", |it| {
        it.write(500, Verb::Patch, "pods", "orders-0", &json!({"args": ["c2VjcmV0LXdvcmQ="]}));
    }),
    ("no secret leaves its Secret", |it| {
        it.call(500, "CreateTags", Fate::Committed, &["vol-1"], &[("note", "secret-word")]);
    }),
    ("nothing is written again and again", |it| {
        for second in 500..601 {
            it.write(second, Verb::Patch, "databases.freehold.dev", "orders", &json!({}));
        }
    }),
    ("nothing is written again and again", |it| {
        for second in 500..601 {
            it.call(second, "ModifyVolume", Fate::Refused, &["vol-1"], &[]);
        }
    }),
];

fn broken_rules(record: &Record) -> Vec<(&'static str, String)> {
    broken(record).collect()
}

#[test]
fn a_good_world_breaks_no_rule() {
    let found = broken_rules(&good().sorted());
    assert!(found.is_empty(), "{found:?}");
}

/// EC2 makes nothing a second time for a token: what the first send made is all there is.
#[test]
fn a_repetition_whose_answer_is_lost_leaves_no_doubt_where_the_first_send_was_carried_out() {
    let mut world = good();
    world.create(5, "n1", 1, Fate::Blocked, &[]);
    let found = broken_rules(&world.sorted());
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn each_rule_is_broken_alone_by_a_world_that_breaks_it() {
    for (number, (rule, otherwise)) in WORLDS.iter().chain(&MORE_WORLDS).enumerate() {
        let mut world = good();
        otherwise(&mut world);
        let found = broken_rules(&world.sorted());
        let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [*rule], "world {number}: {found:?}");
    }
}

#[test]
fn each_rule_has_a_world_that_breaks_it() {
    let worlds = || WORLDS.iter().chain(&MORE_WORLDS);
    let without: Vec<&str> =
        RULES.iter().map(|(name, _)| *name).filter(|name| worlds().all(|(rule, _)| rule != name)).collect();
    assert!(without.is_empty(), "no world breaks {without:?}");
}
