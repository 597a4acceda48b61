//! The sentences of a Database's waits and conditions. Pure.

pub mod causes;
pub mod engine;
pub mod events;
mod legacy;
pub mod next_start;
pub mod release;
pub mod reload;
pub mod restore;
pub mod rotation;
pub mod tls;
pub mod upgrade;
pub mod wal_archive;

use super::object_name::{ObjectKind, ObjectName};
use super::wait::{ChildState, DatabaseWait, Idle, ReplaceStep, RestartStep};
use crate::api::VolumeId;
use crate::api::keys::DATABASE_UID_LABEL;
use crate::controller::messages;
use crate::controller::retention::Retained;

/// NodeReady is true.
pub const MACHINE_READY: &str = "the machine is ready";
/// VolumeReady is true.
pub const VOLUME_READY: &str = "the volume is bound and matches the spec";
/// EngineReady is true.
pub const ENGINE_READY: &str = "the engine accepts connections";
/// Available is true.
pub const AVAILABLE: &str = "the engine accepts connections at its Service";
/// Available is false, though the engine answers.
pub const NO_SERVICE: &str =
    "the engine accepts connections, and the Service of this Database does not exist";
/// Available is false, though the engine answers: the database may go back to the data that it had.
pub const SERVICE_CLOSED: &str = "the engine accepts connections, and the Service lets no client in before it \
    is certain that the database keeps this data";
/// Ready is true.
pub const DATABASE_READY: &str = "the database is running this generation and accepts connections";
/// DeletionProtected is true.
pub const DELETION_PROTECTED: &str = "the Database was deleted, which cannot be undone, and goes on running \
    since spec.deletionProtection is true; set it to false, and the deletion goes on";
/// Ready is false, for a deletion that waits for nothing.
pub const BEING_DELETED: &str = "the Database is being deleted";

/// The condition that retained volumes of a former Database of this name exist: `latest`, and this many older
/// ones.
pub fn retained_volume_found(latest: &Retained, older: usize) -> String {
    let Retained { volume_id, persistent_volume, retained_at, .. } = latest;
    let since = retained_at.as_ref().map(|at| format!(" since {at}")).unwrap_or_default();
    let others = if older == 0 { String::new() } else { format!(" (and {older} older)") };
    format!(
        "EBS volume {volume_id} of a former Database of this name is retained{since}, recorded in \
         PersistentVolume {persistent_volume}{others}; this Database does not use it. To restore the former \
         data, delete this Database and create it again with spec.storage.adoptRetained: {persistent_volume}"
    )
}

const PAUSED: &str = "the database is paused by spec.running: the machine is released, the volume stays";

