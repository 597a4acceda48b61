//! A repair that is due and is postponed: by what, and how that is reported.

use pretty_assertions::assert_eq;

use super::loss::{after, in_state, of, silent_since};
use super::*;
use crate::api::node::MachineHealth;
use crate::controller::blocker::Blocker;
use crate::controller::node::status::status as status_of;
use crate::controller::pass::acted::Acted;

#[test]
fn a_repair_that_another_pass_leaves_no_place_for_shows_as_postponed() {
    let observed = in_state(InstanceState::Stopped);
    let blocked = |call_blocked| {
        let acted = Acted { call_blocked: Some(call_blocked), ..Acted::new(observed.node.clone()) };
        status_of(&observed, &plan(&observed, now()), &acted, now())
    };
    let status = blocked(CallBlocked::RepairPostponed {
        loss: "it is lost".into(),
        blocker: Blocker::RepairsAtLimit { underway: 5, limit: 5 },
        until: at(5),
    });
    let message =
        "it is lost; repair postponed: the lost machines of 5 databases are already being stopped (limit 5)";
    assert_eq!(of(&status, ConditionType::Lost), ("False".into(), "RepairPostponed".into(), message.into()));
    assert_eq!(status.health, Some(MachineHealth::RepairPostponed));
    let status = blocked(CallBlocked::RateLimited { until: at(5) });
    assert_eq!(
        condition(&status.conditions, ConditionType::Lost),
        ("False".into(), "InstanceStopped".into())
    );
}

/// The Nodes of one namespace are not listed, and the operator has just started.
fn just_started(observed: &mut Observed) {
    (observed.fleet.unlisted, observed.leading_since) = (1, at(1));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_repair_is_postponed_by_too_many_others_an_old_inventory_and_a_zone_that_looks_down() {
    type Change = fn(&mut Observed);
    let rows: [(&str, InstanceState, Change, bool); 16] = [
        ("alone", InstanceState::Running, |_| {}, true),
        ("four others", InstanceState::Running, |it| it.fleet.repairs = 4, true),
        ("five others", InstanceState::Running, |it| it.fleet.repairs = 5, false),
        (
            "five others, and this one is terminated",
            InstanceState::Terminated,
            |it| it.fleet.repairs = 5,
            false,
        ),
        (
            "five others of a thousand",
            InstanceState::Running,
            |it| (it.fleet.repairs, it.fleet.nodes) = (5, 1000),
            true,
        ),
        (
            "ten others of a thousand",
            InstanceState::Running,
            |it| (it.fleet.repairs, it.fleet.nodes) = (10, 1000),
            false,
        ),
        (
            "the inventory is three sweeps old",
            InstanceState::Running,
            |it| it.instances.swept_at = Some(at(120)),
            true,
        ),
        ("the inventory is older", InstanceState::Running, |it| it.instances.swept_at = Some(at(119)), false),
        (
            "three others of its namespace, where others have machines",
            InstanceState::Running,
            |it| (it.fleet.repairs, it.fleet.own_repairs, it.fleet.is_shared) = (3, 3, true),
            false,
        ),
        (
            "three others of its namespace, which is alone",
            InstanceState::Running,
            |it| (it.fleet.repairs, it.fleet.own_repairs) = (3, 3),
            true,
        ),
        (
            "four others, two of them of its namespace",
            InstanceState::Running,
            |it| (it.fleet.repairs, it.fleet.own_repairs, it.fleet.is_shared) = (4, 2, true),
            true,
        ),
        ("its zone looks down", InstanceState::Running, |it| it.fleet.zone_looks_down = true, false),
        ("not every Node is listed", InstanceState::Running, just_started, false),
        ("nor for one that ended", InstanceState::Terminated, just_started, false),
        ("a namespace is never listed", InstanceState::Running, |it| it.fleet.unlisted = 1, true),
        ("EC2 refuses its zone", InstanceState::Running, |it| it.fleet.zone_refused = true, false),
    ];
    let more: [(&str, InstanceState, Change, bool); 13] = [
        (
            "a terminated one does not come back with its zone",
            InstanceState::Terminated,
            |it| it.fleet.zone_looks_down = true,
            true,
        ),
        (
            "its zone looked down within the grace",
            InstanceState::Running,
            |it| it.fleet.zone_down_at = Some(at(1)),
            false,
        ),
        (
            "its zone looked down long ago",
            InstanceState::Running,
            |it| it.fleet.zone_down_at = Some(at(0)),
            true,
        ),
        (
            "its zone looked down, and it is terminated",
            InstanceState::Terminated,
            |it| it.fleet.zone_down_at = Some(at(299)),
            true,
        ),
        (
            "the inventory is older, and what it shows terminated stays so",
            InstanceState::Terminated,
            |it| it.instances.swept_at = Some(at(119)),
            true,
        ),
        (
            "its zone has looked down for half an hour: one is tried",
            InstanceState::Running,
            |it| {
                (it.fleet.zone_looks_down, it.fleet.is_first_of_zone) = (true, true);
                silent_since(it, -1800);
            },
            true,
        ),
        (
            "for less",
            InstanceState::Running,
            |it| {
                (it.fleet.zone_looks_down, it.fleet.is_first_of_zone) = (true, true);
                silent_since(it, -1799);
            },
            false,
        ),
        (
            "for half an hour, and another is tried",
            InstanceState::Running,
            |it| {
                it.fleet.zone_looks_down = true;
                silent_since(it, -1800);
            },
            false,
        ),
        ("a stopped one may", InstanceState::Stopped, |it| it.fleet.zone_looks_down = true, false),
        ("no kubelet reports", InstanceState::Running, |it| it.fleet.no_kubelet_reports = true, false),
        (
            "nor for one that is stopped",
            InstanceState::Stopped,
            |it| it.fleet.no_kubelet_reports = true,
            false,
        ),
        (
            "however long that goes on, and although its zone would be tried",
            InstanceState::Running,
            |it| {
                (it.fleet.zone_looks_down, it.fleet.is_first_of_zone) = (true, true);
                it.fleet.no_kubelet_reports = true;
                silent_since(it, -100_000);
            },
            false,
        ),
        (
            "nothing runs on a terminated one",
            InstanceState::Terminated,
            |it| it.fleet.no_kubelet_reports = true,
            true,
        ),
    ];
    for (name, state, change, begins) in rows.into_iter().chain(more) {
        let mut observed = in_state(state);
        silent_since(&mut observed, 0);
        observed.instances.swept_at = Some(at(299));
        change(&mut observed);
        let plan = plan(&observed, at(300));
        assert_eq!(matches!(plan.actions.first(), Some(Action::DeclareLost(_))), begins, "{name}: {plan:?}");
        assert_eq!(plan.priority == Priority::Repair, begins, "{name}: its calls are urgent");
        if !begins {
            assert_eq!(line(&observed, at(300), &plan), "[] RepairPostponed, again in 5 s", "{name}");
            let status = after(&observed, 300);
            assert_eq!(
                condition(&status.conditions, ConditionType::Lost),
                ("False".into(), "RepairPostponed".into()),
                "{name}"
            );
            assert_eq!(status.health, Some(MachineHealth::RepairPostponed), "{name}");
        }
    }
}
