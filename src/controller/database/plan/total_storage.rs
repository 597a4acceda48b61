//! What the storage of its namespace leaves for a Database, where its NodeClass limits it. Pure.

use crate::controller::database::cause::ClassRefusal;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::usage::{NamespaceStorage, Requested};

/// What keeps a Database from the storage that it requests and does not have. The EBS volumes of its
/// namespace count, and what older Databases request besides, as far as the limit leaves room for it: so each
/// Database comes to the same answer, whichever is reconciled first.
pub(super) fn refusal(observed: &Observed) -> Option<ClassRefusal> {
    let class = observed.class.as_ref()?;
    let limit = class.spec.limits.total_storage.as_ref()?;
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

/// What a Database requests and does not have: neither in its Volume, nor in the retained volume that it
/// adopts.
fn missing(storage: &NamespaceStorage, requested: &Requested) -> i64 {
    let own = storage.volumes.iter().filter(|volume| volume.database_uid == requested.uid);
    let adopted =
        storage.retained.iter().filter(|retained| requested.adopts.as_ref() == Some(&retained.volume_uid));
    let has = own.map(|volume| volume.size).chain(adopted.map(|retained| retained.size)).max();
    i64::from(requested.size) - i64::from(has.unwrap_or_default())
}
