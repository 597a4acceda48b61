//! Faults as a client on the wire meets them, and what the journal says of them.

use std::time::Duration;

use ec2sim::{
    ApiError, AttachmentState, Effect, Fate, Fault, InstanceState, ModificationState, Options, Outside,
    Response, Sight, Simulator, SnapshotState, TagMatch, VolumeState,
};

use super::http::{RUN, Server, options};

fn fates(sim: &Simulator) -> Vec<(String, Fate)> {
    sim.journal().into_iter().map(|entry| (entry.answer, entry.fate)).collect()
}

#[tokio::test]
async fn a_call_that_is_dropped_before_does_nothing() {
    let server = Server::start(options()).await;
    server.sim.add_fault(Fault::on("RunInstances", Effect::DropBefore).nth(1));
    server.call(&RUN).await.unwrap_err();
    assert_eq!(server.sim.instances().len(), 0);
    assert_eq!(server.call(&RUN).await.unwrap().status, 200);
    assert_eq!(fates(&server.sim), [("none".into(), Fate::Blocked), ("ok".into(), Fate::Committed)]);
    assert_eq!(server.sim.journal()[0].faults, ["fault-1"]);
    server.stop().await;
}

#[tokio::test]
async fn a_call_whose_answer_is_dropped_is_done_and_the_same_token_finds_it() {
    let server = Server::start(options()).await;
    server.sim.add_fault(Fault::on("RunInstances", Effect::ApplyThenDrop).nth(1));
    server.call(&RUN).await.unwrap_err();
    let id = server.sim.instances()[0].id.clone();
    let again = server.call(&RUN).await.unwrap();
    assert_eq!(again.text("instanceId"), Some(id.as_str()));
    assert_eq!(server.sim.instances().len(), 1);
    assert_eq!(fates(&server.sim), [("ok".into(), Fate::Lost), ("ok".into(), Fate::Committed)]);
    server.stop().await;
}

#[tokio::test]
async fn a_call_that_is_applied_late_makes_what_the_client_gave_up_on() {
    let server = Server::start(options()).await;
    server.sim.add_fault(Fault::on("RunInstances", Effect::ApplyLate { seconds: 600.0 }));
    server.call(&RUN).await.unwrap_err();
    server.sim.advance(Duration::from_secs(599));
    assert_eq!(server.sim.instances().len(), 0);
    server.sim.advance(Duration::from_secs(1));
    assert_eq!(server.sim.instances().len(), 1);
    let journal = server.sim.journal();
    assert_eq!((journal[0].fate, journal[1].fate, journal[1].late_of), (Fate::Blocked, Fate::Lost, Some(1)));
    server.stop().await;
}

#[tokio::test]
async fn an_answer_that_ends_in_the_middle_is_no_answer() {
    let server = Server::start(options()).await;
    server.sim.add_fault(Fault::on("DescribeInstances", Effect::TruncatedXml).nth(1));
    let list = [("Action", "DescribeInstances")];
    let answer = server.call(&list).await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(!answer.body.contains("</DescribeInstancesResponse>"));
    assert!(server.call(&list).await.unwrap().body.ends_with("</DescribeInstancesResponse>"));
    server.stop().await;
}

#[tokio::test]
async fn a_delayed_answer_comes_when_its_time_has_come() {
    let server = Server::start(options()).await;
    server.sim.add_fault(Fault::on("RunInstances", Effect::Delay { seconds: 30.0 }));
    let mut truth = server.sim.changes();
    let mut call = Box::pin(server.call(&RUN));
    tokio::select! {
        answer = &mut call => panic!("answered at once: {answer:?}"),
        changed = truth.changed() => changed.unwrap(),
    }
    assert_eq!(server.sim.instances().len(), 1);
    server.sim.advance(Duration::from_secs(30));
    assert_eq!(call.await.unwrap().status, 200);
    server.stop().await;
}

#[tokio::test]
async fn an_error_is_answered_as_asked_and_nothing_is_done() {
    let server = Server::start(options()).await;
    let fault = Effect::Error { code: "InternalError".into(), message: String::new() };
    server.sim.add_fault(Fault::on("RunInstances", fault).nth(1));
    server.sim.add_fault(Fault::on("RunInstances", Effect::Throttle).nth(2));
    let answer = server.call(&RUN).await.unwrap();
    assert_eq!((answer.status, answer.text("Code")), (500, Some("InternalError")));
    let answer = server.call(&RUN).await.unwrap();
    assert_eq!((answer.status, answer.text("Code")), (503, Some("RequestLimitExceeded")));
    assert_eq!(server.sim.instances().len(), 0);
    assert_eq!(fates(&server.sim)[0], ("InternalError".into(), Fate::Refused));
    server.stop().await;
}

