//! The state folder and the journal's file over a restart.

use std::{fs, time::Duration};

use ec2sim::{Effect, Fault, InstanceState, JournalEntry, Options, Simulator};

use super::http::{RUN, Server, options};

#[tokio::test]
async fn the_state_is_taken_up_and_time_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let kept = || Options { state: Some(folder.path().join("state")), ..options() };
    let server = Server::start(kept()).await;
    server.call(&RUN).await.unwrap();
    server.sim.advance(Duration::from_millis(100));
    let (before, now) = (server.sim.instances(), server.sim.now());
    server.stop().await;

    let sim = Simulator::new(kept()).unwrap();
    assert_eq!(sim.now(), now);
    assert_eq!(sim.instances(), before);
    let again = sim.call("tester", &RUN).unwrap();
    assert_eq!(again.resource_ids(), [before[0].id.clone()], "the token is remembered");
    sim.advance(Duration::from_millis(100));
    assert_eq!(sim.instances()[0].state, InstanceState::Running, "what was under way goes on");
}

#[test]
fn a_simulator_that_is_killed_has_forgotten_nothing_that_it_answered() {
    let folder = tempfile::tempdir().unwrap();
    let kept = || Options { state: Some(folder.path().to_owned()), ..options() };
    let killed = Simulator::new(kept()).unwrap();
    killed.add_fault(Fault::on("CreateVolume", Effect::ApplyLate { seconds: 60.0 }));
    killed.call("tester", &RUN).unwrap();
    let volume = [("Action", "CreateVolume"), ("AvailabilityZone", "us-east-1a"), ("Size", "1")];
    killed.call("tester", &volume).unwrap_err();
    // Nobody tells it that it is over.
    let next = Simulator::new(kept()).unwrap();
    assert_eq!(next.instances(), killed.instances());
    next.advance(Duration::from_mins(1));
    assert_eq!(next.volumes().len(), 2, "the root volume, and the one that was sent");
}

#[test]
fn the_journals_file_has_a_line_for_each_call_and_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let with_journal = || Options { journal: Some(path.clone()), ..options() };
    for _ in 0..2 {
        Simulator::new(with_journal()).unwrap().call("tester", &RUN).unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    let numbers: Vec<u64> =
        text.lines().map(|line| serde_json::from_str::<JournalEntry>(line).unwrap().seq).collect();
    assert_eq!(numbers, [1, 2]);
}
