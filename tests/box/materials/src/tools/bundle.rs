//! Which programs the box builds, from which modules, and how.

/// The version that the Kubernetes programs say they are; without the linker flags they call themselves
/// v0.0.0.
pub const KUBERNETES_VERSION: &str = "v1.36.3";

/// The version that helm says it is; without the linker flag it calls itself by its minor release alone.
const HELM_VERSION: &str = "v4.3.1";

/// Programs of one module that are built together, when they are first needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bundle {
    /// The control plane, kubectl and kwok.
    Kubernetes,
    /// The kubelet, from the same module; only real machines need it.
    Kubelet,
    /// containerd and the network plugins of a real machine.
    Node,
    /// runc, in a module of its own: it is the only one that is linked against C.
    Runc,
    /// The EBS CSI driver and what stands between it and Kubernetes.
    Csi,
    /// csi-provisioner, in a module of its own: it does not compile with the Kubernetes libraries of the
    /// other CSI programs.
    Provisioner,
    /// helm, which installs the operator as people do.
    Helm,
}

impl Bundle {
    /// What a box of virtual machines needs.
    pub const VIRTUAL: &[Self] = &[Self::Kubernetes];

    /// What a box of real machines needs.
    pub const REAL: &[Self] =
        &[Self::Kubernetes, Self::Kubelet, Self::Node, Self::Runc, Self::Csi, Self::Provisioner, Self::Helm];

    /// Its name, as people read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::Kubelet => "kubelet",
            Self::Node => "node",
            Self::Runc => "runc",
            Self::Csi => "csi",
            Self::Provisioner => "provisioner",
            Self::Helm => "helm",
        }
    }

    /// The folder of this key; Kubernetes' has no name in it, so that what was built when it was alone is
    /// found.
    pub(super) fn folder(self, key: &str) -> String {
        match self {
            Self::Kubernetes => key.to_owned(),
            Self::Kubelet | Self::Node | Self::Runc | Self::Csi | Self::Provisioner | Self::Helm => {
                format!("{}-{key}", self.name())
            }
        }
    }

    /// Its go.mod and go.sum.
    pub(super) const fn module(self) -> (&'static str, &'static str) {
        match self {
            Self::Kubernetes | Self::Kubelet => (
                include_str!("../../../tools/kubernetes/go.mod"),
                include_str!("../../../tools/kubernetes/go.sum"),
            ),
            Self::Node => {
                (include_str!("../../../tools/node/go.mod"), include_str!("../../../tools/node/go.sum"))
            }
            Self::Runc => {
                (include_str!("../../../tools/runc/go.mod"), include_str!("../../../tools/runc/go.sum"))
            }
            Self::Csi => {
                (include_str!("../../../tools/csi/go.mod"), include_str!("../../../tools/csi/go.sum"))
            }
            Self::Provisioner => (
                include_str!("../../../tools/provisioner/go.mod"),
                include_str!("../../../tools/provisioner/go.sum"),
            ),
            Self::Helm => {
                (include_str!("../../../tools/helm/go.mod"), include_str!("../../../tools/helm/go.sum"))
            }
        }
    }

    /// The programs of it.
    pub fn programs(self) -> impl Iterator<Item = Program> {
        Program::ALL.into_iter().filter(move |program| program.bundle() == self)
    }

    /// The build's tags: what is left out of containerd needs headers or kernels that the box has no use for;
    /// runc without seccomp starts no pod that asks for a profile.
    pub(super) const fn tags(self) -> Option<&'static str> {
        match self {
            Self::Kubernetes | Self::Kubelet | Self::Csi | Self::Provisioner | Self::Helm => None,
            Self::Node => Some("-tags=no_btrfs,no_devmapper,no_zfs"),
            Self::Runc => Some("-tags=seccomp"),
        }
    }

    /// What is compiled with inlining after all, as patterns of packages: what the API server and etcd spend
    /// their time in. They then take a quarter less processor time (the tests of API rules: 7.2 s instead of
    /// 9.4), and the generated code, which is most of what is compiled, stays quick to compile.
    pub(super) const fn inlined(self) -> &'static [&'static str] {
        match self {
            Self::Kubernetes | Self::Kubelet => &[
                "std",
                "github.com/gogo/protobuf/...",
                "github.com/google/cel-go/...",
                "go.etcd.io/...",
                "golang.org/x/net/...",
                "google.golang.org/grpc/...",
                "google.golang.org/protobuf/...",
                "k8s.io/apiextensions-apiserver/...",
                "k8s.io/apimachinery/...",
                "k8s.io/apiserver/...",
                "k8s.io/client-go/tools/...",
                "k8s.io/kube-openapi/...",
                "sigs.k8s.io/json/...",
                "sigs.k8s.io/structured-merge-diff/...",
            ],
            Self::Node | Self::Runc | Self::Csi | Self::Provisioner | Self::Helm => &[],
        }
    }

    /// The flags of the linker.
    pub(super) fn linker_flags(self) -> String {
        match self {
            Self::Kubernetes | Self::Kubelet => {
                let version = "k8s.io/component-base/version";
                format!(
                    "-ldflags=-s -w -X {version}.gitVersion={KUBERNETES_VERSION} -X {version}.gitMajor=1 \
                    -X {version}.gitMinor=36"
                )
            }
            Self::Node | Self::Runc | Self::Csi | Self::Provisioner => "-ldflags=-s -w".to_owned(),
            Self::Helm => format!(
                "-ldflags=-s -w -X \
                helm.sh/helm/v4/internal/version.version={HELM_VERSION}"
            ),
        }
    }

    /// Whether it is linked against C libraries. Go alone makes programs that run whatever the host has.
    pub(super) const fn needs_c(self) -> bool {
        match self {
            Self::Runc => true,
            Self::Kubernetes | Self::Kubelet | Self::Node | Self::Csi | Self::Provisioner | Self::Helm => {
                false
            }
        }
    }

    /// What a person may have to install beside Go.
    pub(super) const fn needs(self) -> &'static str {
        if self.needs_c() {
            "; it needs a C compiler, pkg-config and libseccomp's headers (Debian: gcc, pkg-config, \
                libseccomp-dev)"
        } else {
            ""
        }
    }

    /// How long building it takes on two cores, after those before it in [`Self::REAL`] (measured on
    /// 2026-11-22 without any cache, csi-provisioner on 2026-11-23).
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Kubernetes => 275,
            Self::Kubelet => 20,
            Self::Node => 92,
            Self::Runc => 15,
            Self::Csi => 282,
            Self::Provisioner => 62,
            Self::Helm => 119,
        }
    }

    /// The names of its programs.
    pub fn contents(self) -> String {
        self.programs().map(Program::name).collect::<Vec<_>>().join(", ")
    }
}

