//! Growing a volume, or making it faster, while it is in use.

use ec2sim::{ModificationState, Truth};

use super::kit::{Kit, both_ways, check, equal};

/// Source: EBS user guide, "Monitor the progress of Amazon EBS volume modifications": a size increase takes
/// effect in the `optimizing` state.
#[test]
fn a_new_size_is_usable_from_optimizing_on() {
    both_ways(Truth::SizeUsableAtOptimizing, |truths| {
        let kit = Kit::new(truths);
        let id = kit.available(&[])?;
        kit.call("ModifyVolume", &[("VolumeId", &id), ("Size", "20"), ("Iops", "4000")])?;
        let seen = || kit.volume(&id).map(|view| (view.shape.size, view.modifications[0].state));
        equal(seen()?, (10, ModificationState::Modifying))?;
        kit.pass(10);
        equal(seen()?, (20, ModificationState::Optimizing))?;
        kit.pass(10);
        equal(seen()?, (20, ModificationState::Completed))?;
        equal(kit.volume(&id)?.shape.iops, Some(4000))
    });
}

/// Source: EBS user guide, "Modify an Amazon EBS volume"; error-code reference, `IncorrectModificationState`.
#[test]
fn the_next_modification_needs_the_previous_one_to_be_completed() {
    both_ways(Truth::OneModificationAtATime, |truths| {
        let kit = Kit::new(truths);
        let id = kit.available(&[])?;
        kit.refuses("ok", "ModifyVolume", &[("VolumeId", &id), ("Size", "20")])?;
        kit.refuses("IncorrectModificationState", "ModifyVolume", &[("VolumeId", &id), ("Size", "30")])?;
        kit.pass(10);
        kit.refuses("IncorrectModificationState", "ModifyVolume", &[("VolumeId", &id), ("Size", "30")])?;
        kit.pass(10);
        kit.refuses("ok", "ModifyVolume", &[("VolumeId", &id), ("Size", "30")])
    });
}

/// Source: EBS user guide, "Modify an Amazon EBS volume": since January 2026 up to four modifications in a
/// rolling 24 hours.
#[test]
fn a_volume_is_modified_at_most_four_times_in_24_hours() {
    both_ways(Truth::ModificationBudget, |truths| {
        let kit = Kit::new(truths);
        let id = kit.available(&[])?;
        // The last of them changes nothing, and counts.
        for size in ["20", "30", "40", "40"] {
            kit.refuses("ok", "ModifyVolume", &[("VolumeId", &id), ("Size", size)])?;
            kit.pass(3600);
        }
        kit.refuses("VolumeModificationRateExceeded", "ModifyVolume", &[("VolumeId", &id), ("Size", "50")])?;
        kit.pass(20 * 3600 - 1);
        kit.refuses("VolumeModificationRateExceeded", "ModifyVolume", &[("VolumeId", &id), ("Size", "50")])?;
        kit.pass(1);
        kit.refuses("ok", "ModifyVolume", &[("VolumeId", &id), ("Size", "50")])
    });
}

/// Source: EBS user guide, "Request Amazon EBS volume modifications": the size can't be decreased. Stopped
/// instances' volumes and detached ones can be modified too.
#[test]
fn a_volume_only_grows() {
    both_ways(Truth::VolumesOnlyGrow, |truths| {
        let kit = Kit::new(truths);
        let (instance, id) = (kit.running()?, kit.available(&[])?);
        equal(kit.attach(&id, &instance, "/dev/xvdba").as_str(), "ok")?;
        kit.call("StopInstances", &[("InstanceId.1", &instance)])?;
        kit.pass(10);
        kit.refuses("ok", "ModifyVolume", &[("VolumeId", &id), ("Size", "20")])?;
        kit.pass(20);
        kit.refuses("InvalidParameterValue", "ModifyVolume", &[("VolumeId", &id), ("Size", "19")])?;
        check(kit.volume(&id)?.shape.size == 20, "it shrank")
    });
}
