//! The file systems of a house, as their kubelets see them.

use std::sync::Arc;

use async_trait::async_trait;
use freehold::api::Size;
use freehold::api::database::Unmeasured;
use freehold::cluster::kubelet::{DiskUsage, Failure, Kubelets};
use freehold_rig::Server;
use k8s_openapi::api::core::v1::Node as CoreNode;
use parking_lot::Mutex;
use serde_json::Value;

/// Each file system has the capacity of its claim, and all of them have as much in them.
#[derive(Clone)]
pub struct Disks {
    server: Server,
    /// In GiB.
    used: Arc<Mutex<u64>>,
}

impl Disks {
    /// The empty file systems of this server's claims.
    pub fn of(server: &Server) -> Self {
        Self { server: server.clone(), used: Arc::default() }
    }

    /// So many GiB are used from now on.
    pub fn fill(&self, gib: u64) {
        *self.used.lock() = gib;
    }
}

#[async_trait]
impl Kubelets for Disks {
    async fn disk_usage(
        &self,
        _core_node: &CoreNode,
        namespace: &str,
        claim: &str,
    ) -> Result<DiskUsage, Failure> {
        let failed = |unmeasured| Failure { unmeasured, why: String::new() };
        let claims = self.server.objects("persistentvolumeclaims");
        let is_it =
            |it: &&Arc<Value>| it["metadata"]["name"] == claim && it["metadata"]["namespace"] == namespace;
        let found = claims.iter().find(is_it).ok_or_else(|| failed(Unmeasured::NotMounted))?;
        let capacity =
            found["status"]["capacity"]["storage"].as_str().ok_or_else(|| failed(Unmeasured::Unreadable))?;
        let capacity = u64::try_from(Size(capacity.to_owned()).gib().unwrap()).unwrap();
        let used = (*self.used.lock()).min(capacity);
        Ok(DiskUsage { capacity: capacity << 30, available: (capacity - used) << 30 })
    }
}
