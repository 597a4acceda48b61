//! An environment on the API server in memory and in virtual time: a slow host changes nothing, an hour takes
//! a fraction of a second, and at the end every rule is judged.

use std::future::Future;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ec2sim::{Limits, Options, Simulator};
use freehold::api::Node;
use freehold::api::keys::FINALIZER;
use freehold_box::account::site::node_class;
use freehold_box::legacy::{CALLER, Disk, INSTANCE_TYPE, Legacy, Order, SIZE_GIB, user_data};
use freehold_rig::{Verb, Write};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::DeleteParams;
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::sleep;

use super::env::Env;
use super::statements;
use super::wait::{seen, within};
use crate::lives::blow::Blow;
use crate::lives::house::{self, CLUSTER, House, NAMESPACE, SLOW_ELECTION};
use crate::lives::lies::Lies;
use crate::lives::life::CALM;

/// The environment.
pub struct RigEnv {
    /// What it stands on.
    pub house: House,
}

/// Runs a scenario when there is a processor for it; fails with its story.
pub fn run<F: Future<Output = ()>>(scenario: impl FnOnce() -> F + Send) {
    if let Err(failure) = house::run(scenario) {
        panic!("{}\n{}", failure.story, failure.why);
    }
}

impl RigEnv {
    /// An environment with a running operator of its namespace.
    pub async fn start() -> Self {
        Self::start_with(&["--namespace", NAMESPACE], Limits::NONE).await
    }

    /// The same with an operator of all namespaces, which looks after the NodeClasses, too.
    pub async fn start_of_all() -> Self {
        Self::start_with(&[], Limits::NONE).await
    }

    /// The same with these flags of the operator, in an account with these limits.
    pub async fn start_with(flags: &[&str], limits: Limits) -> Self {
        Self::start_in(flags, Options { limits, ..Options::default() }).await
    }

    /// The same in an account that is otherwise than usual; its clock and its delays are the rig's.
    pub async fn start_in(flags: &[&str], account: Options) -> Self {
        let mut env = Self::build_in(account).await;
        let flags: Vec<&str> = SLOW_ELECTION.iter().chain(flags).copied().collect();
        env.house.start_with(1, &flags);
        env
    }

    /// The same before an operator runs.
    pub async fn build() -> Self {
        Self::build_in(Options { limits: Limits::NONE, ..Options::default() }).await
    }

    /// The operator has the policy that is shipped, unless the account has another one for it.
    async fn build_in(account: Options) -> Self {
        Self { house: House::build_as(1, Lies::none(), statements::enforced(account, CLUSTER)).await }
    }

    /// Starts the operator of its namespace.
    pub fn start_operator(&mut self) {
        let flags: Vec<&str> = SLOW_ELECTION.iter().copied().chain(["--namespace", NAMESPACE]).collect();
        self.house.start_with(1, &flags);
    }

    /// Kills the operator, which is back after an hour.
    pub fn kill_operator(&self) {
        self.house.chaos.kill(Duration::from_secs(3600));
    }

    /// Kills the operator after so many more of its writes, which are carried out and answered; it is back
    /// after a minute.
    pub fn kill_operator_after(&self, writes: usize) {
        self.house.chaos.strike_later(writes, Blow::After, Duration::from_secs(60));
    }

    /// Calls EC2 as this caller; the ids that it answers with.
    pub fn call(&self, caller: &str, parameters: &[(&str, &str)]) -> Vec<String> {
        self.ec2().call(caller, parameters).unwrap().resource_ids()
    }

    /// Launches an instance in the first subnet as a person does; its id.
    pub fn launch(&self, caller: &str, instance_type: &str, name: &str, user_data: &str) -> String {
        let (world, user_data) = (self.ec2().world(), STANDARD.encode(user_data));
        let launch = [
            ("Action", "RunInstances"),
            ("ImageId", world.images[0].id.as_str()),
            ("InstanceType", instance_type),
            ("SubnetId", world.subnets[0].id.as_str()),
            ("MinCount", "1"),
            ("MaxCount", "1"),
            ("UserData", &user_data),
            ("TagSpecification.1.ResourceType", "instance"),
            ("TagSpecification.1.Tag.1.Key", "Name"),
            ("TagSpecification.1.Tag.1.Value", name),
        ];
        self.call(caller, &launch).into_iter().find(|id| id.starts_with("i-")).unwrap()
    }

    /// Waits until the one database runs on a machine of this type, and the old machine is over.
    pub async fn moved_to(&self, instance_type: &str) {
        within(CALM, "the database on another machine, and the old one over", || async {
            let live = self.live_instances();
            let is_moved = live.len() == 1 && live[0].instance_type == instance_type;
            let nodes = self.list::<Node>().await.len();
            seen((is_moved && nodes == 1).then_some(()), || format!("{live:?}, {nodes} Nodes"))
        })
        .await;
    }