fn code(result: Result<ec2sim::Response, ApiError>) -> String {
    result.map_or_else(|error| error.code().unwrap_or("none").to_owned(), |_| "ok".to_owned())
}

fn run(sim: &Simulator, token: &str, more: &[(&str, &str)]) -> String {
    let mut params: Vec<_> = RUN.into_iter().filter(|(key, _)| *key != "ClientToken").collect();
    params.extend_from_slice(more);
    params.push(("ClientToken", token));
    code(sim.call("tester", &params))
}

#[test]
fn capacity_can_be_out_for_a_type_in_a_zone() {
    let sim = Simulator::new(options()).unwrap();
    let out =
        Effect::CapacityOut { instance_type: Some("r7i.large".into()), zone: Some("us-east-1b".into()) };
    let (a, b) = (("SubnetId", "subnet-0a000000000000000"), ("SubnetId", "subnet-0b000000000000000"));
    assert_eq!(run(&sim, "before", &[b]), "ok");
    sim.add_fault(Fault::always(out));
    assert_eq!(run(&sim, "x", &[b]), "InsufficientInstanceCapacity");
    assert_eq!(run(&sim, "before", &[b]), "ok", "a known token needs no capacity");
    assert_eq!(run(&sim, "x", &[a]), "ok");
    sim.clear_faults();
    assert_eq!(run(&sim, "x", &[b]), "ok");
}

#[test]
fn a_quota_refuses_even_a_known_token() {
    let sim = Simulator::new(options()).unwrap();
    assert_eq!(run(&sim, "x", &[]), "ok");
    sim.add_fault(Fault::on("RunInstances", Effect::Quota { code: "VcpuLimitExceeded".into() }).count(1));
    assert_eq!(run(&sim, "x", &[]), "VcpuLimitExceeded");
    assert_eq!(run(&sim, "x", &[]), "ok");
}

#[test]
fn a_launch_dies_and_a_volume_vanishes() {
    let sim = Simulator::new(options()).unwrap();
    sim.add_fault(Fault::on("RunInstances", Effect::LaunchDies { code: "Client.InternalError".into() }));
    sim.add_fault(Fault::on("CreateVolume", Effect::VolumeVanishes { seconds: 60.0 }));
    assert_eq!(run(&sim, "x", &[]), "ok");
    let volume = [("Action", "CreateVolume"), ("AvailabilityZone", "us-east-1a"), ("Size", "1")];
    assert_eq!(code(sim.call("tester", &volume)), "ok");
    sim.advance(Duration::from_secs(59));
    assert_eq!(sim.instances()[0].state, InstanceState::Terminated);
    assert_eq!(sim.volumes().iter().map(|volume| volume.state).collect::<Vec<_>>(), [VolumeState::Creating]);
    sim.advance(Duration::from_secs(1));
    assert_eq!(sim.volumes(), []);
}

#[test]
fn what_a_call_began_ends_badly() {
    let sim = Simulator::new(options()).unwrap();
    sim.add_fault(Fault::on("CreateVolume", Effect::Fails).nth(2));
    sim.add_fault(Fault::on("CreateSnapshot", Effect::Fails).nth(1));
    sim.add_fault(Fault::on("ModifyVolume", Effect::Fails).nth(1));
    let volume = [("Action", "CreateVolume"), ("AvailabilityZone", "us-east-1a"), ("Size", "1")];
    assert_eq!(code(sim.call("tester", &volume)), "ok");
    assert_eq!(code(sim.call("tester", &volume)), "ok");
    sim.advance(Duration::from_secs(1));
    let states: Vec<_> = sim.volumes().iter().map(|volume| volume.state).collect();
    assert_eq!(states, [VolumeState::Available, VolumeState::Error]);
    let id = sim.volumes()[0].id.clone();
    assert_eq!(code(sim.call("tester", &[("Action", "CreateSnapshot"), ("VolumeId", &id)])), "ok");
    let modify = [("Action", "ModifyVolume"), ("VolumeId", &id), ("Size", "2")];
    assert_eq!(code(sim.call("tester", &modify)), "ok");
    sim.advance(Duration::from_secs(1));
    assert_eq!(sim.snapshots()[0].state, SnapshotState::Error);
    let volume = sim.volume(&id).unwrap();
    assert_eq!((volume.shape.size, volume.modifications[0].state), (1, ModificationState::Failed));
    assert_eq!(code(sim.call("tester", &modify)), "ok", "the next one may begin");
}

