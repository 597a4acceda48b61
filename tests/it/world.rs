//! A simulated EC2 with the operator's two ways to it: over the wire by the AWS SDK, and in process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_config::{BehaviorVersion, Region};
use aws_sdk_ec2::config::Credentials;
use ec2sim::{Clock, Effect, Fault, JournalEntry, Limits, Options, Simulator, TagMatch, Visibility};
use freehold::api::ClientToken;
use freehold::cloud::ec2::Ec2;
use freehold::cloud::identity::{self, Kind, Owner};
use freehold::cloud::{Cloud, CreateVolumeRequest, Disk, LaunchRequest};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::model_cloud::ModelCloud;

/// The cluster of every test.
pub const CLUSTER: &str = "0b0b8b0e-2f3f-4a53-8f9c-6c2f8f2f1a10";

/// The access key id of the operator.
pub const OPERATOR: &str = "AKIAFREEHOLD";

/// Which way a test's calls go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// Over the wire, by the AWS SDK.
    Wire,
    /// In process.
    Model,
}

/// A simulated EC2 and a way to it. The simulator ends with this value.
pub struct World {
    /// The truth.
    pub simulator: Simulator,
    /// The operator's view.
    pub cloud: Arc<dyn Cloud>,
    _stop: DropGuard,
}

impl World {
    /// An empty account whose time the test steps, without request limits.
    pub async fn new(face: Face) -> Self {
        Self::with(face, Options::default()).await
    }

    /// The same with other options.
    pub async fn with(face: Face, options: Options) -> Self {
        let limits = Limits { rate: None, ..options.limits };
        let simulator = Simulator::new(Options { clock: Clock::Manual, limits, ..options })
            .expect("without files nothing can fail");
        let stop = CancellationToken::new();
        let cloud: Arc<dyn Cloud> = match face {
            Face::Model => Arc::new(ModelCloud::new(simulator.clone(), OPERATOR)),
            Face::Wire => {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
                let endpoint = format!("http://{}", listener.local_addr().expect("it listens"));
                let (server, stopped) = (simulator.clone(), stop.clone());
                tokio::spawn(async move { server.serve(listener, stopped).await });
                let config = aws_config::defaults(BehaviorVersion::v2026_01_12())
                    .region(Region::new("us-east-1"))
                    .credentials_provider(Credentials::new(OPERATOR, "secret", None, None, "test"))
                    .endpoint_url(endpoint)
                    .load()
                    .await;
                Arc::new(Ec2::new(&config, &freehold::metrics::Metrics::new()))
            }
        };
        Self { simulator, cloud, _stop: stop.drop_guard() }
    }

    /// Lets this many virtual seconds pass.
    pub fn advance(&self, seconds: u64) {
        self.simulator.advance(Duration::from_secs(seconds));
    }

    /// The calls of one action so far.
    pub fn calls(&self, action: &str) -> Vec<JournalEntry> {
        self.simulator.journal().into_iter().filter(|entry| entry.action == action).collect()
    }

    /// Every call that may change something so far, by action.
    pub fn mutations(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.simulator.journal() {
            if !ec2sim::reads(&entry.action) {
                *counts.entry(entry.action).or_default() += 1;
            }
        }
        counts
    }

    /// Does this to every call of the action from now on.
    pub fn fault(&self, action: &str, effect: Effect) {
        self.simulator.add_fault(fault(action, None, effect));
    }

    /// Does this to the next call of the action only.
    pub fn fault_once(&self, action: &str, effect: Effect) {
        self.simulator.add_fault(fault(action, Some(1), effect));
    }
}

/// Options whose new resources and tags are seen late.
pub fn lagging(visibility: Visibility) -> Options {
    Options { visibility, ..Options::default() }
}

fn fault(action: &str, count: Option<u64>, effect: Effect) -> Fault {
    let tag: Option<TagMatch> = None;
    Fault {
        id: String::new(),
        action: Some(action.into()),
        caller: None,
        resource: None,
        tag,
        nth: None,
        count,
        probability: None,
        effect,
    }
}

/// The launch of this owner's first attempt.
pub fn launch(node_uid: &str) -> LaunchRequest {
    let owner = Owner {
        cluster_id: CLUSTER.into(),
        kind: Kind::Node,
        uid: node_uid.into(),
        database: "team-a/orders".into(),
        name: "orders-k3f9q-1".into(),
    };
    LaunchRequest {
        token: token(Kind::Node, node_uid),
        subnet_id: "subnet-0a000000000000000".into(),
        instance_type: "r7i.large".into(),
        image_id: "ami-0000000000000000a".into(),
        user_data: "#!/bin/sh\necho joined ✓\n".into(),
        security_group_ids: vec!["sg-00000000000000001".into()],
        instance_profile: Some("nodes".into()),
        disks: vec![Disk { device: "/dev/xvda".into(), size: 20, volume_type: "gp3".into() }],
        kms_key_id: None,
        tags: identity::tags(&owner, 1, &BTreeMap::from([("team".to_owned(), "platform".to_owned())])),
    }
}

/// The creation of this owner's first attempt.
pub fn create_volume(volume_uid: &str) -> CreateVolumeRequest {
    let owner = Owner {
        cluster_id: CLUSTER.into(),
        kind: Kind::Volume,
        uid: volume_uid.into(),
        database: "team-a/orders".into(),
        name: "orders-k3f9q".into(),
    };
    CreateVolumeRequest {
        token: token(Kind::Volume, volume_uid),
        zone: "us-east-1a".into(),
        size: 100,
        volume_type: "gp3".into(),
        iops: Some(3000),
        throughput: Some(125),
        snapshot_id: None,
        initialization_rate: None,
        kms_key_id: None,
        tags: identity::tags(&owner, 1, &BTreeMap::new()),
    }
}

/// The token of the first attempt.
pub fn token(kind: Kind, uid: &str) -> ClientToken {
    identity::token(CLUSTER, kind, uid, 1)
}
