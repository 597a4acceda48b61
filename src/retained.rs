//! `freehold retained`: lists the retained volumes of deleted databases, from their records, or from EC2's
//! tags where these were lost, and writes records anew.

mod by_tags;
mod error;
mod unrecorded;

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{Api, ListParams};
use kube::{Client, Config};

use self::by_tags::{ByTags, FinalSnapshot};
use self::unrecorded::{Choices, Unrecorded};
use crate::api::VolumeId;
use crate::api::database::FileSystem;
use crate::api::keys::RETAINED_LABEL;
use crate::clock::Clock;
use crate::cloud::Cloud;
use crate::command::text::columns;
use crate::controller::retention::{Retained, read};
pub use error::RetainedError;

/// The options of `freehold retained`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Of this namespace. Default: that of the current context.
    #[arg(short, long)]
    namespace: Option<String>,

    /// Of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,

    /// How the list is printed.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,

    #[command(flatten)]
    tags: Tags,
}

/// The options of a list from EC2's tags.
#[derive(Args, Clone, Debug)]
struct Tags {
    /// Lists what the tags in EC2 say instead: the retained volumes that have no retention record, and the
    /// final snapshots of deletionPolicy Snapshot. AWS' credentials and the Region come from the default
    /// chain.
    #[arg(long)]
    from_ec2: bool,

    /// Identifies the cluster in tags, as the operator's --cluster-id does. Default: the UID of the namespace
    /// kube-system.
    #[arg(long, value_name = "ID", requires = "from_ec2")]
    cluster_id: Option<String>,

    /// Writes the retention record of this EBS volume, so that a Database can adopt it; may be repeated.
    #[arg(long, value_name = "EBS VOLUME", requires_all = ["from_ec2", "engine"])]
    write: Vec<String>,

    /// The engine that wrote the data, which no tag names.
    #[arg(long, value_parser = ["questdb", "postgresql", "custom"], requires = "write")]
    engine: Option<String>,

    /// Its version, such as 17.6.
    #[arg(long, value_name = "VERSION", requires = "write")]
    engine_version: Option<String>,

    /// The file system that the volume was formatted with: the Database's spec.storage.fileSystem. Another
    /// one is not mounted, and never formatted.
    #[arg(long, value_parser = ["xfs", "ext4"], default_value = "xfs")]
    file_system: String,
}

impl Options {
    /// Whether EC2 is read.
    pub fn is_from_ec2(&self) -> bool {
        self.tags.from_ec2
    }
}

/// How the list is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A line for each volume.
    Table,
    /// Everything that the records contain.
    Json,
}

/// The list, as it is printed.
pub async fn run(options: &Options) -> Result<String, RetainedError> {
    let config = Config::infer().await.map_err(RetainedError::Configuration)?;
    let (address, own) = (config.cluster_url.to_string(), config.default_namespace.clone());
    let client = Client::try_from(config)
        .map_err(|source| RetainedError::Client { address: address.clone(), source })?;
    let selector = ListParams::default().labels(&format!("{RETAINED_LABEL}=true"));
    let records = Api::<PersistentVolume>::all(client).list(&selector).await.map_err(|source| {
        let is_forbidden = matches!(&source, kube::Error::Api(status) if matches!(status.code, 401 | 403));
        if is_forbidden { RetainedError::Forbidden(source) } else { RetainedError::List { address, source } }
    })?;
    let namespace = (!options.all_namespaces).then(|| options.namespace.clone().unwrap_or(own));
    let mut kept: Vec<Retained> = records.items.iter().filter_map(read).collect();
    kept.retain(|kept| namespace.as_ref().is_none_or(|namespace| kept.namespace == *namespace));
    kept.sort_by(|one, other| {
        (&one.namespace, &one.database, &one.retained_at).cmp(&(
            &other.namespace,
            &other.database,
            &other.retained_at,
        ))
    });
    Ok(match options.output {
        Output::Json => format!("{}\n", serde_json::to_string_pretty(&kept)?),
        Output::Table => table(&kept, namespace.as_deref()),
    })
}

