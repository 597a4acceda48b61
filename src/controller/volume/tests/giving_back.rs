//! The end of a Volume that adopted an EBS volume in place: everything is as it was found once it is given
//! back, and otherwise the deletion policy says what becomes of it.

use super::adopted::{
    TAKES_RECORD, announced, asked, found, found_claim, found_record, kept, shows, tagged, tags,
};
use super::*;
use crate::api::keys::VOLUME_UID_TAG;
use crate::controller::volume::adopted::Change;

/// The three as they are, and the Volume, for a few passes.
struct InPlace {
    observed: Observed,
    disk: EbsVolume,
    is_gone: bool,
}

impl InPlace {
    fn pass(&mut self) {
        let is_listed = self.disk.tags.get(VOLUME_UID_TAG).is_some_and(|uid| uid == "volume-uid");
        self.observed.volumes.volumes = if is_listed { vec![self.disk.clone()] } else { Vec::new() };
        self.observed.by_id = ById::Shown(Box::new(self.disk.clone()));
        for action in plan(&self.observed, now()).actions {
            self.carry_out(action);
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Adopt(id, tags) => {
                status(&mut self.observed).volume_id = Some(id);
                self.disk.tags.extend(tags);
            }
            Action::Untag(_, tags) => self.disk.tags.retain(|key, value| tags.get(key) != Some(value)),
            Action::RecordAdopted(change) | Action::GiveBackRecord(change) => {
                let Change { from, to } = *change;
                assert_eq!(self.observed.persistent_volume.replace(to), Some(from));
            }
            Action::OwnClaim(change) | Action::DisownClaim(change) => {
                let Change { from, to } = *change;
                assert_eq!(self.observed.claim.replace(to), Some(from));
            }
            Action::RemoveFinalizer => self.is_gone = true,
            Action::AddFinalizer
            | Action::Create(_)
            | Action::Resend
            | Action::Retag(..)
            | Action::ReleaseRecord(_)
            | Action::RecordVolume(_)
            | Action::CreatePersistentVolume(_)
            | Action::ReopenPersistentVolume(_)
            | Action::CreateClaim(_)
            | Action::Modify(_)
            | Action::GrowClaim(_)
            | Action::FreeClaim(_)
            | Action::DeleteClaim(_)
            | Action::MarkRetained(_)
            | Action::Snapshot(..)
            | Action::RecordSnapshot(_)
            | Action::DeleteVolume(_)
            | Action::NoteDeleted
            | Action::DeletePersistentVolume(_) => panic!("an adopted volume is used as it is: {action:?}"),
        }
    }
}

#[test]
fn whenever_it_is_released_everything_is_as_it_was_found() {
    for passes in 0..6 {
        for is_kept_from in 0..=passes {
            let mut world = InPlace { observed: asked(|_| {}), disk: found(), is_gone: false };
            for pass in 0..passes {
                world.observed.volume.spec.release = pass < is_kept_from;
                world.pass();
            }
            world.observed.volume.spec.release = true;
            world.observed.volume.metadata.deletion_timestamp = Some(Time(at(5)));
            // Neither a pod nor an attachment is waited for.
            world.observed.attachments = vec!["csi-1".to_owned()];
            for _ in 0..3 {
                if !world.is_gone {
                    world.pass();
                }
            }
            assert!(world.is_gone, "{passes} {is_kept_from}");
            pretty_assertions::assert_eq!(world.observed.persistent_volume, Some(found_record()));
            pretty_assertions::assert_eq!(world.observed.claim, Some(found_claim()));
            pretty_assertions::assert_eq!(world.disk, found());
        }
    }
}

#[test]
fn a_release_restores_the_reclaim_policy_only_where_nothing_deletes_the_claim() {
    let leaves = |change: fn(&mut Observed)| {
        let observed = kept(|it| {
            it.volume.spec.release = true;
            shows(it, tagged());
            change(it);
        });
        plan(&deleting(DeletionPolicy::Delete, observed), now()).actions
    };
    let policy = |actions: &[Action]| {
        actions.iter().find_map(|action| {
            let Action::GiveBackRecord(change) = action else { return None };
            change.to.spec.clone()?.persistent_volume_reclaim_policy
        })
    };
    let actions = leaves(|_| {});
    let [Action::DisownClaim(_), Action::GiveBackRecord(_), Action::Untag(of, gone)] = actions.as_slice()
    else {
        panic!("{actions:?}")
    };
    assert_eq!((of, gone), (&id("vol-9"), &tags()), "only what was put on");
    assert_eq!(policy(&actions).as_deref(), Some("Delete"));
    let ending = leaves(|it| it.claim.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(at(5))));
    assert_eq!(policy(&ending).as_deref(), Some("Retain"));
    assert_eq!(policy(&leaves(|it| it.claim = None)).as_deref(), Some("Retain"));
}

