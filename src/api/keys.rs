//! Every key that Freehold reads or writes: labels, annotations, taints, EC2 tags, the finalizer. No other
//! file spells one.
//!
//! Each doc comment says which objects carry the key, who writes it, and the format of its value. A key that
//! was released never changes: the objects of earlier releases carry it.
//!
//! One key has three formats: `freehold.dev/database` is a label ([`DATABASE_NAME_LABEL`], the name alone,
//! since a label's value holds no slash), an annotation ([`DATABASE_ANNOTATION`]) and an EC2 tag
//! ([`DATABASE_TAG`]), both `<namespace>/<name>`. `freehold.dev/volume-uid` is a label ([`VOLUME_UID_LABEL`])
//! and an EC2 tag ([`VOLUME_UID_TAG`]) of one format.

// ---- Labels of the objects of one Database ----

/// Label: the name of the Database (`metadata.name`). On every object that belongs to a Database, and on its
/// PersistentVolume, which has no namespace; written by the Database's and the Volume's controller.
pub const DATABASE_NAME_LABEL: &str = "freehold.dev/database";

/// Label: the UID of the Database. On the same objects by the same controllers. It is the proof that an
/// object of a derived name is ours, and part of the StatefulSet's selector, which cannot change.
pub const DATABASE_UID_LABEL: &str = "freehold.dev/database-uid";

/// Label: the UID of the Volume that created a PersistentVolume, or adopted it in place. Written by the
/// Volume's controller. A PersistentVolume has no owner reference, since it is cluster-scoped.
pub const VOLUME_UID_LABEL: &str = "freehold.dev/volume-uid";

/// Label: `true` on what was retained after a deletion: on the PersistentVolume by the Volume's controller,
/// on the copy of the credentials' Secret by the Database's.
pub const RETAINED_LABEL: &str = "freehold.dev/retained";

/// Label of Kubernetes' recommended set: the name of the Database. On every object of a Database; part of the
/// StatefulSet's selector.
pub const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";

/// Label of the recommended set: always [`MANAGED_BY_FREEHOLD`]. On every object of a Database; what the
/// Database controller's watches select.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";

/// The value of [`MANAGED_BY_LABEL`].
pub const MANAGED_BY_FREEHOLD: &str = "freehold";

/// Label of the recommended set: the engine, as `spec.engine.type` has it (`postgresql`). On every object of
/// a Database.
pub const ENGINE_LABEL: &str = "app.kubernetes.io/name";

/// Label: the name of the BackupSchedule that created a Backup. Written with its creation. A person who
/// removes it keeps the Backup for ever: no retention deletes it.
pub const BACKUP_SCHEDULE_LABEL: &str = "freehold.dev/backup-schedule";

/// Label: the name of the Database before whose change of the engine a Backup was taken (`spec.upgrade`).
/// Written by the Database's controller with its creation.
pub const BEFORE_UPGRADE_LABEL: &str = "freehold.dev/before-upgrade";

/// Label: the name of the BackupSchedule that restores a Backup in this Database to verify it, and deletes
/// the Database afterwards. Written with its creation. A person who removes it keeps the Database: nothing
/// deletes it then.
pub const VERIFICATION_LABEL: &str = "freehold.dev/verification";

/// Annotation: since when a BackupSchedule deletes a Backup that its retention does not keep, as RFC 3339. On
/// Backups, written with the deletion policy `Delete` just before the deletion. On one that was not deleted
/// after all, the Backup's controller puts the policy `Retain` back and removes the annotation.
pub const EXPIRING_SINCE_ANNOTATION: &str = "freehold.dev/expiring-since";

// ---- Labels and taints of core Nodes ----

/// Label: `true` on the `v1/Node` of a dedicated machine. Written by its kubelet at registration, as the
/// NodeClass's user data says, or by the Node's controller where it is missing; what the operator's watch of
/// core Nodes selects.
pub const DEDICATED_LABEL: &str = "freehold.dev/dedicated";

/// Taint, effect `NoExecute`, that keeps every other pod off a dedicated machine. Written by its kubelet at
/// registration with the value `true`, or by the Node's controller where it is missing; a database's pod
/// tolerates it with any value. On an adopted machine with the effect `NoSchedule`, and removed with its
/// release.
pub const DEDICATED_TAINT: &str = "freehold.dev/dedicated";

