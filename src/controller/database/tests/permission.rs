//! What a NodeClass permits: of a Database that is new, and of one that was created before.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::api::ConditionType;
use crate::cloud::inventory::TaggedVolume;
use crate::controller::conditions;
use crate::controller::database::observe::usage::{Held, NamespaceStorage, Requested};
use crate::controller::database::status::{Decided, status as status_of};
use crate::controller::pass::acted::Acted;

fn custom(image: &str) -> Value {
    json!({"engine": {"type": "custom", "custom": {"image": image, "port": 5555, "dataPath": "/data"}}})
}

/// The world as this class makes it: its engine's image, too.
pub(super) fn of_class(mut world: Observed, spec: Value) -> Observed {
    let class = class(spec);
    let engine = &world.database.spec.engine;
    world.profile = engine::profile_from(engine, &world.database.spec.config, Some(&class.spec.images));
    world.class = Some(class);
    world
}

fn without_class(world: Observed) -> Observed {
    Observed { class: None, ..world }
}

/// Whether the condition Ready is true, and what the condition NotPermitted says.
fn reported(world: &Observed) -> (bool, Option<String>) {
    let acted = Acted::new(world.database.clone());
    let decided = Decided::of(world, &plan(world, now()), &acted);
    let status = status_of(world, &decided, &acted, now());
    let refused = conditions::find(&status.conditions, ConditionType::NotPermitted);
    (
        conditions::is_true(&status.conditions, ConditionType::Ready),
        refused.map(|refused| refused.reason.clone()),
    )
}

#[test]
fn a_new_database_gets_nothing_that_its_class_does_not_permit() {
    let new = |spec: Value| empty(spec, json!({}));
    let allowed = || json!({"custom": {"enabled": true, "allowedImages": ["registry.example/*"]}});
    let disabled = || json!({"custom": {"enabled": false}});
    for (spec, class) in [(custom("a:1"), disabled()), (custom("a:1"), allowed())] {
        assert_eq!(line(&plan(&of_class(new(spec), class), now())), "[] stalled NotPermitted");
    }
    let row = line(&plan(&without_class(new(json!({}))), now()));
    assert_eq!(row, "[] stalled NodeClassNotFound");
    for (spec, class) in
        [(custom("registry.example/db:1"), allowed()), (custom("a:1"), json!({})), (json!({}), disabled())]
    {
        assert!(line(&plan(&of_class(new(spec), class), now())).contains("create node 1"));
    }
}

#[test]
fn a_database_that_runs_what_its_class_does_not_permit_any_more_goes_on_and_says_so() {
    let disabled = || json!({"custom": {"enabled": false}});
    let running = of_class(settled_as(custom("a:1")), disabled());
    assert_eq!(line(&plan(&running, now())), "[] as wanted");
    assert_eq!(reported(&running), (true, Some("NotPermitted".to_owned())));

    let mut lost = running.clone();
    lost.nodes.clear();
    assert_eq!(
        line(&plan(&lost, now())),
        "[create node 2 orders-gqmgm-2 in us-east-1b] AwaitingNode",
        "the successor is of what was decided before"
    );
    let class_gone = without_class(settled());
    assert_eq!(line(&plan(&class_gone, now())), "[] as wanted");
    assert_eq!(reported(&class_gone), (true, Some("NodeClassNotFound".to_owned())));
    assert_eq!(reported(&settled()), (true, None));
}

