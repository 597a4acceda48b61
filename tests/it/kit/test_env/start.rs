//! The start of a test environment: the control plane that all share, then a namespace, an account and
//! proxies of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use freehold::api::NodeClass;
use freehold::definitions;
use freehold_box::account::{Site, SiteOptions};
use freehold_box::cluster::control_plane::{ControlPlane, ControlPlaneOptions};
use freehold_box::cluster::shared;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;
use tokio::sync::OnceCell;

use super::{Options, TestEnv};
use crate::kit::permits::{self, Permit};
use crate::kit::process::{OPERATOR, environment};
use crate::kit::proxy::Proxy;
use crate::kit::rights;
use crate::kit::statements;
use crate::kit::tap::Tap;
use crate::kit::wait::{seen, until};

/// One operator is started again and again under the same name, which takes its own Lease at once. A term
/// that no slow host lets run out: nothing starts the operator again that has lost it.
pub const ELECTION: [(&str, u32); 3] = [
    ("leader-elect-lease-duration", 3600),
    ("leader-elect-renew-deadline", 3000),
    ("leader-elect-retry-period", 60),
];

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
            conditions
                .into_iter()
                .any(|condition| condition.type_ == "Established" && condition.status == "True")
        };
        seen(all.items.iter().all(is_served).then_some(()), || "not all are established".to_owned())
    })
    .await;
    rights::grant(control_plane).await;
}

impl TestEnv {
    /// A test environment with a running operator.
    pub async fn start(name: &str) -> Self {
        Self::start_with(name, Options::default()).await
    }

    /// The same, otherwise than usual.
    pub async fn start_with(name: &str, options: Options) -> Self {
        let mut env = Self::build(name, options).await;
        env.start_operator();
        env
    }

    /// A test environment without an operator yet, with an EC2 of its own; waits for its permit first.
    pub async fn build(name: &str, options: Options) -> Self {
        let permit = permits::of_virtual_machines(options.share).await;
        let control_plane = control_plane().await;
        let site = site(control_plane, name, &options).await;
        Self::build_holding(Some(permit), Arc::clone(control_plane), site, name, options).await
    }

    /// A test environment without an operator yet, on a control plane of its own: for what would not leave
    /// other tests alone.
    pub async fn build_alone(name: &str, options: Options) -> Self {
        let permit = permits::of_virtual_machines(options.share).await;
        let control_plane = Arc::new(ControlPlane::start(ControlPlaneOptions::named(name)).await.unwrap());
        install(&control_plane).await;
        let site = site(&control_plane, name, &options).await;
        Self::build_holding(Some(permit), control_plane, site, name, options).await
    }

    /// A test environment without an operator yet, on this control plane and in this account.
    pub async fn build_at(
        control_plane: Arc<ControlPlane>,
        site: Site,
        name: &str,
        options: Options,
    ) -> Self {
        Self::build_holding(None, control_plane, site, name, options).await
    }

    async fn build_holding(
        permit: Option<Permit>,
        control_plane: Arc<ControlPlane>,
        site: Site,
        name: &str,
        options: Options,
    ) -> Self {
        let client = control_plane.client();
        let watched = [Some(name), options.second_namespace].into_iter().flatten().collect::<Vec<_>>();
        create_namespaces(&client, &watched).await;
        let class = serde_json::from_value(site.node_class(name)).unwrap();
        Api::<NodeClass>::all(client.clone()).create(&PostParams::default(), &class).await.unwrap();

        let tap = Arc::new(Tap::default());
        let folder = tempfile::tempdir().unwrap();
        let mut kubeconfig = Kubeconfig::read_from(control_plane.operator_kubeconfig()).unwrap();
        if options.has_own_rights {
            let token = rights::account(&client, name, &watched).await;
            kubeconfig.auth_infos[0].auth_info =
                Some(serde_json::from_value(json!({"token": token})).unwrap());
        }
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let upstream = Client::try_from(config).unwrap();
        let kubernetes = Proxy::before_kubernetes(Arc::clone(&tap), upstream, site.simulator().clone()).await;
        let mut endpoint = site.endpoint();
        let kubeconfig = through(&kubernetes, folder.path(), "kubeconfig");
        let mut proxies = vec![kubernetes];
        if options.tapped_ec2 {
            let ec2 = Proxy::before_ec2(Arc::clone(&tap), &endpoint, site.simulator().clone()).await;
            endpoint.clone_from(&ec2.url);
            proxies.push(ec2);
        }
        let mut settings = settings(name, &watched, &options);
        let authority = control_plane.folder().join("ca.crt").display().to_string();
        settings.extend(["--kubelet-account".to_owned(), rights::KUBELET_ACCOUNT.to_owned()]);
        settings.extend(["--kubelet-certificate-authority".to_owned(), authority]);
        let environment = environment(&kubeconfig, &endpoint, site.region(), OPERATOR);
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
            _permit: permit,
            control_plane,
        }
    }
}

/// The operator's settings.
fn settings(name: &str, watched: &[&str], options: &Options) -> Vec<String> {
    let mut settings: Vec<String> =
        ["--cluster-id", name, "--listen", "127.0.0.1:0"].map(str::to_owned).to_vec();
    if !options.watches_all {
        settings.extend(["--namespace".to_owned(), watched.join(",")]);
    }
    settings.extend(["--leader-elect-identity".to_owned(), name.to_owned()]);
    let election = ELECTION.iter().filter(|(key, _)| !options.settings.contains_key(key));
    settings.extend(election.flat_map(|(key, value)| [format!("--{key}"), value.to_string()]));
    settings.extend(["--time-scale".to_owned(), options.scale.to_string()]);
    settings.extend(options.settings.iter().flat_map(|(key, value)| [format!("--{key}"), value.to_string()]));
    settings
}

/// An account whose machines join this control plane.
async fn site(control_plane: &ControlPlane, name: &str, options: &Options) -> Site {
    let clock = ec2sim::Clock::Running { speed: f64::from(options.scale) };
    let simulator = ec2sim::Options { clock, ..options.simulator.clone() };
    let simulator = statements::enforced(simulator, name);
    let options = SiteOptions { simulator, boot: options.boot, ..SiteOptions::fast() };
    Site::start(control_plane, options).await.unwrap()
}

/// A kubeconfig for a proxy, under this name in this folder.
pub(super) fn through(proxy: &Proxy, folder: &Path, name: &str) -> PathBuf {
    let url = &proxy.url;
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "env",
        "clusters": [{"name": "env", "cluster": {"server": url}}],
        "users": [{"name": "env", "user": {}}],
        "contexts": [{"name": "env", "context": {"cluster": "env", "user": "env"}}],
    });
    let path = folder.join(name);
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    path
}

async fn create_namespaces(client: &Client, names: &[&str]) {
    let namespaces = Api::<Namespace>::all(client.clone());
    for name in names {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    }
}
