//! `verify` against this simulator: everything that it asks holds, and each truth that is taken out is seen.

use std::{collections::BTreeSet, time::Duration};

use ec2sim::{
    Clock, InstanceState, Options, Simulator, Truth, Truths,
    verify::{Report, Settings, Verdict, Wanted, Whom, clean, run},
};
use strum::IntoEnumIterator as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A simulator that answers on a port of its own, with everything as the program has it but the clock, which
/// is stepped.
async fn serve(truths: Truths) -> (Simulator, Settings) {
    let sim = Simulator::new(Options { clock: Clock::Manual, truths, ..Options::default() }).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let served = sim.clone();
    tokio::spawn(async move { served.serve(listener, CancellationToken::new()).await });
    let settings = Settings {
        whom: Whom::Endpoint(endpoint.parse().unwrap()),
        region: "us-east-1".to_owned(),
        wanted: Wanted::default(),
        only: Vec::new(),
        is_long: false,
        takes_rates: false,
        patience: Duration::from_mins(10),
    };
    (sim, settings)
}

async fn asked(settings: &Settings) -> Report {
    run(settings, &CancellationToken::new()).await.unwrap()
}

/// Everything but what a terminated instance leaves for an hour.
fn left(sim: &Simulator) -> Vec<String> {
    let live = sim.instances().into_iter().filter(|view| view.state != InstanceState::Terminated);
    let mut left: Vec<String> = live.map(|view| view.id).collect();
    left.extend(sim.volumes().into_iter().map(|view| view.id));
    left.extend(sim.snapshots().into_iter().map(|view| view.id));
    left
}

#[tokio::test]
async fn everything_that_is_asked_holds_here_and_nothing_is_left() {
    let (sim, settings) = serve(Truths::all()).await;
    let report = asked(&settings).await;
    let truths: Vec<Truth> = report.verdicts.iter().map(|(truth, _)| *truth).collect();
    assert_eq!(truths, Truth::iter().collect::<Vec<_>>());
    for (truth, verdict) in &report.verdicts {
        assert!(matches!(verdict, Verdict::Holds | Verdict::NotSeen(_)), "{truth:?}: {verdict:?}");
    }
    assert_eq!(report.left, Vec::<String>::new());
    assert_eq!(left(&sim), Vec::<String>::new());
    let untagged = sim.instances().into_iter().filter(|view| !view.tags.contains_key("ec2sim-verify"));
    assert_eq!(untagged.map(|view| view.id).collect::<Vec<_>>(), Vec::<String>::new());
}

#[tokio::test]
async fn each_truth_that_is_asked_about_is_seen_to_differ_when_it_is_taken_out() {
    let mut seen = BTreeSet::new();
    for truth in Truth::iter() {
        let (sim, mut settings) = serve(Truths::all().without(truth)).await;
        settings.only = vec![truth];
        let (_, verdict) = asked(&settings).await.verdicts.remove(0);
        assert!(matches!(verdict, Verdict::Differs(_) | Verdict::NotSeen(_)), "{truth:?}: {verdict:?}");
        if matches!(verdict, Verdict::Differs(_)) {
            seen.insert(truth);
        }
        assert_eq!(left(&sim), Vec::<String>::new(), "{truth:?} leaves something behind");
    }
    assert!(seen.len() > 40, "only {} truths are asked about", seen.len());
}

#[tokio::test]
async fn a_run_that_is_stopped_removes_what_it_has_made() {
    let (sim, settings) = serve(Truths::all()).await;
    let stop = CancellationToken::new();
    let mut changes = sim.changes();
    let stopping = async {
        while sim.instances().is_empty() {
            changes.changed().await.unwrap();
        }
        stop.cancel();
    };
    let (report, ()) = tokio::join!(run(&settings, &stop), stopping);
    let report = report.unwrap();
    let interrupted = Verdict::NotAsked("the run was interrupted".to_owned());
    assert_eq!(report.verdicts.last().unwrap().1, interrupted);
    assert_eq!((report.left, left(&sim)), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn what_an_earlier_run_left_is_removed_by_its_id_and_nothing_else_is() {
    let (sim, settings) = serve(Truths::all()).await;
    let volume = |value: &str| {
        let params = [
            ("Action", "CreateVolume"),
            ("AvailabilityZone", "us-east-1a"),
            ("Size", "1"),
            ("TagSpecification.1.ResourceType", "volume"),
            ("TagSpecification.1.Tag.1.Key", "ec2sim-verify"),
            ("TagSpecification.1.Tag.1.Value", value),
        ];
        sim.call("killed", &params).unwrap().resource_ids().remove(0)
    };
    let (_, kept) = (volume("one"), volume("another"));
    clean(&settings, "*").await.unwrap_err();
    assert_eq!(clean(&settings, "one").await, Ok(Vec::new()));
    assert_eq!(left(&sim), [kept]);
}

#[tokio::test]
async fn nothing_is_made_on_aws_without_agreement_and_no_endpoint_is_aws() {
    let (_, mut settings) = serve(Truths::all()).await;
    settings.whom = Whom::Aws { is_agreed: false };
    let refused = run(&settings, &CancellationToken::new()).await.unwrap_err();
    assert!(refused.contains("--yes-create-and-pay"), "{refused}");
    settings.whom = Whom::Endpoint("https://ec2.us-east-1.amazonaws.com".parse().unwrap());
    let refused = run(&settings, &CancellationToken::new()).await.unwrap_err();
    assert!(refused.contains("--aws"), "{refused}");
}
