//! How fast a silent Node is noticed.

use std::time::Duration;

/// How fast a silent Node is noticed.
#[derive(Clone, Copy, Debug)]
pub struct NodeTiming {
    /// A lease's duration; it is renewed every quarter of it. Whole seconds.
    pub lease: Duration,
    /// How often the node controller looks (`--node-monitor-period`).
    pub monitor_period: Duration,
    /// How long a Node may be silent before it is Unknown (`--node-monitor-grace-period`).
    pub monitor_grace: Duration,
}

impl NodeTiming {
    /// As Kubernetes comes: lease 40 s, looked at every 5 s, Unknown after 50 s.
    pub const fn kubernetes() -> Self {
        Self {
            lease: Duration::from_secs(40),
            monitor_period: Duration::from_secs(5),
            monitor_grace: Duration::from_secs(50),
        }
    }

    /// For tests: renewed about seven times as often, looked at so, too, and Unknown only after a silence
    /// that is no pause of a busy host.
    pub const fn fast() -> Self {
        Self {
            lease: Duration::from_secs(6),
            monitor_period: Duration::from_millis(700),
            monitor_grace: Duration::from_secs(20),
        }
    }
}
