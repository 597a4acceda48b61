//! A house: a namespace, an EC2, a NodeClass and an operator of its own, on the control plane that all tests share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use ec2sim::{Fate, InstanceState, JournalEntry, Simulator};
use freehold::api::keys::FINALIZER;
use freehold::api::{Database, Node, NodeClass, Volume};
use freehold::definitions;
use freehold_box::account::{Site, SiteOptions};
use freehold_box::base::process::tail;
use freehold_box::cluster::control_plane::ControlPlane;
use freehold_box::cluster::shared;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Namespace, Node as CoreNode};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::sync::oneshot::Receiver;

use super::invariants;
use super::objects::{self, Told as _};
pub use super::process::OPERATOR;
use super::process::{Operator, environment};
use super::proxy::Proxy;
use super::rights;
use super::tap::{Point, Tap, Which};
use super::wait::{LIMIT, seen, until, within};

/// How much of the journal and of the log a failure shows, in lines.
const TAIL: usize = 40;

/// How a house differs from the usual one.
pub struct Options {
    /// How much faster than in production time passes, for the operator and for EC2.
    pub scale: u32,
    /// Settings of the operator by their flags; the seconds are unscaled.
    pub settings: BTreeMap<&'static str, u32>,
    /// EC2's own settings; its clock runs at the scale.
    pub simulator: ec2sim::Options,
    /// The operator's calls to EC2 go by the tap, too.
    pub tapped_ec2: bool,
    /// From a machine's start to its Node, on the wall clock.
    pub boot: Duration,
    /// The operator is a service account with the rights that the chart gives it for one namespace.
    pub has_one_namespace: bool,
}

impl Default for Options {
    /// Sixty times as fast. Some proportions are not the default ones, so that a machine that compiles meanwhile can keep up: look-ups
    /// while something is pending are a third of a second apart, and a machine has two minutes to join, and to be well again.
    fn default() -> Self {
        let settings = BTreeMap::from([("sweep-pending", 20), ("registration", 7200), ("loss-grace", 7200)]);
        Self {
            scale: 60,
            settings,
            simulator: ec2sim::Options { delays: ec2sim::Delays::realistic(), ..ec2sim::Options::default() },
            tapped_ec2: false,
            boot: SiteOptions::fast().boot,
            has_one_namespace: false,
        }
    }
}

