//! What the tenants of one AWS account share: its quotas, and the repairs that may run at once. Counted in
//! launches and in machines, not in seconds. Their rate of launches: tests/it/lives/tenants.rs.

use std::collections::BTreeMap;

use ec2sim::{Effect, Fault, JournalEntry, Limits, Outside};
use freehold::api::{Database, Node};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::env::Env;
use crate::kit::objects::{self, Told as _};
use crate::kit::rig_env::{RigEnv, run};
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

/// A quota that stops everybody would stop them for longer than any test waits.
const QUOTA_FOR_LONG: [&str; 2] = ["--quota-retry-interval", "360000"];

/// A namespace of a test environment whose operator watches all of them.
pub(super) struct Tenant<'a, E> {
    env: &'a E,
    namespace: &'static str,
}

impl<'a, E: Env> Tenant<'a, E> {
    pub(super) async fn new(env: &'a E, namespace: &'static str) -> Self {
        let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        let namespaces = Api::<Namespace>::all(env.client());
        namespaces.create(&PostParams::default(), &object).await.unwrap();
        Self::of(env, namespace)
    }

    /// A namespace that exists.
    pub(super) fn of(env: &'a E, namespace: &'static str) -> Self {
        Self { env, namespace }
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.env.client(), self.namespace)
    }

    pub(super) async fn create(&self, name: &str, changes: &Value) {
        let object = objects::database(self.namespace, self.env.class(), name, changes);
        let object = serde_json::from_value(object).unwrap();
        self.api::<Database>().create(&PostParams::default(), &object).await.unwrap();
    }

    async fn create_several(&self, count: usize) {
        for number in 1..=count {
            self.create(&format!("db-{number}"), &json!({})).await;
        }
    }

    pub(super) async fn database(&self, name: &str) -> Database {
        self.api::<Database>().get(name).await.unwrap()
    }

    async fn nodes(&self) -> Vec<Node> {
        self.api::<Node>().list(&ListParams::default()).await.unwrap().items
    }

    /// Waits until a Database is not Ready for this reason, with this in the message.
    async fn until_says(&self, name: &str, reason: &str, part: &str) -> String {
        within(self.env.limit(), &format!("{}/{name} saying {part}", self.namespace), || async {
            let ready = self.database(name).await.condition("Ready");
            let is_so = ready.0 == "False" && ready.1 == reason && ready.2.contains(part);
            seen(is_so.then(|| ready.2.clone()), || format!("{ready:?}"))
        })
        .await
    }

    pub(super) async fn ready(&self, name: &str) {
        within(self.env.limit(), &format!("{}/{name} being Ready", self.namespace), || async {
            let ready = self.database(name).await.condition("Ready");
            seen((ready.0 == "True").then_some(()), || format!("{ready:?}"))
        })
        .await;
    }

    async fn all_ready(&self, count: usize) {
        for number in 1..=count {
            self.ready(&format!("db-{number}")).await;
        }
    }

    /// The instance that a Database runs on.
    async fn instance(&self, name: &str) -> String {
        let node = self.database(name).await.status.unwrap().node_name.unwrap();
        self.api::<Node>().get(&node).await.unwrap().status.unwrap().instance_id.unwrap().0
    }

    /// Waits until a Database serves on another instance than this one.
    async fn serves_elsewhere(&self, name: &str, old: &str) {
        within(
            self.env.limit(),
            &format!("{}/{name} serving on another machine than {old}", self.namespace),
            || async {
                let database = self.database(name).await;
                let node = database.status.as_ref().and_then(|status| status.node_name.clone());
                let node = match node {
                    Some(node) => {
                        self.api::<Node>().get_opt(&node).await.map_err(|error| error.to_string())?
                    }
                    None => None,
                };
                let instance = node.and_then(|node| node.status?.instance_id);
                let is_new = instance.as_ref().is_some_and(|instance| instance.0 != old);
                seen((is_new && database.condition("Ready").0 == "True").then_some(()), || {
                    format!("{instance:?} {:?}", database.condition("Ready"))
                })
            },
        )
        .await;
    }

    /// The operator's launches for this namespace.
    fn launches(&self) -> Vec<JournalEntry> {
        objects::launches_for(self.namespace, self.env.calls_since(0))
    }
}

