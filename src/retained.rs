//! `freehold retained`: lists the retained volumes of deleted databases, from their records.

use clap::{Args, ValueEnum};
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{Api, ListParams};
use kube::{Client, Config};

use crate::api::keys::RETAINED_LABEL;
use crate::command::text::columns;
use crate::controller::retention::{Retained, read};

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
}

/// How the list is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A line for each volume.
    Table,
    /// Everything that the records contain.
    Json,
}

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum RetainedError {
    /// No cluster is configured.
    #[error("failed to find a cluster: set KUBECONFIG, or run this inside a cluster")]
    Configuration(#[source] kube::config::InferConfigError),
    /// The client could not be created.
    #[error("failed to create a client of the API server at {address}")]
    Client {
        /// Where.
        address: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
    /// The API server refused.
    #[error(
        "the API server does not let you list PersistentVolumes, which have no namespace: request the \
            right to list persistentvolumes"
    )]
    Forbidden(#[source] kube::Error),
    /// The API server did not answer.
    #[error(
        "failed to list PersistentVolumes of the API server at {address}: check that it runs and that \
        KUBECONFIG names it"
    )]
    List {
        /// Where.
        address: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
    /// JSON.
    #[error("failed to write the list as JSON")]
    Json(#[from] serde_json::Error),
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
    let rows: Vec<[String; 11]> =
        [COLUMNS.map(str::to_owned)].into_iter().chain(kept.iter().map(row)).collect();
    let mut text = columns(&rows);
    text.push_str(
        "\nTo restore one, create a Database in its namespace with spec.storage.adoptRetained: \
        <PERSISTENT VOLUME>.\n",
    );
    text
}

fn row(kept: &Retained) -> [String; 11] {
    let known = |value: Option<&String>| value.cloned().unwrap_or_else(|| "-".to_owned());
    let version = kept.engine_version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
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
        kept.size.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
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
            zone: Some("us-east-1b".to_owned()),
            file_system: Some("xfs".to_owned()),
            engine: Some("questdb".to_owned()),
            engine_version: Some("9.3.4".to_owned()),
            data_path: None,
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
            zone: None,
            because: None,
            is_released: false,
            ..kept()
        };
        let text = table(&[kept(), bare], None);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("NAMESPACE  DATABASE  ENGINE"), "{text}");
        let first = "team-a     orders    questdb 9.3.4  vol-1   100Gi  us-east-1b  2026-11-22T01:00:00Z  \
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