#[test]
fn an_attachment_hangs_until_it_is_forced() {
    let sim = Simulator::new(options()).unwrap();
    assert_eq!(run(&sim, "x", &[]), "ok");
    let volume = [("Action", "CreateVolume"), ("AvailabilityZone", "us-east-1a"), ("Size", "1")];
    assert_eq!(code(sim.call("tester", &volume)), "ok");
    sim.advance(Duration::from_secs(1));
    let (instance, volume) = (sim.instances()[0].id.clone(), sim.volumes()[1].id.clone());
    let attachment = || sim.volume(&volume).unwrap().attachment.map(|held| held.state);
    sim.add_fault(Fault::on("AttachVolume", Effect::Hangs).nth(1));
    sim.add_fault(Fault::on("DetachVolume", Effect::Hangs).nth(1));
    let attach = [
        ("Action", "AttachVolume"),
        ("VolumeId", volume.as_str()),
        ("InstanceId", instance.as_str()),
        ("Device", "/dev/xvdba"),
    ];
    let detach = [("Action", "DetachVolume"), ("VolumeId", volume.as_str())];
    assert_eq!(code(sim.call("tester", &attach)), "ok");
    sim.advance(Duration::from_mins(10));
    assert_eq!(attachment(), Some(AttachmentState::Attaching));
    assert_eq!(code(sim.call("tester", &detach)), "ok");
    sim.advance(Duration::from_mins(10));
    assert_eq!(attachment(), Some(AttachmentState::Detaching));
    assert_eq!(code(sim.call("tester", &[&detach[..], &[("Force", "true")]].concat())), "ok");
    sim.advance(Duration::from_secs(1));
    assert_eq!(attachment(), None);
}

#[test]
fn a_stop_hangs_until_it_is_forced() {
    let sim = Simulator::new(options()).unwrap();
    assert_eq!(run(&sim, "x", &[]), "ok");
    sim.advance(Duration::from_secs(1));
    let id = sim.instances()[0].id.clone();
    sim.add_fault(Fault::on("StopInstances", Effect::Hangs));
    let stop = [("Action", "StopInstances"), ("InstanceId.1", id.as_str())];
    assert_eq!(code(sim.call("tester", &stop)), "ok");
    sim.advance(Duration::from_mins(10));
    assert_eq!(sim.instances()[0].state, InstanceState::Stopping);
    assert_eq!(code(sim.call("tester", &[&stop[..], &[("Force", "true")]].concat())), "ok");
    sim.advance(Duration::from_secs(1));
    assert_eq!(sim.instances()[0].state, InstanceState::Stopped);
}

#[test]
fn a_stop_and_a_termination_take_longer_though_they_are_forced() {
    let sim = Simulator::new(options()).unwrap();
    assert_eq!(run(&sim, "x", &[]), "ok");
    sim.advance(Duration::from_secs(1));
    let id = sim.instances()[0].id.clone();
    let fault = sim.add_fault(Fault::on("StopInstances", Effect::Lingers { seconds: 600.0 }));
    let stop = [("Action", "StopInstances"), ("InstanceId.1", id.as_str()), ("Force", "true")];
    assert_eq!(code(sim.call("tester", &stop)), "ok");
    sim.advance(Duration::from_secs(599));
    assert_eq!(sim.instances()[0].state, InstanceState::Stopping);
    sim.advance(Duration::from_secs(2));
    assert_eq!(sim.instances()[0].state, InstanceState::Stopped);
    sim.clear_fault(&fault);
    sim.add_fault(Fault::on("TerminateInstances", Effect::Lingers { seconds: 600.0 }));
    let terminate = [("Action", "TerminateInstances"), ("InstanceId.1", id.as_str())];
    assert_eq!(code(sim.call("tester", &terminate)), "ok");
    sim.advance(Duration::from_secs(599));
    assert_eq!(sim.instances()[0].state, InstanceState::ShuttingDown);
    sim.advance(Duration::from_secs(2));
    assert_eq!(sim.instances()[0].state, InstanceState::Terminated);
}