#[test]
fn a_release_removes_tags_calmly_and_ends_only_when_ec2_shows_them_gone() {
    let leaves = |change: fn(&mut Observed)| {
        deleting(
            DeletionPolicy::Delete,
            announced(|it| {
                it.volumes.swept_at = None;
                change(it);
            }),
        )
    };
    let issued = |it: &mut Observed, call: Call, seconds: i64, call_blocked: Option<CallBlocked>| {
        it.issued = BTreeMap::from([(call, IssuedRequest { at: at(seconds), call_blocked })]);
    };
    let tagged_now = |seconds: i64, blocked: Option<CallBlocked>, call: Call| {
        let mut observed = leaves(|it| shows(it, tagged()));
        issued(&mut observed, call, seconds, blocked);
        observed
    };
    let mut just_tagged = leaves(|it| shows(it, found()));
    issued(&mut just_tagged, Call::CreateTags, 8, None);
    let forbidden = answered(Call::DeleteTags, "UnauthorizedOperation", Some(at(309)));
    hold(vec![
        (
            "EC2 is read first",
            leaves(|_| {}),
            now(),
            "Nothing: [] Adopting, pending, reads vol-9, again in 5 s",
        ),
        (
            "it carries our tags",
            leaves(|it| shows(it, tagged())),
            now(),
            "Nothing: [untag vol-9] Deleting, again in 5 s",
        ),
        (
            "requested a moment ago",
            tagged_now(9, None, Call::DeleteTags),
            now(),
            "Nothing: [] Deleting, again in 5 s",
        ),
        (
            "requested a while ago",
            tagged_now(1, None, Call::DeleteTags),
            now(),
            "Nothing: [untag vol-9] Deleting, again in 5 s",
        ),
        (
            "forbidden: its pause",
            tagged_now(9, Some(forbidden), Call::DeleteTags),
            now(),
            "Nothing: [] Forbidden, again in 299 s",
        ),
        ("it carries none", leaves(|it| shows(it, found())), now(), "Nothing: [remove finalizer] Deleting"),
        ("EC2 may not show yet what was tagged", just_tagged, now(), "Nothing: [] Deleting, again in 3 s"),
        (
            "EC2 does not show it for a moment, and it would keep the tags",
            leaves(|it| it.by_id = ById::NotShown),
            now(),
            "Nothing: [] AwaitingVolumeDeletion, pending, again in 60 s",
        ),
        (
            "its absence is proven",
            leaves(|it| (it.by_id, it.volumes.empty) = (ById::NotShown, Some(run(1, 1201)))),
            at(1202),
            "Nothing: [remove finalizer] Deleting",
        ),
        (
            "EC2 has never shown it, and nothing was put on it",
            leaves(|it| (it.by_id, it.volume.status) = (ById::NotShown, None)),
            now(),
            "Nothing: [remove finalizer] Deleting",
        ),
        (
            "it is another Volume's, with our cluster's tag",
            leaves(|it| {
                let mut volume = tagged();
                volume.tags.insert(VOLUME_UID_TAG.to_owned(), "other".to_owned());
                shows(it, volume);
            }),
            now(),
            "Nothing: [remove finalizer] Deleting",
        ),
    ]);
}

