//! What must hold over the whole way of a life, each rule a fold over what was written, called and changed.

mod attempts;
mod broken;
mod creations;
mod ends;
pub mod facts;
pub mod leaders;
pub mod record;
mod writers;

use record::Record;

/// A rule: nothing, or how it was broken.
type Rule = fn(&Record) -> Result<(), String>;

/// Every rule, with the sentence that says it when it is broken.
pub const RULES: [(&str, Rule); 21] = [
    ("a Node has at most one live instance", creations::one_live_instance),
    ("a second machine is launched only as the replacement that the status names", creations::replacements),
    ("an attempt makes one resource", attempts::one_resource),
    ("another attempt begins after the end of what the former made", attempts::one_at_a_time),
    ("what is in doubt stays so until it cannot happen any more", attempts::doubt_stays),
    ("the finalizer is set before the first call", creations::finalizer_first),
    ("the intent is written before the call", creations::intent_first),
    ("a call is the request that its intent says", creations::whole_request),
    ("the finalizer is removed when nothing is left", ends::finalizer_last),
    ("a Volume ends when its EBS volume is gone or retained", ends::retained_or_gone),
    ("an instance that joined is ended only when its Node is deleted or fenced", ends::ended_with_cause),
    ("what holds data is deleted only after its owner", ends::deleted_with_owner),
    ("a volume is destroyed only as its policy says", ends::volumes_survive),
    ("a snapshot is deleted only with its Backup", ends::snapshots_survive),
    ("a volume leaves its machine only when nothing uses it", ends::single_writer),
    ("a deletion names the object's UID", ends::deletions_name_the_uid),
    ("credentials change only by a rotation", writers::credentials_are_stable),
    ("no secret leaves its Secret", writers::no_secret_leaks),
    ("the operator keeps to its own fields and calls", writers::own_fields),
    ("an operator sends only while it holds the Lease", leaders::sends_of_the_leader),
    ("nothing is written again and again", writers::no_hot_loop),
];

/// The rules that were broken, in their order, each with how.
fn broken(record: &Record) -> impl Iterator<Item = (&'static str, String)> {
    RULES.iter().filter_map(|(name, rule)| Some((*name, rule(record).err()?)))
}

/// The rules that were broken.
pub fn check(record: &Record) -> Result<(), String> {
    let all: Vec<String> = broken(record).map(|(name, how)| format!("{name}: {how}")).collect();
    if all.is_empty() { Ok(()) } else { Err(all.join("\n")) }
}