#[test]
fn a_stale_read_shows_what_was_and_changes_nothing() {
    let sim = Simulator::new(Options { past: Duration::from_mins(1), ..options() }).unwrap();
    assert_eq!(run(&sim, "x", &[]), "ok");
    sim.advance(Duration::from_secs(30));
    let id = sim.instances()[0].id.clone();
    let stale = sim.add_fault(Fault::on("DescribeInstances", Effect::Stale { seconds: 10.0 }));
    let terminate = [("Action", "TerminateInstances"), ("InstanceId.1", id.as_str())];
    assert_eq!(code(sim.call("tester", &terminate)), "ok");
    sim.advance(Duration::from_secs(5));
    let shown = || {
        let answer = sim.call("tester", &[("Action", "DescribeInstances")]).unwrap();
        let Response::Instances(page) = answer else { panic!("{answer:?}") };
        page.items[0].instances[0].state
    };
    assert_eq!(shown(), InstanceState::Running);
    assert_eq!(sim.instances()[0].state, InstanceState::Terminated);
    sim.advance(Duration::from_secs(10));
    assert_eq!(shown(), InstanceState::Terminated);
    sim.clear_fault(&stale);
    assert_eq!(shown(), InstanceState::Terminated);
}

#[test]
fn a_resource_is_invisible_in_the_way_that_was_asked_for() {
    let sim = Simulator::new(options()).unwrap();
    sim.add_fault(Fault::on("RunInstances", Effect::Invisible { sight: Sight::Id, seconds: 60.0 }).nth(1));
    assert_eq!(run(&sim, "x", &[]), "ok");
    let id = sim.instances()[0].id.clone();
    let by_id = || code(sim.call("tester", &[("Action", "DescribeInstances"), ("InstanceId.1", &id)]));
    assert_eq!(by_id(), "InvalidInstanceID.NotFound");
    sim.advance(Duration::from_mins(1));
    assert_eq!(by_id(), "ok");
    sim.outside(&Outside::Hide { sight: Sight::All, seconds: 10.0 }.to(&id)).unwrap();
    assert_eq!(by_id(), "InvalidInstanceID.NotFound");
}

#[test]
fn something_happens_from_outside_after_a_call() {
    let sim = Simulator::new(options()).unwrap();
    let tags = Outside::Tag { set: [("owner".to_owned(), "thief".to_owned())].into(), remove: vec![] };
    sim.add_fault(Fault::on("RunInstances", Effect::Then { seconds: 20.0, action: tags.to("") }));
    sim.add_fault(Fault::on(
        "RunInstances",
        Effect::Then { seconds: 30.0, action: Outside::Terminate.to("") },
    ));
    assert_eq!(run(&sim, "x", &[]), "ok");
    sim.advance(Duration::from_secs(20));
    assert_eq!(sim.instances()[0].tags["owner"], "thief");
    assert_eq!(sim.instances()[0].state, InstanceState::Running);
    sim.advance(Duration::from_secs(11));
    assert_eq!(sim.instances()[0].state, InstanceState::Terminated);
}

#[test]
fn a_fault_hits_only_the_calls_that_fit() {
    let sim = Simulator::new(options()).unwrap();
    let tag = Some(TagMatch { key: "owner".into(), value: Some("me".into()) });
    let fault = Fault { tag, caller: Some("tester".into()), ..Fault::on("RunInstances", Effect::DropBefore) };
    sim.add_fault(fault.nth(2).count(2));
    let owned = |owner| {
        [
            ("TagSpecification.1.ResourceType", "instance"),
            ("TagSpecification.1.Tag.1.Key", "owner"),
            ("TagSpecification.1.Tag.1.Value", owner),
        ]
    };
    let codes: Vec<_> =
        ["me", "you", "me", "me", "me"].into_iter().map(|owner| run(&sim, owner, &owned(owner))).collect();
    assert_eq!(codes, ["ok", "ok", "none", "none", "ok"]);
}

#[test]
fn a_probability_is_drawn_from_the_seed() {
    let hits = |seed| {
        let sim = Simulator::new(ec2sim::Options { seed, ..options() }).unwrap();
        sim.add_fault(Fault { probability: Some(0.5), ..Fault::always(Effect::DropBefore) });
        (0..64).map(|_| code(sim.call("tester", &[("Action", "DescribeSubnets")]))).collect::<Vec<_>>()
    };
    let lost = hits(1).iter().filter(|code| *code == "none").count();
    assert!((16..48).contains(&lost), "{lost} of 64");
    assert_eq!(hits(1), hits(1));
    assert_ne!(hits(1), hits(2));
}