impl DatabaseWait {
    /// What is waited for, why, and what a person can do.
    pub fn message(&self) -> String {
        match self {
            Self::AddingFinalizer => "adding the Freehold finalizer".to_owned(),
            Self::InvalidSpec(invalid) => invalid.message(),
            Self::NotPermitted(refusal) => refusal.message(),
            Self::NameConflict { objects, namespace } => name_conflict(objects, namespace),
            Self::CredentialsUnusable { secret, fault } => format!(
                "Secret {secret} cannot be used: {}. The engine is not started or changed without it, and it \
                    is never regenerated",
                fault.message()
            ),
            Self::RetainedSecretConflict(secret) => format!(
                "Secret {secret}, the name under which the credentials are to be retained, exists and is not \
                 owned by this Database; it is not modified. It may hold the only password of other \
                 data that \
                 is retained: copy it under another name, then delete it"
            ),
            Self::AdoptionRefused(refusal) => refusal.message(),
            Self::Restore(wait) => wait.message(),
            Self::Rotation(wait) => wait.message(),
            Self::Reload(wait) => wait.message(),
            Self::Tls(wait) => wait.message(),
            Self::Upgrade(wait) => wait.message(),
            Self::NotAdoptable(refusal) => {
                format!("the database is not adopted, and its pod is left alone: {}", refusal.message())
            }
            Self::Releasing { set, as_found } => release::releasing(set, *as_found),
            Self::ReleasingVolume(volume) => release::releasing_volume(volume),
            Self::NotReleasable(cause) => cause.message(),
            Self::NotRecreatable(set, answer) => legacy::not_recreatable(set, answer),
            Self::ClaimUnusable(claim, fault) => fault.message(claim),
            Self::AdoptingStatefulSet(set) => {
                format!("StatefulSet {set} is being adopted, and its pod goes on running")
            }
            Self::FormerVolumeExists(id) => format!(
                "waiting for the deletion of the Volume that had EBS volume {id} before; EBS volume {id} is \
                 adopted then"
            ),
            Self::Adopting { volume_id, record } => {
                format!("adopting EBS volume {volume_id}, recorded in PersistentVolume {record}")
            }
            Self::Paused => PAUSED.to_owned(),
            Self::ResourcesDeleted => "all resources of this Database are deleted".to_owned(),
            Self::OtherFinalizers => "waiting for other controllers to remove their finalizers".to_owned(),
            Self::ChildRefused { answer } => {
                format!("the API server rejected an object of this Database: {answer}")
            }
            Self::StepFailed { error } => messages::step_failed(error),
            Self::Flushing { pod, stop } => flushing(pod, &stop.message()),
            Self::StoppingEngine(blocker) => blocker.message(),
            Self::UpdatingChild(object) => {
                format!("{} is being updated to the spec of this Database", object.describe())
            }
            Self::Child { object, state } => state.message(&object.describe()),
            Self::ApplicationUser { user, state } => of_application(user, state.as_ref()),
            Self::Replacing { node, cause, step } => step.message(node, &cause.message()),
            Self::MovingPod(cause) => cause.message(),
            Self::RestartPending { pod, step } => {
                format!("pod {pod} is being replaced for a changed spec: {}", step.message())
            }
            Self::PodAltered { pod, step } => {
                format!("pod {pod} does not run what Freehold applied: {}", step.message())
            }
            Self::DataRetained { volume_id, record, older } => data_retained(volume_id, record, *older),
            Self::VolumeLost { volume, is_being_deleted } => volume_lost(volume, *is_being_deleted),
            Self::CreatingNode(node) => format!("creating Node {node}"),
            Self::NodeUnusable { node, cause } => {
                format!("Node {node} is being deleted, and another one follows: {}", cause.message())
            }
            Self::NodeNotInitialized(node) => format!("Node {node} is not initialized yet"),
            Self::KubernetesNodeGone { node } => format!("the Kubernetes node of Node {node} does not exist"),
            Self::DeletingNode { node, message } => {
                format!("Node {node} is being deleted: {}", causes::or_unknown(message.as_deref()))
            }
            Self::MachineLost { message, .. } => causes::or_unknown(message.as_deref()),
            Self::NoMachine(idle) => idle.message("the machine"),
            Self::ZoneNotChosen => {
                "the zone is chosen when the first instance is running; then the volume is created in that \
                    zone"
                    .to_owned()
            }
            Self::CreatingVolume { volume, zone } => format!("creating Volume {volume} in {zone}"),
            Self::VolumeNotBound(volume) => format!("Volume {volume} is not bound yet"),
            Self::NoVolume => "the Volume is not created yet".to_owned(),
            Self::DeletingVolume { volume, policy, message } => format!(
                "Volume {volume} is being deleted with deletionPolicy {}: {}",
                policy.as_str(),
                causes::or_unknown(message.as_deref())
            ),
            Self::StartingEngine => "starting the engine".to_owned(),
            Self::Attaching(attaching) => attaching.message(),
            Self::Engine(wait) => wait.message(),
            Self::WentBack(at, message) => next_start::went_back(*at, message),
            Self::EngineWentBack(at, message) => next_start::engine_went_back(*at, message),
            Self::NotGoingBack { started, before, wait } => next_start::not_going_back(started, before, wait),
            Self::EngineOutdated => "the engine accepts connections and will be restarted for a changed \
                spec"
                .to_owned(),
            Self::EngineMachineLost(_) => "the machine that the engine ran on is lost".to_owned(),
            Self::NoEngine(idle) => idle.message("the engine"),
        }
    }
}

fn flushing(pod: &str, stop: &str) -> String {
    format!(
        "the engine in pod {pod} is writing what it has in memory to its volume, for at most 5 min, and goes \
         on serving meanwhile; then: {stop}"
    )
}

fn volume_lost(volume: &str, is_being_deleted: bool) -> String {
    if is_being_deleted {
        format!(
            "Volume {volume} was deleted outside Freehold, which cannot be undone; it keeps its EBS volume until \
             its Database is deleted, and the database goes on and is repaired, but no change of the spec is \
             carried out: set spec.deletionPolicy to Retain, delete the Database and create it with \
             spec.storage.adoptRetained"
        )
    } else {
        format!(
            "Volume {volume} does not exist any more, and no empty Volume is created in its place: delete the \
             Database, and create it with spec.storage.adoptRetained; where the EBS volume has no retention \
             record, freehold retained --from-ec2 finds it and writes one"
        )
    }
}

fn data_retained(volume_id: &VolumeId, record: &str, older: usize) -> String {
    let others = if older == 0 { String::new() } else { format!(" (and {older} older)") };
    format!(
        "EBS volume {volume_id} of a former Database of this name is retained, recorded in PersistentVolume \
         {record}{others}, and nothing is created before the spec says what this Database is. To restore the \
         former data, delete this Database and create it again with spec.storage.adoptRetained: {record}; to \
         begin with an empty volume, set spec.storage.startEmpty: true"
    )
}

/// What is awaited of the user of the application, of this DatabaseUser.
fn of_application(user: &str, state: Option<&ChildState>) -> String {
    let user = format!("DatabaseUser {user}");
    match state {
        Some(state) => state.message(&user),
        None => format!(
            "{user} exists and is not owned by this Database; it is not modified. Delete it, or remove \
            spec.applicationUser"
        ),
    }
}

