//! The command lines of the control plane's programs.

use std::path::Path;

use super::timing::NodeTiming;
use crate::base::names::{HEARTBEAT_LABEL, HEARTBEAT_VALUE};
use crate::cluster::tools::Program;

/// Where in-cluster clients find the API server, by Kubernetes' rule the first address of the range.
pub const SERVICE_RANGE: &str = "10.96.0.0/16";
/// The first address of the services.
pub const FIRST_SERVICE_ADDRESS: &str = "10.96.0.1";

/// The address of etcd's socket, relative to the run folder in which etcd and the API server both run: no
/// port, out of reach of other users, and short enough for a socket path wherever the cache is.
const ETCD: &str = "unix://etcd.sock";

/// Metadata of every request, once, when it is answered: who wrote what is counted from it. A watch when its
/// answer begins, since that ends minutes later.
pub const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ['/readyz*', '/livez*', '/healthz*']
- level: Metadata
  verbs: [watch]
  omitStages: [ResponseComplete]
- level: Metadata
  omitStages: [ResponseStarted]
";

/// kwok simulates Nodes only: the pods are simulated by `virtual_kubelet`, which knows about attached
/// volumes. This stage makes a Node Ready, at its start and again when it comes back; the lease does the
/// rest.
pub const KWOK_CONFIG: &str = r#"
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: node-ready}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector:
    matchExpressions:
    - {key: '.status.conditions.[] | select( .type == "Ready" ) | .status', operator: NotIn, values: ['True']}
  next:
    statusTemplate: |
      {{ $now := Now }}
      conditions:
      {{ range NodeConditions }}
      - lastHeartbeatTime: {{ $now | Quote }}
        lastTransitionTime: {{ $now | Quote }}
        message: {{ .message | Quote }}
        reason: {{ .reason | Quote }}
        status: {{ .status | Quote }}
        type: {{ .type | Quote }}
      {{ end }}
"#;

fn flags<const N: usize>(flags: [&str; N]) -> Vec<String> {
    flags.into_iter().map(str::to_owned).collect()
}

/// Variables of one of the programs. The API server takes half of the processor time of a box, and a seventh
/// of that was for garbage: it collects less often, as long as it has less than 1 GiB.
pub fn variables(program: Program) -> &'static [&'static str] {
    if program == Program::ApiServer { &["GOGC=400", "GOMEMLIMIT=1GiB"] } else { &[] }
}

/// etcd, with its data in `data`. Nothing in a box must survive a power cut, so nothing is synced to disk.
pub fn etcd(data: &Path) -> Vec<String> {
    let mut args = flags([
        "--name=box",
        "--unsafe-no-fsync",
        "--log-level=warn",
        "--listen-peer-urls=unix://etcd-peer.sock",
        "--initial-advertise-peer-urls=http://localhost:2380",
        "--initial-cluster=box=http://localhost:2380",
    ]);
    args.extend([
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={ETCD}"),
        "--advertise-client-urls=http://localhost:2379".to_owned(),
    ]);
    args
}

/// kube-apiserver on a port of the loopback.
pub fn api_server(port: u16) -> Vec<String> {
    let mut args = flags([
        "--bind-address=127.0.0.1",
        // No Endpoints for the `kubernetes` Service: an address on the loopback is none, and no virtual pod
        // calls it.
        "--endpoint-reconciler-type=none",
        "--advertise-address=127.0.0.1",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        "--client-ca-file=ca.crt",
        "--tls-cert-file=api-server.crt",
        "--tls-private-key-file=api-server.key",
        // To the kubelets of real machines, for exec, logs and port-forward.
        "--kubelet-client-certificate=api-server-to-kubelet.crt",
        "--kubelet-client-key=api-server-to-kubelet.key",
        "--kubelet-certificate-authority=ca.crt",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=service-accounts.pub",
        "--service-account-signing-key-file=service-accounts.key",
        "--audit-policy-file=audit-policy.yaml",
        "--audit-log-path=audit.log",
        // In MB, enough for one file: it is counted from, so it must not rotate.
        "--audit-log-maxsize=10000",
        "--profiling=false",
    ]);
    args.extend([
        format!("--etcd-servers={ETCD}"),
        format!("--secure-port={port}"),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
    ]);
    args
}

/// kube-controller-manager, all its default controllers; it serves no port. Its own limit of 20 requests a
/// second for each controller is what a hundred volumes that attach at once would wait for.
pub fn controller_manager(timing: NodeTiming) -> Vec<String> {
    let mut args = flags([
        "--kubeconfig=controller-manager.kubeconfig",
        "--leader-elect=false",
        "--use-service-account-credentials",
        "--service-account-private-key-file=service-accounts.key",
        "--root-ca-file=ca.crt",
        "--cluster-signing-cert-file=ca.crt",
        "--cluster-signing-key-file=ca.key",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--secure-port=0",
        "--profiling=false",
    ]);
    args.extend([
        format!("--node-monitor-period={}ms", timing.monitor_period.as_millis()),
        format!("--node-monitor-grace-period={}ms", timing.monitor_grace.as_millis()),
    ]);
    args
}

/// kube-scheduler; it serves no port.
pub fn scheduler() -> Vec<String> {
    flags([
        "--kubeconfig=scheduler.kubeconfig",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
    ])
}

/// kwok for the Nodes that carry [`HEARTBEAT_LABEL`].
pub fn kwok(timing: NodeTiming) -> Vec<String> {
    let mut args = flags(["--kubeconfig=kwok.kubeconfig", "--config=kwok.yaml", "--server-address="]);
    args.extend([
        format!("--manage-nodes-with-label-selector={HEARTBEAT_LABEL}={HEARTBEAT_VALUE}"),
        format!("--node-lease-duration-seconds={}", timing.lease.as_secs().max(1)),
    ]);
    args
}
