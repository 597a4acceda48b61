//! What outlives kills and the end of the whole box: the databases of both engines, with their rows.

use std::path::Path;
use std::time::Duration;

use freehold::api::{Database, NodeClass};
use freehold_box::account::{Real, Site, SiteOptions};
use freehold_box::base::cache::Cache;
use freehold_box::cluster::control_plane::{ControlPlane, ControlPlaneOptions};
use freehold_box::machines::machine::KUBELET;
use freehold_box::writer::{Dialect, PACE, Source, Target, Writer, Written};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use tempfile::TempDir;

use crate::kit::objects;
use crate::kit::process::{OPERATOR, Operator, environment};
use crate::kit::real::{LIMIT, in_turn, postgresql, questdb};
use crate::kit::rights;
use crate::kit::statements;
use crate::kit::test_env;
use crate::kit::wait::{seen, within};

pub(super) const NAMESPACE: &str = "default";

/// A box with its operator, everything of which is in two folders: one of its cluster, and one of its account
/// at AWS.
pub(super) struct Kept {
    pub(super) control_plane: ControlPlane,
    pub(super) site: Site,
    operator: Option<Operator>,
}

impl Kept {
    pub(super) async fn up(cluster: &Path, account: &Path, real: &Real, run: &str) -> Self {
        let options =
            ControlPlaneOptions { state: Some(cluster.to_owned()), ..ControlPlaneOptions::named("kept") };
        let control_plane = ControlPlane::start(options).await.unwrap();
        let mut options = SiteOptions {
            real: Some(real.clone()),
            state: Some(account.to_owned()),
            boot: Duration::ZERO,
            ..SiteOptions::fast()
        };
        options.simulator.state = Some(account.join("ec2"));
        let cluster_id = control_plane.cluster_id().await.unwrap();
        options.simulator = statements::enforced(options.simulator, &cluster_id);
        let site = Site::start(&control_plane, options).await.unwrap();
        let definitions = Api::<CustomResourceDefinition>::all(control_plane.client());
        if definitions.list(&ListParams::default()).await.unwrap().items.is_empty() {
            test_env::install(&control_plane).await;
        }
        let operator = Some(Self::operator(&control_plane, &site, run));
        Self { control_plane, site, operator }
    }

    fn operator(control_plane: &ControlPlane, site: &Site, run: &str) -> Operator {
        let settings = "--leader-elect-identity kept --listen 127.0.0.1:0 --time-scale 10 \
            --registration-timeout 7200 --loss-grace-period 7200";
        let mut settings: Vec<String> = settings.split(' ').map(str::to_owned).collect();
        settings.extend(
            test_env::ELECTION.iter().flat_map(|(key, value)| [format!("--{key}"), value.to_string()]),
        );
        let environment =
            environment(control_plane.operator_kubeconfig(), &site.endpoint(), site.region(), OPERATOR);
        Operator::start(
            control_plane.folder(),
            control_plane.folder(),
            &format!("operator-{run}"),
            &settings,
            &environment,
        )
    }

    /// Creates a Database of each engine, named after it.
    pub(super) async fn create(&self, real: &Real) {
        let client = self.control_plane.client();
        self.create_class().await;
        let databases = Api::<Database>::namespaced(client, NAMESPACE);
        for dialect in ENGINES {
            let spec = match dialect {
                Dialect::Questdb => questdb(),
                Dialect::Postgresql => postgresql(real),
            };
            let object = objects::database(NAMESPACE, "default", dialect.as_str(), &spec);
            databases.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        }
    }

    pub(super) fn kill_operator(&mut self) {
        if let Some(operator) = self.operator.take() {
            operator.kill();
        }
    }

    pub(super) async fn create_class(&self) {
        let class: NodeClass = serde_json::from_value(self.site.node_class("default")).unwrap();
        let classes = Api::<NodeClass>::all(self.control_plane.client());
        classes.create(&PostParams::default(), &class).await.unwrap();
    }

    pub(super) fn target(&self, dialect: Dialect) -> Target {
        let source = Source::Database {
            client: self.control_plane.client(),
            namespace: NAMESPACE.to_owned(),
            name: dialect.as_str().to_owned(),
        };
        Target { dialect, source, table: "numbered" }
    }

    pub(super) async fn down(mut self) {
        self.kill_operator();
        rights::note(&self.control_plane);
        statements::note(self.site.simulator());
        assert!(self.site.violations().is_empty(), "{:?}", self.site.violations());
        self.site.stop().await;
        self.control_plane.stop().await;
    }
}

/// A folder of a box, beside the images, so that machines can share them by links.
pub(super) fn folder() -> TempDir {
    let images = Cache::from_environment().images();
    tempfile::Builder::new().prefix("kept-").tempdir_in(images).unwrap()
}

pub(super) const ENGINES: [Dialect; 2] = [Dialect::Questdb, Dialect::Postgresql];

#[test]
fn databases_of_both_engines_outlive_kills_and_the_end_of_the_whole_box() {
    in_turn("databases that outlive the box", |real| async move {
        let state = folder();
        let mut first = Kept::up(state.path(), state.path(), real, "first").await;
        first.create(real).await;
        let writers = ENGINES.map(|dialect| Writer::start(first.target(dialect), PACE));
        serve(&writers).await;

        first.kill_operator();
        first.operator = Some(Kept::operator(&first.control_plane, &first.site, "second"));
        let machines = first.site.machines().unwrap();
        for instance in first.site.simulator().instances() {
            assert!(machines.get(&instance.id).unwrap().kill_service(KUBELET));
        }
        let pods = Api::<Pod>::namespaced(first.control_plane.client(), NAMESPACE);
        for dialect in ENGINES {
            pods.delete(&format!("{}-0", dialect.as_str()), &DeleteParams::default()).await.unwrap();
        }
        serve(&writers).await;

        let mut written: Vec<Written> = Vec::new();
        for writer in writers {
            written.push(writer.stop().await);
        }
        first.down().await;
        let second = Kept::up(state.path(), state.path(), real, "third").await;
        for (dialect, written) in ENGINES.into_iter().zip(&written) {
            let tally = written.verify(&second.target(dialect), LIMIT).await.unwrap();
            tally.check().unwrap();
        }
        let instances = second.site.simulator().instances();
        assert_eq!(instances.len(), 2, "no machine was launched anew: {instances:?}");
        second.down().await;
        let left = state.path().join("machines");
        within(LIMIT, "nothing of the box being mounted", || async {
            let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
            let mounted = mounts.lines().find(|line| line.contains(&left.display().to_string()));
            seen(mounted.is_none().then_some(()), || format!("{mounted:?}"))
        })
        .await;
    });
}

/// Every writer has a row acknowledged that it sends from now on.
pub(super) async fn serve(writers: &[Writer; 2]) {
    for writer in writers {
        writer.is_served(LIMIT).await.unwrap();
    }
}
