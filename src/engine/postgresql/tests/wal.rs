//! The archive of the write-ahead log: what the start has the server do, and the way of its files there and
//! back.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::program;
use super::start::{Container, INITDB, SERVES};
use crate::engine::postgresql::WAL;

/// The variables of a pod that archives.
const ARCHIVES: [(&str, &str); 3] =
    [("WAL_ARCHIVE", "s3://backups/one"), ("WAL_ARCHIVE_FOLDER", "vol-1"), ("WAL_ARCHIVE_INTERVAL", "300")];

fn paths<'a>(variables: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a Path)> {
    variables.iter().map(|(name, value)| (*name, Path::new(*value))).collect()
}

/// The server's options of an archive, as it is called with them.
fn options() -> String {
    let archive = "-c archive_mode=on -c archive_command=/bin/sh /etc/freehold/wal.sh archive %p";
    format!("-c allow_alter_system=off {archive} -c archive_timeout=300 ")
}

#[test]
fn the_server_archives_where_the_image_has_the_program() {
    let container = Container::new();
    let output = container.start_with(&paths(&ARCHIVES));
    assert!(output.status.success(), "what serves does not depend on its archive");
    assert!(String::from_utf8_lossy(&output.stderr).contains("barman-cloud-wal-archive is not in the image"));
    assert_eq!(container.calls(), format!("{INITDB}{SERVES}"));

    program(&container.path("bin"), "barman-cloud-wal-archive", "exit 0");
    container.starts(&paths(&ARCHIVES));
    let archives = SERVES.replace("-c allow_alter_system=off ", &options());
    assert_eq!(container.calls(), format!("{INITDB}{SERVES}{archives}"));
}