impl Options {
    /// The usual ones, but for these settings in seconds.
    pub fn with<const N: usize>(settings: [(&'static str, u32); N]) -> Self {
        let mut options = Self::default();
        options.settings.extend(settings);
        options
    }
}

/// A house.
pub struct House {
    /// The name of its namespace, its NodeClass and its cluster in tags.
    pub name: String,
    /// A client of the test's own.
    pub client: Client,
    /// Its EC2, and what plays the machines.
    pub site: Site,
    /// What passes between the operator and the API server.
    pub tap: Arc<Tap>,
    /// How much faster time passes.
    pub scale: u32,
    /// Object UIDs whose deletion was asked for, with the last entry of the journal at that time.
    pub deleted: Vec<(String, u64)>,
    settings: Vec<String>,
    environment: [(&'static str, String); 6],
    proxies: Vec<Proxy>,
    operator: Option<Operator>,
    starts: usize,
    folder: tempfile::TempDir,
    /// The control plane that it is on.
    pub control_plane: Arc<ControlPlane>,
}

/// Runs a test on the runtime that all share.
pub fn run<F: Future>(test: F) -> F::Output {
    shared::run(test)
}

/// The shared control plane with the resource definitions.
pub async fn control_plane() -> &'static Arc<ControlPlane> {
    static READY: OnceCell<()> = OnceCell::const_new();
    let control_plane = shared::control_plane().await.unwrap();
    READY.get_or_init(|| install(control_plane)).await;
    control_plane
}

/// Installs the resource definitions, waits until they are served, and gives the operator its rights.
pub async fn install(control_plane: &ControlPlane) {
    let api = Api::<CustomResourceDefinition>::all(control_plane.client());
    for definition in definitions::all() {
        api.create(&PostParams::default(), &definition).await.unwrap();
    }
    until("the resource definitions being served", || async {
        let all = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let is_served = |definition: &CustomResourceDefinition| {
            let conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
        };
        seen(all.items.iter().all(is_served).then_some(()), || "not all are established".to_owned())
    })
    .await;
    rights::grant(control_plane).await;
}

impl House {
    /// A house with a running operator.
    pub async fn start(name: &str) -> Self {
        Self::start_with(name, Options::default()).await
    }

    /// The same, otherwise than usual.
    pub async fn start_with(name: &str, options: Options) -> Self {
        let mut house = Self::build(name, options).await;
        house.start_operator();
        house
    }

    /// A house without an operator yet, with an EC2 of its own.
    pub async fn build(name: &str, options: Options) -> Self {
        let control_plane = control_plane().await;
        let speed = f64::from(options.scale);
        let simulator = ec2sim::Options { clock: ec2sim::Clock::Running { speed }, ..options.simulator.clone() };
        let site = Site::start(control_plane, SiteOptions { simulator, boot: options.boot, ..SiteOptions::fast() }).await.unwrap();
        Self::build_at(Arc::clone(control_plane), site, name, options).await
    }

    /// A house without an operator yet, on this control plane and in this account.
    pub async fn build_at(control_plane: Arc<ControlPlane>, site: Site, name: &str, options: Options) -> Self {
        let client = control_plane.client();
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        let class = serde_json::from_value(site.node_class(name)).unwrap();
        Api::<NodeClass>::all(client.clone()).create(&PostParams::default(), &class).await.unwrap();

        let tap = Arc::new(Tap::default());
        let folder = tempfile::tempdir().unwrap();
        let mut kubeconfig = Kubeconfig::read_from(control_plane.operator_kubeconfig()).unwrap();
        if options.has_one_namespace {
            let token = rights::account(&client, name).await;
            kubeconfig.auth_infos[0].auth_info = Some(serde_json::from_value(json!({"token": token})).unwrap());
        }
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let upstream = Client::try_from(config).unwrap();
        let kubernetes = Proxy::before_kubernetes(Arc::clone(&tap), upstream, site.simulator().clone()).await;
        let mut endpoint = site.endpoint();
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, through(&kubernetes.url).to_string()).unwrap();
        let mut proxies = vec![kubernetes];
        if options.tapped_ec2 {
            let ec2 = Proxy::before_ec2(Arc::clone(&tap), &endpoint, site.simulator().clone()).await;
            endpoint.clone_from(&ec2.url);
            proxies.push(ec2);
        }
        let mut settings: Vec<String> = ["--namespace", name, "--cluster-id", name, "--listen", "127.0.0.1:0"].map(str::to_owned).to_vec();
        settings.extend(["--time-scale".to_owned(), options.scale.to_string()]);
        settings.extend(options.settings.iter().flat_map(|(key, value)| [format!("--{key}"), value.to_string()]));
        let environment = environment(&kubeconfig, &endpoint, site.region());
        Self {
            name: name.to_owned(),
            client,
            site,
            tap,
            scale: options.scale,
            deleted: Vec::new(),
            settings,
            environment,
            proxies,
            operator: None,
            starts: 0,
            folder,
            control_plane,
        }
    }

    /// Starts the operator.
    pub fn start_operator(&mut self) {
        self.starts += 1;
        let name = format!("operator-{}", self.starts);
        self.operator = Some(Operator::start(self.control_plane.folder(), self.folder.path(), &name, &self.settings, &self.environment));
    }

    /// SIGKILL.
    pub fn kill_operator(&mut self) {
        self.operator.take().unwrap().kill();
    }

    /// Waits until the operator has come to where the tap stops it.
    pub async fn reaches(&self, which: Which, reached: Receiver<()>) {
        let heard = tokio::time::timeout(LIMIT, reached).await;
        assert!(heard.is_ok_and(|heard| heard.is_ok()), "the operator never came to {which:?}");
    }

    /// SIGKILL as soon as the operator has come to where the tap stops it.
    pub async fn kill_at(&mut self, which: Which, reached: Receiver<()>) {
        self.reaches(which, reached).await;
        self.kill_operator();
        self.tap.thaw();
    }

    /// Lets the operator, which must be down, come to each of these effects in turn and kills it there; then it is down again. Ends early
    /// when `is_over`; gives the names of the effects that it never came to.
    pub async fn kill_at_each<F>(&mut self, effects: &[(&'static str, Which)], point: Point, is_over: impl Fn() -> F) -> Vec<&'static str>
    where
        F: Future<Output = bool>,
    {
        let mut missed = Vec::new();
        for (name, which) in effects {
            let mut reached = self.tap.stop_at(*which, point);
            self.start_operator();
            let came = until(&format!("the operator coming to {name}"), || {
                let came = reached.try_recv().is_ok();
                let is_over = is_over();
                async move { if came { Ok(true) } else { seen(is_over.await.then_some(false), || "not yet".to_owned()) } }
            })
            .await;
            // The last effect is the end itself: it may be seen before its own report.
            let came = came || tokio::time::timeout(Duration::from_secs(5), &mut reached).await.is_ok_and(|heard| heard.is_ok());
            self.kill_operator();
            self.tap.disarm();
            self.tap.thaw();
            if !came {
                missed.push(*name);
            }
        }
        missed
    }

    /// SIGTERM; gives how long the end took and whether it was with 0.
    pub async fn stop_operator(&mut self) -> (Duration, bool) {
        self.operator.take().unwrap().stop().await
    }

    /// The running operator.
    pub fn operator(&self) -> &Operator {
        self.operator.as_ref().unwrap()
    }

    /// The simulated EC2.
    pub fn ec2(&self) -> &Simulator {
        self.site.simulator()
    }

    /// The API of one kind in the house's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// The objects of one kind in the house's namespace.
    pub async fn list<K>(&self) -> Vec<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        self.api::<K>().list(&ListParams::default()).await.unwrap().items
    }

    /// Creates a Database; `changes` go into its spec.
    pub async fn create(&self, name: &str, changes: &Value) -> Database {
        let object = serde_json::from_value(objects::database(&self.name, &self.name, name, changes)).unwrap();
        self.api::<Database>().create(&PostParams::default(), &object).await.unwrap()
    }

    /// Edits a Database's spec.
    pub async fn edit(&self, name: &str, changes: &Value) {
        self.api::<Database>().patch(name, &PatchParams::default(), &Patch::Merge(json!({"spec": changes}))).await.unwrap();
    }

    /// Edits the NodeClass' spec.
    pub async fn edit_class(&self, changes: &Value) {
        let classes = Api::<NodeClass>::all(self.client.clone());
        classes.patch(&self.name, &PatchParams::default(), &Patch::Merge(json!({"spec": changes}))).await.unwrap();
    }

    /// Waits until this generation of the Database is Ready.
    pub async fn ready(&self, name: &str) -> Database {
        self.ready_within(LIMIT, name).await
    }

    /// The same with another bound.
    pub async fn ready_within(&self, limit: Duration, name: &str) -> Database {
        within(limit, &format!("Database {name} being Ready"), || async {
            let database = self.api::<Database>().get(name).await.map_err(|error| error.to_string())?;
            seen(is_ready(&database).then(|| database.clone()), || format!("{:?}", database.condition("Ready")))
        })
        .await
    }

    /// Waits until the Database's condition has this status and reason; gives its message.
    pub async fn told(&self, name: &str, kind: &str, status: &str, reason: &str) -> String {
        self.told_within(LIMIT, name, kind, status, reason).await
    }

    /// The same with another bound.
    pub async fn told_within(&self, limit: Duration, name: &str, kind: &str, status: &str, reason: &str) -> String {
        within(limit, &format!("Database {name} having {kind}={status} for {reason}"), || async {
            let database = self.api::<Database>().get(name).await.map_err(|error| error.to_string())?;
            let condition = database.condition(kind);
            let is_so = condition.0 == status && condition.1 == reason;
            seen(is_so.then(|| condition.2.clone()), || format!("{condition:?}"))
        })
        .await
    }

    /// Deletes a Database. From here on nothing may be launched for those of its Nodes that have their machine.
    pub async fn delete(&mut self, name: &str) {
        let nodes: Vec<Node> = self.list().await;
        self.api::<Database>().delete(name, &DeleteParams::default()).await.unwrap();
        let last = self.ec2().journal().last().map_or(0, |entry| entry.seq);
        let launched = |node: &&Node| node.status.as_ref().is_some_and(|status| status.instance_id.is_some());
        self.deleted.extend(nodes.iter().filter(launched).filter_map(|node| Some((node.uid()?, last))));
    }

    /// Waits until a Database and its children are gone.
    pub async fn gone(&self, name: &str) {
        until(&format!("Database {name} being gone"), || async {
            let left = self.api::<Database>().get_opt(name).await.map_err(|error| error.to_string())?;
            match left {
                Some(database) => Err(format!("{:?}", database.condition("Ready"))),
                None => Ok(()),
            }
        })
        .await;
        assert!(self.list::<Node>().await.is_empty() && self.list::<Volume>().await.is_empty(), "a child outlives its Database");
        let machines: Vec<String> =
            self.ec2().instances().iter().map(|machine| format!("aws:///{}/{}", machine.zone, machine.id)).collect();
        let core_nodes = Api::<CoreNode>::all(self.client.clone()).list(&ListParams::default()).await.unwrap();
        let is_held = |node: &&CoreNode| {
            let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref());
            provider_id.is_some_and(|id| machines.contains(id)) && node.finalizers().iter().any(|it| it == FINALIZER)
        };
        let held: Vec<String> = core_nodes.items.iter().filter(is_held).map(kube::ResourceExt::name_any).collect();
        assert!(held.is_empty(), "the machines are gone, and our finalizer still holds the core Nodes {held:?}");
    }

    /// The operator's calls to EC2 since this entry of the journal.
    pub fn calls_since(&self, entry: u64) -> Vec<JournalEntry> {
        self.ec2().journal_since(entry).into_iter().filter(|entry| entry.caller == OPERATOR).collect()
    }

    /// The last entry of the journal.
    pub fn mark(&self) -> u64 {
        self.ec2().journal().last().map_or(0, |entry| entry.seq)
    }

    /// The operator's mutating calls that EC2 carried out, by action.
    pub fn mutations(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.calls_since(0) {
            if matches!(entry.fate, Fate::Committed | Fate::Lost) {
                *counts.entry(entry.action).or_default() += 1;
            }
        }
        counts
    }

    /// The instances that are not terminated or about to be.
    pub fn live_instances(&self) -> Vec<ec2sim::InstanceView> {
        let ended = [InstanceState::ShuttingDown, InstanceState::Terminated];
        self.ec2().instances().into_iter().filter(|instance| !ended.contains(&instance.state)).collect()
    }

    /// The EBS volumes that are no instance's root.
    pub fn data_volumes(&self) -> Vec<ec2sim::VolumeView> {
        let volumes = self.ec2().volumes();
        volumes.into_iter().filter(|volume| volume.tags.contains_key("freehold.dev/volume-uid")).collect()
    }

    /// The end of a scenario: everything that must always hold, holds. Then the machines' Nodes go, so that others need not see them.
    pub async fn close(self) {
        invariants::check(&self).await;
        self.close_unchecked().await;
    }

    /// The same without the checks, for tests of these.
    pub async fn close_unchecked(mut self) {
        if let Some(operator) = self.operator.take() {
            operator.kill();
        }
        self.proxies.clear();
        rights::note(&self.control_plane);
        for set in self.list::<StatefulSet>().await {
            let _ = self.api::<StatefulSet>().delete(&set.name_any(), &DeleteParams::background()).await;
        }
        let nodes = Api::<CoreNode>::all(self.client.clone());
        let ours: Vec<String> = self.ec2().instances().into_iter().map(|instance| instance.id).collect();
        for node in nodes.list(&ListParams::default()).await.unwrap() {
            let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.clone()).unwrap_or_default();
            if ours.iter().any(|id| provider_id.ends_with(id)) {
                let name = node.name_any();
                let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                let _ = nodes.patch(&name, &PatchParams::default(), &free).await;
                let _ = nodes.delete(&name, &DeleteParams::default()).await;
            }
        }
    }

    /// kubectl with the administrator's rights in this namespace.
    pub fn kubectl(&self) -> Command {
        let mut kubectl = Command::new(self.control_plane.kubectl());
        kubectl.arg("--kubeconfig").arg(self.control_plane.kubeconfig()).args(["--namespace", &self.name]);
        kubectl
    }

    /// Where the log of the operator's last start is.
    fn log(&self) -> PathBuf {
        self.folder.path().join(format!("operator-{}.log", self.starts))
    }
}

impl Drop for House {
    /// Says what there was to see when a test fails; the operator's whole log goes to the folder FREEHOLD_KEEP_LOGS, if one is named.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let kinds = "databases,nodes.freehold.dev,volumes.freehold.dev,statefulsets,pods,pvc,events";
        let objects = self.kubectl().args(["get", kinds, "-o", "wide"]).output();
        let objects = objects.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let journal: Vec<String> = self.calls_since(0).iter().rev().take(TAIL).rev().map(short).collect();
        eprintln!("==== {}: objects\n{objects}\n==== EC2's journal\n{}", self.name, journal.join("\n"));
        eprintln!("==== the operator's log\n{}", tail(&self.log()));
        if let Ok(folder) = std::env::var("FREEHOLD_KEEP_LOGS") {
            let _ = std::fs::copy(self.log(), PathBuf::from(folder).join(format!("{}.log", self.name)));
        }
    }
}

/// Whether this generation of the Database is Ready.
fn is_ready(database: &Database) -> bool {
    database.conditions().iter().any(|condition| {
        condition.type_ == "Ready" && condition.status == "True" && condition.observed_generation == database.metadata.generation
    })
}

/// A journal's entry in a line.
fn short(entry: &JournalEntry) -> String {
    let resources = entry.resources.join(",");
    format!("{:>5} {} {} {:?} {} {resources}", entry.seq, entry.time, entry.action, entry.fate, entry.answer)
}

/// A kubeconfig for the proxy.
fn through(url: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "house",
        "clusters": [{"name": "house", "cluster": {"server": url}}],
        "users": [{"name": "house", "user": {}}],
        "contexts": [{"name": "house", "context": {"cluster": "house", "user": "house"}}],
    })
}
