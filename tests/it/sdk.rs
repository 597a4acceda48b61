//! The simulator as AWS' own SDKs for Python and Go see it: other people's clients must find nothing strange.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use ec2sim::{Options, Simulator};
use freehold_box::base::cache::Cache;
use freehold_box::cluster::shared;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

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

fn done(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| {
        panic!(
            "{command:?}: {error}; install it to run this test (Debian: python3 with python3-venv; Go \
            from go.dev)"
        )
    });
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{command:?} ended with {}:\n{}\n{}", output.status, said[0], said[1]);
}

/// A Python with what the check needs, made once for each content of its requirements.
fn python() -> PathBuf {
    let requirements = sdk("python").join("requirements.txt");
    let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(std::fs::read(&requirements).unwrap()));
    let folder = Cache::from_environment().tools().parent().unwrap().join("python").join(&hash[..16]);
    let (python, whole) = (folder.join("bin/python3"), folder.join("whole"));
    if !whole.exists() {
        std::fs::create_dir_all(&folder).unwrap();
        done(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
        done(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--requirement"])
                .arg(&requirements),
        );
        std::fs::write(whole, "").unwrap();
    }
    python
}

#[test]
fn boto3_finds_nothing_strange() {
    let mut command = Command::new(python());
    command.arg(sdk("python").join("check.py"));
    against_a_simulator(command);
}

#[test]
fn the_sdk_for_go_finds_nothing_strange() {
    let mut command = Command::new("go");
    command.args(["run", "-mod=readonly", "."]).current_dir(sdk("go"));
    against_a_simulator(command);
}
