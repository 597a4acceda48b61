//! Pods that were started from what was changed outside Freehold: known by their revisions and their starts,
//! and replaced when they come back right.

use pretty_assertions::assert_eq;

use super::*;

#[test]
fn a_pod_of_a_template_that_freehold_has_not_applied_is_replaced_once_it_comes_back_right() {
    for (of_pod, of_set, applied, expected) in [
        ("1", "1", vec!["1"], "[] as wanted"),
        // The operator, or the API server, was upgraded since the pod was started.
        ("1", "2", vec!["2", "1"], "[] as wanted"),
        // The first pass that sees the revision of what was just applied.
        ("2", "2", vec!["1"], "[] as wanted"),
        ("1", "1", vec![], "[] as wanted"),
        (
            "x",
            "1",
            vec!["1"],
            "[replace orders-0 pod-uid: the pod was started from a template that was changed outside \
             Freehold] Altered",
        ),
    ] {
        assert_eq!(planned(|it| revisions(it, of_pod, of_set, &applied)), expected, "{of_pod} {of_set}");
    }

    let mut restored_now = settled();
    revisions(&mut restored_now, "x", "1", &["1"]);
    restored(&mut restored_now, Occurrence::StatefulSetAltered, 1, 59);
    let plan = plan(&restored_now, now());
    assert_eq!(line(&plan), "[] Altered");
    assert!(plan.requeue.is_some());
    assert_eq!(
        altered(&restored_now).unwrap(),
        "pod orders-0 does not run what Freehold applied, and is replaced: the pod was started from a \
         template that was changed outside Freehold"
    );

    let still_altered = planned(|it| {
        revisions(it, "x", "x", &["1"]);
        alter_set(it);
    });
    assert_eq!(still_altered, STATEFUL_SET.replace("as wanted", "Altered"));
}

#[test]
fn an_engine_that_was_started_while_its_files_were_altered_is_restarted_once_they_stay_as_applied() {
    for (pod, restarts, is_altered) in [("pod-uid", 0, false), ("pod-uid", 1, true), ("earlier-uid", 0, true)]
    {
        let mut world = settled();
        ran(&mut world, pod, restarts);
        assert_eq!(line(&plan(&world, now())), "[] as wanted", "{pod} {restarts}");
        alter_files(&mut world);
        let row = CONFIG_MAP.replace("as wanted", if is_altered { "Altered" } else { "as wanted" });
        assert_eq!(line(&plan(&world, now())), row, "{pod} {restarts}");
        assert_eq!(after(&world, Answers::default()).applied.unwrap().altered_start.is_some(), is_altered);
    }
    let mut starting = settled();
    starting.pod.as_mut().unwrap().status = None;
    alter_files(&mut starting);
    let applied = after(&starting, Answers::default()).applied.unwrap();
    let start = applied.altered_start.clone().unwrap();
    assert_eq!((start.pod_uid.as_str(), start.restarts), ("pod-uid", 0), "it may be reading them");

    let mut started = settled();
    ran(&mut started, "pod-uid", 0);
    known(&mut started).altered_start = Some(start.clone());
    restored(&mut started, Occurrence::ConfigMapAltered, 1, 59);
    let early = plan(&started, now());
    assert_eq!(line(&early), "[] Altered");
    assert!(early.requeue.is_some());
    status(&mut started).history.clear();
    assert_eq!(
        line(&plan(&started, now())),
        "[replace orders-0 pod-uid: the engine was started while its ConfigMap was changed outside Freehold] \
         Altered"
    );
    started.pod.as_mut().unwrap().metadata.uid = Some("next-uid".to_owned());
    assert_eq!(line(&plan(&started, now())), "[] as wanted");
    assert_eq!(after(&started, Answers::default()).applied.unwrap().altered_start, None);
}

#[test]
fn the_revisions_of_template_and_pod_are_recorded_and_those_of_others_are_not() {
    for (of_pod, of_set, before, expected) in [
        ("1", "1", vec![], vec!["1"]),
        // The pod of an operator that recorded none.
        ("1", "2", vec![], vec!["2", "1"]),
        ("1", "2", vec!["1"], vec!["2", "1"]),
        ("2", "2", vec!["2", "1"], vec!["2"]),
        ("x", "1", vec!["1"], vec!["1"]),
    ] {
        let mut world = settled();
        revisions(&mut world, of_pod, of_set, &before);
        let applied = after(&world, Answers::default()).applied.unwrap();
        assert_eq!(applied.revisions, expected, "{of_pod} {of_set} {before:?}");
    }
    let mut altered = settled();
    revisions(&mut altered, "1", "x", &["1"]);
    alter_set(&mut altered);
    assert_eq!(after(&altered, Answers::default()).applied.unwrap().revisions, ["1"]);
}
