//! A world in plain values: a database that is created, moved to another machine and deleted.

use std::collections::BTreeMap;
use std::sync::Arc;

use ec2sim::{AttachmentState, Fate, InstanceState, JournalEntry, Phase, Transition, VolumeState};
use freehold::cloud::identity::{self, Kind};
use freehold_rig::{Change, Verb, Write};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::properties::facts::uid;
use crate::properties::record::Record;

const OPERATOR: &str = "operator-1";
const NODES: &str = "nodes.freehold.dev";
const VOLUMES: &str = "volumes.freehold.dev";
const DATABASES: &str = "databases.freehold.dev";

/// This many seconds after the beginning.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

/// A record that is being written.
pub struct World {
    /// The record.
    pub record: Record,
}

impl World {
    /// The record, in the order of time.
    pub fn sorted(mut self) -> Record {
        self.record.changes.sort_by_key(|it| it.at);
        self.record.calls.sort_by_key(|it| it.time);
        self.record.transitions.sort_by_key(|it| it.at);
        self.record.writes.sort_by_key(|it| it.at);
        self.record.sends.sort_by_key(|(at, _)| *at);
        for (seq, entry) in (1..).zip(&mut self.record.calls) {
            entry.seq = seq;
        }
        self.record
    }

    /// An object is created or changed.
    pub fn change(
        &mut self,
        seconds: i64,
        caller: &str,
        resource: &str,
        of: &str,
        edit: impl Fn(&mut Value),
    ) {
        let old = self.object(of, seconds);
        let mut new = old.clone().unwrap_or_else(|| json!({"metadata": {"uid": of}}));
        edit(&mut new);
        self.note(seconds, caller, resource, old, Some(new));
    }

    /// An object as it is at a moment.
    fn object(&self, of: &str, seconds: i64) -> Option<Value> {
        let is_it = |it: &&Change| uid(it) == Some(of) && it.at <= at(seconds);
        let last = self.record.changes.iter().filter(is_it).max_by_key(|it| it.at)?;
        last.new.as_deref().cloned()
    }

    fn note(&mut self, seconds: i64, caller: &str, resource: &str, old: Option<Value>, new: Option<Value>) {
        let (old, new) = (old.map(Arc::new), new.map(Arc::new));
        let (caller, resource) = (caller.to_owned(), resource.to_owned());
        self.record.changes.push(Change { at: at(seconds), caller, resource, old, new });
    }

    /// The finalizer is taken off an object that is being deleted: the object ends.
    fn release(&mut self, seconds: i64, resource: &str, uid: &str) {
        let old = self.object(uid, seconds);
        self.note(seconds, OPERATOR, resource, old, None);
    }

    /// An object is otherwise from the first of these seconds until before the second.
    pub fn edit(&mut self, of: &str, from: i64, until: i64, edit: impl Fn(&mut Value)) {
        for change in self.record.changes.iter_mut().filter(|it| uid(it) == Some(of)) {
            let seconds = change.at.as_second();
            let edited = |object: &Option<Arc<Value>>| {
                let mut object = object.as_deref().cloned()?;
                edit(&mut object);
                Some(Arc::new(object))
            };
            if from <= seconds && seconds < until {
                change.new = edited(&change.new);
            }
            if from < seconds && seconds <= until {
                change.old = edited(&change.old);
            }
        }
    }

    /// A resource is in this state from now on; none: it is gone.
    pub fn phase(&mut self, seconds: i64, id: &str, after: Option<Phase>, tags: &[(&str, &str)]) {
        let before = self.record.transitions.iter().rfind(|it| it.id == id).and_then(|it| it.after.clone());
        let (at, id) = (at(seconds), id.to_owned());
        self.record.transitions.push(Transition { at, id, before, after, tags: tagged(tags) });
    }

    /// A resource gets into a state only at this moment.
    pub fn later(&mut self, id: &str, phase: &Phase, seconds: i64) {
        let is_it = |it: &&mut Transition| it.id == id && it.after.as_ref() == Some(phase);
        self.record.transitions.iter_mut().find(is_it).unwrap().at = at(seconds);
    }

    /// A resource is gone only at this moment.
    pub fn later_gone(&mut self, id: &str, seconds: i64) {
        let is_it = |it: &&mut Transition| it.id == id && it.after.is_none();
        self.record.transitions.iter_mut().find(is_it).unwrap().at = at(seconds);
    }

    /// A call to EC2.
    pub fn call(&mut self, seconds: i64, action: &str, fate: Fate, ids: &[&str], tags: &[(&str, &str)]) {
        self.record.calls.push(JournalEntry {
            seq: 0,
            time: at(seconds),
            caller: "the-operator".to_owned(),
            action: action.to_owned(),
            resources: ids.iter().map(|id| (*id).to_owned()).collect(),
            tags: tagged(tags),
            token: None,
            params_hash: String::new(),
            dry_run: false,
            answer: "ok".to_owned(),
            fate,
            faults: Vec::new(),
            late_of: None,
            parameters: tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        });
    }