/// Label: the UID of the Database, on the one core Node that its pod may run on. Written and removed by the
/// Database's controller. A kubelet cannot set a label with this prefix for itself (`NodeRestriction`
/// admission).
pub const DATABASE_NODE_LABEL: &str = "freehold.dev.node-restriction.kubernetes.io/database";

/// Taint of Kubernetes on a Kubernetes node that is not Ready (its lifecycle controller).
pub const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";

/// Taint of Kubernetes on a Kubernetes node that does not report (its lifecycle controller).
pub const UNREACHABLE_TAINT: &str = "node.kubernetes.io/unreachable";

/// Taint, effect `NoExecute`, value `nodeshutdown`, that tells Kubernetes that a machine is stopped for
/// certain (Kubernetes docs, "Non-graceful node shutdown handling"). On the core Node of a fenced machine;
/// written by the Node's controller.
pub const OUT_OF_SERVICE_TAINT: &str = "node.kubernetes.io/out-of-service";

/// Label: the availability zone (`us-east-1a`). On core Nodes, written by the cloud's controller manager; it
/// is the EBS CSI driver's topology, so the Volume's controller requires it in the node affinity of a
/// PersistentVolume.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// Label: the zone, by the EBS CSI driver's own name for it, in the node affinity of a PersistentVolume that
/// the driver provisioned. Read in that of an adopted volume.
pub const ZONE_OF_THE_DRIVER_LABEL: &str = "topology.ebs.csi.aws.com/zone";

/// Label: the zone, by its name before Kubernetes 1.17, in the node affinity of an old PersistentVolume. Read
/// in that of an adopted volume.
pub const FORMER_ZONE_LABEL: &str = "failure-domain.beta.kubernetes.io/zone";

/// Label of Kubernetes' own: the revision of the StatefulSet that a pod was created from. Written by the
/// StatefulSet's controller.
pub const REVISION_LABEL: &str = "controller-revision-hash";

/// Label: the instance type. On Kubernetes nodes, written by the kubelet or the cloud's controller manager.
pub const INSTANCE_TYPE_LABEL: &str = "node.kubernetes.io/instance-type";

// ---- The Secret of the credentials ----

/// Annotation: which password the Secret has, as a decimal number; without it the first. Written by the
/// Database's controller, in the same write as the password.
pub const PASSWORD_GENERATION_ANNOTATION: &str = "freehold.dev/password-generation";

/// Annotation: which one [`NEXT_PASSWORD`] is, as a decimal number. Written and removed with it.
pub const NEXT_PASSWORD_GENERATION_ANNOTATION: &str = "freehold.dev/next-password-generation";

/// Key of the Secret's data: the password that the engine is given next. Written by the Database's controller
/// before the engine is given it, and removed in the write that makes it the password.
pub const NEXT_PASSWORD: &str = "next-password";

/// The type of a Secret with a certificate (Kubernetes docs, "TLS Secrets").
pub const TLS_SECRET_TYPE: &str = "kubernetes.io/tls";

/// Keys of the Secret with the credentials of an archive, and the variables of the AWS SDKs with the same.
pub const AWS_ACCESS_KEY_ID: &str = "AWS_ACCESS_KEY_ID";
/// See [`AWS_ACCESS_KEY_ID`].
pub const AWS_SECRET_ACCESS_KEY: &str = "AWS_SECRET_ACCESS_KEY";
/// See [`AWS_ACCESS_KEY_ID`].
pub const AWS_SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";

/// Keys of its data: the certificate with those of its issuers, and its key.
pub const TLS_CERT: &str = "tls.crt";
/// See [`TLS_CERT`].
pub const TLS_KEY: &str = "tls.key";

// ---- Annotations of a PersistentVolume ----

/// Annotation: the Database that a volume was created for, as `<namespace>/<name>`. Written by the Volume's
/// controller with the PersistentVolume.
pub const DATABASE_ANNOTATION: &str = "freehold.dev/database";

