//! The files of a machine: its disk with the image's files, and what the box puts there at each boot in AWS'
//! place.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::error::Error;
use super::spec::{SiteResources, Spec};
use crate::base::cache::make_private_folder;
use crate::base::names::SERVER_NAME;
use crate::machines::images::{PAUSE, Template};
use crate::machines::network::{API_SERVER_PORT, system};

const INIT: &str = include_str!("init.sh");
const BOOTSTRAP: &str = include_str!("bootstrap.sh");

const CONTAINERD_SERVICE: &str = "\
#!/bin/sh
exec containerd --config /etc/containerd/config.toml
";

/// `restrict_oom_score_adj`: a host may lack the capability to set it lower. NRI is off because its socket
/// has one fixed place, and the image of the pause container, in place of PAUSE, is never collected.
const CONTAINERD_CONFIG: &str = r#"version = 3
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
BinaryName = "/opt/freehold-box/bin/runc"
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/opt/freehold-box/bin"]
conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "PAUSE"
[plugins."io.containerd.nri.v1.nri"]
disable = true
"#;

/// The folder that is a machine's disk, as the host sees it. It lives as long as the instance does.
#[derive(Clone, Debug)]
pub struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// The disk in this folder, which need not be there yet.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The script that sets the machine up from inside.
    pub fn init(&self) -> PathBuf {
        self.folder.join("init")
    }

    /// The machine's /etc, as far as it differs from the host's. Not to be written to while the machine runs.
    pub fn etc(&self) -> PathBuf {
        self.folder.join("etc/upper")
    }

    /// The machine's services: a program each, put there to enable it.
    pub fn services(&self) -> PathBuf {
        self.etc().join("freehold-box/services")
    }

    /// The machine's /var/log.
    pub fn logs(&self) -> PathBuf {
        self.folder.join("var/log")
    }

    /// Whether its user data has been run: once in an instance's life.
    pub fn was_initialised(&self) -> bool {
        self.folder.join("initialised").exists()
    }

    /// Remembers that its user data is being run.
    pub fn remember_initialised(&self) -> io::Result<()> {
        std::fs::write(self.folder.join("initialised"), "")
    }

    /// Makes the disk of a new machine from the image's template.
    pub async fn make(&self, template: &Template) -> Result<(), Error> {
        let containerd = self.folder.join("var/lib/containerd");
        make_private_folder(&self.folder).map_err(system(format!("make {}", self.folder.display())))?;
        for folder in
            [self.etc(), self.logs(), self.folder.join("var/lib"), self.folder.join("opt/freehold-box")]
        {
            std::fs::create_dir_all(&folder).map_err(system(format!("make {}", folder.display())))?;
        }
        if !containerd.exists() {
            template.install(&containerd).await?;
        }
        Ok(())
    }

    /// Writes what the image has and what the box knows in AWS' place: the facts of the instance, and the
    /// certificates by which its kubelet is known (on EKS, AWS' authenticator does that).
    pub fn write(
        &self,
        resources: &SiteResources,
        spec: &Spec,
        cgroup: &Path,
        pods: &str,
    ) -> Result<(), Error> {
        let server = format!("https://{}:{API_SERVER_PORT}", resources.network.gateway());
        let user = format!("system:node:{}", spec.private_dns);
        let authority = &resources.authority;
        let kubeconfig =
            authority.kubeconfig_text(&user, Some("system:nodes"), &server, Some(SERVER_NAME))?;
        let serving = authority.server_certificate(
            &spec.private_dns,
            vec![spec.private_ip.to_string(), spec.private_dns.clone()],
        )?;
        let facts = format!(
            "INSTANCE_ID={}\nREGION={}\nZONE={}\nINSTANCE_TYPE={}\nADDRESS={}\nHOSTNAME={}\nCGROUP={}\nLEASE_SECONDS={}\nSTATUS_SECONDS={}\n",
            spec.instance,
            spec.region,
            spec.zone,
            spec.instance_type,
            spec.private_ip,
            spec.private_dns,
            cgroup.display(),
            resources.lease.as_secs().max(1),
            (resources.lease.as_secs() / 4).max(1),
        );
        let network = json!({
            "cniVersion": "1.0.0", "name": "box",
            "plugins": [{
                "type": "ptp", "ipMasq": false,
                "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": pods}]],
                "routes": [{"dst": "0.0.0.0/0"}]},
            }],
        });
        let etc = self.etc();
        for (path, text, mode) in [
            (self.init(), INIT, 0o755),
            (self.folder.join("opt/freehold-box/bootstrap"), BOOTSTRAP, 0o755),
            (etc.join("freehold-box/machine"), &facts, 0o644),
            (etc.join("freehold-box/services/containerd"), CONTAINERD_SERVICE, 0o755),
            (etc.join("containerd/config.toml"), &CONTAINERD_CONFIG.replace("PAUSE", PAUSE), 0o644),
            (etc.join("cni/net.d/10-box.conflist"), &network.to_string(), 0o644),
            (etc.join("kubernetes/ca.crt"), authority.certificate(), 0o644),
            (etc.join("kubernetes/kubelet.kubeconfig"), &kubeconfig, 0o600),
            (etc.join("kubernetes/kubelet.crt"), &serving.certificate, 0o644),
            (etc.join("kubernetes/kubelet.key"), &serving.key, 0o600),
        ] {
            write(&path, text, mode).map_err(system(format!("write {}", path.display())))?;
        }
        Ok(())
    }
}

/// A file of this mode, in a folder that is made if it is missing.
pub fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}
