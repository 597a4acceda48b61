//! An environment on the API server in memory and in virtual time: a slow host changes nothing, an hour takes
//! a fraction of a second, and at the end every rule is judged.

use std::future::Future;
use std::time::Duration;

use ec2sim::{Limits, Simulator};
use freehold_box::account::site::node_class;
use freehold_rig::{Verb, Write};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use tokio::time::sleep;

use super::env::Env;
use crate::lives::house::{self, House, NAMESPACE, SLOW_ELECTION};
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
        let mut house = House::build_in(1, Lies::none(), limits).await;
        let flags: Vec<&str> = SLOW_ELECTION.iter().chain(flags).copied().collect();
        house.start_with(1, &flags);
        Self { house }
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

    /// Waits until a Database is gone.
    pub async fn gone(&self, name: &str) {
        let is_gone = |it: &House| it.server.object("databases.freehold.dev", NAMESPACE, name).is_none();
        self.house.until(&format!("{name} is gone"), CALM, is_gone).await;
    }

    /// The end of a scenario: nothing is written any more, and no rule was broken on the way.
    pub async fn close(self) {
        self.house.rest().await;
        self.house.judge();
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

    fn limit(&self) -> Duration {
        CALM
    }
}
