//! What another client writes into a template neither keeps the repair of it nor of anything else from being
//! made, nor restarts the database.

use pretty_assertions::assert_eq;

use super::*;
use crate::api::keys::INPUTS_HASH_ANNOTATION;

#[test]
fn what_is_restored_precedes_what_may_fail_and_what_was_refused_before_follows_it() {
    let changed = |world: &mut Observed| change(&mut world.service, |service| service.spec = None);
    assert_eq!(
        planned(|it| {
            changed(it);
            alter_set(it);
        }),
        "[report StatefulSetAltered orders, apply config config-uid, restore set set-uid x1, apply service \
         service-uid] as wanted"
    );
    assert_eq!(
        planned(|it| {
            changed(it);
            known(it).stateful_set = None;
        }),
        "[apply service service-uid, restore set set-uid x1] as wanted"
    );
}

/// Another client changes an environment variable, or the annotation of inputs, of the engine's pod.
fn alter_template(world: &mut Observed, key: &str, value: &str) {
    change(&mut world.stateful_set, |set| {
        let template = &mut set.spec.as_mut().unwrap().template;
        let variables = template.spec.as_mut().unwrap().containers[0].env.get_or_insert_default();
        variables.iter_mut().filter(|it| it.name == key).for_each(|it| it.value = Some(value.to_owned()));
        let annotations = template.metadata.as_mut().unwrap().annotations.get_or_insert_default();
        annotations.get_mut(key).into_iter().for_each(|it| value.clone_into(it));
        wrote(set);
    });
}

#[test]
fn a_data_directory_that_another_client_wrote_is_restored() {
    let mut world = settled_as(json!({"engine": {"type": "postgresql", "version": "17.5"}}));
    alter_template(&mut world, "PGDATA", "/elsewhere");
    assert_eq!(line(&plan(&world, now())), STATEFUL_SET);
    // The spec is another one since: which version made the data is not known any more.
    world.database.spec.engine.version = Some("18.0".to_owned());
    world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
    assert_eq!(line(&plan(&world, now())), "[] stalled InvalidSpec");
}

#[test]
fn a_pod_of_other_inputs_is_not_deleted_while_its_template_is_another_clients() {
    let mut world = settled();
    alter_template(&mut world, INPUTS_HASH_ANNOTATION, "other");
    let pod = world.pod.as_mut().unwrap();
    pod.annotations_mut().insert(INPUTS_HASH_ANNOTATION.to_owned(), "other".to_owned());
    assert_eq!(line(&plan(&world, now())), STATEFUL_SET.replace("as wanted", "RestartPending"));
    restored(&mut world, Occurrence::StatefulSetAltered, 1, 59);
    let plan = plan(&world, now());
    assert_eq!(line(&plan), "[] RestartPending");
    assert!(plan.requeue.is_some());
}