fn name_conflict(objects: &[ObjectName], namespace: &str) -> String {
    let names: Vec<String> = objects.iter().map(ObjectName::describe).collect();
    let (exist, them) = if names.len() == 1 {
        ("exists and is not owned by this Database; it is not modified", "it")
    } else {
        ("exist and are not owned by this Database; they are not modified", "them")
    };
    let names = names.join(", ");
    if objects.iter().any(|object| object.kind == ObjectKind::Secret) {
        return format!(
            "{names} in namespace {namespace} {exist}. A Secret may hold the only password of data that is \
             there or retained: copy it before it is deleted. If it is this Database's, restore its label \
             {DATABASE_UID_LABEL} with the UID of the Database; otherwise use another name for the Database"
        );
    }
    format!("{names} in namespace {namespace} {exist}. Delete {them}, or use another name for the Database")
}

impl ObjectName {
    /// The kind and the name.
    pub fn describe(&self) -> String {
        let kind = match self.kind {
            ObjectKind::Secret => "Secret",
            ObjectKind::ConfigMap => "ConfigMap",
            ObjectKind::Service => "Service",
            ObjectKind::ServiceAccount => "ServiceAccount",
            ObjectKind::NetworkPolicy => "NetworkPolicy",
            ObjectKind::StatefulSet => "StatefulSet",
            ObjectKind::Pod => "Pod",
            ObjectKind::Volume => "Volume",
            ObjectKind::Node => "Node",
        };
        format!("{kind} {}", self.name)
    }
}

impl ChildState {
    fn message(&self, object: &str) -> String {
        match self {
            Self::New => format!("{object} was created; its controller has not reported a status yet"),
            Self::Outdated => format!(
                "{object} has changed; its controller has not processed the change \
                yet"
            ),
            Self::NotReady { message, .. } | Self::Stalled { message, .. } => format!("{object}: {message}"),
        }
    }
}

impl Idle {
    fn message(self, part: &str) -> String {
        match self {
            Self::Deleting => format!("{part} is gone: the Database is being deleted"),
            Self::Paused => format!("{part} is released: the Database is paused"),
            Self::Awaited => format!("{part} does not exist yet"),
        }
    }
}

impl ReplaceStep {
    fn message(&self, node: &str, cause: &str) -> String {
        match self {
            Self::AfterFormer(former) => {
                format!(
                    "Node {node} must be replaced ({cause}); the replacement begins when Node {former} \
                    is gone"
                )
            }
            Self::DeletedFirst => format!("Node {node} is being deleted ({cause}), and another one follows"),
            Self::Recurring { until, before, is_stalled } => {
                let way_out = if *is_stalled {
                    format!(
                        ". Find out what ends the machines; to replace this one at once, delete \
                         node.freehold.dev/{node}"
                    )
                } else {
                    String::new()
                };
                format!(
                    "Node {node} must be replaced ({cause}). {} replaced before it, each within an hour of its \
                     launch: the replacement begins at {until}{way_out}",
                    messages::machines_were(*before)
                )
            }
            Self::Creating(to) => format!("creating Node {to} to replace Node {node}: {cause}"),
            Self::SuccessorUnfit { to, why } => {
                format!(
                    "Node {to}, which was to replace Node {node} ({cause}), is being deleted: {}; \
                    another one follows",
                    why.message()
                )
            }
            Self::AwaitingSuccessor { to, serves_on, wait } => {
                let meanwhile = if *serves_on { ", which serves until then" } else { "" };
                format!("Node {to} is to replace Node {node}{meanwhile} ({cause}); {}", wait.message())
            }
            Self::NoRoom { to, lacking } => format!(
                "Node {to} is ready to replace Node {node} ({cause}), and the database stays where it is: {}",
                lacking.message()
            ),
            Self::MovingBack(to) => format!(
                "the database moves back to Node {to}: the engine has not accepted connections on Node \
                 {node}, which must be replaced ({cause})"
            ),
            Self::Unfenced { to, blocker } => {
                format!("Node {to} is ready to replace Node {node} ({cause}); {}", blocker.message())
            }
        }
    }
}

impl RestartStep {
    fn message(&self) -> String {
        match self {
            Self::ApplyingTemplate => "applying the new template".to_owned(),
            Self::Stopping => "the pod is stopping".to_owned(),
            Self::Deleting(cause) => cause.message(),
            Self::Blocked(blocker) => blocker.message(),
            Self::NoRoom(lacking) => format!("the pod that runs is kept: {}", lacking.message()),
            Self::Unsettled(Some(until)) => format!(
                "the pod is replaced when ConfigMap and StatefulSet have stayed as Freehold applied them \
                 until {until}"
            ),
            Self::Unsettled(None) => {
                "the pod is replaced when ConfigMap and StatefulSet are restored".to_owned()
            }
        }
    }
}
