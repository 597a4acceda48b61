//! The admission policies of the chart: which clusters get them, and that each is bound. What they refuse is
//! in `tenants/admission.rs`.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use pretty_assertions::assert_eq;

use super::rendered;
use crate::kit::chart::of_kind;
use crate::kit::test_env::run;

#[test]
fn every_policy_is_bound_and_fails_closed() {
    run(async {
        let rendered = rendered(&[]).await;
        let mut named = BTreeSet::new();
        for policy in of_kind(&rendered, "ValidatingAdmissionPolicy") {
            let typed: ValidatingAdmissionPolicy = serde_json::from_value(policy.clone()).unwrap();
            assert_eq!(&serde_json::to_value(&typed).unwrap(), policy, "Kubernetes knows every field");
            assert_eq!(policy["spec"]["failurePolicy"], "Fail");
            named.insert(policy["metadata"]["name"].as_str().unwrap().to_owned());
        }
        let bindings = of_kind(&rendered, "ValidatingAdmissionPolicyBinding");
        let bound: BTreeSet<_> =
            bindings.iter().map(|it| it["spec"]["policyName"].as_str().unwrap().to_owned()).collect();
        assert_eq!((named.len(), &named), (10, &bound));
        assert!(bindings.iter().all(|binding| binding["spec"]["validationActions"][0] == "Deny"));
    });
}

#[test]
fn an_older_kubernetes_gets_no_policies_and_a_switch_takes_them_away() {
    run(async {
        for args in [["--kube-version", "1.29.9"], ["--set", "admissionPolicies.enabled=false"]] {
            let rendered = rendered(&args).await;
            assert_eq!(of_kind(&rendered, "ValidatingAdmissionPolicy").len(), 0, "{args:?}");
            assert_eq!(of_kind(&rendered, "ValidatingAdmissionPolicyBinding").len(), 0, "{args:?}");
        }
        let managed = rendered(&["--kube-version", "v1.30.4-eks-a737599"]).await;
        assert_eq!(of_kind(&managed, "ValidatingAdmissionPolicy").len(), 10, "a vendor's version");
    });
}
