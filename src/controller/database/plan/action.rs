//! What a plan of the Database controller is made of: the actions, and what is waited for.

use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolume, PersistentVolumeClaim, Service, ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::api::database::{
    Adoption, ConfigStatus, EngineNotStarted, NotStarting, Occurrence, Release, Replacement, Restored,
    RestoredInPlace, TlsStatus, Upgrade, WentBack,
};
use crate::api::{Backup, DatabaseUser, Node, Volume};
use crate::controller::database::cause::{Move, NodeDeletion, RestartCause};
use crate::controller::database::child_kind::ChildKind;
use crate::controller::database::object_name::ObjectName;
use crate::controller::database::observe::child::HeldSecret;
use crate::controller::database::wait::DatabaseWait;
use crate::engine::Profile;
use crate::engine::certificate::Certificate;
use crate::engine::client::Access;
use crate::engine::reload::Change;

/// What one pass does and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In this order.
    pub actions: Vec<Action>,
    /// What the Database waits for; `None` when it is as it should be.
    pub waiting: Option<DatabaseWait>,
    /// Requeue after this time, even without a watch event.
    pub requeue: Option<Duration>,
}

impl Plan {
    /// Whether anything is done but what concerns this object alone, and is refused if that has changed.
    pub(in crate::controller::database) fn acts(&self) -> bool {
        self.actions.iter().any(|action| *action != Action::AddFinalizer)
    }

    /// Whether it does more than to end what a new start makes again: engine and machine. What becomes of the
    /// data of a Database that is being deleted depends on what is torn down around it.
    pub(in crate::controller::database) fn ends_data(&self) -> bool {
        let is_of_the_engine = |action: &Action| {
            matches!(
                action,
                Action::Scale(..) | Action::Unlabel(..) | Action::Relabel(..) | Action::DeleteNode(..)
            )
        };
        !self.actions.iter().all(is_of_the_engine)
    }

    /// Does this, then waits.
    pub(in crate::controller::database) fn act(actions: Vec<Action>, wait: DatabaseWait) -> Self {
        Self { actions, waiting: Some(wait), requeue: None }
    }

    /// Only waits.
    pub(in crate::controller::database) fn wait(wait: DatabaseWait) -> Self {
        Self::act(Vec::new(), wait)
    }

    /// Requeues after this time, even without a watch event.
    pub(in crate::controller::database) fn requeue(self, requeue: Duration) -> Self {
        Self { requeue: Some(requeue), ..self }
    }
}

/// A change of settings that an engine is to load.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// How the engine is reached.
    pub access: Access,
    /// The change.
    pub change: Change,
    /// The file that it is to load.
    pub file: String,
    /// What the status says once the engine runs with it.
    pub record: ConfigStatus,
    /// What it says if the engine does not, where nothing more is awaited.
    pub otherwise: Option<ConfigStatus>,
}

/// A certificate that an engine is to show.
#[derive(Clone, Debug, PartialEq)]
pub struct Certify {
    /// How the engine is reached.
    pub access: Access,
    /// The certificate.
    pub certificate: Certificate,
    /// The Secret that has it.
    pub secret: String,
    /// The engine shows another one, which is as good until it expires.
    pub is_renewal: bool,
    /// What the status says once the engine shows it.
    pub record: TlsStatus,
}

