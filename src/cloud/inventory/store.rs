//! What the syncs of one kind have shown, by owner, and what passes await of each owner. Pure: the caller
//! passes answers and times.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::coverage::Coverage;
use super::view::{Awaited, EmptyRuns, Interest, SyncStats};
use crate::api::{ClientToken, VolumeId};
use crate::cloud::absence::EmptyRun;
use crate::cloud::identity::{self, Kind};
use crate::time::later;

/// What the store must know of a resource.
pub(super) trait Resource: Clone + PartialEq {
    /// The kind in identity's terms.
    const KIND: Kind;
    /// The id that EC2 gave it.
    fn id(&self) -> &str;
    /// Its tags.
    fn tags(&self) -> &BTreeMap<String, String>;
    /// True if it is certainly not what an attempt with this token makes or made: what an earlier attempt
    /// left behind, once it has ended, or what has only the owner's tags. Without a token in EC2's answer
    /// that is never certain. No token: the status was lost, and any attempt that still has something is
    /// meant.
    fn is_remains_of_another(&self, _token: Option<&ClientToken>) -> bool {
        false
    }
}

/// The part of a store that knows no resource: what the loop of any kind needs.
pub(super) trait AnyStore {
    /// Sets what a pass awaits.
    fn set_interest(&mut self, uid: &str, interest: Interest);
    /// Sets which resource the owner's status names.
    fn set_named(&mut self, uid: &str, id: Option<&str>);
    /// The owner no longer exists.
    fn forget(&mut self, uid: &str);
    /// Requests a sync soon.
    fn request_sync(&mut self);
    /// True if a sync soon was requested.
    fn is_requested(&self) -> bool;
    /// True if any owner awaits something that is seen within seconds.
    fn is_pending(&self) -> bool;
    /// True if any owner awaits something that takes up to hours.
    fn is_slow(&self) -> bool;
    /// A sync begins: it answers what was requested so far.
    fn begin(&mut self);
    /// A sync failed: the data stays as it was.
    fn note_failure(&mut self, error: String);
    /// How the syncs went.
    fn stats(&self) -> SyncStats;
}

/// What is known of one kind.
pub(super) struct Store<T> {
    synced: BTreeMap<String, Vec<T>>,
    /// How many resources the last full sync showed, including those that name no owner.
    listed: usize,
    /// Results of point reads, each with the start of its read, which a sync that began earlier must not
    /// overwrite.
    refreshed: BTreeMap<String, (Timestamp, T)>,
    watches: BTreeMap<String, Watch<T>>,
    /// Those of the last full sync that have the tags of an owner of which no pass has heard, by id, and
    /// since which full sync.
    unclaimed: BTreeMap<String, Timestamp>,
    stats: SyncStats,
    is_requested: bool,
}

/// What a pass awaits of one owner's resources, and what look-ups have shown of them.
struct Watch<T> {
    interest: Interest,
    /// The resource that the owner's status names.
    named: Option<String>,
    empty: EmptyRuns,
    by_token: Option<Found<T>>,
}

/// The answer of the last complete look-up by token.
struct Found<T> {
    started: Timestamp,
    resources: Vec<T>,
}

impl<T> Watch<T> {
    fn awaited(&self) -> Option<&Awaited> {
        match &self.interest {
            Interest::Settled => None,
            Interest::Pending(awaited) | Interest::Slow(awaited) => Some(awaited),
        }
    }

    fn token(&self) -> Option<&ClientToken> {
        self.awaited()?.token.as_ref()
    }

    fn last_possible_send(&self) -> Option<Timestamp> {
        self.awaited()?.last_possible_send
    }
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self {
            synced: BTreeMap::new(),
            listed: 0,
            refreshed: BTreeMap::new(),
            watches: BTreeMap::new(),
            unclaimed: BTreeMap::new(),
            stats: SyncStats::default(),
            is_requested: false,
        }
    }
}

impl<T: Resource> Store<T> {
    /// How many of the resources that statuses name are among these, and which are not.
    pub fn coverage(&self, resources: &[T]) -> (Coverage, Vec<String>) {
        let listed: BTreeSet<&str> = resources.iter().map(Resource::id).collect();
        let named: BTreeSet<&str> = self.watches.values().filter_map(|it| it.named.as_deref()).collect();
        let missing: Vec<String> = named.difference(&listed).map(|id| (*id).to_owned()).collect();
        (Coverage { named: named.len(), shown: named.len() - missing.len() }, missing)
    }

