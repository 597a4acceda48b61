//! The volumes on real devices, in a machine that is only a mount namespace.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ec2sim::{Delays, Options, Response, Simulator};
use tempfile::TempDir;

use super::sync::Ec2View;
use super::*;
use crate::base::error_chain::chain;

const ZONE: &str = "us-east-1a";

/// One machine at a time: a new mount namespace holds a copy of every mount of this host, another test's pool
/// among them, whose loop device then stays in use until that machine has ended.
static TURN: Mutex<()> = Mutex::new(());

/// An account, its volumes and the machine of its one instance.
struct Kit {
    simulator: Simulator,
    disks: Disks,
    instance: String,
    machine: Machine,
    folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// A mount namespace with a /dev/disk of its own, held by a process; dropped, both end.
struct Machine {
    leader: Child,
}

impl Machine {
    fn boot() -> Self {
        let script = "mkdir -p /dev/disk && mount -t tmpfs machine /dev/disk && mkdir /dev/disk/by-id && \
            echo ready && exec cat";
        let mut leader = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(leader.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { leader }
    }

    /// Runs a script in the machine; its output, or its errors.
    fn sh(&self, script: &str, args: &[&str]) -> Result<String, String> {
        let leader = self.leader.id().to_string();
        let mut command = Command::new("nsenter");
        let output = command
            .args(["--mount", "--target", &leader, "sh", "-ec", script, "sh"])
            .args(args)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    fn end(&mut self) {
        self.leader.kill().unwrap();
        self.leader.wait().unwrap();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.end();
    }
}

/// `None`, and says so, where the volumes cannot be real.
fn kit() -> Option<Kit> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let disks = match Disks::open(folder.path()) {
        Ok(disks) => disks,
        Err(error) if std::env::var_os("FREEHOLD_NODES").is_some_and(|value| value == "real") => {
            panic!("{}", chain(&error))
        }
        Err(error) => {
            eprintln!("SKIPPED: this machine cannot make block devices: {}", chain(&error));
            return None;
        }
    };
    let simulator = Simulator::new(Options { delays: Delays::zero(), ..Options::default() }).unwrap();
    let launched = simulator.call(
        "test",
        &[
            ("Action", "RunInstances"),
            ("ImageId", "ami-0000000000000000a"),
            ("InstanceType", "r7i.large"),
            ("MinCount", "1"),
            ("MaxCount", "1"),
            ("SubnetId", "subnet-0a000000000000000"),
        ],
    );
    let Response::RunInstances(reservation) = launched.unwrap() else { unreachable!() };
    let instance = reservation.instances[0].id.clone();
    Some(Kit { simulator, disks, instance, machine: Machine::boot(), folder, _turn: turn })
}

impl Kit {
    fn call(&self, action: &str, params: &[(&str, &str)]) -> Response {
        let params: Vec<(&str, &str)> =
            [("Action", action)].into_iter().chain(params.iter().copied()).collect();
        self.simulator.call("test", &params).unwrap()
    }

    fn volume(&self, params: &[(&str, &str)]) -> String {
        let params: Vec<(&str, &str)> = [("AvailabilityZone", ZONE), ("VolumeType", "gp3")]
            .into_iter()
            .chain(params.iter().copied())
            .collect();
        let Response::Volume(volume) = self.call("CreateVolume", &params) else { unreachable!() };
        volume.id
    }

    fn follow(&self) {
        let machines = Leaders::from([(self.instance.clone(), self.machine.leader.id())]);
        self.disks.lock().follow(&Ec2View::of(&self.simulator), &machines);
    }

    fn attach(&self, volume: &str, device: &str) {
        self.call(
            "AttachVolume",
            &[("VolumeId", volume), ("InstanceId", &self.instance), ("Device", device)],
        );
        self.follow();
    }

    /// The path of the volume's device in the machine, and where it is mounted.
    fn paths(&self, volume: &str) -> [String; 2] {
        let device = format!("/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{}", volume.replace('-', ""));
        [device, self.folder.path().join(volume).to_string_lossy().into_owned()]
    }

    fn mount(&self, volume: &str, format: bool) -> String {
        let [device, place] = self.paths(volume);
        let script = "[ -z \"$3\" ] || mkfs.xfs -q \"$1\"; mkdir -p \"$2\"; mount \"$1\" \"$2\"";
        self.machine.sh(script, &[&device, &place, if format { "format" } else { "" }]).unwrap();
        place
    }