    /// The call that there is at this moment.
    pub fn call_at(&mut self, seconds: i64, action: &str) -> &mut JournalEntry {
        let is_it = |it: &&mut JournalEntry| it.time == at(seconds) && it.action == action;
        self.record.calls.iter_mut().find(is_it).unwrap()
    }

    /// A creating call of an attempt, as its intent says.
    pub fn create(&mut self, seconds: i64, uid: &str, attempt: i32, fate: Fate, ids: &[&str]) {
        let action = if uid == "v" { "CreateVolume" } else { "RunInstances" };
        self.call(seconds, action, fate, ids, &[]);
        let intent = intent(uid, attempt);
        let (names, kind): (&[(&str, &str)], _) = if uid == "v" {
            (&[("AvailabilityZone", "zone"), ("VolumeType", "type")], Kind::Volume)
        } else {
            (
                &[("InstanceType", "instanceType"), ("SubnetId", "subnetID"), ("ImageId", "imageID")],
                Kind::Node,
            )
        };
        let entry = self.record.calls.last_mut().unwrap();
        entry.token = Some(identity::token("c", kind, uid, attempt).0);
        entry.tags = serde_json::from_value(intent["tags"].clone()).unwrap();
        let text = |field: &str| intent[field].as_str().unwrap().to_owned();
        entry.parameters = names.iter().map(|(name, field)| ((*name).to_owned(), text(field))).collect();
    }

    /// An operator sends something that may change something.
    pub fn sends(&mut self, seconds: i64, operator: &str) {
        self.record.sends.push((at(seconds), operator.to_owned()));
    }

    /// A write of the operator.
    pub fn write(&mut self, seconds: i64, verb: Verb, resource: &str, name: &str, body: &Value) {
        self.record.writes.push(Write {
            at: at(seconds),
            caller: OPERATOR.to_owned(),
            verb,
            resource: resource.to_owned(),
            namespace: "team-a".to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
            content_type: "application/merge-patch+json".to_owned(),
            manager: "freehold".to_owned(),
            body: body.clone(),
            code: 200,
            before: 1,
            after: 2,
        });
    }

    /// The intent of an attempt is written.
    pub fn intent(&mut self, seconds: i64, uid: &str, attempt: i32) {
        let resource = if uid == "v" { VOLUMES } else { NODES };
        self.change(seconds, OPERATOR, resource, uid, |it| it["status"]["creation"] = intent(uid, attempt));
    }

    /// A Node of the database is created up to its intent, a second for each step.
    pub fn node(&mut self, seconds: i64, uid: &str, name: &str) {
        self.child(seconds, NODES, uid, name);
    }

    fn child(&mut self, seconds: i64, resource: &str, uid: &str, name: &str) {
        self.change(seconds, OPERATOR, resource, uid, |it| {
            it["metadata"]["name"] = json!(name);
            it["metadata"]["ownerReferences"] = json!([{"uid": "d", "controller": true}]);
        });
        self.change(seconds + 1, OPERATOR, resource, uid, |it| {
            it["metadata"]["finalizers"] = json!(["freehold.dev/finalizer"]);
        });
        self.intent(seconds + 2, uid, 1);
    }

    fn delete(&mut self, seconds: i64, caller: &str, resource: &str, uid: &str) {
        self.change(seconds, caller, resource, uid, |it| it["metadata"]["deletionTimestamp"] = json!("now"));
        if caller == OPERATOR {
            self.write(seconds, Verb::Delete, resource, uid, &json!({"preconditions": {"uid": uid}}));
        }
    }

    fn instance(&mut self, seconds: i64, id: &str, uid: &str, state: InstanceState) {
        self.phase(seconds, id, Some(Phase::Instance(state)), &[("node-uid", uid)]);
    }

    fn volume(&mut self, seconds: i64, holder: Option<&str>) {
        let state = if holder.is_some() { VolumeState::InUse } else { VolumeState::Available };
        let holder = holder.map(|id| (id.to_owned(), AttachmentState::Attached));
        self.phase(seconds, "vol-1", Some(Phase::Volume(state, holder)), &[("volume-uid", "v")]);
    }
}

fn tagged(tags: &[(&str, &str)]) -> BTreeMap<String, String> {
    tags.iter().map(|(key, value)| (format!("freehold.dev/{key}"), (*value).to_owned())).collect()
}

