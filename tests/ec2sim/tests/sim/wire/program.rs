//! The program: one line when it listens, calls answered, a stop in good order.

use std::{fs, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::Command,
};

/// Far more than it ever takes.
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn it_prints_one_line_takes_up_its_faults_and_stops_when_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let faults = folder.path().join("faults.json");
    fs::write(&faults, r#"[{"action": "DescribeSubnets", "effect": "throttle"}]"#).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_ec2sim"))
        .args(["serve", "--listen", "127.0.0.1:0", "--speed", "0", "--delays", "zero", "--rate", "0"])
        .arg("--journal")
        .arg(folder.path().join("journal.jsonl"))
        .arg("--state")
        .arg(folder.path().join("state"))
        .arg("--faults")
        .arg(&faults)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut output = BufReader::new(program.stdout.take().unwrap());
    let mut line = String::new();
    tokio::time::timeout(PATIENCE, output.read_line(&mut line)).await.unwrap().unwrap();
    let address = line.trim_end().strip_prefix("ec2sim listening on http://").unwrap().to_owned();

    let request = format!(
        "GET /?Action=DescribeSubnets&X-Amz-Credential=tester%2F1 HTTP/1.1\r\nHost: \
            {address}\r\nConnection: close\r\n\r\n"
    );
    let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");

    let id = program.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
    let status = tokio::time::timeout(PATIENCE, program.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");
    let mut rest = String::new();
    output.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "");
    let journal = fs::read_to_string(folder.path().join("journal.jsonl")).unwrap();
    assert_eq!(journal.lines().count(), 1);
    assert!(folder.path().join("state/state.json").exists());
}
