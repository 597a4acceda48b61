//! A real machine: namespaces and control groups of this host in which containerd and a kubelet run as on an
//! instance of EC2.
//!
//! ```text
//!   SiteResources (what the machines of a site share) ──► Machine::boot(spec)
//!        disk folder ─► network ─► control groups ─► init.sh in new namespaces ─► services; on the first boot: user data
//! ```
//!
//! A machine's disk is a folder that lives as long as its instance. What it has: files.rs. How its namespaces
//! look: init.sh. How user data makes it a node: bootstrap.sh. Where everything goes in the end, whatever
//! happened: base/host_cleanup.sh.

mod cgroups;
mod error;
mod files;
mod namespaces;
mod services;
mod spec;
mod user_data;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin};
use tokio::sync::Mutex;

pub use box_materials::requirements::missing;
pub use error::Error;
pub use spec::{Console, SiteResources, Spec};

use crate::machines::network::{self, Veth};
use cgroups::Groups;
use files::Disk;
use namespaces::{Namespaces, clean, joining};
use services::{Services, send};

/// How long a machine's namespaces may take to be set up: 0.2 s, many times that on a host that compiles
/// meanwhile.
const INIT_LIMIT: Duration = Duration::from_secs(60);
/// How often the end of a machine's processes is looked at.
const POLL: Duration = Duration::from_millis(50);

/// The kubelet's folder in a machine. Mounts in it reach the pods.
pub const KUBELET_FOLDER: &str = "/var/lib/kubelet";

/// The kubelet's service.
pub const KUBELET: &str = "kubelet";
/// containerd's service.
pub const CONTAINERD: &str = "containerd";

/// A machine that was booted; dropped, it is killed.
#[derive(Debug)]
pub struct Machine {
    resources: Arc<SiteResources>,
    spec: Spec,
    veth: Veth,
    groups: Groups,
    namespaces: Namespaces,
    holder: Mutex<Child>,
    // The holder ends when this does.
    _holder_stdin: Option<ChildStdin>,
    services: Arc<Services>,
    is_over: AtomicBool,
}

impl Machine {
    /// Boots it: makes or finds its disk, sets up its namespaces, starts its services, and on its first boot
    /// runs its user data in the background. Returns after about 0.3 s, when programs can run in it; its Node
    /// is Ready about 2 s later.
    pub async fn boot(resources: Arc<SiteResources>, spec: Spec, console: Console) -> Result<Self, Error> {
        let short = short(&spec.instance);
        let veth = Veth {
            name: resources.network.name_of(short),
            address: spec.private_ip,
            pods: resources.network.pods(spec.slot),
        };
        let doing = format!("make the control groups of {}", spec.instance);
        let groups = Groups::create(resources.network.number(), short).map_err(network::system(doing))?;
        // From here on its drop removes what was made so far.
        let mut making = Making { resources: &resources, veth: &veth, groups: &groups, is_done: false };
        let disk = Disk::at(&spec.disk);
        disk.make(&resources.template).await?;
        disk.write(&resources, &spec, &groups.path(), &veth.pods)?;
        resources.network.connect(&veth).await?;
        let (mut holder, holder_stdin) = init(&resources, &spec, &disk, &veth, &groups)?;
        wait_for_init(&spec, &mut holder).await?;
        making.is_done = true;
        drop(making);

        let namespaces =
            Namespaces { holder: holder.id().unwrap_or_default(), cgroup_files: groups.cgroup_files() };
        let services = Arc::new(Services::new(namespaces.clone(), disk.services(), disk.logs()));
        services.start_enabled();
        let (holder, is_over) = (Mutex::new(holder), AtomicBool::new(false));
        let machine = Self {
            resources,
            spec,
            veth,
            groups,
            namespaces,
            holder,
            _holder_stdin: holder_stdin,
            services,
            is_over,
        };
        if !disk.was_initialised() {
            disk.remember_initialised().map_err(network::system("remember that the user data was run"))?;
            user_data::start(
                machine.namespaces.clone(),
                machine.services.clone(),
                machine.spec.user_data.clone(),
                console,
            );
        }
        Ok(machine)
    }

    /// Which machine it is.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The process that holds its namespaces: `/proc/<pid>/ns/mnt` is the machine's.
    pub fn pid(&self) -> u32 {
        self.namespaces.holder
    }

    /// A command that runs `program` in the machine: in its namespaces and its control groups, as root. The
    /// process that it starts is the program itself, and it is killed with the machine.
    pub fn enter(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        self.namespaces.command(program)
    }

    /// Starts a service of the machine, or keeps it running that was stopped: [`KUBELET`], [`CONTAINERD`], or
    /// any program in /etc/freehold-box/services. One that ends is started again after 2 s.
    pub fn start_service(&self, name: &str) {
        self.services.start(name);
    }

    /// Stops a service until it is started again or the machine boots.
    pub async fn stop_service(&self, name: &str) {
        self.services.stop(name).await;
    }

    /// Kills the process of a service, and says whether there was one; it is started again after 2 s.
    pub fn kill_service(&self, name: &str) -> bool {
        let process = self.services.process(name);
        send(process, Signal::SIGKILL);
        process.is_some()
    }

    /// The process of a service that runs.
    pub fn service(&self, name: &str) -> Option<u32> {
        self.services.process(name)
    }