#[test]
fn an_edit_that_is_not_permitted_is_not_carried_out_and_nothing_restarts() {
    let edited = || {
        let mut world = settled_as(custom("a:1"));
        world.database = database(custom("a:2"), settled_status());
        as_applied(&mut world);
        of_class(world, json!({"custom": {"enabled": false}}))
    };
    assert_eq!(line(&plan(&edited(), now())), "[] stalled NotPermitted");
    assert_eq!(reported(&edited()), (false, Some("NotPermitted".to_owned())));

    let mut resumed = edited();
    change(&mut resumed.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
    resumed.pod = None;
    assert_eq!(line(&plan(&resumed, now())), "[scale set-uid to 1] AwaitingPod");

    let mut stateful_set_gone = edited();
    (stateful_set_gone.stateful_set, stateful_set_gone.pod) = (Child::Absent, None);
    assert_eq!(line(&plan(&stateful_set_gone, now())), "[] stalled NotPermitted");
}

#[test]
fn another_source_of_images_changes_the_template_and_restarts_nothing() {
    let mirror = json!({"images": {"registry": "mirror.example", "pullSecrets": ["pull"]}});
    let world = of_class(settled(), mirror.clone());
    let changed = plan(&world, now());
    assert_eq!(line(&changed), "[change image of set-uid] as wanted");
    let Action::ChangeImageSource(object) = &changed.actions[0] else { panic!("{changed:?}") };
    let pod = object.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    assert_eq!(pod.containers[0].image.as_deref(), Some("mirror.example/questdb/questdb:9.3.4"));
    assert_eq!(pod.image_pull_secrets.as_ref().unwrap()[0].name, "pull");

    let mut followed = world;
    change(&mut followed.stateful_set, |set| set.spec.clone_from(&object.spec));
    assert_eq!(line(&plan(&followed, now())), "[] as wanted");
    let back = plan(&of_class(followed, json!({})), now());
    let Action::ChangeImageSource(object) = &back.actions[0] else { panic!("{back:?}") };
    let pod = object.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    assert_eq!(pod.image_pull_secrets, Some(Vec::new()), "a merge patch takes out only what it names");
}

#[test]
fn the_machine_that_takes_a_lost_ones_place_pulls_from_where_the_class_says_now() {
    let mut world = of_class(settled(), json!({"images": {"registry": "mirror.example"}}));
    world.labelled.clear();
    let row = line(&plan(&world, now()));
    assert!(row.starts_with("[change image of set-uid, label ip-10-0-0-1"), "{row}");
}

/// The world with a class that admits namespaces by a label, and this label on the namespace.
fn admitting(world: Observed, label: &str) -> Observed {
    let mut world = of_class(world, json!({"namespaceSelector": {"matchLabels": {"tenant": "yes"}}}));
    world.namespace_labels = BTreeMap::from([("tenant".to_owned(), label.to_owned())]);
    world
}

#[test]
fn a_new_database_beyond_a_limit_of_its_class_costs_nothing() {
    let limits = |limits: Value| json!({"limits": limits});
    for (spec, class, says) in [
        (json!({}), limits(json!({"databases": 0})), "permits 0 Databases in a namespace"),
        (json!({}), limits(json!({"storage": "99Gi"})), "storage up to 99Gi"),
        (json!({}), limits(json!({"volumeTypes": ["gp2", "st1"]})), "volume type gp3: use gp2 or st1"),
        (json!({}), limits(json!({"engines": ["postgresql"]})), "engine questdb: use postgresql"),
        (
            json!({"storage": {"size": "100Gi", "iops": 6000}}),
            limits(json!({"iops": 5999})),
            "iops up to 5999",
        ),
        (
            json!({"storage": {"size": "100Gi", "throughput": 250}}),
            limits(json!({"throughput": 249})),
            "throughput up to 249",
        ),
    ] {
        let plan = plan(&of_class(empty(spec, json!({})), class), now());
        assert_eq!(line(&plan), "[] stalled NotPermitted", "{says}");
        let message = plan.waiting.unwrap().message();
        assert!(message.contains(says) && message.contains("NodeClass default"), "{message}");
    }
    let whole = json!({"limits": {"databases": 1, "storage": "100Gi", "iops": 3000, "volumeTypes": ["gp3"],
        "engines": ["questdb"]}});
    assert!(line(&plan(&of_class(empty(json!({}), json!({})), whole), now())).contains("create node 1"));
}

#[test]
fn those_that_were_created_first_are_the_databases_that_a_class_permits() {
    let with = |created_before: usize, orphaned: usize| {
        let world = of_class(empty(json!({}), json!({})), json!({"limits": {"databases": 2}}));
        let usage = Usage { created_before, orphaned, storage: None };
        line(&plan(&Observed { usage, ..world }, now()))
    };
    assert!(with(1, 0).contains("create node 1"));
    assert_eq!(with(2, 0), "[] stalled NotPermitted");
    assert_eq!(with(1, 1), "[] stalled NotPermitted", "what is orphaned costs as much");
    let settled = of_class(settled(), json!({"limits": {"databases": 0}}));
    assert_eq!(line(&plan(&settled, now())), "[] as wanted");
    assert_eq!(reported(&settled), (true, None), "one that was created counts, and is not refused");
}

#[test]
fn a_namespace_that_is_not_admitted_gets_nothing_and_what_runs_there_goes_on() {
    assert!(line(&plan(&admitting(empty(json!({}), json!({})), "yes"), now())).contains("create node 1"));
    assert_eq!(line(&plan(&admitting(empty(json!({}), json!({})), "no"), now())), "[] stalled NotPermitted");
    let running = admitting(settled(), "no");
    assert_eq!(line(&plan(&running, now())), "[] as wanted");
    assert_eq!(reported(&running), (true, Some("NotPermitted".to_owned())));
    let mut lost = running;
    lost.nodes.clear();
    assert!(line(&plan(&lost, now())).starts_with("[create node 2 "));
}

#[test]
fn another_class_that_does_not_admit_the_namespace_is_not_used_for_anything() {
    let mut world = admitting(edited(json!({"nodeClassName": "of-others"})), "no");
    assert_eq!(line(&plan(&world, now())), "[] stalled NotPermitted");
    world.nodes.clear();
    let plan = plan(&world, now());
    let Action::CreateNode(_, node, _) = &plan.actions[0] else { panic!("{plan:?}") };
    assert_eq!(node.spec.node_class_name, "default");
}

#[test]
fn a_growth_beyond_the_limit_is_not_carried_out_and_the_database_serves() {
    let grown = |size: &str| {
        of_class(edited(json!({"storage": {"size": size}})), json!({"limits": {"storage": "200Gi"}}))
    };
    assert_eq!(line(&plan(&grown("200Gi"), now())), "[update volume-uid {\"size\":\"200Gi\"}] Progressing");
    assert_eq!(line(&plan(&grown("201Gi"), now())), "[] stalled NotPermitted");
    let mut paused = grown("201Gi");
    paused.database.spec.running = false;
    assert!(!line(&plan(&paused, now())).contains("update volume-uid"));

    let mut volume_not_made = grown("201Gi");
    volume_not_made.volume = Child::Absent;
    volume_not_made.database.status.as_mut().unwrap().volume_name = None;
    (volume_not_made.stateful_set, volume_not_made.pod) = (Child::Absent, None);
    assert!(!line(&plan(&volume_not_made, now())).contains("create volume"));
}

/// Another Database of the namespace: its UID, what it requests and what its Volume has; 0 is no Volume.
type Other = (&'static str, i32, i32);

/// The storage of a namespace with this Database among these others, and with these retained volumes.
fn storage(older: &[Other], younger: &[Other], own: (i32, i32), retained: &[i32]) -> NamespaceStorage {
    let own = (UID, own.0, own.1);
    let all = || older.iter().chain([&own]).chain(younger);
    let requested = |(uid, size, _): &Other| Requested { uid: (*uid).to_owned(), size: *size, adopts: None };
    let held = |(uid, _, size): &Other| Held {
        database_uid: (*uid).to_owned(),
        is_orphaned: uid.starts_with("orphaned"),
        size: *size,
    };
    let retained = retained.iter().enumerate().map(|(number, size)| TaggedVolume {
        volume_uid: format!("retained-{number}"),
        namespace: "team-a".to_owned(),
        size: *size,
    });
    NamespaceStorage {
        databases: all().filter(|it| !it.0.starts_with("orphaned")).map(requested).collect(),
        volumes: all().filter(|it| it.2 > 0).map(held).collect(),
        retained: retained.collect(),
    }
}

/// The world with a class that limits the storage of a namespace, which already has this.
fn counted(world: Observed, limit: &str, storage: Option<NamespaceStorage>) -> Observed {
    let world = of_class(world, json!({"limits": {"totalStorage": limit}}));
    Observed { usage: Usage { storage, ..Usage::default() }, ..world }
}

#[test]
fn retained_and_orphaned_volumes_count_towards_the_storage_of_a_namespace() {
    let new = |limit: &str, storage: NamespaceStorage| {
        plan(&counted(empty(json!({}), json!({})), limit, Some(storage)), now())
    };
    for (limit, storage, is_permitted) in [
        ("100Gi", storage(&[], &[], (100, 0), &[]), true),
        ("99Gi", storage(&[], &[], (100, 0), &[]), false),
        ("300Gi", storage(&[], &[], (100, 0), &[100, 100]), true),
        ("299Gi", storage(&[], &[], (100, 0), &[100, 100]), false),
        ("299Gi", storage(&[("orphaned", 0, 200)], &[], (100, 0), &[]), false),
        ("299Gi", storage(&[("older", 200, 0)], &[], (100, 0), &[]), false),
        // What an older one requests and cannot have does not stand in the way of a smaller one.
        ("299Gi", storage(&[("older", 300, 0)], &[], (100, 0), &[]), true),
        ("299Gi", storage(&[("older", 400, 150)], &[], (100, 0), &[]), true),
        ("299Gi", storage(&[], &[("younger", 200, 0)], (100, 0), &[]), true),
        ("299Gi", storage(&[], &[("younger", 200, 200)], (100, 0), &[]), false),
    ] {
        let plan = new(limit, storage.clone());
        assert_eq!(line(&plan).contains("create node 1"), is_permitted, "{limit} {storage:?}");
        assert!(is_permitted || line(&plan) == "[] stalled NotPermitted", "{}", line(&plan));
    }
    let told = new("1Ti", storage(&[("older", 500, 500), ("orphaned", 0, 50)], &[], (100, 0), &[300, 100]));
    let message = told.waiting.unwrap().message();
    let says = "has 500Gi of Databases, 50Gi of orphaned Volumes and 400Gi of 2 retained volumes, and \
                spec.storage requests 100Gi more";
    assert!(message.contains(says), "{message}");
}

#[test]
fn a_growth_beyond_the_storage_of_the_namespace_waits_and_a_repair_does_not() {
    let grown = |limit: &str| {
        let storage = storage(&[], &[], (200, 100), &[100]);
        counted(edited(json!({"storage": {"size": "200Gi"}})), limit, Some(storage))
    };
    assert_eq!(line(&plan(&grown("300Gi"), now())), "[update volume-uid {\"size\":\"200Gi\"}] Progressing");
    assert_eq!(line(&plan(&grown("299Gi"), now())), "[] stalled NotPermitted");
    assert_eq!(reported(&grown("299Gi")), (false, Some("NotPermitted".to_owned())));
    let mut lost = grown("299Gi");
    lost.nodes.clear();
    assert!(line(&plan(&lost, now())).starts_with("[create node 2 "));

    // A class that is narrower than what is there refuses nothing that is there.
    let beyond = counted(settled(), "1Gi", Some(storage(&[], &[], (100, 100), &[100])));
    assert_eq!(line(&plan(&beyond, now())), "[] as wanted");
    assert_eq!(reported(&beyond), (true, None));
}

#[test]
fn a_retained_volume_that_is_adopted_is_not_counted_twice() {
    let adopting = |limit: &str| {
        let spec = json!({"storage": {"size": "120Gi", "adoptRetained": "freehold-retained-0"}});
        let mut storage = storage(&[], &[], (120, 0), &[100]);
        storage.databases[0].adopts = Some("retained-0".to_owned());
        line(&plan(&counted(empty(spec, json!({})), limit, Some(storage)), now()))
    };
    assert_eq!(adopting("119Gi"), "[] stalled NotPermitted");
    assert_ne!(adopting("120Gi"), "[] stalled NotPermitted", "{}", adopting("120Gi"));
}

#[test]
fn before_the_volumes_are_counted_nothing_is_created_and_nothing_is_refused() {
    let new = counted(empty(json!({}), json!({})), "1Ti", None);
    assert_eq!(line(&plan(&new, now())), "[] AwaitingInventory");
    assert_eq!(reported(&new), (false, None));
    let growing = counted(edited(json!({"storage": {"size": "200Gi"}})), "1Ti", None);
    assert_eq!(line(&plan(&growing, now())), "[] AwaitingInventory");
    assert_eq!(line(&plan(&counted(settled(), "1Ti", None), now())), "[] as wanted");
}
