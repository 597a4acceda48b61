//! The rule about which operator acts.

use freehold_rig::Change;
use jiff::Timestamp;

use super::record::Record;

/// Where the operators' Leases are.
const NAMESPACE: &str = "kube-system";

/// Who held the operators' Lease from when on, in order; nobody between a release and the next term.
pub fn holders(changes: &[Change]) -> impl Iterator<Item = (Timestamp, &str)> {
    let leases = changes.iter().filter(|it| it.resource == "leases.coordination.k8s.io");
    leases.filter_map(|it| {
        let lease = it.new.as_ref().filter(|lease| lease["metadata"]["namespace"] == NAMESPACE)?;
        Some((it.at, lease["spec"]["holderIdentity"].as_str().unwrap_or_default()))
    })
}

/// Whoever sends a request that may change something holds the Lease at that moment.
pub fn sends_of_the_leader(record: &Record) -> Result<(), String> {
    let mut holders = holders(&record.changes);
    let mut next = holders.next();
    let mut held: Option<(Timestamp, &str)> = None;
    for (at, operator) in &record.sends {
        while let Some(lease) = next.filter(|(since, _)| since <= at) {
            held = Some(lease);
            next = holders.next();
        }
        let holder = held.map_or("", |(_, holder)| holder);
        if holder != operator {
            return Err(format!("{operator} sent at {at}, when {holder:?} held the Lease"));
        }
    }
    Ok(())
}
