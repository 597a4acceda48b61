//! The operator as users install it, on real machines: its image on a machine for the platform's own pods,
//! the chart by helm.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use freehold::api::NodeClass;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use nix::sys::signal::Signal;
use serde_json::json;
use tokio::process::Command;

use super::common::{Failure, SPEED};
use super::observer::PLATFORM;
use super::pod_access::first_process_of;
use super::world::restarts;
use crate::account::cloud;
use crate::account::platform;
use crate::account::policy::OPERATOR;
use crate::base::cache::Cache;
use crate::base::process::Identity;
use crate::cluster::helm::{CHART, Helm};
use crate::machines::images::{self, OperatorImage};
use crate::presentation::daemon::{self, Record};

/// The namespace of the release, and its name.
const NAMESPACE: &str = "freehold-system";
const RELEASE: &str = "freehold";

/// How long it may take to be ready: a machine boots, an image is imported, a pod starts.
const READY_LIMIT: Duration = Duration::from_secs(300);

/// An operator that helm installed; it goes on when this is dropped.
#[derive(Debug)]
pub struct OperatorPod {
    helm: Helm,
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    pods: Api<Pod>,
    /// Of the box that it runs in.
    box_name: String,
    /// How often its container had been started again when it was killed; none unless it was, and is awaited.
    killed_at: Option<i32>,
}

impl OperatorPod {
    /// Launches a machine for it, installs it and waits until it is ready.
    pub async fn start(
        cache: &Cache,
        binary: &Path,
        record: &Record,
        client: &Client,
        class: &NodeClass,
    ) -> Result<Self, Failure> {
        let helm = Helm::ensure(cache).await?;
        let archive = record.log.with_file_name("operator.tar");
        let image =
            images::write_operator_image(&OperatorImage::new(binary, &record.name), &archive).await?.name;
        launch(record, class, &archive).await?;
        prepare(client).await?;
        let values = record.log.with_file_name("values.yaml");
        std::fs::write(&values, values_for(record, &image)?.to_string())?;
        let pod = Self {
            helm,
            kubectl: record.programs.join("kubectl"),
            kubeconfig: record.kubeconfig.clone(),
            pods: Api::namespaced(client.clone(), NAMESPACE),
            box_name: record.name.clone(),
            killed_at: None,
        };
        let values = values.display().to_string();
        println!("helm install {RELEASE} charts/freehold --namespace {NAMESPACE} --values {values}");
        if let Err(failed) = pod.release(&["install", RELEASE, CHART, "--values", &values]).await {
            return Err(format!("{failed}; its log ends with:\n{}", pod.tail().await).into());
        }
        pod.remember(cache).await?;
        Ok(pod)
    }

    /// Where it runs.
    pub async fn place(&self) -> Result<String, Failure> {
        let pod = self.pod().await?;
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        Ok(format!(
            "pod {} on {node}; its log: kubectl logs --namespace {NAMESPACE} deployment/{RELEASE}",
            pod.name_any()
        ))
    }

    /// Its process on this host.
    pub async fn process(&self) -> Result<u32, Failure> {
        Ok(self.running().await?.1.id)
    }

    /// SIGKILL, from outside: inside, the kernel shields it.
    pub async fn kill(&mut self) -> Result<(), Failure> {
        let (pod, process) = self.running().await?;
        self.killed_at = Some(restarts(&pod));
        process.signal(Signal::SIGKILL);
        Ok(())
    }

    /// Waits until its kubelet has started it again and it is ready.
    pub async fn back(&mut self, cache: &Cache) -> Result<(), Failure> {
        self.remember(cache).await?;
        self.killed_at = None;
        Ok(())
    }