    /// Takes the answer of a full sync that began at `started`. What it does not show counts towards a proof
    /// of absence only if it is credible (`is_credible`). Returns the owners to wake: those whose
    /// resources changed, those that await a proof, and, after the first sync, all of which a pass has set an
    /// interest.
    pub fn apply_full_sync(
        &mut self,
        started: Timestamp,
        resources: Vec<T>,
        is_credible: bool,
    ) -> BTreeSet<String> {
        let is_first = self.stats.last_complete.is_none();
        let mut synced: BTreeMap<String, Vec<T>> = BTreeMap::new();
        self.listed = resources.len();
        self.refreshed.retain(|_, (read_at, _)| *read_at > started);
        for resource in resources {
            let newer = self.refreshed.get(resource.id()).map(|(_, newer)| newer.clone());
            let resource = newer.unwrap_or(resource);
            if let Some(uid) = identity::owner_uid(T::KIND, resource.tags()) {
                synced.entry(uid.to_owned()).or_default().push(resource);
            }
        }
        for owned in synced.values_mut() {
            owned.sort_by(|a, b| a.id().cmp(b.id()));
        }
        let mut woken: BTreeSet<String> = synced
            .keys()
            .chain(self.synced.keys())
            .filter(|uid| synced.get(*uid) != self.synced.get(*uid))
            .cloned()
            .collect();
        for (uid, watch) in &mut self.watches {
            if let Some(last_possible_send) = watch.last_possible_send() {
                let token = watch.token().cloned();
                let is_hit = synced.get(uid).is_some_and(|owned| {
                    owned.iter().any(|found| !found.is_remains_of_another(token.as_ref()))
                });
                if is_hit || is_credible {
                    let before = watch.empty.by_tag;
                    watch.empty.by_tag = EmptyRun::after(before, last_possible_send, started, is_hit);
                }
            }
            if is_first || watch.last_possible_send().is_some() {
                woken.insert(uid.clone());
            }
        }
        self.synced = synced;
        self.stats.last_complete = Some(started);
        self.stats.last_error = None;
        self.stats.is_suspect = !is_credible;
        woken
    }

    /// Takes the answer of a point read that began at `started`. What no full sync has shown yet becomes that
    /// of the owner whom its tags name. Returns the owners of those that changed.
    pub fn refresh(&mut self, started: Timestamp, resources: Vec<T>) -> BTreeSet<String> {
        let mut woken = BTreeSet::new();
        for resource in resources {
            if let Some(owner) = identity::owner_uid(T::KIND, resource.tags())
                && self.owner_of(resource.id()).is_none()
            {
                let owned = self.synced.entry(owner.to_owned()).or_default();
                owned.push(resource.clone());
                owned.sort_by(|a, b| a.id().cmp(b.id()));
                woken.insert(owner.to_owned());
            }
            for (uid, owned) in &mut self.synced {
                if let Some(known) =
                    owned.iter_mut().find(|known| known.id() == resource.id() && **known != resource)
                {
                    *known = resource.clone();
                    woken.insert(uid.clone());
                }
            }
            self.refreshed.insert(resource.id().to_owned(), (started, resource));
        }
        woken
    }

    /// Notes the resources of the last full sync that count and whose owner no pass has set an interest for
    /// since the start, or that is gone.
    pub fn note_unclaimed(&mut self, counts: impl Fn(&T) -> bool) {
        let Some(swept_at) = self.stats.last_complete else { return };
        let is_unknown = |(uid, _): &(&String, &Vec<T>)| !self.watches.contains_key(*uid);
        let owned = self.synced.iter().filter(is_unknown).flat_map(|(_, owned)| owned);
        let since = |id: &str| self.unclaimed.get(id).copied().unwrap_or(swept_at);
        self.unclaimed = owned
            .filter(|resource| counts(resource))
            .map(|resource| (resource.id().to_owned(), since(resource.id())))
            .collect();
    }

    /// What was noted so for this long: tags may come later than their resource, and a pass later than both.
    pub fn unclaimed(&self, window: Duration) -> impl Iterator<Item = &T> {
        let is_over = move |since: &Timestamp| {
            self.stats.last_complete.is_some_and(|last| last >= later(*since, window))
        };
        self.values().filter(move |resource| self.unclaimed.get(resource.id()).is_some_and(is_over))
    }

    /// The owner under whose tag the last full sync showed this resource.
    pub fn owner_of(&self, id: &str) -> Option<&str> {
        let is_of = |owned: &[T]| owned.iter().any(|resource| resource.id() == id);
        self.synced.iter().find(|(_, owned)| is_of(owned)).map(|(uid, _)| uid.as_str())
    }

