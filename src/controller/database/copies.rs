//! The copies of those children of Databases of which an old view costs a repeated write and nothing else:
//! what they should be follows from the Database alone, and nothing is decided by what they were.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::runtime::watcher;
use tokio_util::sync::CancellationToken;

use crate::cluster::mirror::Mirror;

/// What is read for each of them.
pub struct CopiedApis {
    /// The Services.
    pub services: Api<Service>,
    /// The ServiceAccounts.
    pub service_accounts: Api<ServiceAccount>,
    /// The NetworkPolicies.
    pub network_policies: Api<NetworkPolicy>,
    /// The PodDisruptionBudgets.
    pub disruption_budgets: Api<PodDisruptionBudget>,
}

/// The copies. A child that one does not show is read from the API server before it is created.
pub struct Copies {
    /// The Services.
    pub services: Arc<Mirror<Service>>,
    /// The ServiceAccounts.
    pub service_accounts: Arc<Mirror<ServiceAccount>>,
    /// The NetworkPolicies.
    pub network_policies: Arc<Mirror<NetworkPolicy>>,
    /// The PodDisruptionBudgets.
    pub disruption_budgets: Arc<Mirror<PodDisruptionBudget>>,
}

impl Copies {
    /// Copies that hold nothing yet.
    pub fn empty() -> Self {
        Self {
            services: Arc::new(Mirror::empty()),
            service_accounts: Arc::new(Mirror::empty()),
            network_policies: Arc::new(Mirror::empty()),
            disruption_budgets: Arc::new(Mirror::empty()),
        }
    }

    /// Keeps them until `stop`.
    pub async fn run(&self, apis: CopiedApis, config: &watcher::Config, stop: &CancellationToken) {
        let CopiedApis { services, service_accounts, network_policies, disruption_budgets } = apis;
        let config = || config.clone();
        tokio::join!(
            Arc::clone(&self.services).run(services, config(), |it| it.status = None, stop.clone()),
            Arc::clone(&self.service_accounts).run(service_accounts, config(), |_| (), stop.clone()),
            Arc::clone(&self.network_policies).run(network_policies, config(), |_| (), stop.clone()),
            Arc::clone(&self.disruption_budgets).run(
                disruption_budgets,
                config(),
                |it| it.status = None,
                stop.clone()
            ),
        );
    }
}
