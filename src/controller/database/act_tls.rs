//! The part of the act step that has an engine show a certificate, and records whether it does.

use kube::ResourceExt as _;

use super::messages::tls as sentences;
use super::plan::action::Certify;
use super::written::{report, write_down};
use crate::api::database::TlsStatus;
use crate::api::{Database, EventReason};
use crate::cluster::events::Events;
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;
use crate::engine::client::Loaded;
use crate::error_chain::Chain;

/// Has the engine show the certificate, and writes down what it does.
pub(super) async fn load_certificate(
    certify: &Certify,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    ctx.term.check()?;
    let Certify { access, certificate, secret, is_renewal, record } = certify;
    let answer = match ctx.engines.load_certificate(access, certificate).await {
        Err(error) if *is_renewal => {
            let database = acted.object.name_any();
            tracing::warn!(database, secret, error = %Chain(&error), "the certificate is not renewed yet");
            return Ok(());
        }
        answer => answer?,
    };
    match answer {
        Loaded::NotInFiles => {}
        Loaded::Shown => {
            write_down(acted, ctx, |status| status.tls = Some(record.clone())).await?;
            let note = sentences::renewed(secret, certificate.not_after);
            report(EventReason::CertificateLoaded, note, acted, events).await;
        }
        Loaded::Refused => {
            let known = acted.object.status.as_ref().and_then(|status| status.tls.clone());
            let known = known.filter(|known| known.pod_uid == record.pod_uid).unwrap_or_default();
            let (pod_uid, refused) = (record.pod_uid.clone(), record.certificate.clone());
            let record = TlsStatus { pod_uid, refused, ..known };
            write_down(acted, ctx, |status| status.tls = Some(record)).await?;
        }
    }
    Ok(())
}
