//! Every sentence about a spec that cannot be carried out.

use super::*;

/// Each of them.
pub(super) fn all() -> Vec<InvalidSpec> {
    complete([
        InvalidSpec::Name(t("Orders")),
        InvalidSpec::Engine(EngineError::CustomMissing),
        InvalidSpec::OlderEngine { version: t("9.3.3"), started: t("9.3.4") },
        InvalidSpec::RestoredVersion { version: t("9.3.3"), wrote: t("9.3.4"), same_major: false },
        InvalidSpec::RestoredVersion { version: t("10.0.0"), wrote: t("9.3.4"), same_major: true },
        InvalidSpec::DataDirectory {
            wanted: t("/var/lib/freehold/18/data"),
            made: t("/var/lib/freehold/17/data"),
        },
        InvalidSpec::DataPath { wanted: t("/data"), made: t("/var/lib/engine") },
        InvalidSpec::Tls(TlsRefusal::Questdb),
        InvalidSpec::Tls(TlsRefusal::Adopted),
        InvalidSpec::Tls(TlsRefusal::CustomRequired),
        InvalidSpec::WalArchive(WalArchiveRefusal::Engine),
        InvalidSpec::WalArchive(WalArchiveRefusal::Adopted),
        InvalidSpec::WalArchive(WalArchiveRefusal::WalLevel),
        InvalidSpec::WalArchive(WalArchiveRefusal::Form),
        InvalidSpec::WalArchive(WalArchiveRefusal::Recovering),
        InvalidSpec::UserId { wanted: 999, made: 10001 },
        InvalidSpec::AdoptedImage { image: t("db:latest"), version: t("17.5") },
        InvalidSpec::SizeForm(Size(t("1e9"))),
        InvalidSpec::AutoGrowMaximum(Size(t("1e9"))),
        InvalidSpec::ThroughputNotAllowed,
        InvalidSpec::IopsNotAllowed(t("gp2")),
        InvalidSpec::IopsMissing(t("io2")),
        InvalidSpec::VolumeType(t("gp4")),
        InvalidSpec::Shrink { size: Size(t("50Gi")), made: Size(t("100Gi")) },
        InvalidSpec::FileSystem("xfs"),
        InvalidSpec::NoInstanceTypes,
        InvalidSpec::ZoneExcluded(t("us-east-1b")),
        InvalidSpec::AccessSelector,
        InvalidSpec::AccessCidr(t("10.0.0.0/99")),
        InvalidSpec::Quantity { field: "requests", name: t("memory"), quantity: t("lots") },
    ])
}
