//! Notes what the API server shows of pods, attachments and machines, and when: from its watches, so to a few
//! milliseconds.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use freehold::api::Node;
use freehold::api::keys::DATABASE_NODE_LABEL;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node as CoreNode, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::{Api, Client, Resource, ResourceExt as _};
use kube_runtime::{WatchStreamExt as _, watcher};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

/// The taint that declares a machine down for sure to Kubernetes.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// Something that was seen.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// When.
    pub at: Instant,
    /// What.
    pub what: What,
}

/// What can be seen.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A pod.
    Pod {
        /// Its UID.
        uid: String,
        /// Whether its volumes are mounted and its sandbox is there.
        has_sandbox: bool,
        /// Whether it is Ready: clients are sent to it.
        is_ready: bool,
    },
    /// A pod is gone: its UID.
    PodGone(String),
    /// A VolumeAttachment.
    Attachment {
        /// The machine.
        machine: String,
        /// Whether it is attached.
        is_attached: bool,
    },
    /// A VolumeAttachment is gone: its machine.
    AttachmentGone(String),
    /// A machine's Kubernetes node.
    Machine {
        /// Its name.
        name: String,
        /// Whether it is Ready and the database's pod may run on it.
        is_open: bool,
        /// Whether it has the taint [`OUT_OF_SERVICE`].
        is_out: bool,
        /// What its kubelet says to use, `…^vol-…` each.
        in_use: Vec<String>,
    },
    /// The operator has a machine for lost, and proof that nothing on it can write any more: the machine's
    /// name.
    Proven(String),
}

/// The log; dropped, it ends.
pub struct Log {
    seen: Arc<Mutex<Vec<Sighting>>>,
    _watches: JoinSet<()>,
}

impl Log {
    /// Begins, on the current tokio runtime.
    pub fn start(client: &Client, namespace: &str) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut watches = JoinSet::new();
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        watches.spawn(watch(pods, Arc::clone(&seen), pod, |pod| Some(What::PodGone(pod.uid()?))));
        let attachments = Api::<VolumeAttachment>::all(client.clone());
        watches.spawn(watch(attachments, Arc::clone(&seen), attachment, |gone| {
            Some(What::AttachmentGone(gone.spec.node_name.clone()))
        }));
        watches.spawn(watch(Api::<CoreNode>::all(client.clone()), Arc::clone(&seen), machine, |_| None));
        watches.spawn(watch(
            Api::<Node>::namespaced(client.clone(), namespace),
            Arc::clone(&seen),
            proven,
            |_| None,
        ));
        Self { seen, _watches: watches }
    }

    /// Everything that was seen until now, in its order.
    pub fn seen(&self) -> Vec<Sighting> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Notes what `there` makes of each object that is there, and `gone` of each that went.
async fn watch<K>(
    api: Api<K>,
    seen: Arc<Mutex<Vec<Sighting>>>,
    there: impl Fn(&K) -> Option<What>,
    gone: impl Fn(&K) -> Option<What>,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let events = watcher(api, watcher::Config::default()).default_backoff();
    futures::pin_mut!(events);
    while let Some(event) = events.next().await {
        let what = match event {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => there(&object),
            Ok(watcher::Event::Delete(object)) => gone(&object),
            // It is begun anew.
            Ok(watcher::Event::Init | watcher::Event::InitDone) | Err(_) => None,
        };
        let at = Instant::now();
        if let Some(what) = what {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(Sighting { at, what });
        }
    }
}

fn pod(pod: &Pod) -> Option<What> {
    let is_true = |kind: &str| {
        let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.any(|it| it.type_ == kind && it.status == "True")
    };
    Some(What::Pod {
        uid: pod.uid()?,
        has_sandbox: is_true("PodReadyToStartContainers"),
        is_ready: is_true("Ready"),
    })
}

#[expect(clippy::unnecessary_wraps, reason = "it is one of several that may have nothing to note")]
fn attachment(attachment: &VolumeAttachment) -> Option<What> {
    let is_attached = attachment.status.as_ref().is_some_and(|status| status.attached);
    Some(What::Attachment { machine: attachment.spec.node_name.clone(), is_attached })
}

#[expect(clippy::unnecessary_wraps, reason = "it is one of several that may have nothing to note")]
fn machine(node: &CoreNode) -> Option<What> {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_ready = conditions.any(|it| it.type_ == "Ready" && it.status == "True");
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let in_use =
        node.status.iter().flat_map(|status| status.volumes_in_use.iter().flatten()).cloned().collect();
    Some(What::Machine {
        name: node.name_any(),
        is_open: is_ready && node.labels().contains_key(DATABASE_NODE_LABEL),
        is_out: taints.any(|taint| taint.key == OUT_OF_SERVICE),
        in_use,
    })
}

fn proven(node: &Node) -> Option<What> {
    let status = node.status.as_ref()?;
    let is_fenced = status.conditions.iter().any(|it| it.type_ == "Fenced" && it.status == "True");
    is_fenced.then(|| status.core_node_name.clone().map(What::Proven))?
}
