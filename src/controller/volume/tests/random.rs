//! Whatever is observed of a Volume, in any combination of facts: there is a plan, and it breaks no rule.

mod facts;

use proptest::prelude::*;

use self::facts::{bases, cluster_facts, ec2_facts, spec_facts, status_facts};
use super::*;
use crate::controller::pass::acted::Acted;
use crate::controller::tests::facts::{Fact, apply_all, before, worlds};
use crate::controller::volume::status::status as status_of;
use crate::time::later;

fn random() -> impl Strategy<Value = (Fact<Observed>, Vec<Fact<Observed>>, i64)> {
    let facts = [ec2_facts(), status_facts(), spec_facts(), cluster_facts()].concat();
    worlds(bases(), facts, 8, vec![10, 70, 400, 2000, 30_000, 100_000])
}

fn world_of(base: Fact<Observed>, facts: &[Fact<Observed>], now: Timestamp) -> Observed {
    let mut observed = world();
    base.apply(&mut observed, now);
    observed.volumes.swept_at = Some(before(now, 2));
    (observed.snapshots.swept_at, observed.former.swept_at) = (Some(before(now, 2)), Some(before(now, 2)));
    apply_all(facts, &mut observed, now);
    leave_out_the_impossible(&mut observed);
    observed
}

fn leave_out_the_impossible(observed: &mut Observed) {
    let spec = &mut observed.volume.spec;
    // Rules of the resource definition.
    spec.release &= spec.adopt.is_some();
    let is_adopted = spec.adopt_retained.is_some() || spec.adopt.is_some();
    let is_recorded = observed.recorded_volume().is_some();
    let status = status(observed);
    // The id is written before or together with `everHeld`, and only a creation removes it, which no Volume
    // has that has held data.
    status.ever_held &= status.volume_id.is_some();
    // A Volume that adopts creates nothing, whatever follows. And a PersistentVolume is created after the id
    // was recorded: where it names what the status does not, the whole status was lost.
    if is_adopted || (is_recorded && status.volume_id.is_none()) {
        status.creation = None;
    }
}

fn after(observed: &Observed, now: Timestamp) -> VolumeStatus {
    status_of(observed, &plan(observed, now), &Acted::new(observed.volume.clone()), now)
}

proptest! {
    /// `plan` itself checks what it returns.
    #[test]
    fn no_combination_of_facts_leads_to_a_plan_that_breaks_a_rule((base, facts, seconds) in random()) {
        let plan = plan(&world_of(base, &facts, at(seconds)), at(seconds));
        prop_assert!(plan.waiting.as_ref().is_none_or(|waiting| !waiting.message().is_empty()));
    }

    #[test]
    fn a_status_that_was_written_is_not_written_again((base, facts, seconds) in random()) {
        let mut observed = world_of(base, &facts, at(seconds));
        let written = after(&observed, at(seconds));
        observed.volume.status = Some(written.clone());
        prop_assert_eq!(after(&observed, at(seconds)), written);
    }

    /// Nothing else makes a pass follow when only time has passed.
    #[test]
    fn a_settled_plan_stays_the_same_until_its_time((base, facts, seconds) in random()) {
        let observed = world_of(base, &facts, at(seconds));
        let first = plan(&observed, at(seconds));
        if first.interest == VolumeInterest::Settled {
            let pause = first.requeue.map_or(Duration::from_secs(86_400), |requeue| requeue / 2);
            let second = plan(&observed, later(at(seconds), pause));
            prop_assert_eq!((second.stage, second.waiting), (first.stage, first.waiting));
        }
    }
}
