//! The part of the plan that has PostgreSQL show the certificate of `spec.tls`. Pure.
//!
//! No template with the certificate is applied before its Secret can be used: an engine that serves goes on
//! without. One that was started with it is asked which certificate it shows; after a renewal it loads its
//! files, once the kubelet has updated them, and goes on serving.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::action::{Action, Certify};
use super::data::template_of;
use super::facts::{engine_waiting, is_outdated, slowly};
use super::rotation;
use crate::api::database::{EngineType, Tls, TlsStatus};
use crate::api::{ConditionType, Reason};
use crate::controller::conditions::Entry;
use crate::controller::database::build;
use crate::controller::database::messages::tls as sentences;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::tls::TlsSecret;
use crate::controller::database::pod::EngineWait;
use crate::controller::database::tls_wait::{TlsFault, TlsWait};
use crate::controller::database::wait::DatabaseWait;
use crate::engine::Profile;
use crate::engine::certificate::Certificate;
use crate::engine::postgresql::MAINTENANCE_DATABASE;
use crate::time::later;

/// How long before its end a certificate should have been renewed, at most.
const WARNED_BEFORE: Duration = Duration::from_secs(7 * 24 * 3600);

/// What the spec requests.
fn wanted(observed: &Observed) -> Option<&Tls> {
    observed.database.spec.tls.as_ref()
}

fn is_postgresql(observed: &Observed) -> bool {
    observed.database.spec.engine.kind == EngineType::Postgresql
}

/// Why the Secret cannot be used, if that is known.
fn unusable(observed: &Observed) -> Option<TlsWait> {
    let secret = wanted(observed)?.secret_name.clone();
    let fault = match &observed.tls {
        TlsSecret::Unusable(fault) => fault.clone(),
        // What a custom engine makes of it is not known.
        TlsSecret::Usable(it) if is_postgresql(observed) && !it.can_be_bound_to => TlsFault::NotBinding,
        TlsSecret::Usable(_) | TlsSecret::NotRead => return None,
    };
    Some(TlsWait::Unusable(secret, fault))
}

/// What keeps a template from being applied that has another certificate than the one which is there, or that
/// would restart an engine which serves: its pod would not come back. A template that has the certificate is
/// not blocked where none serves: its pod may have to move to another machine.
pub(super) fn refused(observed: &Observed, live: Option<&StatefulSet>) -> Option<DatabaseWait> {
    let tls = wanted(observed)?;
    let has = live.and_then(template_of).and_then(build::tls_secret_of);
    let is_there = has == Some(tls.secret_name.as_str());
    let restarts = || live.is_some_and(|live| is_outdated(observed, live)) && serves(observed);
    if is_there && !restarts() { None } else { unusable(observed).map(DatabaseWait::Tls) }
}

/// What keeps an engine that serves from being stopped to be started again: it would not start.
pub(super) fn before_restart(observed: &Observed) -> Option<DatabaseWait> {
    unusable(observed).filter(|_| serves(observed)).map(DatabaseWait::Tls)
}

fn serves(observed: &Observed) -> bool {
    engine_waiting(observed).is_none()
}

/// What is awaited of an engine, with the reason why its pod does not start, where that is the Secret.
pub(super) fn explained(observed: &Observed, wait: DatabaseWait) -> DatabaseWait {
    let is_mounting = matches!(wait, DatabaseWait::Engine(EngineWait::ContainerStarting { .. }));
    unusable(observed).filter(|_| is_mounting).map_or(wait, DatabaseWait::Tls)
}

/// Whether the pod has the certificate of this Secret.
fn is_mounted(pod: &Pod, tls: &Tls) -> bool {
    pod.spec.as_ref().and_then(build::tls_secret_of) == Some(tls.secret_name.as_str())
}

/// What was seen of the engine of this pod.
fn known<'a>(observed: &'a Observed, pod: &Pod) -> Option<&'a TlsStatus> {
    let known = observed.database.status.as_ref()?.tls.as_ref()?;
    (pod.metadata.uid.as_ref() == Some(&known.pod_uid)).then_some(known)
}

/// The certificate that the engine of this pod was not seen to show. One that it has refused, it may take
/// later: the kubelet may have updated one file of two by then.
fn due<'a>(observed: &'a Observed, pod: &Pod) -> Option<&'a Certificate> {
    let TlsSecret::Usable(certificate) = &observed.tls else { return None };
    let is_served = wanted(observed).is_some_and(|tls| is_mounted(pod, tls)) && is_postgresql(observed);
    if !is_served || unusable(observed).is_some() {
        return None;
    }
    let is_shown = |known: &TlsStatus| known.certificate == Some(certificate.fingerprint());
    (!known(observed, pod).is_some_and(is_shown)).then_some(certificate)
}

/// What is awaited of an engine that accepts connections before it is known to show the certificate. A
/// renewal is not awaited: the one before is as good until it expires.
pub(super) fn awaited(observed: &Observed, pod: &Pod) -> Option<DatabaseWait> {
    let is_first = due(observed, pod).is_some() && known(observed, pod).is_none();
    let secret = wanted(observed).filter(|_| is_first)?.secret_name.clone();
    Some(DatabaseWait::Tls(TlsWait::Loading(secret)))
}

