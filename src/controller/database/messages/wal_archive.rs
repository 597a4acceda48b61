//! The sentences of the archive of the write-ahead log. Pure.

use jiff::Timestamp;

/// The condition WalArchived is true.
pub fn archiving(folder: &str) -> String {
    format!("the engine archives its write-ahead log in {folder}")
}

/// The engine was not asked, or did not answer.
pub fn unknown(destination: &str) -> String {
    format!(
        "it is not known whether the engine archives its write-ahead log in {destination}: it does not serve, \
        or does not answer the operator"
    )
}

/// The engine has archived nothing in this folder.
pub fn nothing_yet(folder: &str) -> String {
    format!("the engine has archived no file of its write-ahead log in {folder} yet, and no try has failed")
}

/// The engine cannot archive.
pub fn failing(folder: &str, since: Timestamp) -> String {
    format!(
        "the engine was seen to fail since {since} to archive its write-ahead log in {folder}: its log says why; \
         until it can, it keeps the write-ahead log on its volume, which fills; correct the bucket, the \
         credentials or the network, and it goes on by itself"
    )
}

/// The image has no program.
pub fn program_missing() -> String {
    "barman-cloud-wal-archive is not in the image of the engine, or does not run, so the write-ahead log is not \
     archived: name an image that has it in the NodeClass (docs/point-in-time.md), and delete the pod"
        .to_owned()
}
