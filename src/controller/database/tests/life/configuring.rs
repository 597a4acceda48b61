//! The settings in the model of a Database's life: the file that the engine's pod has mounted, which the
//! kubelet updates some time after the ConfigMap, and what the engine has loaded of it.

use super::*;
use crate::api::database::{ConfigState, ConfigStatus};
use crate::api::keys::INPUTS_HASH_ANNOTATION;
use crate::controller::database::plan::action::Load;
use crate::engine::reload::{Change, Verdict};

/// The setting that PostgreSQL takes while it runs.
pub(super) const RELOADABLE: &str = "work_mem";

/// A value that it does not take.
const BAD: &str = "lots";

type Files = BTreeMap<String, String>;

/// What the pod has mounted, and the engine has loaded.
#[derive(Clone, Debug, Default)]
pub(super) struct Mounted {
    file: Files,
    loaded: Files,
}

impl Life {
    fn written(&self) -> Files {
        self.config_map.as_ref().and_then(|files| files.data.clone()).unwrap_or_default()
    }

    /// A pod starts, with the newest files.
    pub(super) fn mounts_files(&mut self) {
        self.mounted.file = self.written();
        self.begins_with_files();
    }

    /// The engine starts.
    pub(super) fn begins_with_files(&mut self) {
        self.mounted.loaded = self.mounted.file.clone();
    }

    /// The kubelet updates the files.
    pub(super) fn settle_files(&mut self) -> bool {
        let written = self.written();
        let has_moved = self.is_serving() && !written.is_empty() && self.mounted.file != written;
        if has_moved {
            self.mounted.file = written;
        }
        has_moved
    }

    /// What the engine says.
    pub(super) fn verdict(change: &Change) -> Verdict {
        if change.values().any(|value| value.as_deref() == Some(BAD)) {
            Verdict::Rejected("no".to_owned())
        } else if change.keys().any(|key| key != RELOADABLE) {
            Verdict::AtStart
        } else {
            Verdict::Taken
        }
    }

    /// The engine loads its file, if it is the one that is meant, and that is written down.
    pub(super) fn load(&mut self, load: &Load) {
        assert!(self.is_serving(), "an engine that does not serve loads nothing");
        assert_eq!(Self::verdict(&load.change), Verdict::Taken);
        let is_there = self.mounted.file.get("postgresql.conf") == Some(&load.file);
        if is_there {
            self.mounted.loaded = self.mounted.file.clone();
        }
        let record = if is_there { Some(&load.record) } else { load.otherwise.as_ref() };
        if record.is_some() && self.may_write() {
            self.status().config = record.cloned();
        }
    }

    fn config(&self) -> Option<&ConfigStatus> {
        self.database.status.as_ref()?.config.as_ref()
    }

    /// The engine runs with what the spec says, and the status says so.
    pub(super) fn check_in_force(&self) {
        let files = self.profile.as_ref().unwrap().config.as_ref().unwrap().files.clone();
        assert_eq!(self.mounted.loaded, files);
        let spec = &self.database.spec.config;
        let Some(config) = self.config() else {
            return assert!(spec.is_empty(), "nothing is said of {spec:?}");
        };
        assert_eq!((config.state, &config.in_force), (ConfigState::InForce, spec));
        assert_eq!((config.pending.len(), &config.rejected, &config.change), (0, &None, &None));
        let hash = self.config_map.as_ref().unwrap().annotations().get(INPUTS_HASH_ANNOTATION);
        assert_eq!(hash, Some(&build::inputs_hash(&self.database.spec)));
    }
}

proptest! {
    // Each life has hundreds of passes.
    #![proptest_config(ProptestConfig::with_cases(25))]

    #[test]
    fn a_setting_that_the_engine_takes_while_it_runs_restarts_nothing_however_often_the_operator_does(
        restarts in prop::collection::vec((0..20usize, delays()), 0..6),
        (first, second, back) in (0..12usize, 0..24usize, 0..36usize),
    ) {
        let mut life = Life::of_postgresql();
        let pods = life.pods_made;
        let edits = [(first, "4M"), (second, "8M"), (back, "4M")].map(|(when, it)| (when, Event::Reload(it)));
        let waiting = life.come_to_rest(&[restarts, edits.to_vec()].concat());
        life.check_ready(waiting.as_ref());
        prop_assert_eq!(life.pods_made, pods);
        prop_assert_eq!(life.status().history.len(), 0);
    }

    #[test]
    fn a_setting_that_is_wrong_restarts_nothing_is_never_written_and_the_next_one_is_taken(
        restarts in prop::collection::vec((0..60usize, delays()), 0..8),
        (good, bad) in (0..12usize, 12..30usize),
        mended in 70..90usize,
    ) {
        let mut life = Life::of_postgresql();
        let pods = life.pods_made;
        let edits = vec![(good, Event::Reload("4M")), (bad, Event::Reload(BAD))];
        let waiting = life.come_to_rest(&[restarts.clone(), edits].concat());
        let config = life.config().cloned().unwrap();
        prop_assert_eq!(config.state, ConfigState::Rejected);
        prop_assert_eq!((config.pending.len(), config.change), (1, None));
        prop_assert!(waiting.is_some_and(|it| it.is_stalled()));
        prop_assert_eq!(&life.mounted.loaded, &life.written(), "whatever was in force");
        prop_assert!(!life.written().values().any(|file| file.contains(BAD)), "a start would fail");
        let waiting = life.come_to_rest(&[restarts, vec![(mended, Event::Reload("8M"))]].concat());
        life.check_ready(waiting.as_ref());
        prop_assert_eq!(life.pods_made, pods);
    }

    #[test]
    fn a_setting_that_needs_a_restart_has_one_also_beside_another_that_does_not(
        restarts in prop::collection::vec((0..20usize, delays()), 0..6),
    ) {
        let mut life = Life::of_postgresql();
        let pods = life.pods_made;
        let edits = vec![(0, Event::Reload("4M")), (0, Event::Setting("60s"))];
        let waiting = life.come_to_rest(&[restarts, edits].concat());
        life.check_ready(waiting.as_ref());
        prop_assert_eq!(life.pods_made, pods + 1);
    }

    #[test]
    fn a_postgresql_runs_with_the_settings_of_its_spec_again_whatever_was_lost_or_changed(
        events in some(mishaps()),
        (first, second) in (0..12usize, 12..40usize),
    ) {
        let mut life = Life::of_postgresql();
        let edits = vec![(first, Event::Reload("4M")), (second, Event::Reload("8M"))];
        let waiting = life.come_to_rest(&[events, edits].concat());
        life.check_ready(waiting.as_ref());
    }
}
