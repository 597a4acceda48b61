//! Which object an EC2 resource or a UID belongs to: which object a change wakes.
//!
//! A restart forgets it; the first pass of each object fills it again, and until then the first full EC2
//! inventory sync is awaited.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::api::InstanceId;

/// Which object to wake when something of its own changes. Filled by the passes.
#[derive(Default)]
pub struct References {
    by_uid: Mutex<HashMap<String, (String, String)>>,
    by_instance: Mutex<HashMap<InstanceId, (String, String)>>,
}

impl References {
    /// Remembers the namespace and name of the object with this UID.
    pub fn remember(&self, uid: &str, namespace: &str, name: &str) {
        self.by_uid.lock().insert(uid.to_owned(), (namespace.to_owned(), name.to_owned()));
    }

    /// Remembers which Node an instance belongs to.
    pub fn remember_instance(&self, instance: &InstanceId, namespace: &str, name: &str) {
        self.by_instance.lock().insert(instance.clone(), (namespace.to_owned(), name.to_owned()));
    }

    /// The namespace and name of the object with this UID.
    pub fn by_uid(&self, uid: &str) -> Option<(String, String)> {
        self.by_uid.lock().get(uid).cloned()
    }

    /// The namespace and name of the Node that this instance belongs to.
    pub fn by_instance(&self, instance: &InstanceId) -> Option<(String, String)> {
        self.by_instance.lock().get(instance).cloned()
    }

    /// Forgets an object that is gone, and its instances.
    pub fn forget(&self, uid: &str) {
        let Some(place) = self.by_uid.lock().remove(uid) else { return };
        self.by_instance.lock().retain(|_, other| *other != place);
    }
}