/// Annotation, on claims and PersistentVolumes: the name of the StorageClass, as it was written before there
/// was a field for it. Where it is there, Kubernetes reads it, and not the field. Read.
pub const STORAGE_CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Annotation of Kubernetes' own: the provisioner that created a volume, [`EBS_CSI_DRIVER`]. Written with the
/// PersistentVolume.
pub const PROVISIONED_BY_ANNOTATION: &str = "pv.kubernetes.io/provisioned-by";

/// Annotation: when the volume was retained (RFC 3339, UTC, whole seconds). This and the seven that follow
/// are written by the Volume's controller when it retains the volume: they make the PersistentVolume its
/// retention record.
pub const RETAINED_AT_ANNOTATION: &str = "freehold.dev/retained-at";

/// Annotation of the record: why the volume was retained, as a sentence.
pub const RETAINED_BECAUSE_ANNOTATION: &str = "freehold.dev/retained-because";

/// Annotation of the record: the size that EC2 showed (`100Gi`), which may be more than the claim had
/// requested.
pub const SIZE_ANNOTATION: &str = "freehold.dev/size";

/// Annotation of the record: the type of the EBS volume that EC2 showed (`io2`).
pub const VOLUME_TYPE_ANNOTATION: &str = "freehold.dev/volume-type";

/// Annotation of the record: the engine that wrote the data, as `spec.engine.type` has it.
pub const ENGINE_ANNOTATION: &str = "freehold.dev/engine";

/// Annotation of the record: the engine's version (`17.6`), or the image of a custom engine. A person may add
/// it where it is missing.
pub const ENGINE_VERSION_ANNOTATION: &str = "freehold.dev/engine-version";

/// Annotation of the record: where a custom engine had its data (its dataPath).
pub const DATA_PATH_ANNOTATION: &str = "freehold.dev/data-path";

/// Annotation of the record: the user that a custom engine ran as, and that the files belong to (its userId).
pub const USER_ID_ANNOTATION: &str = "freehold.dev/user-id";

/// Annotation of the record: the name of the Secret with the credentials that the data was created with, in
/// the namespace of the claim.
pub const CREDENTIALS_ANNOTATION: &str = "freehold.dev/credentials-secret";

/// Annotation of the record: the UID of the namespace that the volume was retained in. A namespace that was
/// created anew under the name has another, and does not adopt the volume; the platform team may remove the
/// annotation, or write the new UID, to allow it.
pub const NAMESPACE_UID_ANNOTATION: &str = "freehold.dev/namespace-uid";

/// Annotation of the record: the Database that adopts the volume, as `<name>/<UID>`. Written by the
/// Database's controller with the resourceVersion of what was read, so that of two Databases one wins;
/// removed when the reservation ends.
pub const ADOPTED_BY_ANNOTATION: &str = "freehold.dev/adopted-by";

/// Annotation: the reclaim policy (`Delete`) that a PersistentVolume had before its volume was adopted in
/// place.
/// Written by the Volume's controller in the patch that sets the policy to Retain; removed, and the policy
/// restored, when the volume is released.
pub const FORMER_RECLAIM_POLICY_ANNOTATION: &str = "freehold.dev/former-reclaim-policy";

// ---- Annotations of other objects ----

/// Annotation of Kubernetes' own: on the mirror pod of a static pod, written by its kubelet.
pub const MIRROR_POD_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// Annotation: the hash (16 hexadecimal digits) of the inputs in the spec that an object was rendered from.
/// On the StatefulSet, its pods and the ConfigMap; written by the Database's controller. Only a change of it
/// requires a replacement of the pod.
pub const INPUTS_HASH_ANNOTATION: &str = "freehold.dev/inputs-hash";

/// Annotation: the name of the Secret that had the retained credentials. On a credentials' Secret that was
/// adopted with a volume; written by the Database's controller.
pub const TAKEN_FROM_ANNOTATION: &str = "freehold.dev/taken-from";

/// Annotation: the name of the PersistentVolume that was the record of that volume. On the same Secret by the
/// same controller.
pub const ADOPTED_RECORD_ANNOTATION: &str = "freehold.dev/adopted-record";

