//! How far EC2 has read a volume from its snapshot: whether that is asked for, and what the status says.
//! It decides nothing: a database is served from a volume that is being read. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::database::Initialization;
use crate::api::{Volume, VolumeId, VolumeStatus};
use crate::cloud::inventory::InitializationView;
use crate::time::{later, whole_second};

/// The steps of the progress, in per cent: a status that showed each per cent would be written a hundred
/// times, and would wake whoever watches it.
const STEP: i32 = 10;

/// How long after the creation of a Volume it is asked for: the largest volume (64 TiB) takes 8 days at the
/// lowest rate that can be requested, and an EC2 that never says it is not asked for ever.
const LONGEST: Duration = Duration::from_hours(14 * 24);

/// The EBS volume whose initialization is awaited, by the status that this pass writes.
pub fn awaited<'a>(volume: &Volume, status: &'a VolumeStatus, now: Timestamp) -> Option<&'a VolumeId> {
    let created = volume.metadata.creation_timestamp.as_ref()?;
    let is_awaited = volume.spec.snapshot_id.is_some()
        && volume.metadata.deletion_timestamp.is_none()
        && status.initialization.as_ref().is_none_or(|it| it.ended_at.is_none())
        && now < later(created.0, LONGEST);
    status.volume_id.as_ref().filter(|_| is_awaited)
}

/// What the status says, by EC2's last answer. It changes with each step and with the end, and not with what
/// changes by itself all the time; an estimate that has passed is replaced by the next one.
pub fn status(
    old: Option<Initialization>,
    view: Option<InitializationView>,
    now: Timestamp,
) -> Option<Initialization> {
    let Some(InitializationView { progress, expected_end }) = view else { return old };
    if old.as_ref().is_some_and(|old| old.ended_at.is_some()) {
        return old;
    }
    if progress >= 100 {
        let ended_at = Some(Time(whole_second(now)));
        return Some(Initialization { progress_percent: 100, expected_end: None, ended_at });
    }
    let step = progress.max(0) / STEP * STEP;
    let step = old.as_ref().map_or(step, |old| step.max(old.progress_percent));
    let still_holds = |old: &Initialization| {
        let is_ahead = old.expected_end.as_ref().is_some_and(|end| end.0 > now);
        old.progress_percent == step && (is_ahead || expected_end.is_none())
    };
    if old.as_ref().is_some_and(still_holds) {
        return old;
    }
    let expected_end = expected_end.map(|end| Time(whole_second(end)));
    Some(Initialization { progress_percent: step, expected_end, ended_at: None })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    #[expect(clippy::unnecessary_wraps, reason = "a table reads best with what it passes")]
    fn shown(progress_percent: i32, end: Option<i64>, ended: Option<i64>) -> Option<Initialization> {
        Some(Initialization {
            progress_percent,
            expected_end: end.map(|end| Time(at(end))),
            ended_at: ended.map(|end| Time(at(end))),
        })
    }

    #[expect(clippy::unnecessary_wraps, reason = "a table reads best with what it passes")]
    fn answer(progress: i32, end: Option<i64>) -> Option<InitializationView> {
        Some(InitializationView { progress, expected_end: end.map(at) })
    }

    #[test]
    fn the_status_changes_with_each_step_and_with_the_end_and_not_with_each_answer() {
        for (case, old, view, now, expected) in [
            ("nothing is known", None, None, 0, None),
            ("EC2 has not answered yet", shown(10, Some(90), None), None, 20, shown(10, Some(90), None)),
            ("the first answer", None, answer(0, Some(100)), 0, shown(0, Some(100), None)),
            ("the default rate: no estimate", None, answer(7, None), 0, shown(0, None, None)),
            ("the same step", shown(0, Some(100), None), answer(9, Some(130)), 10, shown(0, Some(100), None)),
            ("the same step, no estimate", shown(0, None, None), answer(9, None), 10, shown(0, None, None)),
            (
                "the next step",
                shown(0, Some(100), None),
                answer(19, Some(130)),
                20,
                shown(10, Some(130), None),
            ),
            (
                "an estimate at last",
                shown(0, None, None),
                answer(3, Some(130)),
                20,
                shown(0, Some(130), None),
            ),
            (
                "the estimate has passed",
                shown(90, Some(99), None),
                answer(95, Some(120)),
                100,
                shown(90, Some(120), None),
            ),
            (
                "it has passed, and no answer has come since",
                shown(90, Some(99), None),
                answer(95, Some(99)),
                100,
                shown(90, Some(99), None),
            ),
            ("an older answer", shown(50, None, None), answer(33, None), 20, shown(50, None, None)),
            ("the end", shown(90, Some(99), None), answer(100, Some(100)), 100, shown(100, None, Some(100))),
            ("restored at once", None, answer(100, None), 5, shown(100, None, Some(5))),
            ("after the end", shown(100, None, Some(5)), answer(100, None), 90, shown(100, None, Some(5))),
        ] {
            assert_eq!(status(old, view, at(now)), expected, "{case}");
        }
    }

    #[test]
    fn a_whole_restore_changes_the_status_eleven_times_at_most() {
        let mut old = None;
        let mut changes = 0;
        for second in 0..=1000 {
            let progress = i32::try_from(second / 10).unwrap();
            // The estimate is never the same twice.
            let new = status(old.clone(), answer(progress, Some(1100 + second % 7)), at(second));
            changes += usize::from(new != old);
            old = new;
        }
        assert_eq!((old, changes), (shown(100, None, Some(1000)), 11));
    }

    fn volume(spec: &Value, metadata: &Value, initialization: &Value) -> Volume {
        let mut volume = json!({
            "apiVersion": "freehold.dev/v1alpha1", "kind": "Volume",
            "metadata": {"name": "orders", "creationTimestamp": at(0).to_string()},
            "spec": {
                "nodeClassName": "default", "size": "100Gi", "type": "gp3", "fileSystem": "xfs",
                "zone": "us-east-1a", "deletionPolicy": "Retain", "snapshotID": "snap-1",
            },
            "status": {"volumeID": "vol-1", "initialization": initialization},
        });
        for (part, changes) in [("spec", spec), ("metadata", metadata)] {
            for (key, value) in changes.as_object().unwrap() {
                volume[part][key] = value.clone();
            }
        }
        serde_json::from_value(volume).unwrap()
    }

    #[test]
    fn the_initialization_of_a_volume_from_a_snapshot_is_awaited_until_it_has_ended() {
        let none = json!({});
        let deleted = json!({"deletionTimestamp": at(1).to_string()});
        let (half, ended) =
            (json!({"progressPercent": 50}), json!({"progressPercent": 100, "endedAt": at(9).to_string()}));
        let empty = json!({"snapshotID": null});
        for (case, volume, now, is_awaited) in [
            ("just created", volume(&none, &none, &Value::Null), 1, true),
            ("half", volume(&none, &none, &half), 1, true),
            ("ended", volume(&none, &none, &ended), 10, false),
            ("created empty", volume(&empty, &none, &Value::Null), 1, false),
            ("being deleted", volume(&none, &deleted, &half), 2, false),
            ("for longer than the largest takes", volume(&none, &none, &half), 15 * 24 * 3600, false),
        ] {
            let status = volume.status.clone().unwrap();
            assert_eq!(awaited(&volume, &status, at(now)).is_some(), is_awaited, "{case}");
        }
    }
}
