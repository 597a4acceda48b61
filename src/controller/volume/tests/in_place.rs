//! The PersistentVolume and the claim of an EBS volume that was adopted in place: in which order they become
//! this Volume's, and that nothing else of them changes.

use super::adopted::{bound, found_claim, found_record, kept, listed};
use super::*;
use crate::controller::volume::adopted::{disown, give_back, own, record as recorded, release_claim};

#[test]
fn the_persistent_volume_is_kept_first_and_the_claim_owned_last_and_nothing_is_modified_before() {
    let records = |observed: &Observed| {
        let change = recorded(observed.persistent_volume.as_ref().unwrap(), &observed.volume).unwrap();
        acts(Stage::Created, vec![Action::RecordAdopted(change)], Reason::AwaitingBinding).again(5)
    };
    let owns = |observed: &Observed| {
        let change = own(observed.claim.as_ref().unwrap(), &observed.volume).unwrap();
        acts(Stage::Bound, vec![Action::OwnClaim(change)], Reason::AwaitingBinding).again(5)
    };
    let disowns = |observed: &Observed| {
        let change = disown(observed.claim.as_ref().unwrap(), &observed.volume).unwrap();
        acts(Stage::Bound, vec![Action::DisownClaim(change)], Reason::AwaitingBinding).again(5)
    };
    let wants_more = |it: &mut Observed| {
        (it.volume.spec.size, it.volume.spec.iops) = (Size("1Ti".to_owned()), Some(6000));
        status(it).change_due_since = Some(Time(at(-100)));
    };
    let (fresh, freed) = (listed(|_| {}), bound(|it| it.volume.spec.release = false));
    let altered = kept(|it| {
        let spec = it.persistent_volume.as_mut().unwrap().spec.as_mut().unwrap();
        spec.persistent_volume_reclaim_policy = Some("Delete".to_owned());
    });
    let given_up = kept(|it| it.volume.spec.release = true);
    let unbound = || stalls(Stage::Created, Reason::AwaitingBinding).again(60);
    hold(vec![
        ("the PersistentVolume first", fresh.clone(), now(), records(&fresh)),
        ("its reclaim policy was changed", altered.clone(), now(), records(&altered)),
        ("it would be released: nothing is owned", bound(|_| {}), now(), done()),
        ("nor modified", bound(wants_more), now(), done()),
        ("it is kept: the claim is owned", freed.clone(), now(), owns(&freed)),
        ("all is done", kept(|_| {}), now(), done()),
        ("it would be released again", given_up.clone(), now(), disowns(&given_up)),
        ("it would be released, and the claim is gone", bound(|it| it.claim = None), now(), unbound()),
        (
            "it would be released, and the PersistentVolume is gone",
            bound(|it| it.persistent_volume = None),
            now(),
            unbound(),
        ),
    ]);
    let grown = plan(&kept(wants_more), now());
    assert!(matches!(grown.actions.as_slice(), [Action::Modify(_)]), "{grown:?}");
    let modified = kept(|it| {
        wants_more(it);
        (it.volumes.volumes[0].size, it.volumes.volumes[0].iops) = (1024, Some(6000));
    });
    let last = plan(&modified, now());
    let [Action::GrowClaim(claim)] = last.actions.as_slice() else { panic!("{last:?}") };
    assert_eq!(claim.name_any(), "data-orders-0", "the claim has its own name");
}

#[test]
fn nothing_else_of_the_persistent_volume_and_the_claim_is_changed() {
    let volume = kept(|_| {}).volume;
    let change = recorded(&found_record(), &volume).unwrap();
    let mut expected = found_record();
    expected.labels_mut().extend(
        [
            ("freehold.dev/volume-uid", "volume-uid"),
            ("freehold.dev/database", "orders"),
            ("freehold.dev/database-uid", "database-uid"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    expected.annotations_mut().extend(
        [("freehold.dev/database", "team-a/orders"), ("freehold.dev/former-reclaim-policy", "Delete")]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    expected.spec.as_mut().unwrap().persistent_volume_reclaim_policy = Some("Retain".to_owned());
    pretty_assertions::assert_eq!(change.to, expected);
    assert_eq!(recorded(&change.to, &volume), None, "once");

    let owned = own(&found_claim(), &volume).unwrap();
    let owners: Vec<_> =
        owned.to.owner_references().iter().map(|it| (it.kind.as_str(), it.controller)).collect();
    assert_eq!(owners, [("StatefulSet", Some(true)), ("Volume", None)], "its controller stays");
    assert_eq!(own(&owned.to, &volume), None, "once");
    assert_eq!(release_claim(&owned.to, None, &volume).unwrap().to, found_claim());
    assert_eq!(release_claim(&found_claim(), None, &volume), None);
    assert_eq!(give_back(&found_record(), Some(&found_claim()), &volume), None);
}