    /// Every resource that the last full sync showed of any owner.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.synced.values().flatten()
    }

    /// Takes the answer of a complete look-up of these tokens. Returns the owners that await one of them.
    pub fn apply_tokens(
        &mut self,
        started: Timestamp,
        tokens: &[ClientToken],
        found: &[T],
        token_of: impl Fn(&T) -> Option<&ClientToken>,
    ) -> BTreeSet<String> {
        let mut woken = BTreeSet::new();
        for (uid, watch) in &mut self.watches {
            let Some(token) = watch.token().filter(|token| tokens.contains(token)).cloned() else { continue };
            let resources: Vec<T> =
                found.iter().filter(|resource| token_of(resource) == Some(&token)).cloned().collect();
            if let Some(last_possible_send) = watch.last_possible_send() {
                watch.empty.by_token =
                    EmptyRun::after(watch.empty.by_token, last_possible_send, started, !resources.is_empty());
            }
            watch.by_token = Some(Found { started, resources });
            woken.insert(uid.clone());
        }
        woken
    }

    /// The resources of one owner: those of the last full sync and those found by token; of a resource in
    /// both, the newer answer.
    pub fn of(&self, uid: &str) -> Vec<T> {
        let mut resources = self.synced.get(uid).cloned().unwrap_or_default();
        let Some(found) = self.watches.get(uid).and_then(|watch| watch.by_token.as_ref()) else {
            return resources;
        };
        let is_newer = self.stats.last_complete.is_none_or(|swept_at| found.started >= swept_at);
        for resource in &found.resources {
            match resources.iter_mut().find(|known| known.id() == resource.id()) {
                Some(known) if is_newer => *known = resource.clone(),
                Some(_) => {}
                None => resources.push(resource.clone()),
            }
        }
        resources.sort_by(|a, b| a.id().cmp(b.id()));
        resources
    }

    /// The empty look-ups of one owner.
    pub fn empty_runs(&self, uid: &str) -> EmptyRuns {
        self.watches.get(uid).map(|watch| watch.empty).unwrap_or_default()
    }

    /// When the last full sync started.
    pub fn swept_at(&self) -> Option<Timestamp> {
        self.stats.last_complete
    }

    /// When the last complete look-up of this owner's token started.
    pub fn token_looked_up_at(&self, uid: &str) -> Option<Timestamp> {
        self.watches.get(uid)?.by_token.as_ref().map(|found| found.started)
    }

    /// True if a resource of this owner is known by its token alone: its tags lag, or were removed.
    pub fn is_by_token_alone(&self, uid: &str) -> bool {
        let is_listed = |id: &str| {
            self.synced.get(uid).is_some_and(|owned| owned.iter().any(|resource| resource.id() == id))
        };
        let found = self.watches.get(uid).and_then(|watch| watch.by_token.as_ref());
        found.is_some_and(|found| found.resources.iter().any(|resource| !is_listed(resource.id())))
    }

    /// Every token that is awaited.
    pub fn tokens(&self) -> Vec<ClientToken> {
        self.watches.values().filter_map(Watch::token).cloned().collect()
    }

    /// Every volume whose modification is awaited.
    pub fn modifying(&self) -> BTreeSet<VolumeId> {
        self.watches.values().filter_map(|watch| watch.awaited()?.modifying.clone()).collect()
    }

    /// The owners that await the modification of one of these volumes.
    pub fn owners_modifying(&self, changed: &BTreeSet<VolumeId>) -> BTreeSet<String> {
        self.watches
            .iter()
            .filter(|(_, watch)| {
                watch
                    .awaited()
                    .and_then(|awaited| awaited.modifying.as_ref())
                    .is_some_and(|id| changed.contains(id))
            })
            .map(|(uid, _)| uid.clone())
            .collect()
    }

    /// The owners of those resources of the last full sync that `pick` accepts.
    pub fn owners_where(&self, pick: impl Fn(&T) -> bool) -> BTreeSet<String> {
        self.synced.iter().filter(|(_, owned)| owned.iter().any(&pick)).map(|(uid, _)| uid.clone()).collect()
    }

    /// True if the last full sync showed no resource at all.
    pub fn is_empty(&self) -> bool {
        self.listed == 0
    }
}

impl<T: Resource> AnyStore for Store<T> {
    fn set_interest(&mut self, uid: &str, interest: Interest) {
        let watch = self.watches.entry(uid.to_owned()).or_insert_with(|| Watch {
            interest: Interest::Settled,
            named: None,
            empty: EmptyRuns::default(),
            by_token: None,
        });
        let before = (watch.token().cloned(), watch.last_possible_send());
        watch.interest = interest;
        let after = (watch.token().cloned(), watch.last_possible_send());
        if before != after {
            watch.empty = EmptyRuns::default();
        }
        if before.0 != after.0 {
            watch.by_token = None;
        }
    }

    fn set_named(&mut self, uid: &str, id: Option<&str>) {
        if let Some(watch) = self.watches.get_mut(uid) {
            watch.named = id.map(str::to_owned);
        }
    }

    fn forget(&mut self, uid: &str) {
        self.watches.remove(uid);
    }

    fn request_sync(&mut self) {
        self.is_requested = true;
    }

    fn is_requested(&self) -> bool {
        self.is_requested
    }

    fn is_pending(&self) -> bool {
        self.watches.values().any(|watch| matches!(watch.interest, Interest::Pending(_)))
    }

    fn is_slow(&self) -> bool {
        self.watches.values().any(|watch| matches!(watch.interest, Interest::Slow(_)))
    }

    fn begin(&mut self) {
        self.is_requested = false;
    }

    fn note_failure(&mut self, error: String) {
        self.stats.last_error = Some(error);
    }

    fn stats(&self) -> SyncStats {
        self.stats.clone()
    }
}
