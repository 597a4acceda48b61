//! Modifications that EC2 refuses, and the limit of modifications in a day.

use super::growth::{DAY, modification, modifies, record, wanted};
use super::*;
use crate::cloud::ModificationState;

#[test]
fn the_fifth_change_in_a_day_waits_for_the_first_to_be_a_day_old() {
    let past = |seconds: &'static [i64]| {
        wanted(|it| {
            status(it).modifications = seconds.iter().map(|second| record(*second, 150, 3000)).collect();
        })
    };
    let over = |observed: Observed| {
        with(observed, |it| {
            it.volumes.modification = Some(modification(ModificationState::Completed, 50_000));
        })
    };
    let budget = || waits(Stage::Bound, Reason::ModificationBudget);
    hold(vec![
        ("the fourth", over(past(&[100, 200, 300])), at(50_000), modifies(50_000, 200, 6000)),
        ("the fifth", over(past(&[100, 200, 300, 400])), at(50_000), budget().again(36_560)),
        ("a second before", over(past(&[100, 200, 300, 400])), at(DAY + 159), budget().again(1)),
        (
            "to the second, and EC2's own a minute later at most",
            over(past(&[100, 200, 300, 400])),
            at(DAY + 160),
            modifies(DAY + 160, 200, 6000),
        ),
        (
            "those of earlier days do not count",
            over(past(&[-2 * DAY, 100, 200, 300])),
            at(50_000),
            modifies(50_000, 200, 6000),
        ),
        (
            "more than four remembered: the fourth last counts",
            over(past(&[50, 100, 200, 300, 400])),
            at(50_000),
            budget().again(36_560),
        ),
    ]);
    let said = plan(&over(past(&[100, 200, 300, 400])), at(50_000));
    assert!(message(&said).contains(&at(DAY + 160).to_string()), "{}", message(&said));
}

#[test]
fn a_refusal_is_not_hammered() {
    let invalid = |change: fn(&mut Observed)| {
        wanted(|it| {
            says(it, ConditionType::Modified, false, Reason::ModificationRefused, at(0));
            change(it);
        })
    };
    let used_up = |it: &mut Observed| {
        let code = "VolumeModificationRateExceeded";
        let call_blocked = answered(Call::ModifyVolume, code, Some(at(3605)));
        it.issued = BTreeMap::from([(
            Call::ModifyVolume,
            IssuedRequest { at: at(5), call_blocked: Some(call_blocked) },
        )]);
    };
    let budget = || waits(Stage::Bound, Reason::ModificationBudget);
    let said = |until: i64| {
        move |it: &mut Observed| it.issued = BTreeMap::from([(Call::ModifyVolume, forbidden(5, until))])
    };
    hold(vec![
        (
            "invalid: nothing until the spec changes",
            invalid(|_| {}),
            at(100_000),
            stalls(Stage::Bound, Reason::ModificationRefused),
        ),
        (
            "invalid, and the spec changed",
            invalid(|it| it.volume.metadata.generation = Some(4)),
            at(3),
            modifies(3, 200, 6000),
        ),
        (
            "invalid, and the spec changed within a minute",
            invalid(|it| {
                it.volume.metadata.generation = Some(4);
                let call_blocked = answered(Call::ModifyVolume, "InvalidParameterValue", None);
                it.issued = BTreeMap::from([(
                    Call::ModifyVolume,
                    IssuedRequest { at: at(0), call_blocked: Some(call_blocked) },
                )]);
            }),
            at(3),
            modifies(3, 200, 6000),
        ),
        (
            "invalid, and what EC2 has is wanted again",
            invalid(|it| {
                it.volume.spec.size = Size("100Gi".into());
                it.volume.spec.iops = None;
            }),
            at(3),
            done(),
        ),
        (
            "forbidden: its pause",
            wanted(said(305)),
            at(10),
            waits(Stage::Bound, Reason::Forbidden).again(295).pending(),
        ),
        ("forbidden: the pause is over", wanted(said(305)), at(305), modifies(305, 200, 6000)),
        (
            "EC2 says that the budget is used up, though we count less",
            wanted(used_up),
            at(10),
            budget().again(3595),
        ),
        (
            "edited meanwhile: still used up",
            with(wanted(used_up), |it| it.volume.spec.iops = Some(7000)),
            at(10),
            budget().again(3595),
        ),
        (
            "set back meanwhile: nothing is due",
            with(wanted(used_up), |it| {
                it.volume.spec.size = Size("100Gi".into());
                it.volume.spec.iops = None;
            }),
            at(10),
            done(),
        ),
        ("an hour later it is asked again", wanted(used_up), at(3605), modifies(3605, 200, 6000)),
    ]);
    assert_eq!(message(&plan(&invalid(|_| {}), at(9))), "as EC2 said");
}
