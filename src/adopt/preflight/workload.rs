//! Checks of the StatefulSet, its pod, and what writes and surrounds them. Pure.

use kube::ResourceExt;

use crate::adopt::found::Found;
use crate::adopt::wanted::Wanted;
use crate::api::keys::MANAGED_BY_LABEL;
use crate::cluster::controller_of;
use crate::command::finding::Finding;
use crate::controller::database::pod::engine_wait;

/// What keeps the claims of a StatefulSet.
const RETAIN_CLAIMS: &str = "{\"spec\":{\"persistentVolumeClaimRetentionPolicy\":\
    {\"whenScaled\":\"Retain\",\"whenDeleted\":\"Retain\"}}}";

pub(super) fn stateful_set(found: &Found, wanted: &Wanted) -> Vec<Finding> {
    let (subject, set) = (found.subject(), &found.stateful_set);
    let mut findings = Vec::new();
    let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    if replicas != 1 {
        let message = format!("it has {replicas} replicas, and a Database is one pod");
        findings.push(Finding::blocker(&subject, message).way_out(
            "keep several replicas outside Freehold; if it has none, start it first (kubectl scale)",
        ));
    }
    if found.is_adopted(wanted.database()) {
        findings.push(Finding::note(&subject, "this Database has adopted it already"));
    } else if let Some(owner) = controller_of(set) {
        let message = format!("{} {} controls it and would change it back", owner.kind, owner.name);
        findings.push(Finding::blocker(&subject, message).way_out(
            "stop that operator, and delete its object without its children (kubectl delete \
                --cascade=orphan): Kubernetes removes the owner reference",
        ));
    }
    let policy = set.spec.as_ref().and_then(|spec| spec.persistent_volume_claim_retention_policy.as_ref());
    if policy.is_some_and(|it| {
        [&it.when_scaled, &it.when_deleted].into_iter().any(|it| it.as_deref() == Some("Delete"))
    }) {
        let message = "its claim is deleted when it is scaled down or deleted, and a paused Database is \
            scaled down";
        findings.push(Finding::blocker(&subject, message).way_out(format!(
            "kubectl patch statefulset {} --namespace {} --patch '{RETAIN_CLAIMS}' (restarts nothing)",
            wanted.stateful_set.name, wanted.stateful_set.namespace
        )));
    }
    findings
}

/// How an object is taken out of a chart and stays.
const OUT_OF_CHART: &str = "annotate it with helm.sh/resource-policy=keep by an upgrade of the chart, \
    then take it out of the chart";

/// The same for Argo CD.
const OUT_OF_APPLICATION: &str = "turn off automated sync, and take it out of the application without \
    pruning (annotation argocd.argoproj.io/sync-options: Prune=false)";

/// The same for Flux, which then leaves it alone.
const OUT_OF_KUSTOMIZATION: &str = "annotate it with kustomize.toolkit.fluxcd.io/reconcile=disabled and \
    kustomize.toolkit.fluxcd.io/prune=disabled";

/// A label or annotation, what writes it, and how that is made to leave an object alone.
const MANAGERS: [(&str, &str, &str); 6] = [
    ("meta.helm.sh/release-name", "Helm release", OUT_OF_CHART),
    (MANAGED_BY_LABEL, "Helm release", OUT_OF_CHART),
    ("argocd.argoproj.io/instance", "Argo CD application", OUT_OF_APPLICATION),
    ("argocd.argoproj.io/tracking-id", "Argo CD application", OUT_OF_APPLICATION),
    ("kustomize.toolkit.fluxcd.io/name", "Flux Kustomization", OUT_OF_KUSTOMIZATION),
    ("helm.toolkit.fluxcd.io/name", "Flux HelmRelease", OUT_OF_CHART),
];

/// Who would write the template back, which restarts the pod on any machine.
pub(super) fn managers(found: &Found, wanted: &Wanted) -> Vec<Finding> {
    let set = &found.stateful_set;
    let value = |key: &str| set.annotations().get(key).or_else(|| set.labels().get(key));
    let is_disabled = value("kustomize.toolkit.fluxcd.io/reconcile").is_some_and(|it| it == "disabled");
    let mut findings: Vec<Finding> = Vec::new();
    for (key, kind, way_out) in MANAGERS {
        let Some(name) = value(key) else { continue };
        if key == MANAGED_BY_LABEL && (name != "Helm" || value("meta.helm.sh/release-name").is_some()) {
            continue;
        }
        if kind == "Flux Kustomization" && is_disabled {
            continue;
        }
        let message = format!("the {kind} that {key}={name} names would write it back");
        let way_out = format!("{way_out}; then run this with --unmanaged");
        findings.push(if wanted.unmanaged {
            Finding::warning(found.subject(), message).way_out("you said --unmanaged: make sure of it")
        } else {
            Finding::blocker(found.subject(), message).way_out(way_out)
        });
    }
    findings
}

pub(super) fn pod(found: &Found, wanted: &Wanted) -> Vec<Finding> {
    let object = format!("Pod {}/{}-0", wanted.stateful_set.namespace, wanted.stateful_set.name);
    let Some(pod) = &found.pod else {
        return vec![Finding::blocker(object, "it is not there").way_out("start the database first")];
    };
    let mut findings = Vec::new();
    if engine_wait(Some(pod), found.container_name().as_deref()).is_some() {
        let way_out = "wait until it is ready: only a database that serves is adopted";
        findings.push(Finding::blocker(&object, "it is not ready").way_out(way_out));
    }
    findings
}

pub(super) fn neighbours(found: &Found, _: &Wanted) -> Vec<Finding> {
    let pods = found.neighbours();
    if pods.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = pods
        .iter()
        .map(|pod| format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()))
        .collect();
    let node = found.core_node.as_ref().map(ResourceExt::name_any).unwrap_or_default();
    let message = format!(
        "{} more {} on this machine: {}. Freehold evicts none, lets no new one in, and ends them with the \
            machine",
        pods.len(),
        if pods.len() == 1 { "pod runs" } else { "pods run" },
        names.join(", ")
    );
    let way_out = "move them to other machines (kubectl cordon, then delete those pods)";
    vec![Finding::warning(format!("Kubernetes node {node}"), message).way_out(way_out)]
}

/// What stays in the template and may surprise on another machine.
pub(super) fn template(found: &Found, _: &Wanted) -> Vec<Finding> {
    let Some(pod) = found.template() else { return Vec::new() };
    let names: Vec<&str> = pod.containers.iter().map(|container| container.name.as_str()).collect();
    let mut findings = Vec::new();
    if let Some(engine) = found.engine().filter(|_| names.len() > 1) {
        let message = format!(
            "its pod has the containers {}; {} is taken for the engine, the others stay beside it",
            names.join(", "),
            engine.name
        );
        findings.push(Finding::note(found.subject(), message));
    }
    if pod.init_containers.as_ref().is_some_and(|it| !it.is_empty()) {
        findings.push(Finding::note(found.subject(), "its init containers stay, and run at each restart"));
    }
    if pod.host_network == Some(true) {
        let message =
            "its pod uses the machine's network, and stays so: its address changes with the machine";
        findings.push(Finding::warning(found.subject(), message));
    }
    findings
}
