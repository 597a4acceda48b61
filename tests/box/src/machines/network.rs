//! The network of real machines on this host: a number of its own, addresses, a way to the API server, and
//! for each machine a pair of virtual interfaces.
//!
//! ```text
//!   10.<N>.0.1   fh<N>            the host as the machines see it: API server and EC2, forwarded to the loopback
//!   10.<N>.x.y   fh<N>-<short>    a machine: a network namespace at the end of a veth, at its instance's private address
//!   10.<128+N>.k.0/24             its pods, routed through it
//! ```
//!
//! Everything here belongs to network namespaces or to interfaces named after the number: no rule of the
//! host's firewall is touched.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The numbers of sites with real machines. Those below are for sites with virtual machines, which count
/// within their process.
pub const NUMBERS: std::ops::Range<u8> = 100..120;

/// The port of the API server as machines see it.
pub const API_SERVER_PORT: u16 = 6443;

/// No command here takes a tenth of it.
const COMMAND_LIMIT: Duration = Duration::from_secs(20);

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing free.
    #[error("failed to find a free network 10.{}.0.0/16 to 10.{}.0.0/16 for real machines: other boxes or \
        the host's own network have all", NUMBERS.start, NUMBERS.end - 1)]
    NoNumber,

    /// The one that kept machines have is in use.
    #[error(
        "failed to take the network 10.{0}.0.0/16 of this state folder's machines: another box or the \
        host's own network has it"
    )]
    Taken(u8),

    /// A command.
    #[error("failed to {doing}: `{command}` said: {output}")]
    Command {
        /// What was being done.
        doing: String,
        /// The command line.
        command: String,
        /// What it said.
        output: String,
    },

    /// A file or socket.
    #[error("failed to {doing}")]
    System {
        /// What was being done.
        doing: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Names what was being done.
pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let doing = doing.into();
    move |source| Error::System { doing, source }
}

/// Runs a program to its end and gives its standard output.
pub(crate) async fn run(doing: &str, program: &str, args: &[&str]) -> Result<String, Error> {
    let failed = |output: String| Error::Command {
        doing: doing.to_owned(),
        command: format!("{program} {}", args.join(" ")),
        output,
    };
    let command = Command::new(program).args(args).stdin(Stdio::null()).kill_on_drop(true).output();
    match tokio::time::timeout(COMMAND_LIMIT, command).await {
        Ok(Ok(output)) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(Ok(output)) => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed(format!("nothing within {} s", COMMAND_LIMIT.as_secs()))),
    }
}

/// Runs `ip`; the command line is one string because nothing in it has spaces.
async fn ip(doing: &str, line: &str) -> Result<String, Error> {
    run(doing, "ip", &line.split_ascii_whitespace().collect::<Vec<_>>()).await
}

/// A site's network: its number, and what is forwarded. It is removed by [`crate::base::host_cleanup`], not
/// here.
#[derive(Debug)]
pub struct Network {
    number: u8,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Network {
    /// Claims the first of these numbers that is free, by making the interface that bears it: of two boxes
    /// only one can. The interface's alias says whose it is: `owner`.
    pub async fn claim(owner: &Path, candidates: &[u8]) -> Result<Self, Error> {
        // For this host and for good, as Docker and every other container runtime do it.
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")
            .map_err(system("let this host forward between its networks"))?;
        for &candidate in candidates {
            if is_routed(candidate).await? {
                continue;
            }
            // A bridge without ports: the one kind of interface that is everywhere and holds an address.
            let made = ip("claim a network", &format!("link add fh{candidate} type bridge")).await;
            if made.is_err() {
                if link(candidate).exists() {
                    continue;
                }
                made?;
            }
            let network =
                Self { number: candidate, tasks: TaskTracker::new(), stop: CancellationToken::new() };
            let doing = "set up the network of the machines";
            // Not in one step with the making: the kernel ignores an alias there.
            run(
                doing,
                "ip",
                &["link", "set", &format!("fh{candidate}"), "alias", &owner.display().to_string()],
            )
            .await?;
            ip(doing, &format!("address add {}/32 dev fh{candidate}", network.gateway())).await?;
            ip(doing, &format!("link set fh{candidate} up")).await?;
            return Ok(network);
        }
        Err(if let [only] = candidates { Error::Taken(*only) } else { Error::NoNumber })
    }

    /// The number: the second part of all its addresses.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// The host as machines see it.
    pub fn gateway(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.number, 0, 1)
    }

