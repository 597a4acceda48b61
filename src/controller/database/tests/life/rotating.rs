//! The password in the model of a Database's life: no engine that serves refuses what the Secret has, and
//! both have what the spec asks for at rest.

use k8s_openapi::api::core::v1::Secret;

use super::*;
use crate::engine::Rotation;
use crate::engine::client::Access;

impl Life {
    /// The same life of a PostgreSQL.
    pub(super) fn of_postgresql() -> Self {
        let mut life = Self::new(DeletionPolicy::Retain);
        let of_engine = json!({"engine": {"type": "postgresql", "version": "17.6"}});
        life.database.spec = database(of_engine, json!({})).spec;
        life.names = Names::of(&life.database);
        life.profile = engine::profile(&life.database.spec.engine, &life.database.spec.config);
        let waiting = life.come_to_rest(&[]);
        life.check_ready(waiting.as_ref());
        life
    }

    pub(super) fn stores_password(&self) -> bool {
        self.profile.as_ref().is_ok_and(|profile| profile.rotation == Rotation::Statement)
    }

    fn value(&self, read: impl Fn(&Secret) -> Option<String>) -> Option<String> {
        self.credentials.as_ref().and_then(|secret| read(&secret.0))
    }

    /// The engine starts: one that stores a password keeps it, another reads the Secret.
    pub(super) fn begins_with_password(&mut self) {
        if self.engine_password.is_none() || !self.stores_password() {
            self.engine_password = self.value(|secret| build::value(secret, "password"));
        }
    }

    /// The operator gives the engine the next password over a connection with the one in force.
    pub(super) fn give_password(&mut self, access: &Access, secret: &Secret) {
        assert!(self.is_serving(), "an engine that does not serve is given nothing");
        let next = build::next_password(secret);
        let is_let_in = self.engine_password.as_ref() == Some(&access.password);
        assert!(is_let_in || self.engine_password == next, "the engine refuses both passwords");
        self.engine_password = next;
    }

    /// The Secret is changed by a JSON merge patch.
    pub(super) fn change_secret(&mut self, patch: &Value) {
        let held = self.credentials.as_mut().unwrap();
        held.0 = patched(&held.0, patch);
    }

    /// An engine that serves takes what the Secret has.
    pub(super) fn check_password(&self) {
        if !self.is_serving() || self.is_broken || self.is_deleting() {
            return;
        }
        let known = [
            self.value(|secret| build::value(secret, "password")),
            self.value(build::next_password).filter(|_| self.stores_password()),
        ];
        assert!(known.contains(&self.engine_password), "the Secret has no password that the engine takes");
    }

    /// The password is the one that the spec asks for, and there is no other.
    pub(super) fn check_rotated(&self) {
        let secret = &self.credentials.as_ref().unwrap().0;
        assert_eq!(build::value(secret, "password"), self.engine_password);
        assert_eq!(build::next_password(secret), None);
        let uri = build::value(secret, "uri").unwrap_or_default();
        assert!(self.engine_password.as_ref().is_some_and(|it| uri.contains(it.as_str())));
        let wanted = self.database.spec.access.password_generation;
        assert!(wanted.is_none_or(|wanted| wanted == build::password_generation(secret)));
        assert_eq!(self.database.status.as_ref().and_then(|status| status.password_generation), wanted);
    }
}

/// An object after a JSON merge patch.
fn patched<S: serde::Serialize + serde::de::DeserializeOwned>(object: &S, patch: &Value) -> S {
    let mut whole = serde_json::to_value(object).unwrap();
    json_patch::merge(&mut whole, patch);
    serde_json::from_value(whole).unwrap()
}

proptest! {
    #[test]
    fn questdb_is_restarted_once_for_a_rotation_however_often_the_operator_is(
        restarts in prop::collection::vec((0..20usize, delays()), 0..6),
    ) {
        let mut life = Life::ready();
        let (pods, before) = (life.pods_made, life.engine_password.clone());
        let waiting = life.come_to_rest(&[restarts, vec![(0, Event::Rotate)]].concat());
        life.check_ready(waiting.as_ref());
        prop_assert_eq!(life.pods_made, pods + 1);
        prop_assert_ne!(&life.engine_password, &before);
        let shown: Vec<(Occurrence, i32)> =
            life.status().history.iter().map(|entry| (entry.what, entry.count)).collect();
        prop_assert_eq!(shown, [(Occurrence::Restarted, 1)]);
    }

    #[test]
    fn postgresql_is_not_restarted_for_a_rotation_however_often_the_operator_is(
        restarts in prop::collection::vec((0..20usize, delays()), 0..6),
        again in 1..20usize,
    ) {
        let mut life = Life::of_postgresql();
        let (pods, before) = (life.pods_made, life.engine_password.clone());
        let rotations = vec![(0, Event::Rotate), (again, Event::Rotate)];
        let waiting = life.come_to_rest(&[restarts, rotations].concat());
        life.check_ready(waiting.as_ref());
        prop_assert_eq!(life.pods_made, pods);
        prop_assert_ne!(&life.engine_password, &before);
    }

    #[test]
    fn a_postgresql_that_is_rotated_is_ready_again_whatever_was_lost_or_changed(events in some(mishaps())) {
        let mut life = Life::of_postgresql();
        let waiting = life.come_to_rest(&[events, vec![(0, Event::Rotate)]].concat());
        life.check_ready(waiting.as_ref());
    }
}
