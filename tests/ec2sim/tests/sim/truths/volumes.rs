//! A volume's states and shapes.

use ec2sim::{Effect, Fault, Truth, Truths, VolumeState};

use super::kit::{Kit, both_ways, check, equal};

/// Source: EBS user guide, "Amazon EBS volume lifecycle".
#[test]
fn a_volume_is_creating_before_available_and_deleting_before_gone() {
    both_ways(Truth::VolumePassesThroughStates, |truths| {
        let kit = Kit::new(truths);
        let id = kit.create_volume(&[])?;
        equal(kit.volume(&id)?.state, VolumeState::Creating)?;
        kit.pass(10);
        equal(kit.volume(&id)?.state, VolumeState::Available)?;
        kit.call("DeleteVolume", &[("VolumeId", &id)])?;
        equal(kit.volume(&id)?.state, VolumeState::Deleting)?;
        kit.pass(10);
        check(kit.volume(&id).is_err(), "it is still there")?;
        kit.refuses("InvalidVolume.NotFound", "DeleteVolume", &[("VolumeId", &id)])
    });
}

/// Source: github.com/kubernetes-sigs/aws-ebs-csi-driver/issues/3010 and 1951: it is gone before anyone can
/// use it.
#[test]
fn a_volume_that_a_fault_lets_vanish_is_creating_until_then() {
    let kit = Kit::new(Truths::all());
    kit.sim.add_fault(Fault::on("CreateVolume", Effect::VolumeVanishes { seconds: 30.0 }));
    let id = kit.create_volume(&[]).unwrap();
    kit.pass(29);
    assert_eq!(kit.volume(&id).map(|it| it.state), Ok(VolumeState::Creating));
    kit.pass(1);
    assert!(kit.volume(&id).is_err(), "it is still there");
}

/// Source: EBS user guide, "Amazon EBS volume types" (sizes, IOPS, throughput and ratios as of 2026).
#[test]
fn a_shape_keeps_to_the_ranges_and_ratios_of_its_type() {
    both_ways(Truth::VolumeRanges, |truths| {
        let kit = Kit::new(truths);
        for (volume_type, size, iops, throughput, expected) in [
            ("gp3", "65536", "", "", "ok"),
            ("gp3", "65537", "", "", "InvalidParameterValue"),
            ("gp3", "10", "5000", "", "ok"),
            ("gp3", "10", "5001", "", "InvalidParameterValue"),
            ("gp3", "10", "", "751", "InvalidParameterValue"),
            ("gp2", "10", "3000", "", "InvalidParameterCombination"),
            ("io2", "10", "", "", "MissingParameter"),
            ("io1", "10", "501", "", "InvalidParameterValue"),
        ] {
            let wanted =
                [("VolumeType", volume_type), ("Size", size), ("Iops", iops), ("Throughput", throughput)];
            let code = kit.create_volume(&wanted).map_or_else(|code| code, |_| "ok".to_owned());
            equal((volume_type, size, code.as_str()), (volume_type, size, expected))?;
        }
        Ok(())
    });
}

/// Source: `API_DeleteVolume`: the volume must be available; error-code reference, `VolumeInUse`.
#[test]
fn a_volume_in_use_is_not_deleted() {
    both_ways(Truth::DeleteRefusesUsedVolume, |truths| {
        let kit = Kit::new(truths);
        let (instance, id) = (kit.running()?, kit.available(&[])?);
        equal(kit.attach(&id, &instance, "/dev/xvdba").as_str(), "ok")?;
        kit.refuses("VolumeInUse", "DeleteVolume", &[("VolumeId", &id)])?;
        kit.pass(10);
        kit.refuses("VolumeInUse", "DeleteVolume", &[("VolumeId", &id)])
    });
}