    /// What everything of a machine is called whose short name this is.
    pub fn name_of(&self, short: &str) -> String {
        format!("fh{}-{short}", self.number)
    }

    /// The addresses of a machine's pods.
    pub fn pods(&self, slot: u8) -> String {
        format!("10.{}.{slot}.0/24", 128 + u16::from(self.number))
    }

    /// Lets machines reach `target`, which listens on the loopback, at this port of [`Self::gateway`].
    pub async fn forward(&self, port: u16, target: SocketAddr) -> Result<(), Error> {
        let doing = format!("listen on {}:{port} for the machines", self.gateway());
        let listener = TcpListener::bind((self.gateway(), port)).await.map_err(system(doing))?;
        let stop = self.stop.clone();
        let tasks = self.tasks.clone();
        self.tasks.spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = stop.cancelled() => return,
                };
                let Ok((mut near, _)) = accepted else { continue };
                let stop = stop.clone();
                tasks.spawn(async move {
                    let Ok(mut far) = TcpStream::connect(target).await else { return };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        () = stop.cancelled() => {}
                    }
                });
            }
        });
        Ok(())
    }

    /// Makes a network namespace and the veth to it; what it has inside is set up by the machine.
    pub async fn connect(&self, veth: &Veth) -> Result<(), Error> {
        let (doing, name) = (format!("connect the machine at {}", veth.address), &veth.name);
        ip(&doing, &format!("netns add {name}")).await?;
        ip(&doing, &format!("link add {name} type veth peer name eth0 netns {name}")).await?;
        self.restore(veth).await
    }

    /// The machine's veth is cut: nothing reaches it or its pods, and it reaches nothing.
    pub async fn cut(&self, veth: &Veth) -> Result<(), Error> {
        ip(&format!("cut the network of {}", veth.address), &format!("link set {} down", veth.name))
            .await
            .map(drop)
    }

    /// The veth works (again). The routes are made again, because they go with the interface when it goes
    /// down.
    pub async fn restore(&self, veth: &Veth) -> Result<(), Error> {
        let (doing, name, address) =
            (format!("connect the machine at {}", veth.address), &veth.name, veth.address);
        let host = self.gateway();
        ip(&doing, &format!("link set {name} up")).await?;
        ip(&doing, &format!("route replace {address}/32 dev {name} src {host}")).await?;
        ip(&doing, &format!("route replace {} via {address} dev {name} onlink src {host}", veth.pods))
            .await
            .map(drop)
    }

    /// Removes the veth and the namespace; harmless if they are not there.
    pub async fn disconnect(&self, veth: &Veth) {
        let doing = "disconnect a machine";
        let _ = ip(doing, &format!("link delete {}", veth.name)).await;
        let _ = ip(doing, &format!("netns delete {}", veth.name)).await;
    }

    /// [`Self::disconnect`] where nothing can be awaited.
    pub fn disconnect_now(&self, veth: &Veth) {
        for args in [["link", "delete", &veth.name], ["netns", "delete", &veth.name]] {
            let mut command = std::process::Command::new("ip");
            let _ =
                command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }

    /// Ends the forwarding.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A machine's place in the network.
#[derive(Clone, Debug)]
pub struct Veth {
    /// The name of its namespace and of the host's end.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// The addresses of its pods.
    pub pods: String,
}

impl Veth {
    /// Where its namespace can be entered.
    pub fn namespace(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.name)
    }
}

fn link(number: u8) -> PathBuf {
    Path::new("/sys/class/net").join(format!("fh{number}"))
}

/// Whether this host has a route into one of the networks that go with this number: the host's own, or
/// another box's.
async fn is_routed(number: u8) -> Result<bool, Error> {
    for second in [u16::from(number), 128 + u16::from(number)] {
        let routes = ip(
            "look at the routes of this host",
            &format!("-4 route show table all root 10.{second}.0.0/16"),
        )
        .await?;
        if !routes.trim().is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}