    /// What the operator that runs now measures, as its endpoint says it.
    pub fn metrics(&self) -> String {
        self.house.metrics.lock().text().unwrap()
    }

    /// The class of this name, as it is when nobody has edited it.
    pub fn node_class(&self, name: &str) -> Value {
        node_class(name, &self.ec2().world())
    }

    /// Lets time pass, and counts the operator's calls of this action meanwhile.
    pub async fn calls_within(&self, action: &str, time: Duration) -> usize {
        let mark = self.mark();
        sleep(time).await;
        self.calls_since(mark).iter().filter(|entry| entry.action == action).count()
    }

    /// When the operator first wrote this to an object, with this in the body, and succeeded.
    pub fn wrote(&self, verb: Verb, resource: &str, name: &str, part: &str) -> Option<Timestamp> {
        let is_it = |write: &&Write| {
            write.caller.starts_with("operator-")
                && write.verb == verb
                && write.resource == resource
                && write.name == name
                && write.code < 300
                && write.body.to_string().contains(part)
        };
        self.house.server.journal().iter().find(is_it).map(|write| write.at)
    }

    /// Deletes a Database.
    pub async fn delete(&self, name: &str) {
        self.house.delete_in(NAMESPACE, name).await;
    }

    /// Deletes the namespace, and waits until it is gone with all that was in it.
    pub async fn delete_namespace(&self) {
        let namespaces = Api::<Namespace>::all(self.client());
        namespaces.delete(NAMESPACE, &DeleteParams::default()).await.unwrap();
        let is_gone = |it: &House| it.server.object("namespaces", "", NAMESPACE).is_none();
        self.house.until("the namespace is gone", CALM, is_gone).await;
    }

    /// Waits until a Database is gone, and its children and its hold on Kubernetes nodes with it.
    pub async fn gone(&self, name: &str) {
        let is_gone = |it: &House| it.server.object("databases.freehold.dev", NAMESPACE, name).is_none();
        self.house.until(&format!("{name} is gone"), CALM, is_gone).await;
        let all = |kind: &str| self.house.server.objects(kind);
        let is_its = |it: &Value| it["metadata"]["labels"]["freehold.dev/database"] == name;
        for kind in ["nodes.freehold.dev", "volumes.freehold.dev"] {
            let left: Vec<_> = all(kind).into_iter().filter(|it| is_its(it)).collect();
            assert!(left.is_empty(), "a child outlives its Database: {left:?}");
        }
        let live: Vec<String> = self.live_instances().into_iter().map(|it| it.id).collect();
        let is_live = |it: &Value| {
            let provider_id = it["spec"]["providerID"].as_str().unwrap_or_default();
            live.iter().any(|id| provider_id.ends_with(id))
        };
        let is_held = |it: &Value| it["metadata"]["finalizers"].to_string().contains(FINALIZER);
        let held: Vec<_> = all("nodes").into_iter().filter(|it| is_held(it) && !is_live(it)).collect();
        assert!(held.is_empty(), "the machines are gone, and our finalizer still holds {held:?}");
    }

    /// The end of a scenario: nothing is written any more, and no rule was broken on the way.
    pub async fn close(self) {
        self.house.rest().await;
        self.house.judge();
        statements::note(&self.house.ec2);
    }
}

impl Env for RigEnv {
    fn client(&self) -> Client {
        self.house.person.clone()
    }

    fn namespace(&self) -> &'static str {
        NAMESPACE
    }

    fn class(&self) -> &'static str {
        "default"
    }

    fn ec2(&self) -> &Simulator {
        &self.house.ec2
    }

    fn cluster(&self) -> &'static str {
        CLUSTER
    }

    fn limit(&self) -> Duration {
        CALM
    }

    async fn legacy(&self, order: Order<'_>) -> Legacy {
        let instance = self.launch(CALLER, INSTANCE_TYPE, order.name, &user_data(order.name));
        let mut disk = None;
        if order.disk != Disk::Claimed {
            let (zone, size) = (self.ec2().world().subnets[0].zone.clone(), SIZE_GIB.to_string());
            let create = [
                ("Action", "CreateVolume"),
                ("AvailabilityZone", zone.as_str()),
                ("Size", &size),
                ("VolumeType", "gp3"),
            ];
            disk = Some((self.call(CALLER, &create).remove(0), zone));
        }
        Legacy::create_on(&self.client(), order, instance, disk).await.unwrap()
    }
}
