//! The sentences of the archive of the write-ahead log.

use super::*;
use crate::controller::database::messages::wal_archive;

/// What the condition says.
pub(super) fn sentences() -> [(&'static str, String); 5] {
    let folder = "s3://backups/postgresql/vol-1";
    [
        ("wal_archive::archiving", wal_archive::archiving(folder)),
        ("wal_archive::unknown", wal_archive::unknown("s3://backups/postgresql")),
        ("wal_archive::nothing_yet", wal_archive::nothing_yet(folder)),
        ("wal_archive::failing", wal_archive::failing(folder, at(0))),
        ("wal_archive::program_missing", wal_archive::program_missing()),
    ]
}