/// A flush of an engine that is about to be stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Flush {
    /// The pod of the engine.
    pub pod_uid: String,
    /// How the engine is reached.
    pub access: Access,
    /// What is sent.
    pub statement: &'static str,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put our finalizer on the Database.
    AddFinalizer,
    /// Make a password and the Secret that holds it.
    CreateCredentials(Box<Profile>),
    /// Make the next password, and put it beside the one in force: of this generation.
    PrepareNextPassword(Box<HeldSecret>, i64),
    /// Give the engine, which is reached like this, the next password, and try it.
    GiveNextPassword(Access, Box<HeldSecret>),
    /// Make the next password the one in force: the engine has it, or begins with it.
    PutNextPasswordInForce(Box<Profile>, Box<HeldSecret>),
    /// Announce the restart and stop the engine, so that it begins with the next password: UID, and what is
    /// to be put in force then.
    StopForNextPassword(String, Box<Profile>, Box<HeldSecret>),
    /// Write down how far a change of settings is.
    RecordSettings(Box<ConfigStatus>),
    /// Have the engine load other settings.
    ReloadSettings(Box<Load>),
    /// Have the engine show the certificate of its Secret.
    LoadCertificate(Box<Certify>),
    /// Have the engine in the pod of this UID end the file of its log that it writes to, so that it archives
    /// one.
    SwitchLog(String, Access),
    /// Have the engine write what it has in memory to its volume, in the background.
    BeginFlush(Box<Flush>),
    /// Write down that the release begins.
    RecordRelease(Release),
    /// Take that back: nothing was released yet, and nothing is to be.
    ForgetRelease,
    /// Release the StatefulSet: as it is; and labels, annotations and owners as they are to be, with the spec
    /// where that becomes what it was, too.
    ReleaseStatefulSet(Box<StatefulSet>, Box<Value>),
    /// The same for another object of the database.
    ReleaseChild(ChildKind, Box<ObjectMeta>, Box<Value>),
    /// Adopt the StatefulSet of a database that runs, found as the record says.
    AdoptStatefulSet(Box<StatefulSet>, Box<Adoption>),
    /// Write down how the database was found, as its StatefulSet has it noted.
    RecordAdoption(Box<Adoption>),
    /// Write down that the database goes back to what it ran as before.
    GoBack(Box<WentBack>),
    /// Write down that the database goes back to the engine that it served as.
    GoBackToServed(Box<EngineNotStarted>),
    /// Write down what the database is restored from.
    RecordRestore(Box<Restored>),
    /// Write down that a restore in place begins, or that the database goes back to the data that it had.
    RecordRestoreInPlace(Box<RestoredInPlace>),
    /// Write down how far a change of the engine is, or that the database goes back from it.
    RecordUpgrade(Box<Upgrade>),
    /// Create a Backup.
    CreateBackup(Box<Backup>),
    /// Write down what the data is of that the database goes on with.
    RecordData(Box<RestoredInPlace>),
    /// Reserve the record of a retained volume for this Database.
    TakeRecord(Box<PersistentVolume>),
    /// Release it.
    ReleaseRecord(Box<PersistentVolume>),
    /// Make the Secret from the one that was retained with a volume.
    TakeCredentials(Box<Profile>, Box<HeldSecret>),
    /// Delete the Secret that was retained with a volume which this Database has adopted: name, UID.
    DeleteRetainedCredentials(String, String),
    /// Write down that an object was changed outside Freehold: as what, and which.
    ReportAltered(Occurrence, ObjectName),
    /// Apply the ConfigMap; one that names a UID changes that very object, one without is new.
    ApplyConfigMap(Box<ConfigMap>),
    /// The same for the Service.
    ApplyService(Box<Service>),
    /// The same for the NetworkPolicy.
    ApplyNetworkPolicy(Box<NetworkPolicy>),
    /// The same for the PodDisruptionBudget.
    ApplyDisruptionBudget(Box<PodDisruptionBudget>),
    /// Create the DatabaseUser of the application.
    CreateApplicationUser(Box<DatabaseUser>),
    /// Change its spec: UID, JSON merge patch of the spec.
    UpdateApplicationUser(String, Value),
    /// Create the ServiceAccount.
    CreateServiceAccount(Box<ServiceAccount>),
    /// Change the ServiceAccount: JSON merge patch, with its UID.
    MendServiceAccount(Value),
    /// Apply the StatefulSet, as the ConfigMap.
    ApplyStatefulSet(Box<StatefulSet>),
    /// Give the StatefulSet its spec back: no pod is replaced for it.
    RestoreStatefulSet(Box<StatefulSet>),
    /// Change where the StatefulSet's image is pulled from, with the resourceVersion of what was read.
    ChangeImageSource(Box<StatefulSet>),
    /// Set the number of pods: UID, replicas.
    Scale(String, i32),
    /// Write the ordinal down, and whose place the Node is to take, then create it: one compound action.
    CreateNode(i32, Box<Node>, Option<Replacement>),
    /// Change a Node's spec: name, UID, JSON merge patch of the spec.
    UpdateNode(String, String, Value),
    /// Delete a Node: name, UID, why.
    DeleteNode(String, String, NodeDeletion),
    /// Write down the zone that capacity has chosen.
    RecordZone(String),
    /// Create the Volume.
    CreateVolume(Box<Volume>),
    /// Change the Volume's spec: UID, JSON merge patch of the spec.
    UpdateVolume(String, Value),
    /// Delete the Volume: UID.
    DeleteVolume(String),
    /// Put the Database's label on a core Node: name, UID; and the move, when the database comes from another
    /// machine.
    Label(String, String, Option<Move>),
    /// Take the Database's label off a core Node: name, UID.
    Unlabel(String, String),
    /// Give the Database's label on a core Node the value that it had before an adoption: name, UID, value.
    Relabel(String, String, String),
    /// Delete the pod so that it comes back from the new template: name, UID, the resourceVersion that it
    /// must still have if its state decided, why.
    ReplacePod(String, String, Option<String>, RestartCause),
    /// Write down that the pod is replaced because its engine keeps ending.
    RecordNotStarting(NotStarting),
    /// Remove our finalizer from the claim of an adopted database, which may go.
    FreeClaim(Box<PersistentVolumeClaim>),
    /// Keep the credentials with the disk, under the name of what is retained.
    KeepCredentials(Box<HeldSecret>),
    /// Delete the Secret of the credentials: UID.
    DeleteCredentials(String),
    /// Delete a child that the API server's garbage collector would take its time for: kind, name, UID.
    DeleteChild(ChildKind, String, String),
    /// Remove our finalizer from the Database: all its resources are deleted.
    RemoveFinalizer,
}

impl Action {
    /// Whether it ends an engine that serves: nothing more is asked of that engine.
    pub(super) fn ends_engine(&self) -> bool {
        matches!(self, Self::ReplacePod(..) | Self::Scale(..) | Self::StopForNextPassword(..))
    }

    /// Deletes a child that is there, and not being deleted yet.
    pub(super) fn delete(kind: ChildKind, child: Option<&ObjectMeta>) -> Option<Self> {
        let metadata = child.filter(|metadata| metadata.deletion_timestamp.is_none())?;
        Some(Self::DeleteChild(kind, metadata.name.clone()?, metadata.uid.clone()?))
    }
}