/// The prefix of the annotations by which EKS' webhook gives a ServiceAccount an AWS role (EKS user guide,
/// "IAM roles for service accounts"). The Database's controller removes them from a database's
/// ServiceAccount.
pub const CLOUD_IDENTITY_PREFIX: &str = "eks.amazonaws.com/";

/// Where the DNS of a cluster is, as `to` of a NetworkPolicy: the pods of Kubernetes' own DNS by convention
/// (CoreDNS, kube-dns), and the address of NodeLocal DNSCache (Kubernetes docs, "Using NodeLocal
/// DNSCache").
pub const CLUSTER_DNS: &str = "[{\"namespaceSelector\": {\"matchLabels\": \
    {\"kubernetes.io/metadata.name\": \"kube-system\"}}, \
    \"podSelector\": {\"matchLabels\": {\"k8s-app\": \"kube-dns\"}}}, \
    {\"ipBlock\": {\"cidr\": \"169.254.20.10/32\"}}]";

/// Annotation: the StatefulSet of an adopted database that has another name than its Database. On its Nodes,
/// by the Database's controller: by it the Node's controller knows the database's own pod.
pub const STATEFUL_SET_ANNOTATION: &str = "freehold.dev/stateful-set";

/// Annotation: how an adopted database was found, as `status.adoption` of its Database has it, in JSON. On
/// its StatefulSet, by the Database's controller: what is left of it when a status is lost. The chart's
/// admission policies know an adopted StatefulSet by it.
pub const ADOPTION_ANNOTATION: &str = "freehold.dev/adoption";

/// Annotation of an operator's Lease in `kube-system`: the namespaces that its last holder watches, separated
/// by commas; empty for all of them. Written by the operator when it takes the Lease, read by every other
/// one.
pub const NAMESPACES_ANNOTATION: &str = "freehold.dev/namespaces";

/// Annotation of an operator's Lease: the installation of its last holder, as `<namespace>/<name>`; empty if
/// it was given none. Written and read as [`NAMESPACES_ANNOTATION`] is.
pub const INSTALLATION_ANNOTATION: &str = "freehold.dev/installation";

/// Annotation of an operator's Lease: the cluster id of its last holder. Written and read as
/// [`NAMESPACES_ANNOTATION`] is.
pub const CLUSTER_ID_ANNOTATION: &str = "freehold.dev/cluster-id";

// ---- Tags of EC2's resources ----

/// Tag: the cluster: the UID of the namespace `kube-system` unless configured. On every instance, volume and
/// snapshot of ours, from its creation or adoption until its release; what the inventory sync lists by.
pub const CLUSTER_ID_TAG: &str = "freehold.dev/cluster-id";

/// Tag: the UID of the `Node` that an instance and its root disk belong to. Written with the launch, or on an
/// instance alone with its adoption.
pub const NODE_UID_TAG: &str = "freehold.dev/node-uid";

/// Tag: the UID of the `Volume` that an EBS volume, or a snapshot of it, belongs to. Written with the
/// creation, and anew on a volume that another `Volume` adopts.
pub const VOLUME_UID_TAG: &str = "freehold.dev/volume-uid";

/// Tag: the UID of the `Backup` that a snapshot belongs to. Written with the creation.
pub const BACKUP_UID_TAG: &str = "freehold.dev/backup-uid";

/// Tag: what a snapshot was taken for: [`PURPOSE_FINAL`] or [`PURPOSE_BACKUP`]. Written with its creation.
pub const PURPOSE_TAG: &str = "freehold.dev/purpose";

/// The value of [`PURPOSE_TAG`] on the snapshot of a `Backup`.
pub const PURPOSE_BACKUP: &str = "backup";

/// Tag of a snapshot of ours: the engine that wrote the data, as `spec.engine.type` has it. Written with
/// the creation, as are the five that follow.
pub const ENGINE_TAG: &str = "freehold.dev/engine";

/// Tag of a snapshot of ours: the engine's version, or the image of a custom engine.
pub const ENGINE_VERSION_TAG: &str = "freehold.dev/engine-version";

/// Tag of a snapshot of ours: the file system of the volume, as `spec.storage.fileSystem` has it.
pub const FILE_SYSTEM_TAG: &str = "freehold.dev/file-system";