/// A container with data of a backup, and the variables by which that is recovered.
fn restored() -> (Container, Vec<(&'static str, String)>) {
    let container = Container::new();
    container.starts(&[]);
    fs::write(container.path("password"), "a-password").unwrap();
    container.is_on_timeline(1);
    fs::create_dir(container.path("scripts")).unwrap();
    let variables = [
        ("POSTGRES_NEW_CREDENTIALS", "uid".to_owned()),
        ("POSTGRES_PASSWORD_FILE", container.path("password").display().to_string()),
        ("RECOVERING", container.path("recovering").display().to_string()),
        ("SCRIPTS", container.path("scripts").display().to_string()),
        ("WAL_RECOVERY", "snap-1".to_owned()),
        ("WAL_RECOVERY_ARCHIVE", "s3://backups/before".to_owned()),
        ("WAL_RECOVERY_FOLDER", "vol-0".to_owned()),
        ("WAL_RECOVERY_TARGET", "recovery_target_lsn=0/3000148".to_owned()),
    ];
    (container, variables.to_vec())
}

impl Container {
    /// What the file of control says.
    fn is_on_timeline(&self, number: i32) {
        let says = format!(
            "echo 'Latest checkpoint location:           0/2000028'
            echo \"Latest checkpoint's REDO WAL file:    {number:08}0000000000000002\""
        );
        program(&self.path("bin"), "pg_controldata", &says);
    }

    /// What its script of the archive does.
    fn archive(&self, body: &str) {
        program(&self.path("scripts"), "wal.sh", body);
    }
}

fn starts(container: &Container, variables: &[(&'static str, String)]) -> Output {
    let variables: Vec<(&str, &Path)> = variables.iter().map(|(name, it)| (*name, Path::new(it))).collect();
    container.start_with(&variables)
}

#[test]
fn data_is_recovered_once_by_the_server_alone_before_its_password_is_set() {
    let (container, variables) = restored();
    let signal = container.volume().join("17/data/recovery.signal");
    let refused = starts(&container, &variables);
    assert!(!refused.status.success(), "without the program nothing would be found");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("barman-cloud-wal-restore is not in the image"), "{said}");
    assert!(!container.calls().contains("uid"));

    program(&container.path("bin"), "barman-cloud-wal-restore", "exit 0");
    container.archive("exit 1");
    let refused = starts(&container, &variables);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("s3://backups/before/vol-0 does not give 000000010000000000000002"), "{said}");
    assert!(!signal.exists() && !refused.status.success(), "what is not archived cannot be recovered");
    container.archive(": >$3");
    // The machine is lost in the middle of it.
    program(&container.path("bin"), "postgres", "exit 1");
    assert!(!starts(&container, &variables).status.success());
    assert!(signal.exists() && container.path("recovering").exists(), "the probes know of it");
    // And again, once PostgreSQL has removed the file, and before its first checkpoint on the new timeline.
    fs::remove_file(&signal).unwrap();
    container.archive("exit 1");
    assert!(!starts(&container, &variables).status.success(), "it is looked at again");
    container.archive(": >$3");
    assert!(!starts(&container, &variables).status.success());
    assert!(signal.exists(), "it is begun again");
    for (name, value) in [("WAL_RECOVERY", "snap-2"), ("WAL_RECOVERY", ""), ("POSTGRES_NEW_CREDENTIALS", "")]
    {
        let mut other = variables.clone();
        other.iter_mut().find(|(it, _)| *it == name).unwrap().1 = value.to_owned();
        let said = String::from_utf8_lossy(&starts(&container, &other).stderr).into_owned();
        assert!(said.contains("is being recovered for snap-1"), "{name}={value}: {said}");
    }
    let ends = format!(
        "echo \"postgres $*\" >>\"$CALLS\"; case $1 in --single) cat >>\"$CALLS\"; rm -f {};; esac",
        signal.display()
    );
    program(&container.path("bin"), "postgres", &ends);
    let before = container.calls().len();
    assert!(starts(&container, &variables).status.success());
    let calls = container.calls().split_off(before);
    let recovers = calls.lines().next().unwrap();
    for option in [
        "--single -D VOLUME/17/data",
        "/scripts/wal.sh restore %f %p -c recovery_target_timeline=current ",
        " -c recovery_target_action=promote ",
        " -c recovery_target_lsn=0/3000148 ",
        " -c hot_standby=off ",
    ] {
        assert!(recovers.contains(option), "{option}: {recovers}");
    }
    assert!(calls.contains("ALTER ROLE") && calls.ends_with(SERVES), "{calls}");
    assert!(!container.path("recovering").exists());

    container.is_on_timeline(2);
    // Another restart recovers nothing, nor does one that sets another password.
    let before = container.calls().len();
    let mut other = variables.clone();
    other[0].1 = "uid-back".to_owned();
    assert!(starts(&container, &variables).status.success() && starts(&container, &other).status.success());
    let calls = container.calls().split_off(before);
    assert!(!calls.contains("restore_command") && calls.contains("ALTER ROLE"), "{calls}");
    assert!(!signal.exists());
}

#[test]
fn data_that_is_restored_from_another_snapshot_is_recovered_again() {
    let (container, variables) = restored();
    container.put("17/recovery", "snap-0 000000010000000000000001\n");
    container.is_on_timeline(2);
    container.archive(": >$3");
    program(&container.path("bin"), "barman-cloud-wal-restore", "exit 0");
    assert!(starts(&container, &variables).status.success());
    assert!(container.calls().contains("restore_command"));
}

#[test]
fn a_position_that_is_not_later_than_the_backup_is_refused() {
    for (position, is_later) in
        [("0/2000028", false), ("0/1FFFFFF", false), ("0/2000029", true), ("1/0", true)]
    {
        let (container, mut variables) = restored();
        container.archive(": >$3");
        program(&container.path("bin"), "barman-cloud-wal-restore", "exit 0");
        let target = variables.iter_mut().find(|(name, _)| *name == "WAL_RECOVERY_TARGET").unwrap();
        target.1 = format!("recovery_target_lsn={position}");
        let output = starts(&container, &variables);
        assert_eq!(output.status.success(), is_later, "{position}: {output:?}");
        assert_eq!(container.calls().contains("recovery_target_lsn"), is_later, "{position}");
    }
}

/// Runs the script of the archive with programs that end so, and say how they were called.
fn wal(words: &[&str], ends: i32, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let folder = TempDir::new().unwrap();
    for name in ["barman-cloud-wal-archive", "barman-cloud-wal-restore"] {
        program(folder.path(), name, &format!("echo \"$AWS_ACCESS_KEY_ID $*\"; exit {ends}"));
    }
    fs::write(folder.path().join("AWS_ACCESS_KEY_ID"), "an-id\n").unwrap();
    let output = Command::new("/bin/sh")
        .args(["-c", WAL, "wal.sh"])
        .args(words)
        .env_clear()
        .env("PATH", format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap()))
        .env("WAL_ARCHIVE_CREDENTIALS", folder.path())
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_file_goes_to_the_folder_of_the_volume_with_the_credentials_of_now() {
    let called = "an-id --gzip s3://backups/one vol-1 pg_wal/0001\n".to_owned();
    assert_eq!(wal(&["archive", "pg_wal/0001"], 0, &ARCHIVES), (Some(0), called));
    let elsewhere = [&ARCHIVES[..], &[("WAL_ARCHIVE_ENDPOINT", "http://s3:9000")]].concat();
    let called = "an-id --gzip --endpoint-url http://s3:9000 s3://backups/one vol-1 pg_wal/0001\n".to_owned();
    assert_eq!(wal(&["archive", "pg_wal/0001"], 4, &elsewhere), (Some(4), called));
}

#[test]
fn only_a_file_that_the_archive_does_not_have_is_the_end_of_the_log() {
    let recovers = [("WAL_RECOVERY_ARCHIVE", "s3://backups/before"), ("WAL_RECOVERY_FOLDER", "vol-0")];
    let called = "an-id s3://backups/before vol-0 0001 pg_wal/RECOVERYXLOG\n";
    for (ends, expected) in [(0, 0), (1, 1), (2, 255), (4, 255), (127, 255)] {
        let answer = wal(&["restore", "0001", "pg_wal/RECOVERYXLOG"], ends, &recovers);
        assert_eq!(answer, (Some(expected), called.to_owned()), "{ends}");
    }
}
