#!/bin/sh
# Makes this machine a Kubernetes node; what an image for EKS has as /etc/eks/bootstrap.sh. To be called by user data:
#
#   /opt/freehold-box/bootstrap [--node-labels KEY=VALUE,...] [--register-with-taints KEY=VALUE:EFFECT,...]
#                               [--node-status-update-frequency DURATION] [--kubelet-flags "FLAG ..."]
#
# Writes the kubelet's configuration and enables its service. Who and where the machine is, it reads from /etc/freehold-box/machine,
# where the box puts what the metadata service would say.
set -eu
fail() {
    echo "bootstrap: $*" >&2
    exit 2
}
labels= taints= frequency= flags=
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "$1 needs a value"
    case $1 in
    --node-labels) labels=$2 ;;
    --register-with-taints) taints=$2 ;;
    --node-status-update-frequency) frequency=$2 ;;
    --kubelet-flags) flags=$2 ;;
    *) fail "there is no option $1" ;;
    esac
    shift 2
done
. /etc/freehold-box/machine

# [{"key": ..., "value": ..., "effect": ...}, ...]
taints_as_json=$(echo "$taints" | tr , '\n' | while read -r taint; do
    [ -n "$taint" ] || continue
    case $taint in
    *=*:NoSchedule | *=*:PreferNoSchedule | *=*:NoExecute) ;;
    *) fail "the taint $taint is not KEY=VALUE:EFFECT with an effect of Kubernetes'" ;;
    esac
    pair=${taint%:*}
    printf '%s{"key": "%s", "value": "%s", "effect": "%s"}' "${comma:-}" "${pair%%=*}" "${pair#*=}" "${taint##*:}"
    comma=', '
done)

all=topology.kubernetes.io/region=$REGION,topology.kubernetes.io/zone=$ZONE,node.kubernetes.io/instance-type=$INSTANCE_TYPE
[ -z "$labels" ] || all=$all,$labels

# What else is configured lies in kubelet.d, and the kubelet reads it after this.
mkdir -p /etc/kubernetes/kubelet.d /etc/freehold-box/services
cat >/etc/kubernetes/kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $ADDRESS
providerID: aws:///$ZONE/$INSTANCE_ID
registerWithTaints: [$taints_as_json]
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: /etc/kubernetes/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: /etc/kubernetes/kubelet.crt
tlsPrivateKeyFile: /etc/kubernetes/kubelet.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: $CGROUP
# A host with cgroup v1 or swap is no reason to refuse.
failCgroupV1: false
failSwapOn: false
# Nothing is kept back for the host and nothing is enforced on the machine as a whole: it shares its processors and memory.
enforceNodeAllocatable: []
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%}
# Images are never pulled, so none must be thrown away.
imageGCHighThresholdPercent: 100
makeIPTablesUtilChains: false
nodeLeaseDurationSeconds: $LEASE_SECONDS
nodeStatusUpdateFrequency: ${frequency:-${STATUS_SECONDS}s}
# Kubernetes' own default, which the line above would change.
nodeStatusReportFrequency: 5m
volumeStatsAggPeriod: 10s
healthzPort: 0
END
cat >/etc/freehold-box/services/kubelet <<END
#!/bin/sh
exec /opt/freehold-box/bin/kubelet --config=/etc/kubernetes/kubelet.yaml --config-dir=/etc/kubernetes/kubelet.d \
    --kubeconfig=/etc/kubernetes/kubelet.kubeconfig --hostname-override=$HOSTNAME --node-ip=$ADDRESS --node-labels='$all' $flags
END
chmod +x /etc/freehold-box/services/kubelet
echo "bootstrap: the kubelet joins as $HOSTNAME"