/// Tag of the snapshot of an adopted database: the directory of the data, relative to the root of the volume;
/// `.` for the root itself, `unknown` where it is not known. Without it the data is where a Database of that
/// engine has it.
pub const DATA_DIRECTORY_TAG: &str = "freehold.dev/data-directory";

/// Tag of the snapshot of a database that archives its write-ahead log: the destination, below which the
/// volume has a folder by its id.
pub const WAL_ARCHIVE_TAG: &str = "freehold.dev/wal-archive";

/// Tag of a snapshot of ours: the UID of the namespace of its Database. A namespace that was created anew
/// under the name has another.
pub const NAMESPACE_UID_TAG: &str = "freehold.dev/namespace-uid";

/// Tag of a snapshot of ours: what it is a snapshot of (`EngineCheckpoint`, `CrashConsistent`), or
/// [`UNVERIFIED`] until it is certain that the engine held its checkpoint.
pub const CONSISTENCY_TAG: &str = "freehold.dev/consistency";

/// The value of [`CONSISTENCY_TAG`] on a snapshot that began with a checkpoint of which it is not certain yet
/// that the engine still held it. Such a snapshot is never restored.
pub const UNVERIFIED: &str = "Unverified";

/// The value of [`PURPOSE_TAG`] on the snapshot that is taken before a volume is deleted.
pub const PURPOSE_FINAL: &str = "final";

/// Tag: the Database, as `<namespace>/<name>`, for people; nothing is ever looked up by it. The storage of a
/// namespace is counted by it, and a snapshot is restored only in its namespace. Written as
/// [`VOLUME_UID_TAG`] is.
pub const DATABASE_TAG: &str = "freehold.dev/database";

/// Tag: the attempt that created the resource, a decimal number from 1. Written with the creation.
pub const ATTEMPT_TAG: &str = "freehold.dev/attempt";

/// Tag: the Database that may adopt an instance or an EBS volume that Freehold has not created, as
/// `<cluster id>/<namespace>/<name>`. Written by the person who adopts, who may tag in EC2; read by the
/// operator. With the id in the Database's spec it is the second proof that the resource is that Database's.
pub const ADOPT_TAG: &str = "freehold.dev/adopt";

/// Tag: what the AWS console shows as the resource's name: that of the `Node`, `Volume` or `Backup`; nothing
/// is ever looked up by it.
pub const NAME_TAG: &str = "Name";

/// Prefix of the tag keys by which Kubernetes' cloud programs know a cluster's resources
/// (`kubernetes.io/cluster/<name>`). A NodeClass may set them; on instances and volumes.
pub const KUBERNETES_PREFIX: &str = "kubernetes.io/";

/// Prefixes of tag keys that a NodeClass cannot set: ours, and those that EC2 refuses (compared without
/// regard to case, as EC2 does).
pub const RESERVED_TAG_PREFIXES: [&str; 2] = ["freehold.dev/", "aws:"];

// ---- Names that are no keys, and that other programs read ----

/// How the comment of a user's role in a PostgreSQL begins; the UID of its DatabaseUser, what the user may do
/// and which password it has follow.
pub const USER_COMMENT: &str = "freehold.dev/DatabaseUser";

/// How the comment of a role that holds rights on a database in a PostgreSQL begins; their version follows.
pub const GROUP_COMMENT: &str = "freehold.dev/group";

/// The finalizer that the controllers put on their own Databases, Nodes and Volumes, the Node's on the core
/// Node of its instance, and the Volume's on the claim of an adopted database, from its adoption to its
/// release or deletion.
pub const FINALIZER: &str = "freehold.dev/finalizer";

/// Kubernetes' own finalizer of an object that is being deleted with the propagation policy Orphan, until no
/// object names it as its owner any more.
pub const ORPHAN_FINALIZER: &str = "orphan";

/// The field manager of what the Database's controller writes.
pub const DATABASE_FIELD_MANAGER: &str = "freehold-database";

/// The name of the EBS CSI driver, which attaches, mounts and grows what Freehold creates. In a
/// PersistentVolume's `csi.driver`, in the CSINode of each machine, and in VolumeAttachments.
pub const EBS_CSI_DRIVER: &str = "ebs.csi.aws.com";
