//! Looks into a pod of a real machine, and kills what runs in it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt as _;
use nix::sys::signal::Signal;
use tokio::process::Command;

use super::common::Failure;
use crate::base::process::Identity;

/// How long a command in a pod may take.
const LIMIT: Duration = Duration::from_secs(20);

/// The administrator's way into pods.
pub struct PodAccess {
    /// The program.
    pub kubectl: PathBuf,
    /// Its configuration.
    pub kubeconfig: PathBuf,
}

impl PodAccess {
    /// How large `df` in the pod says that the database's file system is, in KiB; and where it is mounted.
    pub async fn disk(&self, pod: &Pod) -> Result<(u64, String), Failure> {
        let name = pod.name_any();
        let (container, path) = data_path(pod).ok_or_else(|| format!("the pod {name} mounts no claim"))?;
        let output = Command::new(&self.kubectl)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args([
                "exec",
                "--namespace",
                &pod.namespace().unwrap_or_default(),
                &name,
                "--container",
                &container,
                "--",
            ])
            .args(["df", "-P", "-k", &path])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(LIMIT, output).await;
        let output = output.map_err(|_| {
            format!("`kubectl exec {name} -- df` gave no answer within {} s", LIMIT.as_secs())
        })??;
        let said = String::from_utf8_lossy(&output.stdout);
        let size = size_in_kib(&said).filter(|_| output.status.success());
        let size = size.ok_or_else(|| {
            format!(
                "`kubectl exec {name} -- df -P -k {path}` ended with {}: {said}{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            )
        })?;
        Ok((size, path))
    }
}

/// The container that mounts the claim, and where.
pub fn data_path(pod: &Pod) -> Option<(String, String)> {
    let spec = pod.spec.as_ref()?;
    let volume = spec.volumes.iter().flatten().find(|volume| volume.persistent_volume_claim.is_some())?;
    let mounted = |container: &Container| {
        let mount = container.volume_mounts.iter().flatten().find(|mount| mount.name == volume.name)?;
        Some((container.name.clone(), mount.mount_path.clone()))
    };
    spec.containers.iter().find_map(mounted)
}

/// The second column of the second line of `df -P -k` (POSIX has that form).
fn size_in_kib(said: &str) -> Option<u64> {
    said.lines().nth(1)?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Kills the first process of the pod's container with SIGKILL, from outside: inside, the kernel shields it.
/// Returns its id.
pub fn kill_engine(pod: &Pod) -> Result<u32, Failure> {
    let process = first_process_of(pod)?;
    process.signal(Signal::SIGKILL);
    Ok(process.id)
}

/// The process that is 1 in the pod's container.
pub fn first_process_of(pod: &Pod) -> Result<Identity, Failure> {
    let name = pod.name_any();
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let id = statuses
        .filter_map(|status| status.container_id.as_deref())
        .find_map(|id| id.strip_prefix("containerd://"));
    let id = id.ok_or_else(|| format!("the pod {name} has no container that runs"))?;
    first_process(id)?
        .ok_or_else(|| format!("no process of the container {id} of {name} is on this host").into())
}

/// The process that is 1 in the container of this id.
fn first_process(container: &str) -> Result<Option<Identity>, Failure> {
    for entry in std::fs::read_dir("/proc")? {
        let path = entry?.path();
        let Some(id) =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        // A process may end while it is looked at.
        let is_inside =
            std::fs::read_to_string(path.join("cgroup")).is_ok_and(|groups| groups.contains(container));
        let is_first = || std::fs::read_to_string(path.join("status")).is_ok_and(|status| is_first(&status));
        if is_inside && is_first() {
            return Ok(Identity::of(id));
        }
    }
    Ok(None)
}

/// Whether a process with this `/proc/PID/status` is 1 in a PID namespace of its own.
fn is_first(status: &str) -> bool {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    let ids: Vec<&str> = ids.split_ascii_whitespace().collect();
    ids.len() > 1 && ids.last() == Some(&"1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_size_is_read_from_what_df_prints() {
        let said = "Filesystem     1024-blocks   Used Available Capacity Mounted on\n\
                    /dev/loop3       209612800 250000 209362800       1% /var/lib/questdb\n";
        assert_eq!(size_in_kib(said), Some(209_612_800));
        assert_eq!(size_in_kib("df: /nowhere: No such file or directory\n"), None);
    }

    #[test]
    fn the_data_is_where_the_claim_is_mounted() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "orders-0"},
            "spec": {
                "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "data",
                "persistentVolumeClaim": {"claimName": "orders-x"}}],
                "containers": [{"name": "questdb", "volumeMounts": [
                    {"name": "tmp", "mountPath": "/tmp"}, {"name": "data", "mountPath": "/var/lib/questdb"},
                ]}],
            },
        }))
        .unwrap();
        assert_eq!(data_path(&pod), Some(("questdb".to_owned(), "/var/lib/questdb".to_owned())));
    }

    #[test]
    fn a_container_has_one_first_process() {
        for (ids, wanted) in
            [("NSpid:\t812\t1", true), ("NSpid:\t813\t7", false), ("NSpid:\t1", false), ("", false)]
        {
            assert_eq!(is_first(&format!("Name:\tjava\n{ids}\nThreads:\t3\n")), wanted, "{ids}");
        }
    }
}
