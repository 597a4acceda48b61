//! How a verification ends: with a result, or without one.

use pretty_assertions::assert_eq;

use super::*;

#[test]
fn a_verification_fails_by_a_finding_a_stalled_database_or_its_time() {
    let suspended = || Finding::Suspended("trades".to_owned());
    let stalled = [("Ready", "False", ""), ("Stalled", "True", "the volume had 200 GiB")];
    let waiting = [("Ready", "False", "waiting for the machine")];
    let no_answer = || CheckView::Ended(Err("no answer".to_owned()));
    let rows = vec![
        ("05:10:00", with(&READY, ended(vec![suspended()])), "has suspended table trades"),
        ("05:10:00", with(&stalled, CheckView::NotBegun), "is stalled: the volume had 200 GiB"),
        (
            "06:00:00",
            with(&waiting, CheckView::NotBegun),
            "was not ready within 60 min: waiting for the machine",
        ),
        ("06:00:00", with(&READY, CheckView::Running), "has not ended after 60 min"),
        ("06:00:00", with(&READY, no_answer()), "has no result after 60 min: no answer"),
    ];
    for (time, observed, says) in rows {
        let plan = plan(&observed, at(&format!("2026-06-01T{time}Z")));
        assert_eq!(steps(&plan), ["record", "delete"], "{says}");
        let failed = recorded(&plan);
        assert_eq!(failed.result, VerificationResult::Failed);
        assert!(failed.message.as_ref().unwrap().contains(says), "{failed:?} says not {says:?}");
    }
    let never = plan(&underway(None), at("2026-06-01T06:00:00Z"));
    assert_eq!(steps(&never), ["record"], "no Database could be created");
    let failed = recorded(&never);
    let mut told = underway(None);
    told.backups[0].status.as_mut().unwrap().verification = Some(failed);
    assert!(plan(&told, at("2026-06-01T06:00:05Z")).ends_verification);
}

#[test]
fn a_custom_engine_that_is_ready_has_passed() {
    let mut observed = with(&READY, CheckView::NotBegun);
    observed.restored.as_mut().unwrap().spec.engine.kind = crate::api::database::EngineType::Custom;
    let passed = recorded(&plan(&observed, at("2026-06-01T05:10:00Z")));
    assert_eq!((passed.result, passed.tables), (VerificationResult::Passed, None));
}

#[test]
fn a_verification_ends_without_a_result_when_its_backup_or_its_database_is_taken_away() {
    let now = at("2026-06-01T05:10:00Z");
    let changed = |change: fn(&mut Database)| {
        let mut observed = with(&READY, ended(vec![]));
        change(observed.restored.as_mut().unwrap());
        observed
    };
    let deleted = || k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at("2026-06-01T05:09:00Z"));
    let mut going = with(&READY, ended(vec![]));
    going.backups[0].metadata.deletion_timestamp = Some(deleted());
    let mut anew = with(&READY, ended(vec![]));
    anew.backups[0].metadata.uid = Some("another".to_owned());
    let rows = vec![
        ("deleted by a person", underway(Some("restored-uid")), vec![], true),
        ("the label is removed", changed(|it| it.metadata.labels = None), vec![], true),
        ("another owner", changed(|it| it.metadata.owner_references = None), vec![], true),
        ("another Database", changed(|it| it.metadata.uid = Some("another".to_owned())), vec![], true),
        ("protected", changed(|it| it.spec.deletion_protection = true), vec![], true),
        (
            "the Backup is gone",
            Observed { backups: vec![], ..with(&READY, ended(vec![])) },
            vec!["delete"],
            false,
        ),
        ("the Backup is being deleted", going, vec!["delete"], false),
        ("another Backup of its name", anew, vec!["delete"], false),
        ("neither was created", Observed { backups: vec![], ..underway(None) }, vec![], true),
        ("nor can be", Observed { database: None, ..underway(None) }, vec![], true),
    ];
    for (name, observed, expected, ends) in rows {
        let plan = plan(&observed, now);
        assert_eq!((steps(&plan), plan.ends_verification), (expected, ends), "{name}");
    }
}
