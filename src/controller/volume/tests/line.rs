//! How the tables write a plan of a Volume: as one line.

use kube::Resource;
use serde::Serialize;

use super::adopted::tags;
use super::leaving::{BY_POLICY, kept};
use super::*;
use crate::cloud::ModifyVolumeRequest;
use crate::controller::tests::plan_line::{PlanLine, otherwise};
use crate::controller::volume::adopted::Change;

/// A plan that is made at this moment of this world in one line: how far the Volume is, unless it is as
/// wanted, then the actions, then what is waited for. An object of Kubernetes stands there as it is in the
/// world, a request, and the record of a volume that is retained by its policy, as the fixtures make it; what
/// is otherwise follows in braces.
pub(super) fn line(observed: &Observed, now: Timestamp, plan: &Plan) -> String {
    let word = |action: &Action| word(observed, now, action);
    let waiting = plan.waiting.as_ref().map(|waiting| (waiting.reason(), waiting.is_stalled()));
    let shown = PlanLine {
        pending: plan.interest != VolumeInterest::Settled,
        reads: plan.look_up.as_ref().map(ToString::to_string),
        again: plan.requeue,
        ..PlanLine::of(plan.actions.iter().map(word).collect(), waiting)
    };
    match plan.stage {
        Stage::AsWanted => shown.text(),
        Stage::Nothing | Stage::Created | Stage::Bound => format!("{:?}: {}", plan.stage, shown.text()),
    }
}

fn word(observed: &Observed, now: Timestamp, action: &Action) -> String {
    let (record_of_world, claim_of_world) = (observed.persistent_volume.as_ref(), observed.claim.as_ref());
    match action {
        Action::AddFinalizer => "add finalizer".to_owned(),
        Action::Create(creation) => {
            let number = creation.attempt.number;
            format!("create attempt {number}{}", otherwise(&launch(number, now), creation))
        }
        Action::Resend => "create again".to_owned(),
        Action::Adopt(id, put_on) => format!("adopt {id}{}", otherwise(&tags(), put_on)),
        Action::Retag(id, put_on) => format!("tag {id}{}", otherwise(&tags(), put_on)),
        Action::Untag(id, gone) => format!("untag {id}{}", otherwise(&tags(), gone)),
        Action::RecordVolume(id) => format!("record {id}"),
        Action::RecordSnapshot(id) => format!("record {id}"),
        Action::RecordAdopted(change) => changed("change", record_of_world, change),
        Action::GiveBackRecord(change) => changed("give back", record_of_world, change),
        Action::ReleaseRecord(released) => object("release", observed.record.as_ref(), released),
        Action::CreatePersistentVolume(made) => object("create", Some(&record()), made),
        Action::ReopenPersistentVolume(reopened) => object("reopen", record_of_world, reopened),
        Action::MarkRetained(marked) => object("retain", Some(&kept(BY_POLICY)), marked),
        Action::DeletePersistentVolume(deleted) => {
            let is_it = |record: &&PersistentVolume| record.metadata.name == deleted.metadata.name;
            object("delete", record_of_world.filter(is_it).or(observed.record.as_ref()), deleted)
        }
        Action::OwnClaim(change) => changed("own", claim_of_world, change),
        Action::DisownClaim(change) => changed("disown", claim_of_world, change),
        Action::CreateClaim(made) => {
            let fixture = build::claim(&volume(None), &Size("100Gi".to_owned()), "freehold");
            object("create", Some(&fixture), made)
        }
        Action::GrowClaim(grown) => object("grow", claim_of_world, grown),
        Action::FreeClaim(freed) => object("free", claim_of_world, freed),
        Action::DeleteClaim(deleted) => object("delete", claim_of_world, deleted),
        Action::Modify(modify) => modification(now, modify),
        Action::Snapshot(id, attempt, contents) => {
            let of_class = BTreeMap::from([("team".to_owned(), "platform".to_owned())]);
            let decided = otherwise(&Attempt::new(attempt.number, Time(now)), attempt);
            format!("snapshot {id}, attempt {}{decided}{}", attempt.number, otherwise(&of_class, contents))
        }
        Action::DeleteVolume(id) => format!("delete {id}"),
        Action::NoteDeleted => "note deleted".to_owned(),
        Action::RemoveFinalizer => "remove finalizer".to_owned(),
    }
}

/// What is done to a PersistentVolume or a claim, which is expected to be this one.
fn object<K>(verb: &str, expected: Option<&K>, object: &K) -> String
where
    K: Resource<DynamicType = ()> + Serialize + PartialEq,
{
    let expected = expected.expect("an object that is changed is there");
    let kind = K::kind(&()).replace("PersistentVolumeClaim", "claim");
    format!("{verb} {kind} {}{}", object.name_any(), otherwise(expected, object))
}

/// The same with what becomes of it. It was read as it is in the world.
fn changed<K>(verb: &str, in_world: Option<&K>, change: &Change<K>) -> String
where
    K: Resource<DynamicType = ()> + Serialize + PartialEq,
{
    format!("{}{}", object(verb, in_world, &change.from), otherwise(&change.from, &change.to))
}

fn modification(now: Timestamp, modify: &Modify) -> String {
    let Modify { record, request, replaces_last } = modify;
    let ModifyVolumeRequest { id, size, volume_type, iops, throughput } = request;
    let expected = ModificationRecord {
        at: Time(now),
        size: *size,
        volume_type: volume_type.clone(),
        iops: *iops,
        throughput: *throughput,
    };
    let number = |number: Option<i32>| number.map_or_else(|| "its".to_owned(), |number| number.to_string());
    let (iops, throughput) = (number(*iops), number(*throughput));
    let instead = if *replaces_last { " instead of the last" } else { "" };
    let record = otherwise(&expected, record);
    format!("modify {id} to {size} GiB {volume_type}, {iops} IOPS, {throughput} MiB/s{instead}{record}")
}
