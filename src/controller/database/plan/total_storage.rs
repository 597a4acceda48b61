//! What the storage of its namespace leaves for a Database, where its NodeClass limits it. Pure.

use crate::api::Size;
use crate::controller::database::cause::ClassRefusal;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::usage::{NamespaceStorage, Requested};

/// What keeps a Database from the storage that it requests and does not have. The EBS volumes of its
/// namespace count, and what older Databases request besides, as far as the limit leaves room for it: so each
/// Database comes to the same answer, whichever is reconciled first.
pub(super) fn refusal(observed: &Observed) -> Option<ClassRefusal> {
    let limit = limit(observed)?;
    let most = i64::from(limit.gib()?);
    let own = Requested::by(&observed.database);
    let has = observed.volume.ours().and_then(|volume| volume.spec.size.gib()).unwrap_or_default();
    if own.size <= has {
        return None;
    }
    let class = observed.database.spec.node_class_name.clone();
    let Some(storage) = &observed.usage.storage else { return Some(ClassRefusal::NotCounted { class }) };
    let more = missing(storage, &own);
    if more <= 0 {
        return None;
    }
    let Taken { databases, orphaned, retained } = taken(storage, &own, most);
    (databases + orphaned + retained + more > most).then(|| ClassRefusal::TotalStorage {
        class,
        most: limit.clone(),
        databases,
        retained,
        retained_volumes: storage.retained.len(),
        orphaned,
        more,
    })
}

/// How many GiB more than it has the limit leaves for a Database whose volume is to have so many; `None` as
/// long as EC2 was not listed.
pub(super) fn room(observed: &Observed, to: i32) -> Option<i32> {
    let Some(most) = limit(observed) else { return Some(i32::MAX) };
    let most = most.gib().map_or(0, i64::from);
    let storage = observed.usage.storage.as_ref()?;
    let own = Requested { size: to, ..Requested::by(&observed.database) };
    let Taken { databases, orphaned, retained } = taken(storage, &own, most);
    i32::try_from((most - databases - orphaned - retained).max(0)).ok()
}

fn limit(observed: &Observed) -> Option<&Size> {
    observed.class.as_ref()?.spec.limits.total_storage.as_ref()
}

/// What of a limit is taken, in GiB.
struct Taken {
    /// By the Volumes of Databases, and by what older Databases request besides.
    databases: i64,
    /// By the Volumes of Databases that are gone.
    orphaned: i64,
    /// By retained EBS volumes.
    retained: i64,
}

fn taken(storage: &NamespaceStorage, own: &Requested, most: i64) -> Taken {
    let sum = |is_orphaned: bool| -> i64 {
        let volumes = storage.volumes.iter().filter(|volume| volume.is_orphaned == is_orphaned);
        volumes.map(|volume| i64::from(volume.size)).sum()
    };
    let retained: i64 = storage.retained.iter().map(|volume| i64::from(volume.size)).sum();
    let (mut databases, orphaned) = (sum(false), sum(true));
    for older in storage.databases.iter().take_while(|older| older.uid != own.uid) {
        let more = missing(storage, older).max(0);
        if databases + orphaned + retained + more <= most {
            databases += more;
        }
    }
    Taken { databases, orphaned, retained }
}

/// What a Database requests and does not have: neither in its Volume, nor in the retained volume that it
/// adopts.
fn missing(storage: &NamespaceStorage, requested: &Requested) -> i64 {
    let own = storage.volumes.iter().filter(|volume| volume.database_uid == requested.uid);
    let adopted =
        storage.retained.iter().filter(|retained| requested.adopts.as_ref() == Some(&retained.volume_uid));
    let has = own.map(|volume| volume.size).chain(adopted.map(|retained| retained.size)).max();
    i64::from(requested.size) - i64::from(has.unwrap_or_default())
}