    /// Its pod and its process on this host, once it is ready: after it was killed, and also where it has
    /// ended itself, since it lost its Lease on a host that stood still for seconds, its kubelet starts it
    /// again.
    async fn running(&self) -> Result<(Pod, Identity), Failure> {
        let started = Instant::now();
        loop {
            let pod = self.pod().await?;
            let is_again = self.killed_at.is_none_or(|before| restarts(&pod) > before);
            if let (true, true, Ok(process)) = (is_again, is_ready(&pod), first_process_of(&pod)) {
                return Ok((pod, process));
            }
            if started.elapsed() > READY_LIMIT {
                let said = self.tail().await;
                return Err(format!(
                    "the operator was not ready again within {READY_LIMIT:?}; its log ends \
                    with:\n{said}"
                )
                .into());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The end of its log.
    pub async fn tail(&self) -> String {
        let mut kubectl = Command::new(&self.kubectl);
        kubectl.arg("--kubeconfig").arg(&self.kubeconfig).args([
            "logs",
            "--namespace",
            NAMESPACE,
            "--tail",
            "20",
        ]);
        let output = kubectl.arg(format!("deployment/{RELEASE}")).kill_on_drop(true).output();
        match tokio::time::timeout(READY_LIMIT, output).await {
            Ok(Ok(output)) => {
                String::from_utf8_lossy(&output.stdout).into_owned()
                    + &String::from_utf8_lossy(&output.stderr)
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "kubectl gave no answer".to_owned(),
        }
    }

    /// Uninstalls it.
    pub async fn stop(self) -> Result<(), Failure> {
        self.release(&["uninstall", RELEASE]).await
    }

    /// From here on the box's `down` ends it too, whatever becomes of this program.
    async fn remember(&self, cache: &Cache) -> Result<(), Failure> {
        Ok(daemon::remember_operator(cache, &self.box_name, self.running().await?.1)?)
    }

    async fn pod(&self) -> Result<Pod, Failure> {
        let ours = ListParams::default().labels(&format!("app.kubernetes.io/instance={RELEASE}"));
        let pod = self
            .pods
            .list(&ours)
            .await?
            .items
            .into_iter()
            .find(|pod| pod.metadata.deletion_timestamp.is_none());
        pod.ok_or_else(|| format!("the operator has no pod in {NAMESPACE}").into())
    }

    async fn release(&self, args: &[&str]) -> Result<(), Failure> {
        let (kubeconfig, limit) =
            (self.kubeconfig.display().to_string(), format!("{}s", READY_LIMIT.as_secs()));
        let general = ["--kubeconfig", &kubeconfig, "--namespace", NAMESPACE, "--wait", "--timeout", &limit];
        self.helm.run(&[args, &general].concat()).await?;
        Ok(())
    }
}

/// Launches the platform's machine, which has the image before it joins.
async fn launch(record: &Record, class: &NodeClass, archive: &Path) -> Result<(), Failure> {
    let subnet = class.spec.subnets.first().ok_or("the example's NodeClass has no subnet")?;
    let machine = cloud::Launch {
        name: PLATFORM,
        image: &class.spec.image_id,
        instance_type: "m7i.large",
        subnet: &subnet.id,
        security_group: None,
        user_data: &platform::user_data(&record.name, &[archive.to_owned()]),
    };
    cloud::launch(&cloud::client_of(PLATFORM, &record.endpoint, &record.region), machine).await?;
    Ok(())
}

/// What a user has before the chart: a namespace that admits restricted pods only, and credentials.
async fn prepare(client: &Client) -> Result<(), Failure> {
    let namespace = json!({"metadata": {"name": NAMESPACE,
    "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &serde_json::from_value(namespace)?)
        .await?;
    let secret = json!({"metadata": {"name": "aws"}, "stringData": {"AWS_ACCESS_KEY_ID": OPERATOR,
    "AWS_SECRET_ACCESS_KEY": "box"}});
    Api::<Secret>::namespaced(client.clone(), NAMESPACE)
        .create(&PostParams::default(), &serde_json::from_value(secret)?)
        .await?;
    Ok(())
}

fn values_for(record: &Record, image: &str) -> Result<serde_json::Value, Failure> {
    let gateway = record.gateway.ok_or("the box has no real machines")?;
    let port = record.endpoint.rsplit(':').next().unwrap_or_default();
    let (repository, tag) = image.rsplit_once(':').ok_or("the image has no tag")?;
    Ok(json!({
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "aws": {"endpoint": format!("http://{gateway}:{port}"), "region": record.region},
        "envFrom": [{"secretRef": {"name": "aws"}}],
        "nodeSelector": {platform::LABEL: record.name},
        "extraArgs": [format!("--time-scale={SPEED}")],
    }))
}

fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