/// A program of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The store of the API server.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// kubectl, for people.
    Kubectl,
    /// kwok, which keeps the Node objects of virtual machines alive.
    Kwok,
    /// The kubelet.
    Kubelet,
    /// containerd.
    Containerd,
    /// What containerd starts for each pod; it looks for it in its PATH.
    ContainerdShim,
    /// containerd's own client, which imports images.
    Ctr,
    /// The network plugin that gives a pod a link of its own to the host.
    CniPtp,
    /// The network plugin of the loopback.
    CniLoopback,
    /// The network plugin that gives out addresses.
    CniHostLocal,
    /// runc.
    Runc,
    /// The EBS CSI driver: controller and node part.
    EbsDriver,
    /// csi-attacher.
    CsiAttacher,
    /// csi-provisioner.
    CsiProvisioner,
    /// csi-resizer.
    CsiResizer,
    /// helm.
    Helm,
}

impl Program {
    const ALL: [Self; 19] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kubectl,
        Self::Kwok,
        Self::Kubelet,
        Self::Containerd,
        Self::ContainerdShim,
        Self::Ctr,
        Self::CniPtp,
        Self::CniLoopback,
        Self::CniHostLocal,
        Self::Runc,
        Self::EbsDriver,
        Self::CsiAttacher,
        Self::CsiProvisioner,
        Self::CsiResizer,
        Self::Helm,
    ];

    /// What it is built with.
    pub const fn bundle(self) -> Bundle {
        match self {
            Self::Etcd
            | Self::ApiServer
            | Self::ControllerManager
            | Self::Scheduler
            | Self::Kubectl
            | Self::Kwok => Bundle::Kubernetes,
            Self::Kubelet => Bundle::Kubelet,
            Self::Containerd
            | Self::ContainerdShim
            | Self::Ctr
            | Self::CniPtp
            | Self::CniLoopback
            | Self::CniHostLocal => Bundle::Node,
            Self::Runc => Bundle::Runc,
            Self::EbsDriver | Self::CsiAttacher | Self::CsiResizer => Bundle::Csi,
            Self::CsiProvisioner => Bundle::Provisioner,
            Self::Helm => Bundle::Helm,
        }
    }

    /// The Go package that it is built from.
    pub(super) const fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::ApiServer => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::ControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Scheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok",
            Self::Kubelet => "k8s.io/kubernetes/cmd/kubelet",
            Self::Containerd => "github.com/containerd/containerd/v2/cmd/containerd",
            Self::ContainerdShim => "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
            Self::Ctr => "github.com/containerd/containerd/v2/cmd/ctr",
            Self::CniPtp => "github.com/containernetworking/plugins/plugins/main/ptp",
            Self::CniLoopback => "github.com/containernetworking/plugins/plugins/main/loopback",
            Self::CniHostLocal => "github.com/containernetworking/plugins/plugins/ipam/host-local",
            Self::Runc => "github.com/opencontainers/runc",
            Self::EbsDriver => "github.com/kubernetes-sigs/aws-ebs-csi-driver/cmd",
            Self::CsiAttacher => "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher",
            Self::CsiProvisioner => "github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner",
            Self::CsiResizer => "github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer",
            Self::Helm => "helm.sh/helm/v4/cmd/helm",
        }
    }

    /// Its file in the cache.
    pub(super) const fn file(self) -> &'static str {
        match self {
            // As `go build` calls it.
            Self::Etcd => "server",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
            Self::Kubelet => "kubelet",
            Self::Containerd => "containerd",
            Self::ContainerdShim => "containerd-shim-runc-v2",
            Self::Ctr => "ctr",
            Self::CniPtp => "ptp",
            Self::CniLoopback => "loopback",
            Self::CniHostLocal => "host-local",
            Self::Runc => "runc",
            Self::EbsDriver => "aws-ebs-csi-driver",
            Self::CsiAttacher => "csi-attacher",
            Self::CsiProvisioner => "csi-provisioner",
            Self::CsiResizer => "csi-resizer",
            Self::Helm => "helm",
        }
    }

    /// The file that `go build` makes of it: the driver's package would be called `cmd` in a list of
    /// processes.
    pub(super) const fn built_as(self) -> &'static str {
        if matches!(self, Self::EbsDriver) { "cmd" } else { self.file() }
    }

    /// The name that people know it by.
    pub const fn name(self) -> &'static str {
        if matches!(self, Self::Etcd) { "etcd" } else { self.file() }
    }
}