/// Has an engine that serves show the certificate, whatever else is awaited, unless it is stopped now.
pub(super) fn load(observed: &Observed, profile: &Profile, actions: &mut Vec<Action>) {
    let is_stopped = actions.iter().any(Action::ends_engine);
    let pod = observed.pod.as_ref().filter(|_| serves(observed) && !is_stopped);
    actions.extend(pod.and_then(|pod| loading(observed, profile, pod)));
}

fn loading(observed: &Observed, profile: &Profile, pod: &Pod) -> Option<Action> {
    let (tls, certificate) = (wanted(observed)?, due(observed, pod)?);
    // The password is about to be another one.
    let secret = rotation::usable(observed).filter(|_| !rotation::may_have_next(observed));
    let access = rotation::access(profile, &secret?.0, pod, MAINTENANCE_DATABASE)?;
    let host = build::host(&observed.names);
    let is_named = certificate.names(&host);
    Some(Action::LoadCertificate(Box::new(Certify {
        access,
        certificate: certificate.clone(),
        secret: tls.secret_name.clone(),
        is_renewal: known(observed, pod).is_some(),
        record: TlsStatus {
            pod_uid: pod.uid().unwrap_or_default(),
            certificate: Some(certificate.fingerprint()),
            not_before: Some(Time(certificate.not_before)),
            not_after: Some(Time(certificate.not_after)),
            missing_name: (!is_named).then_some(host),
            refused: None,
        },
    })))
}

/// When to look again: no Secret is watched, nor what a kubelet updates.
pub(super) fn again(observed: &Observed) -> Option<Duration> {
    let soon = observed.timing.requeue_interval.saturating_mul(4);
    if unusable(observed).is_some() {
        return Some(if serves(observed) { slowly(observed) } else { soon });
    }
    let pod = observed.pod.as_ref()?;
    let fingerprint = due(observed, pod)?.fingerprint();
    let is_refused = known(observed, pod).is_some_and(|known| known.refused == Some(fingerprint));
    Some(if is_refused { slowly(observed) } else { soon })
}

/// What is known of the certificate; nothing once none is wanted.
pub(in crate::controller::database) fn shown(
    observed: &Observed,
    known: Option<TlsStatus>,
) -> Option<TlsStatus> {
    wanted(observed)?;
    let pod = observed.pod.as_ref();
    known.filter(|known| pod.is_none_or(|pod| pod.metadata.uid.as_ref() == Some(&known.pod_uid)))
}

/// Says whether the engine shows the certificate of the Secret, and else why not.
pub(in crate::controller::database) fn reported(observed: &Observed, now: Timestamp) -> Option<Entry> {
    let tls = wanted(observed).filter(|_| is_postgresql(observed))?;
    let (kind, secret) = (ConditionType::CertificateLoaded, tls.secret_name.as_str());
    let mounts = |pod: &&Pod| is_mounted(pod, tls);
    let known = observed.pod.as_ref().filter(mounts).and_then(|pod| known(observed, pod));
    // Whatever hinders a renewal: clients are out.
    if let Some(at) = known.and_then(|known| known.not_after.as_ref()).filter(|at| at.0 <= now) {
        return Some(Entry::no(kind, Reason::CertificateExpired, sentences::expired(secret, at.0)));
    }
    if let Some(wait) = unusable(observed) {
        return Some(Entry::no(kind, wait.reason(), wait.message()));
    }
    if !observed.database.spec.running {
        return Some(Entry::no(kind, Reason::Paused, sentences::at_start(secret)));
    }
    let Some(known) = known else {
        return Some(Entry::no(kind, Reason::CertificateLoading, sentences::at_start(secret)));
    };
    let wanted = match &observed.tls {
        TlsSecret::Usable(certificate) => Some(certificate.fingerprint()),
        // It is what it was.
        TlsSecret::NotRead | TlsSecret::Unusable(_) => known.certificate.clone(),
    };
    if known.refused.is_some() && known.refused == wanted {
        return Some(Entry::no(kind, Reason::CertificateRefused, sentences::refused(secret)));
    }
    if known.certificate.is_none() || known.certificate != wanted {
        let wait = TlsWait::Loading(secret.to_owned());
        return Some(Entry::no(kind, wait.reason(), wait.message()));
    }
    if let (Some(from), Some(until)) = (&known.not_before, &known.not_after)
        && expires_soon(from.0, until.0, now)
    {
        let message = sentences::expiring(secret, until.0);
        return Some(Entry::no(kind, Reason::CertificateExpiring, message));
    }
    let message = sentences::loaded(secret, known.missing_name.as_deref());
    Some(Entry::yes(kind, Reason::AsExpected, message))
}

/// Whether a certificate is about to expire: a week before, or for one of a short life a tenth of that.
/// cert-manager renews after two thirds of it (its documentation, "Certificate resource").
fn expires_soon(from: Timestamp, until: Timestamp, now: Timestamp) -> bool {
    let life = Duration::try_from(until.duration_since(from)).unwrap_or_default();
    now >= later(from, life.saturating_sub(WARNED_BEFORE.min(life / 10)))
}
