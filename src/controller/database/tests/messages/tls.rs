//! The sentences of the certificate of `spec.tls`.

use strum::IntoEnumIterator as _;

use super::*;
use crate::controller::database::messages::tls;
use crate::controller::database::tls_wait::{TlsFault, TlsWait};
use crate::engine::certificate::CertificateFault;

pub(super) fn waits() -> impl Iterator<Item = DatabaseWait> {
    let faults = complete(
        [
            TlsFault::Absent,
            TlsFault::Forbidden(t("secrets \"orders-tls\" is forbidden")),
            TlsFault::Type(t("Opaque")),
            TlsFault::NotBinding,
        ]
        .into_iter()
        .chain(CertificateFault::iter().map(TlsFault::Certificate)),
    );
    let unusable = faults.into_iter().map(|fault| TlsWait::Unusable(t("orders-tls"), fault));
    complete(unusable.chain([TlsWait::Loading(t("orders-tls"))])).into_iter().map(DatabaseWait::Tls)
}

/// What the event and the condition say.
pub(super) fn sentences() -> [(&'static str, String); 7] {
    [
        ("tls::loaded", tls::loaded("orders-tls", None)),
        ("tls::loaded", tls::loaded("orders-tls", Some("orders.shop.svc"))),
        ("tls::renewed", tls::renewed("orders-tls", at(0))),
        ("tls::at_start", tls::at_start("orders-tls")),
        ("tls::refused", tls::refused("orders-tls")),
        ("tls::expiring", tls::expiring("orders-tls", at(0))),
        ("tls::expired", tls::expired("orders-tls", at(0))),
    ]
}
