//! The settings in the model of a Database's life: the file that the engine's pod has mounted, which the
//! kubelet updates some time after the ConfigMap, and what the engine has loaded of it.

use std::collections::BTreeMap;

use super::*;
use crate::api::database::{ConfigState, ConfigStatus, EngineType};
use crate::api::keys::INPUTS_HASH_ANNOTATION;
use crate::controller::database::config_record::{self, Load};
use crate::engine::reload::{Answer, Change, rejected};

/// A value that no engine takes.
const BAD: &str = "lots";

type Files = BTreeMap<String, String>;

/// What the pod has mounted, and the engine has loaded.
#[derive(Clone, Debug, Default)]
pub(super) struct Mounted {
    file: Files,
    loaded: Files,
}

impl Life {
    /// A setting that the engine takes while it runs.
    pub(super) fn reloadable(&self) -> &'static str {
        match self.database.spec.engine.kind {
            EngineType::Postgresql => "work_mem",
            EngineType::Questdb | EngineType::Custom => "http.send.buffer.size",
        }
    }

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

    fn rendered(&self, change: &Change) -> Files {
        let profile = engine::profile(&self.database.spec.engine, &change.to).unwrap();
        profile.config.unwrap().files
    }

    /// What the engine says: PostgreSQL reads its file, QuestDB shows what it runs with.
    pub(super) fn answer(&self, change: &Change) -> Answer {
        let reloadable = self.reloadable();
        let (wanted, is_postgresql) = (self.rendered(change), change.engine == EngineType::Postgresql);
        if is_postgresql && self.mounted.file != wanted {
            return Verdict::NotSeen.into();
        }
        let value = change.to.get(reloadable).map(|value| value.0.as_str());
        if is_postgresql && value == Some(BAD) {
            return Verdict::Rejected(vec![rejected(reloadable, BAD, "no")]).into();
        }
        if change.keys.iter().any(|key| key != reloadable) {
            return Verdict::AtStart.into();
        }
        Verdict::Taken { is_seen: is_postgresql || self.mounted.loaded == wanted }.into()
    }

    /// What is written down before the engine is requested to load anything.
    pub(super) fn record_loading(&mut self, load: &Load) -> bool {
        let before = self.status().config.clone();
        let now = self.now;
        let record = config_record::loading(before.as_ref(), &load.pod.pod_uid, &load.change, now);
        self.status().config = Some(record);
        true
    }

    /// The engine loads its file, and what came of it is written down.
    pub(super) fn load(&mut self, load: &Load) {
        assert!(self.is_serving(), "an engine that does not serve loads nothing");
        if !self.mounted.file.values().any(|file| file.contains(BAD)) {
            self.mounted.loaded = self.mounted.file.clone();
        }
        let now = self.now;
        if self.mounted.loaded == self.rendered(&load.change) && self.may_write() {
            let record = config_record::taken(self.status().config.as_ref(), load, now);
            self.status().config = Some(record);
        }
    }

    /// What the status calls in force is what the engine has loaded, while nothing is on its way.
    pub(super) fn check_settings(&self) {
        let Some(config) = self.config() else { return };
        let is_pod = |uid: &String| self.pod.as_ref().and_then(|pod| pod.metadata.uid.as_ref()) == Some(uid);
        if config.state == ConfigState::InForce && config.reloaded.iter().any(|it| is_pod(&it.pod_uid)) {
            assert!(!self.mounted.loaded.values().any(|file| file.contains(BAD)));
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
        assert_eq!((config.pending.len(), config.rejected.len(), &config.loading), (0, 0, &None));
        let hash = self.config_map.as_ref().unwrap().annotations().get(INPUTS_HASH_ANNOTATION);
        assert_eq!(hash, Some(&build::inputs_hash(&self.database.spec)));
    }
}

fn life(is_postgresql: bool) -> Life {
    if is_postgresql { Life::of_postgresql() } else { Life::ready() }
}

proptest! {
    // Each life has hundreds of passes.
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_setting_that_the_engine_takes_while_it_runs_restarts_nothing_however_often_the_operator_does(
        is_postgresql: bool,
        restarts in prop::collection::vec((0..20usize, delays()), 0..6),
        (first, second, back) in (0..12usize, 0..24usize, 0..36usize),
    ) {
        let mut life = life(is_postgresql);
        let pods = life.pods_made;
        let edits = [(first, "4M"), (second, "8M"), (back, "4M")].map(|(when, it)| (when, Event::Reload(it)));
        let waiting = life.come_to_rest(&[restarts, edits.to_vec()].concat());
        life.check_ready(waiting.as_ref());
        prop_assert_eq!(life.pods_made, pods);
        prop_assert_eq!(life.status().history.len(), 0);
    }

    #[test]
    fn a_setting_that_is_wrong_restarts_nothing_and_the_next_one_is_taken(
        is_postgresql: bool,
        restarts in prop::collection::vec((0..60usize, delays()), 0..8),
        mended in 70..90usize,
    ) {
        let mut life = life(is_postgresql);
        let pods = life.pods_made;
        let edits = vec![(0, Event::Reload("4M")), (30, Event::Reload(BAD))];
        let waiting = life.come_to_rest(&[restarts.clone(), edits.clone()].concat());
        let config = life.config().cloned().unwrap();
        prop_assert_eq!(config.state, ConfigState::Rejected);
        prop_assert_eq!(config.in_force.values().next().map(|it| it.0.as_str()), Some("4M"));
        prop_assert!(waiting.is_some_and(|it| it.is_stalled()));
        prop_assert!(!life.written().values().any(|file| file.contains(BAD)), "a start would fail");
        let waiting = life.come_to_rest(&[restarts, vec![(mended, Event::Reload("8M"))]].concat());
        life.check_ready(waiting.as_ref());
        prop_assert_eq!(life.pods_made, pods);
    }

    #[test]
    fn a_setting_that_needs_a_restart_has_one_also_beside_another_that_does_not(
        restarts in prop::collection::vec((0..20usize, delays()), 0..6),
    ) {
        let mut life = Life::ready();
        let pods = life.pods_made;
        let edits = vec![(0, Event::Reload("4M")), (0, Event::Setting("60s"))];
        let waiting = life.come_to_rest(&[restarts, edits].concat());
        life.check_ready(waiting.as_ref());
        prop_assert_eq!(life.pods_made, pods + 1);
    }
}
