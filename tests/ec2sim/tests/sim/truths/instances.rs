//! An instance's states, and who may change them.

use ec2sim::{Effect, Fault, Health, InstanceState, Limits, Outside, Truth};

use super::kit::{Kit, both_ways, check, equal, options};

/// Source: EC2 user guide, "Amazon EC2 instance state changes".
#[test]
fn an_instance_passes_through_pending_and_shutting_down() {
    both_ways(Truth::InstancePassesThroughStates, |truths| {
        let kit = Kit::new(truths);
        let id = kit.run(&[])?;
        equal(kit.instance(&id)?.state, InstanceState::Pending)?;
        kit.pass(10);
        equal(kit.instance(&id)?.state, InstanceState::Running)?;
        kit.call("StopInstances", &[("InstanceId.1", &id)])?;
        equal(kit.instance(&id)?.state, InstanceState::Stopping)?;
        kit.pass(10);
        equal(kit.instance(&id)?.state, InstanceState::Stopped)?;
        kit.call("StartInstances", &[("InstanceId.1", &id)])?;
        equal(kit.instance(&id)?.state, InstanceState::Pending)?;
        kit.pass(10);
        equal(kit.instance(&id)?.state, InstanceState::Running)?;
        kit.call("TerminateInstances", &[("InstanceId.1", &id)])?;
        equal(kit.instance(&id)?.state, InstanceState::ShuttingDown)?;
        kit.pass(10);
        equal(kit.instance(&id)?.state, InstanceState::Terminated)
    });
}

/// Source: EC2 user guide, "Troubleshoot Amazon EC2 instance launch issues": an instance may go from pending
/// to terminated.
#[test]
fn a_launch_that_was_accepted_may_die_with_a_state_reason() {
    both_ways(Truth::LaunchMayDie, |truths| {
        let mut options = options(truths);
        options.limits = Limits { volumes: Some(1), ..options.limits };
        let kit = Kit::with(options);
        let reason =
            |id: &str| kit.instance(id).map(|view| (view.state, view.state_reason.map(|reason| reason.code)));
        kit.sim.add_fault(
            Fault::on("RunInstances", Effect::LaunchDies { code: "Server.InternalError".into() }).nth(1),
        );
        let id = kit.run(&[])?;
        equal(kit.instance(&id)?.state, InstanceState::Pending)?;
        kit.pass(10);
        equal(reason(&id)?, (InstanceState::Terminated, Some("Server.InternalError".to_owned())))?;
        // Its root volume is gone by then; the quota of one volume is taken by the next, and the third dies
        // of it.
        kit.pass(10);
        kit.running()?;
        let third = kit.run(&[])?;
        kit.pass(10);
        equal(reason(&third)?, (InstanceState::Terminated, Some("Client.VolumeLimitExceeded".to_owned())))
    });
}

/// Source: EC2 user guide, "View status checks for Amazon EC2 instances": the first state is `initializing`.
#[test]
fn status_checks_begin_as_initializing_and_may_become_impaired() {
    both_ways(Truth::StatusInitializing, |truths| {
        let kit = Kit::new(truths);
        let id = kit.run(&[])?;
        kit.pass(10);
        let statuses = || {
            kit.statuses(&[("InstanceId.1", &id)])
                .map(|seen| seen.iter().map(|view| view.instance_status).collect())
        };
        equal(statuses()?, vec![Health::Initializing])?;
        kit.pass(10);
        equal(statuses()?, vec![Health::Ok])?;
        kit.sim.outside(&Outside::Impair.to(&id)).map_err(|refusal| refusal.code)?;
        equal(statuses()?, vec![Health::Impaired])?;
        kit.sim.outside(&Outside::Recover.to(&id)).map_err(|refusal| refusal.code)?;
        equal(statuses()?, vec![Health::Ok])?;
        kit.call("StopInstances", &[("InstanceId.1", &id)])?;
        equal(statuses()?, vec![])
    });
}

