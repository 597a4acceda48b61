//! The addresses of the simulated pods.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

/// Gives each pod an address of its own, in 10.128.0.0/9.
#[derive(Debug, Default)]
pub struct Addresses {
    last: u32,
}

impl Addresses {
    /// Never gives an address again that a pod of `pods` (of an earlier run of this box) has.
    pub fn learn(&mut self, pods: &[Arc<Pod>]) {
        let taken = pods
            .iter()
            .filter_map(|pod| pod.status.as_ref()?.pod_ip.as_deref()?.parse::<std::net::Ipv4Addr>().ok());
        let highest = taken.map(|address| u32::from(address) & 0x007f_ffff).max().unwrap_or_default();
        self.last = self.last.max(highest);
    }

    pub fn next(&mut self) -> String {
        self.last += 1;
        std::net::Ipv4Addr::from(0x0a80_0000 | (self.last & 0x007f_ffff)).to_string()
    }
}
