//! Another operator beside that of a test environment.

use std::sync::Arc;

use ec2sim::JournalEntry;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::TestEnv;
use super::end::TAIL;
use super::start::{ELECTION, through};
use crate::kit::env::Env as _;
use crate::kit::process::{Operator, environment};
use crate::kit::proxy::Proxy;
use crate::kit::tap::Tap;

/// An operator beside that of a test environment, with a way of its own to the API server and an access key
/// of its own in EC2's journal.
pub struct Beside {
    /// What passes between it and the API server.
    pub tap: Arc<Tap>,
    /// Its process.
    pub operator: Operator,
    key: String,
    _proxy: Proxy,
}

impl TestEnv {
    /// Starts another operator with the same settings but these; its identity names its log, too.
    pub async fn start_beside(&self, identity: &str, changes: &[(&str, &str)]) -> Beside {
        let mut settings = self.settings.clone();
        let identity_of = [("leader-elect-identity", identity)];
        for (key, value) in identity_of.iter().chain(changes) {
            let flag = format!("--{key}");
            match settings.iter().position(|setting| *setting == flag) {
                Some(place) => (*value).clone_into(&mut settings[place + 1]),
                None => settings.extend([flag, (*value).to_owned()]),
            }
        }
        let kubeconfig = Kubeconfig::read_from(self.control_plane.operator_kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let tap = Arc::new(Tap::default());
        let upstream = Client::try_from(config).unwrap();
        let proxy = Proxy::before_kubernetes(Arc::clone(&tap), upstream, self.ec2().clone()).await;
        let kubeconfig = through(&proxy, self.folder.path(), &format!("{identity}.kubeconfig"));
        let key = format!("AKIA{}", identity.to_uppercase());
        let environment = environment(&kubeconfig, &self.site.endpoint(), self.site.region(), &key);
        let operator = Operator::start(
            self.control_plane.folder(),
            self.folder.path(),
            identity,
            &settings,
            &environment,
        );
        Beside { tap, operator, key, _proxy: proxy }
    }
}

impl Beside {
    /// Its calls to EC2 so far.
    pub fn calls(&self, env: &TestEnv) -> Vec<JournalEntry> {
        env.ec2().journal().into_iter().filter(|entry| entry.caller == self.key).collect()
    }
}

/// Terms whose end another operator can wait for, and that do not run out while a host stalls for half a
/// minute: nothing starts an operator of a test again that has lost its Lease.
pub fn short_terms() -> [(&'static str, u32); 3] {
    let seconds = [45, 40, 2];
    std::array::from_fn(|place| (ELECTION[place].0, seconds[place]))
}

impl Drop for Beside {
    /// Says what it wrote and logged last when a test fails.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let last = |lines: Vec<String>| lines[lines.len().saturating_sub(TAIL)..].join("\n");
        let writes = self.tap.writes_since(0);
        let writes = writes.iter().map(|it| format!("{} {} {}", it.status, it.method, it.path)).collect();
        eprintln!("==== the writes of the operator beside it\n{}", last(writes));
        let lines = self.operator.log().lines().map(str::to_owned).collect();
        eprintln!("==== the log of the operator beside it\n{}", last(lines));
    }
}