/// The list from EC2's tags, as it is printed; with `--write`, after the records were written.
pub async fn run_from_ec2(
    options: &Options,
    client: &Client,
    cloud: &dyn Cloud,
    clock: &dyn Clock,
) -> Result<String, RetainedError> {
    let own = client.default_namespace().to_owned();
    let namespace = (!options.all_namespaces).then(|| options.namespace.clone().unwrap_or(own));
    let Tags { cluster_id, write, engine, engine_version, file_system, from_ec2: _ } = &options.tags;
    let found = by_tags::find(client, cloud, cluster_id.as_deref(), namespace.as_deref()).await?;
    if write.is_empty() {
        return Ok(match options.output {
            Output::Json => format!("{}\n", serde_json::to_string_pretty(&found)?),
            Output::Table => tagged(&found, namespace.as_deref()),
        });
    }
    let choices = Choices {
        engine: engine.clone().unwrap_or_default(),
        engine_version: engine_version.clone(),
        file_system: if file_system == "ext4" { FileSystem::Ext4 } else { FileSystem::Xfs },
    };
    let ids: Vec<VolumeId> = write.iter().cloned().map(VolumeId).collect();
    let written = by_tags::write(client, &found, &ids, &choices, clock.now()).await?;
    Ok(match options.output {
        Output::Json => format!("{}\n", serde_json::to_string_pretty(&written)?),
        Output::Table => written.iter().fold(String::new(), |mut text, record| {
            let _ =
                writeln!(text, "PersistentVolume {record} is a retention record; {HOW_TO_ADOPT}: {record}");
            text
        }),
    })
}

/// The line that restores what a record names.
const HOW_TO_ADOPT: &str = "create a Database in its namespace with spec.storage.adoptRetained";

/// What each column is called.
const COLUMNS: [&str; 11] = [
    "NAMESPACE",
    "DATABASE",
    "ENGINE",
    "VOLUME",
    "SIZE",
    "ZONE",
    "RETAINED AT",
    "PERSISTENT VOLUME",
    "SECRET",
    "STATE",
    "WHY",
];

fn table(kept: &[Retained], namespace: Option<&str>) -> String {
    if kept.is_empty() {
        return match namespace {
            Some(namespace) => {
                format!("namespace {namespace} has no retained volume (-A lists all namespaces)\n")
            }
            None => "this cluster has no retained volume\n".to_owned(),
        };
    }
    let mut text = aligned(COLUMNS, kept.iter().map(row));
    let _ = writeln!(text, "\nTo restore one, {HOW_TO_ADOPT}: <PERSISTENT VOLUME>.");
    text
}

/// The same of what EC2's tags say.
fn tagged(found: &ByTags, namespace: Option<&str>) -> String {
    let within = namespace.map_or_else(|| "this cluster".to_owned(), |it| format!("namespace {it}"));
    let mut text = String::new();
    if found.volumes.is_empty() {
        let _ = writeln!(text, "{within} has no retained volume without a retention record");
    } else {
        let columns = ["NAMESPACE", "DATABASE", "EBS VOLUME", "SIZE", "ZONE", "VOLUME", "HINDRANCE"];
        text.push_str(&aligned(columns, found.volumes.iter().map(unrecorded_row)));
        text.push_str(
            "\nTo write the record of one: freehold retained --from-ec2 --write <EBS VOLUME> --engine <ENGINE> \
            --engine-version <VERSION>, with --namespace <NAMESPACE>.\n",
        );
    }
    if !found.snapshots.is_empty() {
        let columns = ["NAMESPACE", "DATABASE", "FINAL SNAPSHOT", "OF EBS VOLUME", "STARTED AT", "STATE"];
        let _ = write!(text, "\n{}", aligned(columns, found.snapshots.iter().map(snapshot_row)));
    }
    text
}

