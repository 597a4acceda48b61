//! What the status and the events report of a loss, from the first suspicion to the proof.

use pretty_assertions::assert_eq;

use super::loss::{after, impaired_since, lost_since, of, silent_since, with};
use super::*;
use crate::controller::node::looks_lost;
use crate::controller::node::status::{changes, fenced_after};

#[test]
fn a_loss_is_told_from_the_first_suspicion_to_the_proof_with_an_event_each() {
    let events = |old: &NodeStatus, new: &NodeStatus| {
        changes(old, new).into_iter().map(|it| it.reason.as_str()).collect::<Vec<_>>()
    };
    let mut observed = settled();
    let well = after(&observed, 10);
    assert_eq!(
        of(&well, ConditionType::Lost),
        ("False".into(), "Progressing".into(), "there is no sign that the machine is lost".into())
    );
    assert!(conditions::find(&well.conditions, ConditionType::Fenced).is_none());

    observed.node.status = Some(well.clone());
    silent_since(&mut observed, 20);
    let suspected = after(&observed, 30);
    let (state, reason, words) = of(&suspected, ConditionType::Lost);
    assert_eq!((state.as_str(), reason.as_str()), ("False", "NodeNotReady"));
    assert!(words.contains(&at(20).to_string()) && words.contains(&at(320).to_string()), "{words}");
    assert_eq!(events(&well, &suspected), ["MachineSuspected"]);

    observed.node.status = Some(suspected.clone());
    observed.instances.swept_at = Some(at(318));
    let lost = after(&observed, 320);
    let (state, reason, words) = of(&lost, ConditionType::Lost);
    assert_eq!((state.as_str(), reason.as_str()), ("True", "NodeNotReady"));
    assert!(words.contains(&at(20).to_string()), "{words}");
    assert_eq!(condition(&lost.conditions, ConditionType::Fenced), ("False".into(), "Fencing".into()));
    assert_eq!(condition(&lost.conditions, ConditionType::Ready), ("False".into(), "InstanceLost".into()));
    assert_eq!(
        events(&suspected, &lost),
        Vec::<&str>::new(),
        "the decision has its event where it is written down"
    );

    observed.node.status = Some(lost.clone());
    let failed = after(&observed, 680);
    let (state, reason, words) = of(&failed, ConditionType::Fenced);
    assert_eq!((state.as_str(), reason.as_str()), ("False", "FenceFailed"));
    assert!(words.contains("the volume is not moved") && words.contains(&at(680).to_string()), "{words}");
    assert_eq!(events(&lost, &failed), ["FenceFailed"]);

    observed.node.status = Some(failed.clone());
    observed.instances.instances[0].state = InstanceState::Stopped;
    let proven = after(&observed, 700);
    let words = "EC2 reports instance i-1 stopped: nothing on it can write any more";
    assert_eq!(of(&proven, ConditionType::Fenced), ("True".into(), "AsExpected".into(), words.into()));
    assert_eq!(of(&proven, ConditionType::Lost), of(&lost, ConditionType::Lost), "and stays so");
    assert_eq!(events(&failed, &proven), ["MachineFenced"]);
    assert_eq!(fenced_after(&failed, &proven), Some(Duration::from_secs(680)));
    assert_eq!(fenced_after(&proven, &proven), None);
}

#[test]
fn a_machine_that_is_taken_down_by_force_says_when_it_is_fenced() {
    let mut observed = deleting(settled());
    assert!(conditions::find(&after(&observed, 10).conditions, ConditionType::Fenced).is_none());
    silent_since(&mut observed, 0);
    assert_eq!(
        condition(&after(&observed, 300).conditions, ConditionType::Fenced),
        ("False".into(), "Fencing".into())
    );
    observed.instances.instances[0].state = InstanceState::Terminated;
    assert_eq!(
        condition(&after(&observed, 310).conditions, ConditionType::Fenced),
        ("True".into(), "AsExpected".into())
    );
}

#[test]
fn a_kubelet_that_is_not_ready_is_remembered_from_its_first_sight_until_it_is() {
    let mut observed = with(|it| silent_since(it, -5000));
    status(&mut observed).not_ready_since = None;
    let first = after(&observed, 10);
    assert_eq!(first.not_ready_since, Some(Time(at(10))));
    observed.node.status = Some(first);
    assert_eq!(after(&observed, 50).not_ready_since, Some(Time(at(10))));
    observed.core_node = settled().core_node;
    assert_eq!(after(&observed, 60).not_ready_since, None);
    observed.core_node = None;
    assert_eq!(after(&observed, 60).not_ready_since, None);
}

#[test]
fn an_impairment_is_remembered_from_its_first_sight_and_forgotten_when_it_passes() {
    let mut observed = with(|it| impaired_since(it, 0));
    status(&mut observed).impaired_since = None;
    let first = after(&observed, 10);
    assert_eq!(first.impaired_since, Some(Time(at(10))));
    observed.node.status = Some(first);
    assert_eq!(after(&observed, 50).impaired_since, Some(Time(at(10))));
    observed.instances.unhealthy.clear();
    assert_eq!(after(&observed, 60).impaired_since, None);
}

#[test]
fn the_passes_of_a_machine_that_may_be_down_are_urgent_and_no_others() {
    let is_urgent = |observed: &Observed| looks_lost(&observed.node);
    let not_ready = with(|it| {
        let ready = [Entry::no(ConditionType::Ready, Reason::NodeNotReady, "it is silent")];
        status(it).conditions = conditions::merge(&[], &ready, Some(3), at(0));
    });
    let joining = with(|it| {
        let ready = [Entry::no(ConditionType::Ready, Reason::Launching, "it starts")];
        status(it).conditions = conditions::merge(&[], &ready, Some(3), at(0));
        status(it).core_node_name = None;
    });
    let rows = vec![
        ("settled", settled(), false),
        ("not Ready", not_ready, true),
        ("declared lost, whatever else it reports", with(|it| lost_since(it, 300)), true),
        ("not joined yet", joining, false),
        ("new", world(), false),
    ];
    for (name, observed, expected) in rows {
        assert_eq!(is_urgent(&observed), expected, "{name}");
    }
}
