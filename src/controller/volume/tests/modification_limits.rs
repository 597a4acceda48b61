//! Modifications that EC2 refuses, and the limit of modifications in a day.

use super::growth::{DAY, modification, record, wanted};
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
    hold(vec![
        (
            "the fourth",
            over(past(&[100, 200, 300])),
            at(50_000),
            "Bound: [modify vol-1 to 200 GiB gp3, 6000 IOPS, 125 MiB/s] Modifying, pending",
        ),
        (
            "the fifth",
            over(past(&[100, 200, 300, 400])),
            at(50_000),
            "Bound: [] ModificationBudget, again in 36560 s",
        ),
        (
            "a second before",
            over(past(&[100, 200, 300, 400])),
            at(DAY + 159),
            "Bound: [] ModificationBudget, again in 1 s",
        ),
        (
            "to the second, and EC2's own a minute later at most",
            over(past(&[100, 200, 300, 400])),
            at(DAY + 160),
            "Bound: [modify vol-1 to 200 GiB gp3, 6000 IOPS, 125 MiB/s] Modifying, pending",
        ),
        (
            "those of earlier days do not count",
            over(past(&[-2 * DAY, 100, 200, 300])),
            at(50_000),
            "Bound: [modify vol-1 to 200 GiB gp3, 6000 IOPS, 125 MiB/s] Modifying, pending",
        ),
        (
            "more than four remembered: the fourth last counts",
            over(past(&[50, 100, 200, 300, 400])),
            at(50_000),
            "Bound: [] ModificationBudget, again in 36560 s",
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
    let said = |until: i64| {
        move |it: &mut Observed| it.issued = BTreeMap::from([(Call::ModifyVolume, forbidden(5, until))])
    };
    hold(vec![
        (
            "invalid: nothing until the spec changes",
            invalid(|_| {}),
            at(100_000),
            "Bound: [] stalled ModificationRefused",
        ),
        (
            "invalid, and the spec changed",
            invalid(|it| it.volume.metadata.generation = Some(4)),
            at(3),
            "Bound: [modify vol-1 to 200 GiB gp3, 6000 IOPS, 125 MiB/s] Modifying, pending",
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
            "Bound: [modify vol-1 to 200 GiB gp3, 6000 IOPS, 125 MiB/s] Modifying, pending",
        ),
        (
            "invalid, and what EC2 has is wanted again",
            invalid(|it| {
                it.volume.spec.size = Size("100Gi".into());
                it.volume.spec.iops = None;
            }),
            at(3),
            "[] as wanted",
        ),
        ("forbidden: its pause", wanted(said(305)), at(10), "Bound: [] Forbidden, pending, again in 295 s"),
        (
            "forbidden: the pause is over",
            wanted(said(305)),
            at(305),
            "Bound: [modify vol-1 to 200 GiB gp3, 6000 IOPS, 125 MiB/s] Modifying, pending",
        ),
        (
            "EC2 says that the budget is used up, though we count less",
            wanted(used_up),
            at(10),
            "Bound: [] ModificationBudget, again in 3595 s",
        ),
        (
            "edited meanwhile: still used up",
            with(wanted(used_up), |it| it.volume.spec.iops = Some(7000)),
            at(10),
            "Bound: [] ModificationBudget, again in 3595 s",
        ),
        (
            "set back meanwhile: nothing is due",
            with(wanted(used_up), |it| {
                it.volume.spec.size = Size("100Gi".into());
                it.volume.spec.iops = None;
            }),
            at(10),
            "[] as wanted",
        ),
        (
            "an hour later it is asked again",
            wanted(used_up),
            at(3605),
            "Bound: [modify vol-1 to 200 GiB gp3, 6000 IOPS, 125 MiB/s] Modifying, pending",
        ),
    ]);
    assert_eq!(message(&plan(&invalid(|_| {}), at(9))), "as EC2 said");
}

#[test]
fn what_ec2_has_is_used_while_the_next_modification_waits() {
    // 100 GiB became 150, which EC2 still optimizes, and 200 are wanted by now.
    let after = |state: ModificationState, requested: &str| {
        let claim = claim(requested, "100Gi");
        wanted(|it| {
            it.volumes.volumes[0].size = 150;
            it.volumes.modification = Some(modification(state, 5));
            status(it).modifications = vec![record(5, 150, 3000)];
            it.claim = Some(claim);
        })
    };
    hold(vec![
        (
            "the claim grows to what EC2 has",
            after(ModificationState::Optimizing, "100Gi"),
            at(3600),
            "Bound: [grow claim orders-k3f9q {spec.resources.requests.storage: 150Gi}] Modifying, pending",
        ),
        ("once", after(ModificationState::Optimizing, "150Gi"), at(3600), "Bound: [] Modifying, pending"),
        (
            "not before it can be used",
            after(ModificationState::Modifying, "100Gi"),
            at(3600),
            "Bound: [] Modifying, pending",
        ),
    ]);
}
