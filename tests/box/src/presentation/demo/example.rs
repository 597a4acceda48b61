//! The Database of the demo: the example, for the engine and the machines that were asked for.

use freehold::api::Database;
use serde_json::json;

use super::common::Failure;
use crate::account::node_kind::NodeKind;
use crate::machines::images;
use crate::writer::Dialect;

/// The example's name.
pub const DATABASE: &str = "orders";

/// The Database: the example, for the engine that was asked for, and with commits that are on the disk before
/// they are answered; and how it differs from the example.
pub async fn database(engine: Dialect, nodes: NodeKind) -> Result<(Database, String), Failure> {
    let mut database: serde_json::Value =
        serde_norway::from_str(include_str!("../../../../../examples/database.yaml"))?;
    let spec = database.get_mut("spec").ok_or("the example has no spec")?;
    let change = match (engine, nodes) {
        (Dialect::Postgresql, _) => {
            // The release that the box has an image of.
            let version = images::postgresql_version().await?;
            spec["engine"] = json!({"type": "postgresql", "version": version});
            format!("   (with spec.engine: {{type: postgresql, version: {version}}})")
        }
        (Dialect::Questdb, NodeKind::Real) => {
            spec["config"] = json!({"cairo.commit.mode": "sync"});
            "   (with spec.config: {cairo.commit.mode: sync})".to_owned()
        }
        (Dialect::Questdb, NodeKind::Virtual) => String::new(),
    };
    Ok((serde_json::from_value(database)?, change))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn quest_db_commits_to_the_disk_where_rows_are_counted() {
        let (real, _) = database(Dialect::Questdb, NodeKind::Real).await.unwrap();
        assert_eq!(real.metadata.name.as_deref(), Some(DATABASE));
        assert_eq!(real.spec.config["cairo.commit.mode"].0, "sync");
        let (in_name, _) = database(Dialect::Questdb, NodeKind::Virtual).await.unwrap();
        assert!(in_name.spec.config.is_empty());
    }
}