fn unrecorded_row(found: &Unrecorded) -> [String; 7] {
    [
        found.namespace.clone(),
        found.database.clone(),
        found.volume_id.0.clone(),
        found.size.0.clone(),
        found.zone.clone(),
        found.volume.clone(),
        found.hindrance.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}

fn snapshot_row(found: &FinalSnapshot) -> [String; 6] {
    [
        found.namespace.clone(),
        found.database.clone(),
        found.snapshot_id.0.clone(),
        found.volume_id.0.clone(),
        found.started_at.clone().unwrap_or_else(|| "-".to_owned()),
        found.state.to_owned(),
    ]
}

/// A head and rows in aligned columns.
fn aligned<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    columns(&[head.map(str::to_owned)].into_iter().chain(rows).collect::<Vec<_>>())
}

fn row(kept: &Retained) -> [String; 11] {
    let known = |value: Option<&String>| value.cloned().unwrap_or_else(|| "-".to_owned());
    let version = kept.engine_version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let volume_type = kept.volume_type.as_ref().map(|it| format!(" {it}")).unwrap_or_default();
    let state = match (&kept.adopted_by, kept.is_released) {
        (Some(holder), _) => format!("being adopted by {}", holder.name),
        (None, true) => "retained".to_owned(),
        (None, false) => "not Released".to_owned(),
    };
    [
        kept.namespace.clone(),
        kept.database.clone(),
        format!("{}{version}", known(kept.engine.as_ref())),
        kept.volume_id.0.clone(),
        format!("{}{volume_type}", known(kept.size.as_ref().map(|size| &size.0))),
        known(kept.zone.as_ref()),
        known(kept.retained_at.as_ref()),
        kept.persistent_volume.clone(),
        known(kept.credentials_secret.as_ref()),
        state,
        known(kept.because.as_ref()),
    ]
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::api::{Size, VolumeId};

    fn kept() -> Retained {
        Retained {
            persistent_volume: "freehold-1".to_owned(),
            namespace: "team-a".to_owned(),
            namespace_uid: None,
            database: "orders".to_owned(),
            database_uid: Some("2".to_owned()),
            volume: Some("orders-k3f9q".to_owned()),
            volume_uid: "1".to_owned(),
            volume_id: VolumeId("vol-1".to_owned()),
            size: Some(Size("100Gi".to_owned())),
            volume_type: Some("io2".to_owned()),
            zone: Some("us-east-1b".to_owned()),
            file_system: Some("xfs".to_owned()),
            engine: Some("questdb".to_owned()),
            engine_version: Some("9.3.4".to_owned()),
            data_path: None,
            user_id: None,
            retained_at: Some("2026-11-22T01:00:00Z".to_owned()),
            because: Some("the Database was deleted".to_owned()),
            credentials_secret: Some("orders-k3f9q-admin".to_owned()),
            adopted_by: None,
            is_released: true,
        }
    }

    #[test]
    fn the_table_has_a_line_for_each_and_says_how_to_have_it_again() {
        let bare = Retained {
            engine: None,
            engine_version: None,
            volume_type: None,
            zone: None,
            because: None,
            is_released: false,
            ..kept()
        };
        let text = table(&[kept(), bare], None);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("NAMESPACE  DATABASE  ENGINE"), "{text}");
        let first = "team-a     orders    questdb 9.3.4  vol-1   100Gi io2  us-east-1b  2026-11-22T01:00:00Z  \
                freehold-1         orders-k3f9q-admin";
        assert!(lines[1].starts_with(first) && lines[1].ends_with("the Database was deleted"), "{text}");
        assert!(lines[2].contains("not Released") && lines[2].ends_with('-'), "{text}");
        assert!(text.contains("spec.storage.adoptRetained"));
    }

    #[test]
    fn nothing_kept_is_a_sentence() {
        assert_eq!(
            table(&[], Some("team-a")),
            "namespace team-a has no retained volume (-A lists all namespaces)\n"
        );
        assert_eq!(table(&[], None), "this cluster has no retained volume\n");
    }
}
