//! Builds the PodDisruptionBudget: it makes evictions wait until the database has moved.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::owned;
use crate::api::names::Names;

/// The PodDisruptionBudget of the pod: no eviction is admitted, of a pod that is not ready neither, since
/// its engine may be replaying its log. `kubectl drain` cordons first and then repeats its evictions: the
/// cordoned machine is replaced as planned, the pod is deleted there once another machine is ready, and the
/// drain ends (<https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/>).
pub fn disruption_budget(names: &Names) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: owned(names, &names.disruption_budget),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(0)),
            selector: Some(LabelSelector {
                match_labels: Some(names.selector.clone()),
                match_expressions: None,
            }),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    }
}