#[test]
fn a_quota_that_one_tenant_has_reached_stops_neither_a_repair_nor_a_creation_of_the_others() {
    run(|| async {
        let limits = Limits { vcpus: BTreeMap::from([("P".to_owned(), 0)]), ..Limits::NONE };
        let env = RigEnv::start_with(&QUOTA_FOR_LONG, limits).await;
        let (gpu, broken) = (Tenant::new(&env, "gpu").await, Tenant::new(&env, "broken").await);
        let new = Tenant::new(&env, "new").await;
        broken.create("orders", &json!({})).await;
        broken.ready("orders").await;
        let old = broken.instance("orders").await;

        gpu.create("models", &json!({"instanceTypes": ["p5.48xlarge"]})).await;
        let quota = "On-Demand P instances (p5.48xlarge)";
        gpu.until_says("models", "QuotaExceeded", quota).await;
        // A second tenant of the same quota waits, too, and is not told of whose launch was refused.
        let other = Tenant::new(&env, "other").await;
        other.create("models", &json!({"instanceTypes": ["p5.48xlarge"]})).await;
        let message = other.until_says("models", "QuotaExceeded", quota).await;
        assert!(!message.contains("gpu"), "{message}");
        assert_eq!((gpu.launches().len(), other.launches().len()), (1, 0), "one refusal is enough");

        env.ec2().outside(&Outside::Terminate.to(&old)).unwrap();
        broken.serves_elsewhere("orders", &old).await;
        new.create("orders", &json!({})).await;
        new.ready("orders").await;

        let types = json!({"spec": {"instanceTypes": ["p5.48xlarge", "r7i.large"]}});
        gpu.api::<Database>().patch("models", &PatchParams::default(), &Patch::Merge(types)).await.unwrap();
        gpu.ready("models").await;
        let status = gpu.database("models").await.status.unwrap();
        assert_eq!(status.instance_type.as_deref(), Some("r7i.large"), "the next type of another quota");
        env.close().await;
    });
}

#[test]
fn a_repair_does_not_wait_for_the_quota_that_another_tenants_new_database_waits_for() {
    run(|| async {
        // The account has room for one machine of two vCPUs.
        let limits = Limits { vcpus: BTreeMap::from([("Standard".to_owned(), 2)]), ..Limits::NONE };
        let env = RigEnv::start_with(&QUOTA_FOR_LONG, limits).await;
        let (broken, new) = (Tenant::new(&env, "broken").await, Tenant::new(&env, "new").await);
        broken.create("orders", &json!({})).await;
        broken.ready("orders").await;
        let old = broken.instance("orders").await;
        new.create("orders", &json!({})).await;
        new.until_says("orders", "QuotaExceeded", "On-Demand Standard").await;
        env.ec2().outside(&Outside::Terminate.to(&old)).unwrap();
        broken.serves_elsewhere("orders", &old).await;
        new.until_says("orders", "QuotaExceeded", "On-Demand Standard").await;
        assert_eq!(new.launches().len(), 1, "one refusal is enough");
        env.close().await;
    });
}

#[test]
fn six_machines_of_one_namespace_that_do_not_report_do_not_keep_a_lost_one_in_another_from_its_repair() {
    run(|| async {
        let env = RigEnv::start_of_all().await;
        let (noisy, quiet) = (Tenant::new(&env, "noisy").await, Tenant::new(&env, "quiet").await);
        noisy.create_several(6).await;
        quiet.create_several(3).await;
        noisy.all_ready(6).await;
        quiet.all_ready(3).await;
        let old = quiet.instance("db-1").await;
        for number in 1..=6 {
            let instance = noisy.instance(&format!("db-{number}")).await;
            // EC2 refuses to end them, so that no repair of theirs gives its place back.
            for action in ["StopInstances", "TerminateInstances"] {
                let code = "OperationNotPermitted".to_owned();
                let refused = Fault::on(action, Effect::Error { code, message: "protected".to_owned() });
                env.ec2().add_fault(Fault { resource: Some(instance.clone()), ..refused });
            }
            env.ec2().outside(&Outside::Impair.to(&instance)).unwrap();
        }
        let declared_lost = async || {
            let nodes = noisy.nodes().await;
            nodes.iter().filter(|node| node.status.as_ref().is_some_and(|it| it.fence.is_some())).count()
        };
        let postponed = async || {
            let told = noisy.nodes().await.into_iter().map(|node| node.condition("Lost"));
            told.filter(|lost| lost.1 == "RepairPostponed" && lost.2.contains("of this namespace")).count()
        };
        within(CALM, "half of the places being taken, and the others postponed", || async {
            let (lost, postponed) = (declared_lost().await, postponed().await);
            assert!(lost <= 3, "no namespace takes more than half of the five places");
            seen((lost == 3 && postponed == 3).then_some(()), || format!("{lost} {postponed}"))
        })
        .await;

        env.ec2().outside(&Outside::Impair.to(&old)).unwrap();
        quiet.serves_elsewhere("db-1", &old).await;
        assert_eq!(declared_lost().await, 3, "and theirs had not ended");
        // Not at rest: EC2 is asked for ever to end machines that it does not end.
        env.house.judge();
    });
}
