//! The driver's node part: a service of each machine, from the moment at which the machine has its Node,
//! which is where the driver learns its zone and type.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use kube_runtime::wait::await_condition;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::registrar::{self, Plugin};
use crate::base::names::EBS_DRIVER;
use crate::machines::disks::Leaders;
use crate::machines::machine::{KUBELET_FOLDER, Machine};

/// The service's name.
const SERVICE: &str = "ebs-csi-node";

/// Where the driver listens in its machine: a place that is empty at each boot.
const SOCKET: &str = "/run/ebs-csi/csi.sock";

/// How often the driver's socket is looked for, and how long until a failed wait is begun anew.
const POLL: Duration = Duration::from_millis(50);
const AGAIN: Duration = Duration::from_secs(1);

/// Runs the node part in every machine until `stop`. `leaders` says which machines run, `machine` gives one
/// by its instance's id.
pub async fn run(
    client: Client,
    mut leaders: watch::Receiver<Leaders>,
    machine: impl Fn(&str) -> Option<Arc<Machine>>,
    stop: CancellationToken,
) {
    let mut known: BTreeMap<String, (u32, CancellationToken)> = BTreeMap::new();
    while !stop.is_cancelled() {
        let now = leaders.borrow_and_update().clone();
        // What was begun for a machine ends with its boot.
        known.retain(|instance, (leader, end)| {
            let is_same = now.get(instance) == Some(leader);
            if !is_same {
                end.cancel();
            }
            is_same
        });
        for (instance, leader) in now {
            let Some(machine) = machine(&instance).filter(|_| !known.contains_key(&instance)) else {
                continue;
            };
            let end = stop.child_token();
            known.insert(instance, (leader, end.clone()));
            let client = client.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = serve(client, &machine) => {}
                    () = end.cancelled() => {}
                }
            });
        }
        tokio::select! {
            changed = leaders.changed() => if changed.is_err() { return },
            () = stop.cancelled() => {}
        }
    }
}

/// Brings the driver up in one machine and registers it; then answers the kubelet, which asks again whenever
/// it starts.
async fn serve(client: Client, machine: &Machine) {
    let instance = &machine.spec().instance;
    loop {
        match bring_up(&client, machine).await {
            Ok(never) => match never {},
            Err(error) => tracing::warn!(instance, %error, "the EBS CSI driver is not in this machine yet"),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn bring_up(client: &Client, machine: &Machine) -> io::Result<Infallible> {
    let registrations = inside(machine, &format!("{KUBELET_FOLDER}/plugins_registry"));
    let registration = registrations.join(format!("{EBS_DRIVER}-reg.sock"));
    // Of the boot before: the kubelet would try it, and wait longer each time.
    let _ = std::fs::remove_file(&registration);

    let spec = machine.spec();
    let is_its_node = |node: Option<&Node>| {
        let id = node.and_then(|node| node.spec.as_ref()?.provider_id.as_deref());
        id.is_some_and(|id| id.rsplit('/').next() == Some(&spec.instance))
    };
    await_condition(Api::<Node>::all(client.clone()), &spec.private_dns, is_its_node)
        .await
        .map_err(io::Error::other)?;

    let service = inside(machine, &format!("/etc/freehold-box/services/{SERVICE}"));
    std::fs::write(&service, program(&spec.private_dns))?;
    std::fs::set_permissions(&service, std::fs::Permissions::from_mode(0o755))?;
    machine.start_service(SERVICE);
    while !inside(machine, SOCKET).exists() {
        tokio::time::sleep(POLL).await;
    }
    std::fs::create_dir_all(&registrations)?;
    registrar::serve(&registration, Plugin { name: EBS_DRIVER.to_owned(), endpoint: SOCKET.to_owned() }).await
}

/// A path of the machine, as this process reaches it (proc(5), /proc/PID/root). Short enough for a socket's
/// name, which a machine's folder may not be.
fn inside(machine: &Machine, path: &str) -> PathBuf {
    Path::new("/proc").join(machine.pid().to_string()).join("root").join(path.trim_start_matches('/'))
}

/// What the service runs. The kubelet's own identity may read its Node, which is all that the node part asks
/// of the API server.
fn program(node: &str) -> String {
    let folder = SOCKET.rsplit_once('/').map_or("/", |(folder, _)| folder);
    format!(
        "#!/bin/sh\n\
         mkdir -p {folder} && rm -f {SOCKET}\n\
         export CSI_NODE_NAME={node} AWS_EC2_METADATA_DISABLED=true\n\
         exec aws-ebs-csi-driver node --endpoint=unix://{SOCKET} \
         --kubeconfig=/etc/kubernetes/kubelet.kubeconfig --metadata-sources=kubernetes\n"
    )
}
