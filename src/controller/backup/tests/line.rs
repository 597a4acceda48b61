//! How the tables write a plan of a Backup: as one line.

use super::*;
use crate::controller::tests::golden::variant;
use crate::controller::tests::plan_line::{PlanLine, otherwise};

/// A plan that is made at this moment in one line: its actions, then what it waits for by its own name,
/// since several waits have one reason, or how the backup ends. A request stands there as the fixtures make
/// it; what is otherwise follows in braces.
pub(super) fn line(now: Timestamp, plan: &Plan) -> String {
    let word = |action: &Action| word(now, action);
    let ends = match plan.verdict {
        None => None,
        Some(Verdict::Complete(consistency)) => Some(format!("complete: {}", consistency.as_str())),
        Some(Verdict::Failed(fault)) => Some(format!("failed: {fault:?}")),
    };
    let waits = plan.waiting.as_ref().map(|waiting| (variant(waiting), waiting.is_stalled()));
    assert!(waits.is_none() || ends.is_none(), "{plan:?}");
    let missing = if plan.is_missing { ", missing" } else { "" };
    let shown = PlanLine {
        waiting: waits.or_else(|| ends.map(|ends| (ends, false))),
        pending: plan.is_pending,
        reads: plan.look_up.as_ref().map(ToString::to_string),
        again: plan.requeue,
        ..PlanLine::of(plan.actions.iter().map(word).collect(), None)
    };
    format!("{}{missing}", shown.text())
}

fn word(now: Timestamp, action: &Action) -> String {
    let seconds = |time: &Timestamp| time.as_second() - at(0).as_second();
    match action {
        Action::AddFinalizer => "add finalizer".to_owned(),
        Action::Checkpoint { pod_uid, engine_time } => {
            format!("begin checkpoint of {pod_uid} after {} s", seconds(engine_time))
        }
        Action::NoteConsistent => "note consistent".to_owned(),
        Action::Release(began) => format!("release checkpoint of {} s", seconds(began)),
        Action::NoteReleased => "note released".to_owned(),
        Action::Create(request, of) => {
            let number = request.attempt.number;
            let expected = creation(number, now.as_second() - at(0).as_second(), request.with_checkpoint);
            let checkpoint = if request.with_checkpoint { "with" } else { "without" };
            let image = source().image.filter(|_| request.with_checkpoint);
            let differs = otherwise(&expected, request) + &otherwise(&BackupSource { image, ..source() }, of);
            format!("snapshot attempt {number} {checkpoint} checkpoint{differs}")
        }
        Action::RecordSnapshot(id) => format!("record {id}"),
        Action::Tag(id, consistency) => format!("tag {id} {}", consistency.as_str()),
        Action::PutPolicyBack => "put policy back".to_owned(),
        Action::DeleteSnapshot(id) => format!("delete {id}"),
        Action::RemoveFinalizer => "remove finalizer".to_owned(),
    }
}
