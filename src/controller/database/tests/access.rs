//! The Service, the NetworkPolicy, the PodDisruptionBudget and the ServiceAccount of a Database: restored
//! whatever another client does to them.

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

#[test]
fn what_another_client_changed_in_the_ways_to_the_engine_is_put_right() {
    let row = planned(|world| {
        change(&mut world.service, |service| {
            service.spec.as_mut().unwrap().ports.as_mut().unwrap()[0].port = 9999;
        });
    });
    assert_eq!(row, "[apply service service-uid] as wanted");
    let row = planned(|world| {
        change(&mut world.network_policy, |policy| {
            let rule = &mut policy.spec.as_mut().unwrap().ingress.as_mut().unwrap()[0];
            rule.from.as_mut().unwrap()[0].namespace_selector = Some(LabelSelector::default());
        });
    });
    assert_eq!(row, "[apply policy policy-uid] as wanted");
    let row = planned(|world| {
        change(&mut world.disruption_budget, |budget| {
            budget.spec.as_mut().unwrap().max_unavailable = Some(IntOrString::Int(1));
        });
    });
    assert_eq!(row, "[apply budget budget-uid] as wanted");
    let row = planned(|world| {
        (world.service, world.network_policy, world.config_map) =
            (Child::Absent, Child::Absent, Child::Absent);
        (world.service_account, world.disruption_budget) = (Child::Absent, Child::Absent);
    });
    let expected = "[apply config new, create account new, apply service new, apply policy new, apply budget \
         new] as wanted";
    assert_eq!(row, expected);
}

#[test]
fn a_foreign_disruption_budget_of_the_databases_name_stays_and_stops_nothing() {
    assert_eq!(planned(|world| world.disruption_budget = Child::Foreign), "[] as wanted");
}

#[test]
fn an_aws_role_that_another_client_gives_the_service_account_is_taken_out() {
    let row = planned(|world| {
        change(&mut world.service_account, |account| {
            account.annotations_mut().insert("eks.amazonaws.com/role-arn".to_owned(), "arn:x".to_owned());
            account.annotations_mut().insert("team".to_owned(), "a".to_owned());
        });
    });
    let patch = json!({"automountServiceAccountToken": false,
        "metadata": {"annotations": {"eks.amazonaws.com/role-arn": null}, "uid": "account-uid"}});
    assert_eq!(row, format!("[mend account {patch}] as wanted"));
    let row = planned(|world| {
        change(&mut world.service_account, |account| account.automount_service_account_token = None);
    });
    let patch = json!({"automountServiceAccountToken": false, "metadata": {"uid": "account-uid"}});
    assert_eq!(row, format!("[mend account {patch}] as wanted"));
}

/// The Secret of the credentials with this password.
pub(super) fn secret_with(password: &[u8]) -> Secret {
    let mut secret = build::credentials(
        &Names::of(&database(json!({}), json!({}))),
        settled().profile.as_ref().unwrap(),
        &Password::fixed(),
    );
    secret.data.as_mut().unwrap().insert("password".to_owned(), ByteString(password.to_vec()));
    with_uid(secret, "secret-uid")
}
