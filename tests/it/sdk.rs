//! The simulator as AWS' own SDKs for Python and Go see it: other people's clients must find nothing strange.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use ec2sim::{Options, Simulator};
use freehold_box::cluster::shared;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::kit::installed::{done, python};

fn sdk(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ec2sim/sdk").join(language)
}

/// Runs a command against a simulator of its own; a program that is missing is a failure, never a skipped
/// test.
fn against_a_simulator(mut command: Command) {
    shared::run(async {
        let simulator = Simulator::new(Options::default()).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let (server, stopped) = (simulator.clone(), stop.clone());
        tokio::spawn(async move { server.serve(listener, stopped).await });
        command
            .env("AWS_ENDPOINT_URL_EC2", endpoint)
            .env("AWS_REGION", "us-east-1")
            .env("AWS_DEFAULT_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", "AKIASDKCHECK").env("AWS_SECRET_ACCESS_KEY", "of-nothing");
        tokio::task::spawn_blocking(move || done(&mut command)).await.unwrap();
        assert!(!simulator.journal().is_empty(), "the check never came to the simulator");
        stop.cancel();
    });
}

#[test]
fn boto3_finds_nothing_strange() {
    let mut command = Command::new(python(&sdk("python").join("requirements.txt")));
    command.arg(sdk("python").join("check.py"));
    against_a_simulator(command);
}

#[test]
fn the_sdk_for_go_finds_nothing_strange() {
    let mut command = Command::new("go");
    command.args(["run", "-mod=readonly", "."]).current_dir(sdk("go"));
    against_a_simulator(command);
}