/// Source: EC2 user guide, "Scheduled events for Amazon EC2 instances"; `API_DescribeInstanceStatus`.
#[test]
fn a_scheduled_event_is_seen_in_the_status_and_found_by_its_code() {
    both_ways(Truth::ScheduledEvents, |truths| {
        let kit = Kit::new(truths);
        let (id, _other) = (kit.running()?, kit.running()?);
        let not_before = "2026-03-09T00:00:00Z".parse().unwrap();
        let event = Outside::Schedule { code: "instance-retirement".into(), not_before };
        kit.sim.outside(&event.to(&id)).map_err(|refusal| refusal.code)?;
        let by_code = [("Filter.1.Name", "event.code"), ("Filter.1.Value.1", "instance-retirement")];
        let seen = kit.statuses(&by_code)?;
        equal(seen.iter().map(|view| (view.id.clone(), view.events.len())).collect(), vec![(id, 1)])
    });
}

/// Source: EC2 error-code reference, `IncorrectInstanceState`.
#[test]
fn an_instance_is_stopped_started_and_rebooted_only_from_a_state_that_allows_it() {
    both_ways(Truth::InstanceStateRefusals, |truths| {
        let kit = Kit::new(truths);
        let id = kit.run(&[])?;
        let instance = [("InstanceId.1", id.as_str())];
        kit.refuses("IncorrectInstanceState", "StopInstances", &instance)?;
        kit.refuses("IncorrectInstanceState", "RebootInstances", &instance)?;
        kit.pass(10);
        kit.refuses("ok", "StopInstances", &instance)?;
        kit.refuses("IncorrectInstanceState", "StartInstances", &instance)?;
        kit.refuses("ok", "TerminateInstances", &instance)?;
        kit.refuses("IncorrectInstanceState", "StopInstances", &instance)?;
        kit.refuses("ok", "TerminateInstances", &instance)
    });
}

/// Source: EC2 user guide, "Terminate Amazon EC2 instances": a terminated instance stays visible for a while,
/// about an hour.
#[test]
fn a_terminated_instance_is_visible_for_an_hour_and_then_gone() {
    both_ways(Truth::TerminatedVisibleForAnHour, |truths| {
        let kit = Kit::new(truths);
        let id = kit.running()?;
        kit.call("TerminateInstances", &[("InstanceId.1", &id)])?;
        kit.pass(10);
        kit.pass(3599);
        equal(kit.listed(&[("InstanceId.1", &id)])?, vec![id.clone()])?;
        kit.pass(1);
        kit.refuses("InvalidInstanceID.NotFound", "DescribeInstances", &[("InstanceId.1", &id)])?;
        check(kit.listed(&[])?.is_empty(), "still in the list")
    });
}

/// Source: EC2 user guide, "Preserve data when an instance is terminated".
#[test]
fn deletion_on_termination_is_honoured_per_mapping() {
    both_ways(Truth::DeleteOnTermination, |truths| {
        let kit = Kit::new(truths);
        let id = kit.run(&[
            ("BlockDeviceMapping.1.DeviceName", "/dev/xvda"),
            ("BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true"),
            ("BlockDeviceMapping.2.DeviceName", "/dev/xvdb"),
            ("BlockDeviceMapping.2.Ebs.VolumeSize", "5"),
            ("BlockDeviceMapping.2.Ebs.DeleteOnTermination", "false"),
        ])?;
        kit.pass(10);
        equal(kit.instance(&id)?.attachments.len(), 2)?;
        kit.call("TerminateInstances", &[("InstanceId.1", &id)])?;
        kit.pass(20);
        let left: Vec<_> =
            kit.sim.volumes().iter().map(|volume| (volume.shape.size, volume.state.as_str())).collect();
        equal(left, vec![(5, "available")])
    });
}

/// Source: EBS user guide, "Detach an Amazon EBS volume from an EC2 instance"; the volumes of a terminating
/// instance are detached when it is terminated.
#[test]
fn the_volumes_of_a_terminating_instance_are_held_until_it_is_terminated() {
    both_ways(Truth::VolumesHeldUntilTerminated, |truths| {
        let kit = Kit::new(truths);
        let (id, volume) = (kit.running()?, kit.available(&[])?);
        equal(kit.attach(&volume, &id, "/dev/xvdba").as_str(), "ok")?;
        kit.pass(10);
        kit.call("TerminateInstances", &[("InstanceId.1", &id)])?;
        kit.pass(9);
        equal(kit.volume(&volume)?.state.as_str(), "in-use")?;
        kit.refuses("VolumeInUse", "DeleteVolume", &[("VolumeId", &volume)])?;
        kit.pass(1);
        equal(kit.volume(&volume)?.state.as_str(), "available")
    });
}
