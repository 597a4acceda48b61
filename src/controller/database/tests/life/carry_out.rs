//! How the plans of a Database are carried out in the model: what each action changes in the API server,
//! write by write, since the operator may end after any of them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::flushing::is_of_altered;
use super::*;
use crate::api::database::Occurrence;
use crate::controller::database::cause::RestartCause;
use crate::controller::database::child_kind::ChildKind;
use crate::controller::database::history::{extended, is_announced};
use crate::controller::database::in_place::goes_on_with;
use crate::controller::database::messages::events::altered;

impl Life {
    /// Whether the operator goes on to this write.
    pub(super) fn may_write(&mut self) -> bool {
        match &mut self.writes_left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// Whether the next action follows.
    pub(super) fn carry_out(&mut self, action: &Action) -> bool {
        let goes_on = self.write_down(action) && self.may_write();
        if goes_on {
            self.act(action);
        }
        goes_on
    }

    /// What is written into the status before the action, in a write of its own. Returns whether the action
    /// follows.
    fn write_down(&mut self, action: &Action) -> bool {
        if let Action::CreateNode(ordinal, _, replacement) = action {
            let may_write = self.may_write();
            if may_write {
                let status = self.status();
                (status.node_ordinal, status.replacement) = (Some(*ordinal), replacement.clone());
            }
            may_write
        } else if let Action::ReportAltered(what, object) = action {
            let cause = altered(object);
            let now = self.now;
            let may_write = self.forget_applied(forgotten(action));
            if may_write {
                let history = take(&mut self.status().history);
                self.status().history = extended(&history, Some(&(*what, cause)), now);
            }
            may_write
        } else if is_rewritten(action) {
            self.forget_applied(forgotten(action))
        } else if let Action::Label(_, _, Some(moved)) = action {
            self.announce(Occurrence::Moved, &moved.message())
        } else if let Action::ReplacePod(.., why) = action {
            self.announce(Occurrence::Restarted, &why.message())
        } else if let Action::StopForNextPassword(..) = action {
            self.announce(Occurrence::Restarted, &RestartCause::Password.message())
        } else {
            true
        }
    }

    /// What was applied is not known from here on, until the closing status patch.
    fn forget_applied(&mut self, what: Occurrence) -> bool {
        let mut unknown = self.status().clone();
        unknown.forget_applied(what);
        if unknown == *self.status() {
            return true;
        }
        let may_write = self.may_write();
        if may_write {
            *self.status() = unknown;
        }
        may_write
    }

    fn announce(&mut self, what: Occurrence, cause: &str) -> bool {
        let now = self.now;
        if is_announced(self.status(), what, cause) {
            return true;
        }
        let may_write = self.may_write();
        if may_write {
            let history = take(&mut self.status().history);
            self.status().history = extended(&history, Some(&(what, cause.to_owned())), now);
        }
        may_write
    }

    #[expect(clippy::too_many_lines, reason = "one dispatch over the actions")]
    fn act(&mut self, action: &Action) {
        let (now, new_uid) = (self.now, self.new_uid());
        match action {
            Action::AddFinalizer => self.database.metadata.finalizers = Some(vec![FINALIZER.to_owned()]),
            Action::CreateCredentials(profile) => {
                let secret = build::credentials(&self.names, profile, &Password::fixed());
                let generation = self.database.spec.access.password_generation;
                let secret = build::of_generation(secret, generation);
                self.credentials = Some(HeldSecret(with_uid(secret, &new_uid)));
            }
            Action::PrepareNextPassword(secret, generation) => {
                let next = Password::generate().unwrap();
                self.change_secret(&build::with_next(&secret.0, &next, *generation));
            }
            Action::GiveNextPassword(access, secret) => self.give_password(access, &secret.0),
            Action::PutNextPasswordInForce(profile, secret) => {
                let patch = build::with_next_in_force(&self.names, profile, &secret.0).unwrap();
                self.change_secret(&patch);
            }
            Action::StopForNextPassword(uid, ..) => self.scale(uid, 0),
            Action::BeginFlush(flush) => self.begin_flush(flush),
            Action::RecordSettings(record) => self.status().config = Some(record.as_ref().clone()),
            Action::ReloadSettings(load) => self.load(load),
            Action::LoadCertificate(certify) => self.status().tls = Some(certify.record.clone()),
            // No engine of a life archives: it is never asked.
            Action::ReportAltered(..) | Action::SwitchLog(..) => {}
            Action::ApplyConfigMap(object) => {
                applied(&mut self.config_map, object, &new_uid);
                self.answers.config_map = self.config_map.clone();
            }
            Action::ApplyService(object) => applied(&mut self.service, object, &new_uid),
            Action::ApplyNetworkPolicy(object) => applied(&mut self.network_policy, object, &new_uid),
            Action::ApplyDisruptionBudget(object) => {
                applied(&mut self.disruption_budget, object, &new_uid);
            }
            Action::CreateServiceAccount(object) => applied(&mut self.service_account, object, &new_uid),
            Action::MendServiceAccount(_)
            | Action::CreateApplicationUser(_)
            | Action::UpdateApplicationUser(..) => panic!("not in the model: {action:?}"),
            Action::ApplyStatefulSet(object)
            | Action::RestoreStatefulSet(object)
            | Action::ChangeImageSource(object) => {
                self.apply_stateful_set(object);
                self.answers.stateful_set = self.stateful_set.clone();
            }
            Action::Scale(uid, replicas) => {
                if *replicas == 0 {
                    self.check_flushed();
                }
                self.scale(uid, *replicas);
            }
            Action::CreateNode(_, node, _) => self.create_node(node),
            Action::UpdateNode(name, uid, patch) => {
                let node = &mut self.machine(name, uid).node;
                node.spec = patched(&node.spec, patch);
                node.metadata.generation = node.metadata.generation.map(|it| it + 1);
            }
            Action::DeleteNode(name, uid, _) => self.machine(name, uid).delete(now),
            Action::GoBackToServed(back) => {
                if let Some(served) = &mut self.status().served {
                    served.went_back = Some(back.as_ref().clone());
                }
            }
            Action::RecordRestore(restored) => self.status().restored = Some(restored.as_ref().clone()),
            Action::RecordRestoreInPlace(record) => {
                self.status().restored_in_place = Some(record.clone());
            }
            Action::RecordUpgrade(record) => self.status().upgrade = Some(record.clone()),
            Action::CreateBackup(backup) => self.create_backup(backup),
            Action::RecordData(record) => goes_on_with(self.status(), record),
            Action::RecordZone(zone) => self.status().zone = Some(zone.clone()),
            Action::CreateVolume(volume) => self.create_volume(volume),
            Action::UpdateVolume(uid, patch) => {
                let volume = self.volume_of(uid);
                volume.spec = patched(&volume.spec, patch);
                volume.metadata.generation = volume.metadata.generation.map(|it| it + 1);
            }
            Action::DeleteVolume(uid) => self.end_volume(uid),
            Action::Label(name, uid, _) => self.move_to(name, uid),
            Action::Unlabel(name, uid) => self.label(name, uid, false),
            Action::RecordNotStarting(record) => self.status().not_starting = Some(record.clone()),
            Action::ReplacePod(_, uid, ..) => {
                assert_eq!(self.pod.as_ref().and_then(ResourceExt::uid).as_ref(), Some(uid));
                if !is_of_altered(action) {
                    self.check_flushed();
                }
                self.end_pod();
            }
            Action::KeepCredentials(held) => {
                assert_eq!(self.retained, None, "the credentials are kept twice");
                self.retained = Some(HeldSecret(build::retained(&self.names, &held.0)));
            }
            Action::DeleteCredentials(_) => self.credentials = None,
            Action::DeleteChild(kind, ..) => self.delete_child(*kind),
            Action::RemoveFinalizer => self.is_gone = true,
            Action::TakeRecord(record) => self.hold(record, true),
            Action::ReleaseRecord(record) => self.hold(record, false),
            Action::FreeClaim(_)
            | Action::TakeCredentials(..)
            | Action::AdoptStatefulSet(..)
            | Action::RecordAdoption(_)
            | Action::GoBack(..)
            | Action::RecordRelease(_)
            | Action::ForgetRelease
            | Action::Relabel(..)
            | Action::ReleaseChild(..)
            | Action::ReleaseStatefulSet(..)
            | Action::DeleteRetainedCredentials(..) => panic!("nothing is adopted in the model: {action:?}"),
        }
        self.is_moving = true;
    }

    fn machine(&mut self, name: &str, uid: &str) -> &mut Machine {
        let is_it = |machine: &&mut Machine| {
            machine.node.name_any() == name && machine.node.uid().as_deref() == Some(uid)
        };
        self.machines.iter_mut().find(is_it).unwrap()
    }

    fn volume_of(&mut self, uid: &str) -> &mut Volume {
        self.volume.as_mut().filter(|volume| volume.uid().as_deref() == Some(uid)).unwrap()
    }

    fn create_node(&mut self, node: &Node) {
        let is_taken = self.machines.iter().any(|machine| machine.node.name_any() == node.name_any());
        assert!(!is_taken, "a second Node {}", node.name_any());
        let mut node = with_uid(node.clone(), &self.new_uid());
        node.metadata.generation = Some(1);
        node.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
        self.machines.push(Machine::new(node, self.made));
    }

    fn create_volume(&mut self, volume: &Volume) {
        if self.has_replaced(volume) {
            self.volumes_made = 0;
        }
        self.volumes_made += 1;
        assert_eq!(self.volumes_made, 1, "an empty volume takes the place of one that was there");
        self.take_data(volume);
        let mut volume = with_uid(volume.clone(), &self.new_uid());
        volume.metadata.generation = Some(1);
        volume.metadata.creation_timestamp = Some(Time(self.now));
        self.volume = Some(volume);
    }

    fn end_volume(&mut self, uid: &str) {
        let (now, policy) = (self.now, self.database.spec.deletion_policy);
        let volume = self.volume_of(uid);
        let policy = if volume.spec.replaced { DeletionPolicy::Retain } else { policy };
        assert_eq!(volume.spec.deletion_policy, policy, "the Volume does not have the newest policy");
        volume.metadata.deletion_timestamp = Some(Time(now));
    }

    fn move_to(&mut self, name: &str, uid: &str) {
        // Where the Kubernetes node is gone, no kubelet ends the engine for the pod that follows.
        let is_out_of_reach = |machine: &Machine| machine.is_lost || machine.core_node.is_none();
        let may_write = |machine: &&Machine| is_out_of_reach(machine) && machine.engine.is_some();
        let lost = self.machines.iter().find(may_write).map(|machine| machine.node.name_any());
        assert_eq!(lost, None, "the database moves while the engine of a lost machine may run");
        self.label(name, uid, true);
    }

    fn apply_stateful_set(&mut self, object: &StatefulSet) {
        let (uid, before) = (self.new_uid(), self.stateful_set.take());
        let generation = before.as_ref().and_then(|set| set.metadata.generation).unwrap_or_default() + 1;
        let status = before.as_ref().and_then(|set| set.status.clone());
        self.stateful_set = before;
        applied(&mut self.stateful_set, object, &uid);
        if let Some(set) = &mut self.stateful_set {
            (set.metadata.generation, set.status) = (Some(generation), status);
        }
    }

    pub(super) fn scale(&mut self, uid: &str, replicas: i32) {
        let set = self.stateful_set.as_mut().filter(|set| set.uid().as_deref() == Some(uid)).unwrap();
        set.spec.get_or_insert_default().replicas = Some(replicas);
        set.metadata.generation = set.metadata.generation.map(|it| it + 1);
    }

    fn label(&mut self, name: &str, uid: &str, is_labelled: bool) {
        let labelled = self.names.uid.clone();
        let is_it = |node: &&mut CoreNode| node.name_any() == name && node.uid().as_deref() == Some(uid);
        let core_nodes = self.machines.iter_mut().filter_map(|machine| machine.core_node.as_mut());
        let labels = core_nodes.into_iter().find(is_it).unwrap().labels_mut();
        labels.remove(DATABASE_NODE_LABEL);
        labels.extend(is_labelled.then(|| (DATABASE_NODE_LABEL.to_owned(), labelled)));
    }

    fn delete_child(&mut self, kind: ChildKind) {
        match kind {
            ChildKind::StatefulSet => self.stateful_set = None,
            ChildKind::Service => self.service = None,
            ChildKind::ConfigMap => self.config_map = None,
            ChildKind::ServiceAccount => self.service_account = None,
            ChildKind::NetworkPolicy => self.network_policy = None,
            ChildKind::PodDisruptionBudget => self.disruption_budget = None,
            ChildKind::DatabaseUser => panic!("the model has no application"),
        }
    }
}

/// Whether it writes an object that is there, whose content is compared.
/// What is not known any more once this action is begun.
fn forgotten(action: &Action) -> Occurrence {
    if let Action::ReportAltered(what, _) = action {
        *what
    } else if matches!(action, Action::ApplyConfigMap(_)) {
        Occurrence::ConfigMapAltered
    } else {
        Occurrence::StatefulSetAltered
    }
}

fn is_rewritten(action: &Action) -> bool {
    let uid = if let Action::ApplyConfigMap(object) = action {
        &object.metadata.uid
    } else if let Action::ApplyStatefulSet(object)
    | Action::RestoreStatefulSet(object)
    | Action::ChangeImageSource(object) = action
    {
        &object.metadata.uid
    } else {
        return false;
    };
    uid.is_some()
}

/// Applies an object: a new one, or a change of the very one that it names.
fn applied<K: Resource + Clone>(live: &mut Option<K>, object: &K, new_uid: &str) {
    let uid = live.as_ref().and_then(|live| live.meta().uid.clone());
    assert_eq!(object.meta().uid, uid, "another object than the one that is there");
    let owners = live.as_mut().and_then(|live| live.meta_mut().owner_references.take());
    let mut object = with_uid(object.clone(), uid.as_deref().unwrap_or(new_uid));
    // A merge patch without owners leaves them as they are.
    object.meta_mut().owner_references = object.meta_mut().owner_references.take().or(owners);
    *live = Some(object);
}

/// The spec after a JSON merge patch.
fn patched<S: serde::Serialize + serde::de::DeserializeOwned>(spec: &S, patch: &Value) -> S {
    let mut whole = serde_json::to_value(spec).unwrap();
    json_patch::merge(&mut whole, patch);
    serde_json::from_value(whole).unwrap()
}