    fn reboot(&mut self) {
        self.machine = Machine::boot();
        self.follow();
    }
}

#[test]
fn an_attached_volume_has_its_name_in_its_machine_alone_and_grows_while_it_is_used() {
    let Some(kit) = kit() else { return };
    let volume = kit.volume(&[("Size", "1")]);
    kit.follow();
    let [device, _] = kit.paths(&volume);
    assert!(kit.machine.sh("ls \"$1\"", &[&device]).is_err());

    kit.attach(&volume, "/dev/xvdba");
    assert_eq!(kit.machine.sh("blockdev --getsize64 \"$1\"", &[&device]).unwrap(), (1 << 30).to_string());
    assert!(!Path::new(&device).exists(), "the name is on the host");
    assert!(Machine::boot().sh("ls \"$1\"", &[&device]).is_err());

    let place = kit.mount(&volume, true);
    kit.call("ModifyVolume", &[("VolumeId", &volume), ("Size", "2")]);
    kit.follow();
    let size = "xfs_growfs \"$1\" > /dev/null; df --output=size --block-size=1M \"$1\" | tail -1";
    let size: u32 = kit.machine.sh(size, &[&place]).unwrap().parse().unwrap();
    assert!((1900..=2048).contains(&size), "{size} MiB");

    kit.machine.sh("umount \"$1\"", &[&place]).unwrap();
    kit.call("DetachVolume", &[("VolumeId", &volume)]);
    kit.follow();
    assert!(kit.machine.sh("ls \"$1\"", &[&device]).is_err());
    assert_eq!(kit.disks.violations(), []);
    kit.call("DeleteVolume", &[("VolumeId", &volume)]);
    kit.follow();
    assert!(!kit.disks.file(&volume).exists());
}

#[test]
fn a_power_cut_keeps_what_the_device_was_given_and_loses_the_rest() {
    let Some(mut kit) = kit() else { return };
    let volume = kit.volume(&[("Size", "1")]);
    kit.attach(&volume, "/dev/xvdba");
    let place = kit.mount(&volume, true);
    kit.machine.sh("cd \"$1\"; echo kept > kept; sync kept .; echo lost > lost", &[&place]).unwrap();

    kit.disks.cut_power(&kit.instance).unwrap();
    kit.machine.end();
    kit.reboot();
    let place = kit.mount(&volume, false);
    assert_eq!(kit.machine.sh("cat \"$1\"/*", &[&place]).unwrap(), "kept");
    assert_eq!(kit.disks.violations(), []);
}

#[test]
fn a_volume_that_is_taken_while_it_is_mounted_is_a_violation_and_cannot_be_written_any_more() {
    let Some(kit) = kit() else { return };
    let volume = kit.volume(&[("Size", "1")]);
    kit.attach(&volume, "/dev/xvdba");
    let place = kit.mount(&volume, true);
    kit.call("DetachVolume", &[("VolumeId", &volume), ("Force", "true")]);
    kit.follow();

    let violations = kit.disks.violations();
    let seen: Vec<_> =
        violations.iter().map(|one| (one.volume.clone(), one.instance.clone(), one.places.clone())).collect();
    assert_eq!(seen, [(volume.clone(), kit.instance.clone(), vec![place.clone()])]);
    let error = kit.machine.sh("cd \"$1\"; echo late > late; sync late", &[&place]).unwrap_err();
    assert!(error.contains("Input/output error"), "{error}");
    let [device, _] = kit.paths(&volume);
    assert!(kit.machine.sh("ls \"$1\"", &[&device]).is_err());
}

#[test]
fn a_machine_that_ec2_shows_as_terminated_may_still_be_ending() {
    let Some(kit) = kit() else { return };
    let volume = kit.volume(&[("Size", "1")]);
    kit.attach(&volume, "/dev/xvdba");
    kit.mount(&volume, true);
    kit.call("TerminateInstances", &[("InstanceId.1", &kit.instance)]);
    kit.follow();
    assert!(kit.simulator.volume(&volume).unwrap().attachment.is_none());
    assert_eq!(kit.disks.violations(), []);
}

#[test]
fn a_snapshot_has_the_bytes_of_its_moment_and_a_volume_made_from_it_has_them_too() {
    let Some(kit) = kit() else { return };
    let volume = kit.volume(&[("Size", "1")]);
    kit.attach(&volume, "/dev/xvdba");
    let place = kit.mount(&volume, true);
    kit.machine.sh("cd \"$1\"; echo before > before; sync before .", &[&place]).unwrap();
    let Response::Snapshot(snapshot) = kit.call("CreateSnapshot", &[("VolumeId", &volume)]) else {
        unreachable!()
    };
    kit.follow();
    kit.machine
        .sh("cd \"$1\"; echo after > after; rm before; sync after .; cd /; umount \"$1\"", &[&place])
        .unwrap();

    let copy = kit.volume(&[("Size", "2"), ("SnapshotId", &snapshot.id)]);
    kit.attach(&copy, "/dev/xvdbb");
    let place = kit.mount(&copy, false);
    assert_eq!(kit.machine.sh("cat \"$1\"/*", &[&place]).unwrap(), "before");
    kit.call("DeleteSnapshot", &[("SnapshotId", &snapshot.id)]);
    kit.follow();
    assert!(!kit.disks.file(&snapshot.id).exists());
}

#[test]
fn the_bytes_are_there_again_after_the_box_was_restarted_or_killed() {
    let Some(mut kit) = kit() else { return };
    let volume = kit.volume(&[("Size", "1")]);
    kit.attach(&volume, "/dev/xvdba");
    let place = kit.mount(&volume, true);
    kit.machine.sh("cd \"$1\"; echo kept > kept; cd /; umount \"$1\"", &[&place]).unwrap();
    kit.machine.end();

    // As a killed box leaves it: mounted, with its devices.
    let before = std::mem::replace(&mut kit.disks, Disks::open(kit.folder.path()).unwrap());
    std::mem::forget(before);
    kit.reboot();
    let place = kit.mount(&volume, false);
    assert_eq!(kit.machine.sh("cat \"$1\"/*", &[&place]).unwrap(), "kept");

    kit.machine.end();
    let folder = kit.folder.path().to_owned();
    drop(std::mem::replace(&mut kit.disks, Disks::open(tempfile::tempdir().unwrap().path()).unwrap()));
    // The kernel lets go of a device a moment after the last mount namespace that held it.
    let is_free = || {
        let list = Command::new("losetup").arg("--list").output().unwrap();
        !String::from_utf8_lossy(&list.stdout).contains(&*folder.to_string_lossy())
    };
    let until = Instant::now() + Duration::from_secs(10);
    while !is_free() {
        assert!(Instant::now() < until, "the pool's loop device is still there");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!std::fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&*folder.to_string_lossy()));
}