    /// Gives the machine so much memory, in MiB, and no more.
    ///
    /// # Errors
    /// If the kernel does not let it, for example since more is in use.
    pub fn limit_memory(&self, limit: u64) -> std::io::Result<()> {
        self.groups.limit_memory(limit)
    }

    /// The machine hangs: all its processes stand still.
    pub async fn freeze(&self) {
        let groups = self.groups.clone();
        blocking(move || groups.freeze()).await;
    }

    /// It goes on.
    pub async fn thaw(&self) {
        let groups = self.groups.clone();
        blocking(move || groups.thaw()).await;
    }

    /// Its network is cut: it and its pods reach nothing, and nothing reaches them.
    pub async fn cut_network(&self) -> Result<(), Error> {
        Ok(self.resources.network.cut(&self.veth).await?)
    }

    /// Its network works again.
    pub async fn restore_network(&self) -> Result<(), Error> {
        Ok(self.resources.network.restore(&self.veth).await?)
    }

    /// Shuts down as an operating system does: services stop, containers are asked to end, what is left after
    /// `grace` is killed, and file systems are unmounted. Nothing of the machine ever runs again.
    pub async fn shut_down(&self, grace: Duration) {
        let started = Instant::now();
        self.thaw().await;
        let _ = tokio::time::timeout(grace, self.services.stop_all()).await;
        cgroups::signal(&self.groups.pod_processes(), Signal::SIGTERM);
        while started.elapsed() < grace && !self.groups.pod_processes().is_empty() {
            tokio::time::sleep(POLL).await;
        }
        self.end().await;
    }

    /// The power goes: all processes stand still at once, `meanwhile` is called (the disks then have what
    /// they have), and nothing of the machine ever runs again.
    pub async fn cut_power(&self, meanwhile: impl FnOnce() + Send + 'static) {
        self.services.abandon();
        let groups = self.groups.clone();
        blocking(move || {
            groups.freeze();
            meanwhile();
        })
        .await;
        self.end().await;
    }

    async fn end(&self) {
        self.services.abandon();
        // Held until it is over: another task may end it at the same time.
        let mut holder = self.holder.lock().await;
        let groups = self.groups.clone();
        if !blocking(move || groups.kill()).await {
            tracing::warn!(instance = self.spec.instance, "some processes of a machine could not be killed");
        }
        // Its mounts are gone when it is.
        let _ = holder.wait().await;
        self.resources.network.disconnect(&self.veth).await;
        self.groups.remove();
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if !self.is_over.load(Ordering::Relaxed) {
            self.services.abandon();
            remove(&self.resources, &self.veth, &self.groups);
        }
    }
}

/// Removes a machine that is being made, should that fail or be given up.
struct Making<'a> {
    resources: &'a SiteResources,
    veth: &'a Veth,
    groups: &'a Groups,
    is_done: bool,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            remove(self.resources, self.veth, self.groups);
        }
    }
}

/// Kills and removes, without waiting for anything but the processes.
fn remove(resources: &SiteResources, veth: &Veth, groups: &Groups) {
    groups.kill();
    groups.remove();
    resources.network.disconnect_now(veth);
}

/// What a machine's things are called: the part of an instance's id that differs from others, short enough
/// for an interface's name.
fn short(instance: &str) -> &str {
    instance.get(instance.len().saturating_sub(8)..).unwrap_or(instance)
}

/// Starts the process that sets the namespaces up and holds them.
fn init(
    resources: &SiteResources,
    spec: &Spec,
    disk: &Disk,
    veth: &Veth,
    groups: &Groups,
) -> Result<(Child, Option<ChildStdin>), Error> {
    let mut command = joining(&groups.cgroup_files());
    command.arg("nsenter").arg(format!("--net={}", veth.namespace().display())).arg("--");
    command
        .args(["unshare", "--mount", "--uts", "--propagation", "private", "--", "/bin/sh"])
        .arg(disk.init());
    command.arg(disk.folder()).args([
        &spec.private_dns,
        &machine_id(&spec.instance),
        &spec.private_ip.to_string(),
    ]);
    command.arg(resources.network.gateway().to_string()).args(&resources.programs);
    clean(&mut command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut holder = tokio::process::Command::from(command).spawn().map_err(network::system(
        "start a \
        machine",
    ))?;
    let holder_stdin = holder.stdin.take();
    Ok((holder, holder_stdin))
}

async fn wait_for_init(spec: &Spec, holder: &mut Child) -> Result<(), Error> {
    let failed = |output: String| Error::Boot { instance: spec.instance.clone(), output };
    let (Some(stdout), Some(mut stderr)) = (holder.stdout.take(), holder.stderr.take()) else {
        return Err(failed("its init has no output".to_owned()));
    };
    let mut lines = BufReader::new(stdout).lines();
    match tokio::time::timeout(INIT_LIMIT, lines.next_line()).await {
        Ok(Ok(Some(line))) if line == "ready" => Ok(()),
        Ok(_) => {
            let mut output = String::new();
            let _ = stderr.read_to_string(&mut output).await;
            Err(failed(output.trim().to_owned()))
        }
        Err(_) => Err(failed(format!("its init was not ready within {} s", INIT_LIMIT.as_secs()))),
    }
}

/// 32 hexadecimal digits (machine-id(5)), the same at each boot of an instance.
fn machine_id(instance: &str) -> String {
    let digits: String = instance.chars().filter(char::is_ascii_hexdigit).collect();
    format!("{digits:0>32}")
}

async fn blocking<T: Default + Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap_or_default()
}
