//! Snapshots: their states, and how many at what pace.

use ec2sim::{InitializationProgress, Response, SnapshotState, Truth};

use super::kit::{Kit, both_ways, check, equal, options};

/// Source: EBS user guide, "Amazon EBS snapshots": pending with its progress, then completed; the point in
/// time is the call's.
#[test]
fn a_snapshot_is_pending_with_its_progress_before_it_is_completed() {
    both_ways(Truth::SnapshotPassesThroughStates, |truths| {
        let kit = Kit::new(truths);
        let id = kit.available(&[])?;
        let asked = kit.sim.now();
        kit.call("CreateSnapshot", &[("VolumeId", &id)])?;
        let seen = || kit.sim.snapshots().first().map(|view| (view.state, view.progress, view.started_at));
        equal(seen(), Some((SnapshotState::Pending, 0, asked)))?;
        kit.pass(5);
        equal(seen(), Some((SnapshotState::Pending, 50, asked)))?;
        kit.pass(5);
        equal(seen(), Some((SnapshotState::Completed, 100, asked)))
    });
}

/// Source: error-code reference, `SnapshotCreationPerVolumeRateExceeded`: wait at least 15 seconds.
#[test]
fn snapshots_of_one_volume_need_a_pause_of_15_seconds() {
    both_ways(Truth::SnapshotRate, |truths| {
        let kit = Kit::new(truths);
        let (id, other) = (kit.available(&[])?, kit.available(&[])?);
        kit.refuses("ok", "CreateSnapshot", &[("VolumeId", &id)])?;
        kit.pass(14);
        kit.refuses("SnapshotCreationPerVolumeRateExceeded", "CreateSnapshot", &[("VolumeId", &id)])?;
        kit.refuses("ok", "CreateSnapshot", &[("VolumeId", &other)])?;
        kit.pass(1);
        kit.refuses("ok", "CreateSnapshot", &[("VolumeId", &id)])
    });
}

/// Source: error-code reference, `ConcurrentSnapshotLimitExceeded`; EBS quotas, five per volume.
#[test]
fn a_volume_has_at_most_five_pending_snapshots() {
    both_ways(Truth::SnapshotConcurrency, |truths| {
        let mut options = options(truths);
        options.delays.snapshot = std::time::Duration::from_hours(1);
        let kit = Kit::with(options);
        let id = kit.available(&[])?;
        for _ in 0..5 {
            kit.refuses("ok", "CreateSnapshot", &[("VolumeId", &id)])?;
            kit.pass(15);
        }
        kit.refuses("ConcurrentSnapshotLimitExceeded", "CreateSnapshot", &[("VolumeId", &id)])?;
        kit.pass(3600);
        kit.refuses("ok", "CreateSnapshot", &[("VolumeId", &id)])
    });
}

/// Source: EBS user guide, "Initialize Amazon EBS volumes" and "Monitor the status of Amazon EBS volume
/// initialization"; `API_InitializationStatusDetails`: the time that is left is shown at a provisioned rate.
#[test]
fn a_volume_from_a_snapshot_is_initialized_over_time() {
    both_ways(Truth::InitializationTakesTime, |truths| {
        let kit = Kit::new(truths);
        let empty = kit.available(&[("Size", "30")])?;
        kit.call("CreateSnapshot", &[("VolumeId", &empty)])?;
        kit.pass(20);
        let snapshot = kit.sim.snapshots()[0].id.clone();
        let from = |rate: &str| {
            let params =
                [("SnapshotId", snapshot.as_str()), ("Size", "60"), ("VolumeInitializationRate", rate)];
            kit.create_volume(&params)
        };
        let (fast, slow) = (from("300")?, from("")?);
        let seen = |id: &str| {
            let answer = kit.call("DescribeVolumeStatus", &[("VolumeId.1", id)])?;
            let Response::VolumeStatuses(page) = answer else { return Err("another answer".to_owned()) };
            Ok(page.items[0].initialization)
        };
        let of = |is_provisioned, progress, seconds_left| {
            Some(InitializationProgress { is_provisioned, progress, seconds_left })
        };
        equal(seen(&empty)?, None)?;
        equal(seen(&fast)?, of(true, 0, 103))?;
        kit.pass(52);
        equal(seen(&fast)?, of(true, 50, 51))?;
        equal(seen(&slow)?, of(false, 8, 563))?;
        kit.pass(51);
        equal(seen(&fast)?, of(true, 100, 0))?;
        kit.pass(10_000);
        equal(seen(&slow)?, of(false, 100, 0))
    });
}

/// Source: `API_CreateVolume`: supported only for volumes created from snapshots; 100 to 300 MiB/s.
#[test]
fn a_rate_of_initialization_has_a_range_and_needs_a_snapshot() {
    both_ways(Truth::InitializationRateRange, |truths| {
        let kit = Kit::new(truths);
        let id = kit.available(&[])?;
        kit.call("CreateSnapshot", &[("VolumeId", &id)])?;
        kit.pass(20);
        let snapshot = kit.sim.snapshots()[0].id.clone();
        for (snapshot, rate, expected) in [
            (snapshot.as_str(), "100", "ok"),
            (snapshot.as_str(), "300", "ok"),
            (snapshot.as_str(), "99", "InvalidParameterValue"),
            (snapshot.as_str(), "301", "InvalidParameterValue"),
            ("", "100", "InvalidParameterCombination"),
        ] {
            let params = [("SnapshotId", snapshot), ("VolumeInitializationRate", rate)];
            let code = kit.create_volume(&params).map_or_else(|code| code, |_| "ok".to_owned());
            equal((rate, code.as_str()), (rate, expected))?;
        }
        Ok(())
    });
}

/// Source: `API_CreateVolume`: the size must be equal to or larger than the snapshot's.
#[test]
fn a_volume_from_a_snapshot_has_at_least_its_size() {
    both_ways(Truth::SnapshotMinimumSize, |truths| {
        let kit = Kit::new(truths);
        let id = kit.available(&[("Size", "50")])?;
        kit.call("CreateSnapshot", &[("VolumeId", &id)])?;
        let snapshot = kit.sim.snapshots()[0].id.clone();
        let from = |size: &str| kit.create_volume(&[("SnapshotId", &snapshot), ("Size", size)]);
        let same = from("")?;
        equal(kit.volume(&same)?.shape.size, 50)?;
        check(from("60").is_ok(), "a larger one was refused")?;
        equal(from("49"), Err("InvalidParameterValue".to_owned()))
    });
}