#[test]
fn one_that_is_kept_is_deleted_as_the_policy_says_and_under_its_own_names() {
    let leaves = |policy: DeletionPolicy, change: fn(&mut Observed)| {
        deleting(
            policy,
            kept(|it| {
                it.claim = None;
                it.volumes.volumes[0].state = VolumeState::Available;
                change(it);
            }),
        )
    };
    let claimed = kept(|_| {});
    let retained = plan(&leaves(DeletionPolicy::Retain, |_| {}), now());
    let [Action::MarkRetained(record), Action::RemoveFinalizer] = retained.actions.as_slice() else {
        panic!("{retained:?}")
    };
    assert_eq!(record.name_any(), "pvc-5a1c");
    assert!(message(&retained).contains("pvc-5a1c"), "{retained:?}");
    let read = crate::controller::retention::read(record).expect("a record of any name");
    assert_eq!((read.volume_id, read.volume_uid.as_str()), (id("vol-9"), "volume-uid"));
    let unmarked = leaves(DeletionPolicy::Retain, |it| it.persistent_volume = Some(found_record()));
    hold(vec![
        (
            "its claim first",
            deleting(DeletionPolicy::Delete, claimed),
            now(),
            "Bound: [free claim data-orders-0, delete claim data-orders-0] AwaitingDetach",
        ),
        (
            "deleted",
            leaves(DeletionPolicy::Delete, |_| {}),
            now(),
            "Created: [delete vol-9] AwaitingVolumeDeletion, pending",
        ),
        ("its PersistentVolume is not the record yet", unmarked, now(), TAKES_RECORD),
        (
            "the status was lost",
            leaves(DeletionPolicy::Delete, |it| it.volume.status = None),
            now(),
            "Nothing: [record vol-9] Deleting",
        ),
        (
            "it was never adopted: nothing of it is this Volume's",
            leaves(DeletionPolicy::Delete, |it| {
                (it.volume.status, it.persistent_volume) = (None, Some(found_record()));
                it.volumes.volumes.clear();
            }),
            now(),
            "Nothing: [remove finalizer] Deleting",
        ),
        (
            "no list shows it: it is read by its id",
            leaves(DeletionPolicy::Delete, |it| it.volumes.volumes.clear()),
            now(),
            "Nothing: [] AwaitingVolumeDeletion, pending, reads vol-9",
        ),
    ]);
}

/// A volume that Freehold has created, in use, and whose Volume is released.
fn made(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = super::settled();
    observed.volume.spec.release = true;
    let mut shown = observed.volumes.volumes[0].clone();
    shown.tags.insert("team".to_owned(), "platform".to_owned());
    observed.by_id = ById::Shown(Box::new(shown));
    change(&mut observed);
    deleting(DeletionPolicy::Delete, observed)
}

#[test]
fn a_volume_that_freehold_created_is_released_with_claim_and_record_whatever_the_policy_says() {
    let actions = plan(&made(|_| {}), now()).actions;
    let [Action::DisownClaim(claim), Action::GiveBackRecord(record), Action::Untag(of, gone)] =
        actions.as_slice()
    else {
        panic!("{actions:?}")
    };
    assert_eq!(claim.to.metadata.owner_references, None);
    assert_eq!(claim.to.labels().keys().filter(|key| key.starts_with("freehold.dev/")).count(), 0);
    assert_eq!(claim.to.spec, claim.from.spec);
    let left = record.to.labels().keys().chain(record.to.annotations().keys());
    assert_eq!(left.filter(|key| key.starts_with("freehold.dev/")).count(), 0, "{record:?}");
    assert_eq!(record.to.spec, record.from.spec, "it is retained, and its claim is the same");
    assert_eq!(of, &id("vol-1"));
    let keys: Vec<&str> = gone.keys().map(String::as_str).collect();
    let ours = [
        "freehold.dev/attempt",
        "freehold.dev/cluster-id",
        "freehold.dev/database",
        "freehold.dev/volume-uid",
    ];
    assert_eq!(keys, ours, "Name and the tags of the class stay");

    let untagged = plan(&made(|it| it.by_id = shown_without(&gone.clone())), now());
    assert_eq!(untagged.actions.last(), Some(&Action::RemoveFinalizer));
    let unread = plan(&made(|it| it.by_id = ById::NotRead), now());
    assert_eq!(unread.look_up, Some(id("vol-1")));
    // The status was lost: it is found by its tags, and nothing is deleted meanwhile.
    let lost = plan(&made(|it| it.volume.status = None), now());
    assert_eq!(lost.actions, [Action::RecordVolume(id("vol-1"))]);
}

/// The EBS volume without these tags.
fn shown_without(tags: &BTreeMap<String, String>) -> ById {
    let mut shown = super::settled().volumes.volumes.remove(0);
    shown.tags.retain(|key, _| !tags.contains_key(key));
    ById::Shown(Box::new(shown))
}

#[test]
fn a_volume_that_is_to_be_released_is_neither_changed_nor_bound_anew() {
    let mut observed = super::settled();
    observed.volume.spec.release = true;
    observed.volume.spec.size = Size("200Gi".to_owned());
    assert_eq!(plan(&observed, now()).actions, []);
    observed.claim = None;
    assert_eq!(plan(&observed, now()).actions, []);
}
