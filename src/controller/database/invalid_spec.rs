//! What is wrong with the spec of a Database, as data. Pure.

use crate::api::Size;
use crate::engine::EngineError;

/// What is wrong with a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum InvalidSpec {
    /// `metadata.name` leaves no room for derived names, or is no DNS label.
    Name(String),
    /// The engine's version or settings.
    Engine(EngineError),
    /// An older version of QuestDB than one that was started on the data.
    OlderEngine {
        /// The spec's.
        version: String,
        /// The newest that was started.
        started: String,
    },
    /// A version that does not read the data that the database was restored with.
    RestoredVersion {
        /// The spec's.
        version: String,
        /// What wrote the data.
        wrote: String,
        /// Only the same major version reads it.
        same_major: bool,
    },
    /// Another major version of PostgreSQL.
    DataDirectory {
        /// Where the new version needs the data.
        wanted: String,
        /// Where the data is.
        made: String,
    },
    /// Another data path of the same image, for a database that was ready.
    DataPath {
        /// The spec's.
        wanted: String,
        /// Where the volume is mounted.
        made: String,
    },
    /// Another user id of a custom image, for a database that was ready.
    UserId {
        /// The spec's.
        wanted: i64,
        /// The group of the files on the volume.
        made: i64,
    },
    /// TLS that Freehold cannot give this database.
    Tls(TlsRefusal),
    /// An archive of the write-ahead log that this database cannot have.
    WalArchive(WalArchiveRefusal),
    /// The image of an adopted database does not name the version that it has.
    AdoptedImage {
        /// The image that was found.
        image: String,
        /// The version that the spec named then.
        version: String,
    },
    /// The size is no whole number of GiB.
    SizeForm(Size),
    /// No size as the largest one of a volume that grows by itself.
    AutoGrowMaximum(Size),
    /// A throughput for another type than gp3.
    ThroughputNotAllowed,
    /// IOPS for a type that has no setting for them.
    IopsNotAllowed(String),
    /// No IOPS for a type that requires them.
    IopsMissing(String),
    /// A volume type that EBS does not have.
    VolumeType(String),
    /// A smaller size than the volume's.
    Shrink {
        /// The spec's.
        size: Size,
        /// The volume's.
        made: Size,
    },
    /// Another file system than the volume's.
    FileSystem(&'static str),
    /// No instance type.
    NoInstanceTypes,
    /// The zone of the volume is not in `spec.zones`.
    ZoneExcluded(String),
    /// A selector of `spec.access.from` that Kubernetes does not take.
    AccessSelector,
    /// An entry of `spec.access.cidrs` that is no range of addresses.
    AccessCidr(String),
    /// A resource that is no quantity.
    Quantity {
        /// `requests` or `limits`.
        field: &'static str,
        /// The resource.
        name: String,
        /// What was written.
        quantity: String,
    },
}

/// Why a database cannot archive its write-ahead log as its spec requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalArchiveRefusal {
    /// Its engine is not PostgreSQL.
    Engine,
    /// It was adopted.
    Adopted,
    /// Its log is too short for an archive (wal_level).
    WalLevel,
    /// The destination is no bucket, or the URL no URL of a service.
    Form,
    /// Its data is still to be recovered by an archive, which is read with spec.walArchive.
    Recovering,
}

/// Why Freehold cannot give a database the TLS that its spec requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsRefusal {
    /// QuestDB has none.
    Questdb,
    /// The database was adopted.
    Adopted,
    /// A custom engine is not told to refuse connections without it.
    CustomRequired,
}
