//! What happens from outside in the model of a Database's life.

use k8s_openapi::api::core::v1::Container;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::api::database::ConfigValue;
use crate::api::{DatabaseSpec, Size};

impl Life {
    pub(super) fn happens(&mut self, event: Event) {
        let now = self.now;
        self.is_moving = true;
        match event {
            Event::Delete => {
                self.is_gone |= self.database.metadata.finalizers.is_none();
                self.database.metadata.deletion_timestamp.get_or_insert(Time(now));
            }
            Event::Restart(writes) => self.writes_left = Some(writes),
            // A cluster that is restored from a backup finds its children by their names. Where the Volume or
            // the Secret is lost together with the status that says so, nothing shows that it ever was there.
            Event::StatusLost if self.is_broken => {}
            Event::StatusLost => self.database.status = None,
            Event::Pause => self.edit(|spec| spec.running = false),
            Event::Resume => self.edit(|spec| spec.running = true),
            Event::Types(types) => {
                self.edit(|spec| spec.instance_types = types.iter().map(|it| (*it).to_owned()).collect());
            }
            Event::Setting(value) => self.edit(|spec| {
                spec.config.insert("query.timeout".to_owned(), ConfigValue(value.to_owned()));
            }),
            Event::Grow => self.edit(|spec| {
                spec.storage.size = Size::from_gib(spec.storage.size.gib().unwrap_or_default() + 50);
            }),
            // Left out until the operator does it right: a policy that changes to Delete after the Volume was
            // retained makes it delete the credentials of the retained data.
            Event::Policy(_) if self.volume_ended.is_some() => {}
            Event::Policy(policy) => self.edit(|spec| spec.deletion_policy = policy),
            Event::Lose(which, fence) => self.change_machine(which, |machine| machine.lose(fence)),
            Event::LoseWithNode(which, fence) => {
                self.change_machine(which, |machine| machine.lose_with_node(fence));
            }
            Event::NoCapacity(steps) => self.no_capacity = self.no_capacity.max(steps),
            Event::Slow(steps) => self.slow = self.slow.max(steps),
            Event::DeleteNode(which) => self.change_machine(which, |machine| machine.delete(now)),
            Event::DeleteKubernetesNode(which) => {
                self.change_machine(which, |machine| machine.delete_core_node(now));
            }
            Event::TakeLabel => {
                for core_node in self.machines.iter_mut().filter_map(|machine| machine.core_node.as_mut()) {
                    core_node.labels_mut().remove(DATABASE_NODE_LABEL);
                }
            }
            Event::DeletePod => {
                self.end_pod();
            }
            Event::DeleteStatefulSet => self.stateful_set = None,
            Event::AlterFiles => {
                if let Some(files) = &mut self.config_map {
                    files.data.get_or_insert_default().insert("start.sh".to_owned(), "a program".to_owned());
                }
            }
            Event::AlterTemplate => self.alter_template(),
            Event::DeleteWays => {
                (self.service, self.config_map, self.network_policy) = (None, None, None);
                self.disruption_budget = None;
                self.service_account = None;
            }
            Event::DeleteClaim if self.claim == Claim::Bound => self.claim = Claim::Leaving,
            Event::DeleteVolume => self.delete_volume(),
            Event::DeleteCredentials => self.delete_credentials(),
            Event::Crash if self.is_serving() => {
                self.begins_with_files();
                self.show(false, 1);
            }
            Event::Reload(value) => {
                let key = configuring::RELOADABLE.to_owned();
                self.edit(|spec| drop(spec.config.insert(key, ConfigValue(value.to_owned()))));
            }
            Event::Rotate => self.edit(|spec| {
                let before = spec.access.password_generation.unwrap_or(1);
                spec.access.password_generation = Some(before + 1);
            }),
            Event::RestoreInPlace => self.edit(in_place::request),
            Event::Version(version) => self.edit(|spec| spec.engine.version = Some(version.to_owned())),
            Event::ScaleUp => {
                if let Some(uid) = self.stateful_set.as_ref().and_then(ResourceExt::uid) {
                    self.scale(&uid, 1);
                }
            }
            Event::Rewind => self.rewind(),
            Event::TakeBack => self.edit(|spec| spec.restore_in_place = None),
            Event::DeleteClaim | Event::Crash => {}
        }
    }

    /// Changes the spec, which has a new generation then.
    fn edit(&mut self, change: impl FnOnce(&mut DatabaseSpec)) {
        let before = self.database.spec.clone();
        change(&mut self.database.spec);
        if self.database.spec != before {
            self.database.metadata.generation = self.database.metadata.generation.map(|it| it + 1);
            self.profile = engine::profile(&self.database.spec.engine, &self.database.spec.config);
        }
    }

    /// Does this to one of the machines, if there is one.
    fn change_machine(&mut self, which: Which, change: impl FnOnce(&mut Machine)) {
        let machine = match which {
            Which::Oldest => self.machines.first_mut(),
            Which::Newest => self.machines.last_mut(),
        };
        if let Some(machine) = machine {
            change(machine);
        }
    }

    fn alter_template(&mut self) {
        let Some(set) = &mut self.stateful_set else { return };
        let pod = set.spec.get_or_insert_default().template.spec.get_or_insert_default();
        let program = Container { name: "program".to_owned(), ..Container::default() };
        pod.init_containers.get_or_insert_default().push(program);
        set.metadata.generation = set.metadata.generation.map(|it| it + 1);
    }

    /// Another client deletes the Volume.
    fn delete_volume(&mut self) {
        let now = self.now;
        for volume in self.volume.iter_mut().filter(|it| it.metadata.deletion_timestamp.is_none()) {
            volume.metadata.deletion_timestamp = Some(Time(now));
            self.is_broken = true;
        }
    }

    /// Another client deletes the Secret. One that no status names yet was never used, and is made again.
    fn delete_credentials(&mut self) {
        let is_named = self.status().credentials_secret_name.is_some();
        self.is_broken |= self.credentials.take().is_some() && is_named;
    }
}