fn intent(uid: &str, attempt: i32) -> Value {
    let (kind, tag) = if uid == "v" { (Kind::Volume, "volume-uid") } else { (Kind::Node, "node-uid") };
    let number = attempt.to_string();
    let common = json!({"attempt": attempt, "clientToken": identity::token("c", kind, uid, attempt).0,
        "tags": tagged(&[(tag, uid), ("attempt", &number)]), "zone": "us-east-1a"});
    let own = if uid == "v" {
        json!({"type": "gp3"})
    } else {
        json!({"subnetID": "subnet-1", "instanceType": "r7i.large", "imageID": "ami-1"})
    };
    let mut all = common.as_object().unwrap().clone();
    all.extend(own.as_object().unwrap().clone());
    Value::Object(all)
}

/// A world in which everything is as it should be.
pub fn good() -> World {
    let record = Record {
        cluster: "c".to_owned(),
        operator: "the-operator".to_owned(),
        writes: Vec::new(),
        changes: Vec::new(),
        calls: Vec::new(),
        transitions: Vec::new(),
        sends: Vec::new(),
        violations: Vec::new(),
    };
    let mut world = World { record };
    created(&mut world);
    moved(&mut world);
    deleted(&mut world);
    led(&mut world);
    world
}

/// One operator leads, and then the other.
fn led(world: &mut World) {
    for (since, leader, sends) in [(0, "operator-1", 4), (900, "operator-2", 905)] {
        world.change(since, leader, "leases.coordination.k8s.io", "l", |lease| {
            lease["metadata"]["namespace"] = json!("kube-system");
            lease["spec"]["holderIdentity"] = json!(leader);
        });
        world.sends(sends, leader);
    }
}

fn created(world: &mut World) {
    world.change(0, "person", DATABASES, "d", |it| {
        it["metadata"]["name"] = json!("orders");
        it["spec"]["deletionPolicy"] = json!("Delete");
    });
    world.change(1, OPERATOR, "secrets", "s", |it| {
        it["metadata"]["ownerReferences"] = json!([{"uid": "d", "controller": true}]);
        it["data"]["password"] = json!("c2VjcmV0LXdvcmQ=");
    });
    world.change(1, "statefulset-controller", "pods", "p", |it| it["metadata"]["name"] = json!("orders-0"));
    world.node(1, "n1", "node-1");
    world.child(1, VOLUMES, "v", "orders");
    world.create(4, "n1", 1, Fate::Committed, &["i-1"]);
    world.instance(4, "i-1", "n1", InstanceState::Pending);
    world.create(4, "v", 1, Fate::Committed, &["vol-1"]);
    world.volume(6, None);
    world.instance(12, "i-1", "n1", InstanceState::Running);
    world.volume(20, Some("i-1"));
    world.change(60, OPERATOR, NODES, "n1", |it| {
        it["status"]["instanceID"] = json!("i-1");
        it["status"]["coreNodeName"] = json!("ip-10-0-0-4.ec2.internal");
    });
}

/// The second machine's first send is lost on its way, and the next one is answered.
fn moved(world: &mut World) {
    world.change(100, OPERATOR, DATABASES, "d", |it| {
        it["status"]["replacement"] = json!({"from": "node-1", "to": "node-2"});
    });
    world.node(101, "n2", "node-2");
    world.create(105, "n2", 1, Fate::Blocked, &[]);
    world.create(110, "n2", 1, Fate::Committed, &["i-2"]);
    world.instance(110, "i-2", "n2", InstanceState::Pending);
    world.instance(120, "i-2", "n2", InstanceState::Running);
    world.delete(150, OPERATOR, NODES, "n1");
    world.volume(155, None);
    world.call(160, "TerminateInstances", Fate::Committed, &["i-1"], &[]);
    world.instance(160, "i-1", "n1", InstanceState::ShuttingDown);
    world.volume(165, Some("i-2"));
    world.instance(200, "i-1", "n1", InstanceState::Terminated);
    world.release(210, NODES, "n1");
    world.change(220, OPERATOR, DATABASES, "d", |it| it["status"]["replacement"] = json!(null));
}

fn deleted(world: &mut World) {
    world.delete(1000, "person", DATABASES, "d");
    world.delete(1001, OPERATOR, NODES, "n2");
    world.delete(1001, OPERATOR, VOLUMES, "v");
    world.volume(1040, None);
    world.call(1050, "TerminateInstances", Fate::Committed, &["i-2"], &[]);
    world.instance(1050, "i-2", "n2", InstanceState::ShuttingDown);
    world.instance(1100, "i-2", "n2", InstanceState::Terminated);
    world.release(1110, NODES, "n2");
    world.call(1120, "DeleteVolume", Fate::Committed, &["vol-1"], &[]);
    world.phase(1130, "vol-1", None, &[]);
    world.release(1140, VOLUMES, "v");
    world.release(1150, DATABASES, "d");
}
