//! Publishes Kubernetes events. An event that cannot be published is logged and never fails a pass.

use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource};

use crate::api::EventReason;

/// The longest note that the API server takes, in bytes.
const LONGEST_NOTE: usize = 1000;

/// Publishes the events of one controller.
#[derive(Clone)]
pub struct Events {
    client: Client,
    reporter: Reporter,
}

/// What happened, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    /// A person should check it.
    pub warning: bool,
    /// What, for programs.
    pub reason: EventReason,
    /// A sentence with names and causes.
    pub note: String,
}

impl Happened {
    /// Something that went as it should.
    pub fn normal(reason: EventReason, note: String) -> Self {
        Self { warning: false, reason, note }
    }

    /// Something that a person should check.
    pub fn warning(reason: EventReason, note: String) -> Self {
        Self { warning: true, reason, note }
    }
}

impl Events {
    /// Events in the name of this controller.
    pub fn new(client: Client, controller: &str) -> Self {
        Self { client, reporter: Reporter { controller: format!("freehold-{controller}"), instance: None } }
    }

    /// Publishes one event on the object.
    pub async fn publish<K>(&self, object: &K, happened: &Happened)
    where
        K: Resource<DynamicType = ()>,
    {
        let mut note = happened.note.clone();
        if note.len() > LONGEST_NOTE {
            let end = (0..=LONGEST_NOTE).rev().find(|end| note.is_char_boundary(*end)).unwrap_or_default();
            note.truncate(end);
        }
        let (name, namespace) = (object.meta().name.as_deref(), object.meta().namespace.as_deref());
        tracing::info!(kind = %K::kind(&()), namespace, name, reason = happened.reason.as_str(), "{note}");
        let event = Event {
            type_: if happened.warning { EventType::Warning } else { EventType::Normal },
            reason: happened.reason.as_str().to_owned(),
            note: Some(note),
            action: happened.reason.as_str().to_owned(),
            secondary: None,
        };
        // A recorder of its own each time: kube's caches by reason and would send the first note again
        // (kube-runtime 5.0).
        let recorder = Recorder::new(self.client.clone(), self.reporter.clone());
        if let Err(error) = recorder.publish(&event, &object.object_ref(&())).await {
            tracing::warn!(%error, reason = happened.reason.as_str(), "failed to publish an event");
        }
    }
}
