//! `freehold backups`: finds every backup, and every final snapshot, again by its tags in EC2, also on a
//! cluster that knows nothing of it, and prints the Database that restores each. Only reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde::Serialize;
use serde_json::json;

use crate::api::Database;
use crate::api::keys::{
    CLUSTER_ID_TAG, CONSISTENCY_TAG, DATA_DIRECTORY_TAG, DATABASE_TAG, ENGINE_TAG, ENGINE_VERSION_TAG,
    FILE_SYSTEM_TAG, NAME_TAG, NAMESPACE_UID_TAG, UNVERIFIED,
};
use crate::cloud::identity::Kind;
use crate::cloud::{Cloud, CloudError, Snapshot, SnapshotState, identity};
use crate::command::text::columns;
use crate::controller::layout;

/// The options of `freehold backups`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Of this namespace. Default: that of the current context.
    #[arg(short, long)]
    namespace: Option<String>,

    /// Of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,

    /// Lists what the tags in EC2 say, whether there are Backups in the cluster or not (`kubectl get backups`
    /// lists those). AWS' credentials and the Region come from the default chain.
    #[arg(long, required = true)]
    from_ec2: bool,

    /// Identifies the cluster that took the backups in tags, as its operator's --cluster-id did. Default: the
    /// UID of the namespace kube-system of this cluster.
    #[arg(long, value_name = "ID")]
    cluster_id: Option<String>,

    /// How the list is printed.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// How the list is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A line for each backup.
    Table,
    /// For each backup that can be restored the Database that restores it.
    Yaml,
    /// Everything that the tags say.
    Json,
}

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum BackupsError {
    /// The API server.
    #[error("the API server refused or did not answer: this reads namespaces")]
    Kubernetes(#[from] kube::Error),
    /// EC2.
    #[error("EC2 refused or did not answer: check the AWS credentials and the Region")]
    Cloud(#[from] CloudError),
    /// JSON.
    #[error("failed to write the list as JSON")]
    Json(#[from] serde_json::Error),
    /// YAML.
    #[error("failed to write the list as YAML")]
    Yaml(#[from] serde_norway::Error),
}

/// A backup as the tags of its snapshot have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    namespace: String,
    database: String,
    /// The name of the Backup, or of the Volume that it is the final snapshot of.
    backup: String,
    /// It was taken before the volume was deleted.
    is_final: bool,
    #[serde(rename = "snapshotID")]
    snapshot_id: String,
    taken_at: Option<String>,
    size: Option<i32>,
    engine: String,
    engine_version: Option<String>,
    file_system: String,
    consistency: String,
    state: &'static str,
    /// Why it cannot be restored.
    hindrance: Option<&'static str>,
    /// The tags that the snapshot needs before this cluster restores it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags_needed: Vec<String>,
}

/// The list, as it is printed.
pub async fn run(options: &Options, client: &Client, cloud: &dyn Cloud) -> Result<String, BackupsError> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let own = namespaces.get("kube-system").await?.uid().unwrap_or_default();
    let cluster_id = options.cluster_id.clone().unwrap_or_else(|| own.clone());
    let snapshots = cloud.describe_snapshots(&identity::cluster_tags(&cluster_id)).await?;
    let namespace = options.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
    let namespace = (!options.all_namespaces).then_some(namespace);
    let mut found = Vec::new();
    for snapshot in &snapshots {
        let Some(mut one) = read(snapshot) else { continue };
        if namespace.as_ref().is_some_and(|namespace| one.namespace != *namespace) {
            continue;
        }
        let of_now = namespaces.get_opt(&one.namespace).await?.and_then(|namespace| namespace.uid());
        one.tags_needed = tags_needed(snapshot, &own, of_now.as_deref());
        found.push(one);
    }
    found.sort_by(|one, other| {
        let place = |it: &Found| (it.namespace.clone(), it.database.clone());
        place(one).cmp(&place(other)).then_with(|| other.taken_at.cmp(&one.taken_at))
    });
    Ok(match options.output {
        Output::Json => format!("{}\n", serde_json::to_string_pretty(&found)?),
        Output::Yaml => manifests(&found)?,
        Output::Table => table(&found, namespace.as_deref()),
    })
}

/// What the tags say; `None` for a snapshot that names no Database, or that was taken for something else.
fn read(snapshot: &Snapshot) -> Option<Found> {
    let tag = |key: &str| snapshot.tags.get(key).cloned();
    let is_of = |kind| identity::owner_uid(kind, &snapshot.tags).is_some();
    let is_final = is_of(Kind::Snapshot);
    if !is_final && !is_of(Kind::Backup) {
        return None;
    }
    let of = tag(DATABASE_TAG)?;
    let (namespace, database) = of.split_once('/')?;
    let consistency = tag(CONSISTENCY_TAG).unwrap_or_else(|| UNVERIFIED.to_owned());
    let hindrance = match snapshot.state {
        SnapshotState::Pending => Some("it is not complete yet"),
        SnapshotState::Error => Some("EC2 could not complete it"),
        SnapshotState::Completed if !snapshot.tags.contains_key(ENGINE_TAG) => {
            Some("its tags do not say which engine wrote the data")
        }
        SnapshotState::Completed if consistency == UNVERIFIED => {
            Some("it may have begun without its engine's checkpoint")
        }
        SnapshotState::Completed if is_elsewhere(&snapshot.tags) => {
            Some("it is one of an adopted database, which has its data elsewhere on the volume")
        }
        SnapshotState::Completed => None,
    };
    Some(Found {
        namespace: namespace.to_owned(),
        database: database.to_owned(),
        backup: tag(NAME_TAG).unwrap_or_default(),
        is_final,
        snapshot_id: snapshot.id.0.clone(),
        taken_at: snapshot.started_at.map(|at| at.to_string()),
        size: snapshot.size,
        engine: tag(ENGINE_TAG).unwrap_or_default(),
        engine_version: tag(ENGINE_VERSION_TAG),
        file_system: tag(FILE_SYSTEM_TAG).unwrap_or_else(|| "xfs".to_owned()),
        consistency,
        state: match snapshot.state {
            SnapshotState::Pending => "pending",
            SnapshotState::Completed => "completed",
            SnapshotState::Error => "error",
        },
        hindrance,
        tags_needed: Vec::new(),
    })
}

/// Whether a new Database would look for the data where it is not.
fn is_elsewhere(tags: &BTreeMap<String, String>) -> bool {
    let engine = json!({"type": tags.get(ENGINE_TAG), "version": tags.get(ENGINE_VERSION_TAG)});
    let wanted = serde_json::from_value(engine).ok().and_then(|engine| layout::wanted(&engine));
    tags.get(DATA_DIRECTORY_TAG).is_some_and(|has| wanted.as_ref() != Some(has))
}

/// What another cluster, or a namespace that was created anew, has to be given.
fn tags_needed(snapshot: &Snapshot, cluster_id: &str, namespace_uid: Option<&str>) -> Vec<String> {
    let has = |key: &str| snapshot.tags.get(key).map(String::as_str);
    let mut needed = Vec::new();
    if has(CLUSTER_ID_TAG) != Some(cluster_id) {
        needed.push(format!("Key={CLUSTER_ID_TAG},Value={cluster_id}"));
    }
    if let Some(uid) = namespace_uid.filter(|uid| has(NAMESPACE_UID_TAG).is_some_and(|has| has != *uid)) {
        needed.push(format!("Key={NAMESPACE_UID_TAG},Value={uid}"));
    }
    needed
}

impl Found {
    /// The command that gives the snapshot to this cluster and namespace.
    fn command(&self) -> Option<String> {
        let tags = self.tags_needed.join(" ");
        (!tags.is_empty())
            .then(|| format!("aws ec2 create-tags --resources {} --tags {tags}", self.snapshot_id))
    }
}

/// A Database for each that can be restored.
fn manifests(found: &[Found]) -> Result<String, BackupsError> {
    let mut text = String::new();
    for one in found {
        let taken_at = one.taken_at.as_deref().unwrap_or("an unknown time");
        let what = if one.is_final { "Final snapshot of Volume" } else { "Backup" };
        let _ = writeln!(text, "---\n# {what} {} of {taken_at}, {}", one.backup, one.consistency);
        if let Some(hindrance) = one.hindrance {
            let _ = writeln!(text, "# Snapshot {} cannot be restored: {hindrance}.", one.snapshot_id);
            continue;
        }
        if let Some(command) = one.command() {
            let _ = writeln!(text, "# First: {command}");
        }
        let version = one.engine_version.as_deref().unwrap_or_default();
        let engine = match one.engine.as_str() {
            // Only the image is known.
            "custom" => json!({"type": "custom", "custom": {"image": version}}),
            engine => json!({"type": engine, "version": version}),
        };
        text.push_str(&serde_norway::to_string(&json!({
            "apiVersion": Database::api_version(&()),
            "kind": Database::kind(&()),
            "metadata": {"namespace": one.namespace, "name": one.database},
            "spec": {
                "engine": engine,
                "storage": {
                    "size": format!("{}Gi", one.size.unwrap_or_default()),
                    "fileSystem": one.file_system,
                },
                "restore": {"snapshotID": one.snapshot_id},
            },
        }))?);
    }
    Ok(text)
}

fn table(found: &[Found], namespace: Option<&str>) -> String {
    if found.is_empty() {
        return match namespace {
            Some(namespace) => {
                format!("EC2 has no backup of namespace {namespace} (-A lists all namespaces)\n")
            }
            None => "EC2 has no backup of this cluster (--cluster-id names another)\n".to_owned(),
        };
    }
    let head = [
        "NAMESPACE",
        "DATABASE",
        "BACKUP",
        "SNAPSHOT",
        "TAKEN AT",
        "SIZE",
        "ENGINE",
        "CONSISTENCY",
        "HINDRANCE",
    ];
    let dash = || "-".to_owned();
    let rows = found.iter().map(|one| {
        let version = one.engine_version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        [
            one.namespace.clone(),
            one.database.clone(),
            if one.is_final { format!("{} (final)", one.backup) } else { one.backup.clone() },
            one.snapshot_id.clone(),
            one.taken_at.clone().unwrap_or_else(dash),
            one.size.map_or_else(dash, |size| format!("{size}Gi")),
            format!("{}{version}", one.engine),
            one.consistency.clone(),
            one.hindrance.map_or_else(dash, str::to_owned),
        ]
    });
    let mut text = columns(&[head.map(str::to_owned)].into_iter().chain(rows).collect::<Vec<_>>());
    let commands: Vec<String> = found.iter().filter_map(Found::command).collect();
    if !commands.is_empty() {
        text.push_str("\nTo give snapshots to this cluster and its namespaces, who may tag in EC2 runs:\n\n");
        for command in commands {
            let _ = writeln!(text, "  {command}");
        }
    }
    text.push_str(
        "\nTo restore one, create a Database in its namespace with spec.restore.snapshotID; -o yaml prints it.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::api::keys::{BACKUP_UID_TAG, PURPOSE_BACKUP, PURPOSE_FINAL, PURPOSE_TAG, VOLUME_UID_TAG};
    use crate::api::{SnapshotId, VolumeId};

    fn snapshot(state: SnapshotState, consistency: &str) -> Snapshot {
        let tags = [
            (NAME_TAG, "nightly"),
            (PURPOSE_TAG, PURPOSE_BACKUP),
            (BACKUP_UID_TAG, "backup-uid"),
            (CLUSTER_ID_TAG, "former"),
            (NAMESPACE_UID_TAG, "former-uid"),
            (DATABASE_TAG, "team-a/orders"),
            (CONSISTENCY_TAG, consistency),
            (ENGINE_TAG, "questdb"),
            (ENGINE_VERSION_TAG, "9.3.4"),
            (FILE_SYSTEM_TAG, "xfs"),
        ];
        Snapshot {
            id: SnapshotId("snap-1".to_owned()),
            volume: VolumeId("vol-1".to_owned()),
            size: Some(100),
            state,
            started_at: Some("2026-11-25T19:34:16Z".parse().unwrap()),
            tags: tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        }
    }

    fn found(state: SnapshotState, consistency: &str) -> Found {
        let snapshot = snapshot(state, consistency);
        let tags_needed = tags_needed(&snapshot, "this", Some("uid"));
        Found { tags_needed, ..read(&snapshot).unwrap() }
    }

    #[test]
    fn the_manifest_of_a_backup_is_a_database_that_restores_it() {
        let text = manifests(&[found(SnapshotState::Completed, "EngineCheckpoint")]).unwrap();
        let expected = "# First: aws ec2 create-tags --resources snap-1 --tags \
            Key=freehold.dev/cluster-id,Value=this Key=freehold.dev/namespace-uid,Value=uid";
        assert!(text.contains(expected), "{text}");
        let database: Database = serde_norway::from_str(text.trim_start_matches("---\n")).unwrap();
        assert_eq!(database.metadata.namespace.as_deref(), Some("team-a"));
        let restore = database.spec.restore.unwrap();
        assert_eq!(restore.snapshot_id, Some(SnapshotId("snap-1".to_owned())));
        assert_eq!(database.spec.storage.size.gib(), Some(100));
        assert_eq!(database.spec.engine.version.as_deref(), Some("9.3.4"));
    }

    #[test]
    fn what_cannot_be_restored_is_listed_and_has_no_manifest() {
        for (state, consistency) in [
            (SnapshotState::Pending, "EngineCheckpoint"),
            (SnapshotState::Error, "EngineCheckpoint"),
            (SnapshotState::Completed, "Unverified"),
        ] {
            let one = found(state, consistency);
            let text = manifests(std::slice::from_ref(&one)).unwrap();
            assert!(one.hindrance.is_some() && !text.contains("kind: Database"), "{text}");
            assert!(table(&[one], None).contains("snap-1"));
        }
        assert!(
            read(&Snapshot { tags: BTreeMap::new(), ..snapshot(SnapshotState::Completed, "") }).is_none()
        );
    }

    #[test]
    fn data_that_no_new_database_finds_has_no_manifest() {
        for (engine, version, directory, is_found) in [
            ("questdb", "9.3.4", ".", true),
            ("questdb", "9.3.4", "questdb", false),
            ("postgresql", "17.6", "17/data", true),
            ("postgresql", "17.6", ".", false),
            ("custom", "a:1", ".", true),
            ("custom", "a:1", "unknown", false),
        ] {
            let mut of_adopted = snapshot(SnapshotState::Completed, "CrashConsistent");
            let tags = [(ENGINE_TAG, engine), (ENGINE_VERSION_TAG, version), (DATA_DIRECTORY_TAG, directory)];
            of_adopted.tags.extend(tags.map(|(key, value)| (key.to_owned(), value.to_owned())));
            let hindrance = read(&of_adopted).unwrap().hindrance;
            assert_eq!(hindrance.is_none(), is_found, "{engine} {directory}: {hindrance:?}");
        }
    }

    #[test]
    fn a_final_snapshot_is_a_backup_too_if_its_tags_say_what_is_in_it() {
        let mut last = snapshot(SnapshotState::Completed, "CrashConsistent");
        last.tags.remove(BACKUP_UID_TAG);
        assert_eq!(read(&last), None, "whose it is, is not known");
        last.tags.insert(PURPOSE_TAG.to_owned(), PURPOSE_FINAL.to_owned());
        last.tags.insert(VOLUME_UID_TAG.to_owned(), "volume-uid".to_owned());
        let text = manifests(&[read(&last).unwrap()]).unwrap();
        assert!(text.contains("Final snapshot of Volume nightly") && text.contains("snap-1"), "{text}");
        assert!(table(&[read(&last).unwrap()], None).contains("nightly (final)"));
        last.tags.remove(ENGINE_TAG);
        let hindrance = read(&last).unwrap().hindrance.unwrap();
        assert!(hindrance.contains("which engine"), "{hindrance}");
    }

    #[test]
    fn the_own_cluster_and_namespace_need_no_further_tag() {
        let snapshot = snapshot(SnapshotState::Completed, "CrashConsistent");
        assert_eq!(tags_needed(&snapshot, "former", Some("former-uid")), Vec::<String>::new());
        assert_eq!(
            tags_needed(&snapshot, "former", None),
            Vec::<String>::new(),
            "there is no such namespace"
        );
        assert!(table(&[], Some("team-a")).contains("no backup of namespace team-a"));
    }
}
