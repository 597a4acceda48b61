//! Real machines: they boot from user data, hang, lose power and network, come back, and leave nothing
//! behind.
//!
//! All share one site, on a control plane of its own: the CSI driver acts on every object of its name. On a
//! host that cannot have them each says so and passes; with `FREEHOLD_NODES=real` in the environment it
//! fails.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ec2sim::{InstanceState, Outside};
use freehold_box::account::node_kind;
use freehold_box::account::{Machines, Real, Site, SiteOptions, user_data};
use freehold_box::base::cache::Cache;
use freehold_box::base::progress::Progress;
use freehold_box::cluster::control_plane::{ControlPlane, ControlPlaneOptions};
use freehold_box::cluster::shared;
use freehold_box::machines::machine::{KUBELET, Machine};
use k8s_openapi::api::core::v1::Node;
use kube::{Client, ResourceExt as _};
use tokio::sync::OnceCell;

use crate::world::{launch, node, node_with_ready, turn, until};

static SITE: OnceCell<(ControlPlane, Site)> = OnceCell::const_new();

/// Like [`user_data::DEDICATED`], and counts how often it was run.
const COUNTING: &str = "\
#!/bin/sh
echo once >>/var/lib/runs
echo \"hello from $(hostname)\"
exec /opt/freehold-box/bootstrap --node-labels test/dedicated=true --register-with-taints test/dedicated=:NoExecute,test/more=yes:NoSchedule
";

/// The shared site with its cluster.
struct World {
    site: &'static Site,
    client: Client,
}

/// Runs a test where real machines can be had.
fn with_machines(test: impl AsyncFnOnce(World)) {
    if !node_kind::can_be_real("a test of real machines") {
        return;
    }
    shared::run(async {
        let _turn = turn().await;
        on_the_site(test).await;
    });
}

async fn on_the_site(test: impl AsyncFnOnce(World)) {
    let (control_plane, site) = SITE.get_or_init(start).await;
    test(World { site, client: control_plane.client() }).await;
}

async fn start() -> (ControlPlane, Site) {
    let real = Real::ensure(&Cache::from_environment(), &Progress::on_stderr()).await.unwrap();
    let mut options = SiteOptions { real: Some(real), ..SiteOptions::fast() };
    // A machine shuts down in its own time, as on EC2.
    options.simulator.delays.stopping = Duration::from_secs(5);
    options.simulator.delays.shutting_down = Duration::from_secs(5);
    let control_plane = ControlPlane::start(ControlPlaneOptions::named("real")).await.unwrap();
    let site = Site::start(&control_plane, options).await.unwrap();
    (control_plane, site)
}

impl World {
    fn machines(&self) -> &Machines {
        self.site.machines().unwrap()
    }

    fn outside(&self, what: &Outside, instance: &str) {
        self.site.simulator().outside(&what.clone().to(instance)).unwrap();
    }

    async fn ready(&self, instance: &str, status: &str) -> Node {
        node_with_ready(&self.client, instance, status).await
    }

    async fn machine(&self, instance: &str) -> Arc<Machine> {
        until("the machine running", || async { self.machines().get(instance) }).await
    }

    /// The machine of another boot than the one that this process held.
    async fn booted_again(&self, instance: &str, before: u32) -> Arc<Machine> {
        until("the machine of another boot", || async {
            self.machines().get(instance).filter(|machine| machine.pid() != before)
        })
        .await
    }

    async fn end(&self, instance: &str) {
        self.site
            .simulator()
            .call("test", &[("Action", "TerminateInstances"), ("InstanceId.1", instance)])
            .unwrap();
        until("the Node's deletion", || async { node(&self.client, instance).await.is_none().then_some(()) })
            .await;
    }
}

