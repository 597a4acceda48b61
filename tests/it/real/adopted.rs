//! A database that is deleted, and taken over again with its rows.

use freehold::api::Database;
use freehold_box::writer::Dialect;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::objects::{self, Told as _};
use crate::kit::real::{LIMIT, on_real_machines};
use crate::kit::wait::{seen, within};

#[test]
fn a_database_that_was_deleted_is_taken_over_with_every_row_and_the_password_of_its_data() {
    on_real_machines("adopted", |mut env| async move {
        env.env.start_operator();
        let spec = env.postgresql();
        let writer = env.written(&spec, Dialect::Postgresql).await;
        let disk = env.data_volumes().remove(0).id;
        env.env.delete("orders").await;
        env.is_gone("orders").await;
        let records = Api::<PersistentVolume>::all(env.client.clone());
        let record = within(LIMIT, "the record of what was kept", || async {
            let kept = records
                .list(&ListParams::default().labels("freehold.dev/retained=true"))
                .await
                .map_err(|error| error.to_string())?;
            let released = kept.items.iter().find(|record| {
                let phase = record.status.as_ref().and_then(|status| status.phase.as_deref());
                phase == Some("Released")
            });
            seen(released.map(kube::ResourceExt::name_any), || format!("{:?}", kept.items))
        })
        .await;

        let mut again = spec.clone();
        objects::merge(&mut again, &json!({"storage": {"adoptRetained": record, "size": "3Gi"}}));
        env.create("orders", &again).await;
        env.serves("orders").await;
        // The same writer goes on: it reads the Secret anew, and PostgreSQL knows the password from its data.
        writer.is_served(LIMIT).await.unwrap();
        writer.verify(LIMIT).await.unwrap().check().unwrap();
        writer.stop().await;
        let disks = env.data_volumes();
        assert_eq!(
            disks.iter().map(|volume| (volume.id.as_str(), volume.shape.size)).collect::<Vec<_>>(),
            [(disk.as_str(), 3)]
        );
        let database = env.api::<Database>().get("orders").await.unwrap();
        assert_eq!(database.condition("Ready").0, "True");
        within(LIMIT, "the former record being gone", || async {
            let left = records.get_opt(&record).await.map_err(|error| error.to_string())?;
            seen(left.is_none().then_some(()), || format!("{:?}", left.map(|left| left.name_any())))
        })
        .await;
        env
    });
}