/// What a program says that runs in a machine.
fn says(machine: &Machine, command: &str) -> String {
    let output = machine.enter("sh").args(["-c", command]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_real_machine_boots_and_joins_as_its_user_data_says_and_leaves_nothing() {
    with_machines(async |world| {
        let started = Instant::now();
        let instance = launch(world.site, COUNTING);
        let found = world.ready(&instance, "True").await;
        eprintln!("Ready {} ms after RunInstances", started.elapsed().as_millis());

        let truth = world.site.simulator().instance(&instance).unwrap();
        assert_eq!(found.name_any(), truth.private_dns);
        let spec = found.spec.as_ref().unwrap();
        assert_eq!(spec.provider_id, Some(format!("aws:///{}/{instance}", truth.zone)));
        let taints: HashSet<_> =
            spec.taints.iter().flatten().map(|taint| (taint.key.as_str(), taint.effect.as_str())).collect();
        assert!(
            taints
                .is_superset(&HashSet::from([("test/dedicated", "NoExecute"), ("test/more", "NoSchedule")])),
            "{taints:?}"
        );
        for (label, value) in [
            ("test/dedicated", "true"),
            ("topology.kubernetes.io/zone", truth.zone.as_str()),
            ("topology.kubernetes.io/region", "us-east-1"),
            ("node.kubernetes.io/instance-type", "r7i.large"),
        ] {
            assert_eq!(found.labels().get(label).map(String::as_str), Some(value), "{label}");
        }
        let console = until("the console", || async {
            Some(world.site.simulator().instance(&instance)?.console)
                .filter(|console| console.contains("user-data: done"))
        })
        .await;
        assert!(console.contains(&format!("hello from {}", truth.private_dns)), "{console}");

        let machine = world.machine(&instance).await;
        // What the machine changes of the host's is its own.
        assert_eq!(says(&machine, "echo mine >/etc/mine && cat /etc/mine"), "mine");
        assert!(!Path::new("/etc/mine").exists());
        assert_eq!(says(&machine, "touch /root/x 2>/dev/null || echo refused"), "refused");
        let pools = says(&machine, "grep --count /volumes/pool /proc/self/mountinfo || true");
        assert_eq!(pools, "0", "a site of which another one's machine holds the volumes cannot start again");

        let (disk, pid) = (machine.spec().disk.clone(), machine.pid());
        drop(machine);
        world.end(&instance).await;
        until("the disk's end", || async { (!disk.exists()).then_some(()) }).await;
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    });
}

#[test]
fn a_real_machine_keeps_its_files_and_never_runs_user_data_again() {
    with_machines(async |world| {
        let instance = launch(world.site, COUNTING);
        world.ready(&instance, "True").await;
        let machine = world.machine(&instance).await;
        assert_eq!(
            says(&machine, "echo kept >/var/lib/file; echo volatile >/run/file; cat /var/lib/runs"),
            "once"
        );

        world.outside(&Outside::Reboot, &instance);
        let again = world.booted_again(&instance, machine.pid()).await;
        assert_eq!(says(&again, "cat /var/lib/runs /var/lib/file /run/file 2>/dev/null"), "once\nkept");
        until("the kubelet", || async { again.service(KUBELET) }).await;
        world.ready(&instance, "True").await;

        let call = |action: &str| {
            world.site.simulator().call("test", &[("Action", action), ("InstanceId.1", instance.as_str())])
        };
        call("StopInstances").unwrap();
        until("the machine's end", || async { world.machines().get(&instance).is_none().then_some(()) })
            .await;
        world.ready(&instance, "Unknown").await;
        until("stopped", || async {
            let state = world.site.simulator().instance(&instance)?.state;
            (state == InstanceState::Stopped).then_some(())
        })
        .await;
        call("StartInstances").unwrap();
        let node = world.ready(&instance, "True").await;
        let again = world.booted_again(&instance, again.pid()).await;
        assert_eq!(says(&again, "cat /var/lib/runs /var/lib/file /run/file 2>/dev/null"), "once\nkept");
        assert_eq!(node.name_any(), again.spec().private_dns);
        world.end(&instance).await;
    });
}

#[test]
fn a_real_machine_without_power_is_silent_until_it_is_rebooted() {
    with_machines(async |world| {
        let instance = launch(world.site, COUNTING);
        world.ready(&instance, "True").await;
        let before = world.machine(&instance).await.pid();
        assert!(world.machines().cut_power(&instance).await);
        assert!(!Path::new(&format!("/proc/{before}")).exists());
        world.ready(&instance, "Unknown").await;
        assert_eq!(world.site.simulator().instance(&instance).unwrap().state, InstanceState::Running);
        assert!(world.machines().get(&instance).is_none());
        world.outside(&Outside::Reboot, &instance);
        world.ready(&instance, "True").await;
        world.end(&instance).await;
    });
}

#[test]
fn a_real_machine_that_is_cut_off_or_hangs_comes_back_by_itself() {
    with_machines(async |world| {
        let instance = launch(world.site, COUNTING);
        world.ready(&instance, "True").await;
        let machine = world.machine(&instance).await;
        machine.cut_network().await.unwrap();
        world.ready(&instance, "Unknown").await;
        machine.restore_network().await.unwrap();
        world.ready(&instance, "True").await;

        world.outside(&Outside::Impair, &instance);
        world.ready(&instance, "Unknown").await;
        world.outside(&Outside::Recover, &instance);
        world.ready(&instance, "True").await;
        assert_eq!(world.machine(&instance).await.pid(), machine.pid());
        world.end(&instance).await;
    });
}

#[test]
fn a_killed_kubelet_comes_back_by_itself_and_a_stopped_one_does_not() {
    with_machines(async |world| {
        let instance = launch(world.site, COUNTING);
        world.ready(&instance, "True").await;
        let machine = world.machine(&instance).await;
        let before = machine.service(KUBELET).unwrap();
        assert!(machine.kill_service(KUBELET));
        until("another kubelet", || async { machine.service(KUBELET).filter(|process| *process != before) })
            .await;
        world.ready(&instance, "True").await;

        machine.stop_service(KUBELET).await;
        world.ready(&instance, "Unknown").await;
        assert_eq!(machine.service(KUBELET), None);
        machine.start_service(KUBELET);
        world.ready(&instance, "True").await;
        world.end(&instance).await;
    });
}

#[test]
fn a_real_machine_with_bad_user_data_never_joins_and_its_console_says_why() {
    with_machines(async |world| {
        let cases = [
            ("#freehold-box/v1\nlabels: {}\n", "not run"),
            ("#!/bin/sh\necho broken >&2\nexit 3\n", "broken"),
            (
                "#!/bin/sh\n/opt/freehold-box/bootstrap --register-with-taints nonsense\n",
                "the taint nonsense",
            ),
        ];
        for (text, expected) in cases {
            let instance = launch(world.site, text);
            let console = until("the console's line", || async {
                Some(world.site.simulator().instance(&instance)?.console)
                    .filter(|console| console.contains("user-data: "))
            })
            .await;
            assert!(console.contains(expected), "{console}");
            let machine = world.machine(&instance).await;
            assert_eq!(machine.service(KUBELET), None);
            assert!(node(&world.client, &instance).await.is_none());
            world.end(&instance).await;
        }
    });
}

/// Not a test: what [`nothing_is_left_of_a_box_that_was_killed`] starts, and kills. It runs in the turn of that
/// one: two of both would wait for each other.
#[test]
#[ignore = "another test starts and kills it"]
fn holds_a_site_until_it_is_killed() {
    shared::run(on_the_site(async |world| {
        let instance = launch(world.site, user_data::DEDICATED);
        world.ready(&instance, "True").await;
        let machine = world.machine(&instance).await;
        println!("\nheld {} {}", world.machines().number(), machine.spec().disk.display());
        tokio::time::sleep(Duration::from_mins(5)).await;
    }));
}

#[test]
fn nothing_is_left_of_a_box_that_was_killed() {
    with_machines(async |_| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "real::holds_a_site_until_it_is_killed", "--ignored", "--nocapture"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let held = lines.find_map(|line| line.unwrap().strip_prefix("held ").map(str::to_owned)).unwrap();
        let (number, disk) = held.split_once(' ').unwrap();
        let traces = || traces(number, Path::new(disk));
        assert!(!traces().is_empty());

        child.kill().unwrap();
        child.wait().unwrap();
        let started = Instant::now();
        while !traces().is_empty() {
            assert!(started.elapsed() < Duration::from_secs(20), "left after 20 s: {:?}", traces());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        eprintln!("nothing was left {} ms after the kill", started.elapsed().as_millis());
    });
}

/// Everything on this host that belongs to the machines of a site.
fn traces(number: &str, disk: &Path) -> Vec<String> {
    let listed = |folder: &str, is_one: &dyn Fn(&str) -> bool| -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_one(name))
            .map(|name| format!("{folder}/{name}"))
            .collect()
    };
    let is_ours = |name: &str| name == format!("fh{number}") || name.starts_with(&format!("fh{number}-"));
    let mut found = listed("/sys/class/net", &is_ours);
    found.extend(listed("/run/netns", &is_ours));
    for group in listed("/sys/fs/cgroup", &|_| true).into_iter().chain(["/sys/fs/cgroup".to_owned()]) {
        found.extend(listed(&format!("{group}/freehold-box"), &|name| name == number));
    }
    let folder = disk.parent().unwrap().display().to_string();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let loops =
        Command::new("losetup").args(["--list", "--noheadings", "--output", "BACK-FILE"]).output().unwrap();
    let loops = String::from_utf8_lossy(&loops.stdout).into_owned();
    found
        .extend(mounts.lines().chain(loops.lines()).filter(|line| line.contains(&folder)).map(str::to_owned));
    found.extend(disk.exists().then(|| disk.display().to_string()));
    found
}
