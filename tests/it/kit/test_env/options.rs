//! How a test environment differs from the usual one.

use std::collections::BTreeMap;
use std::time::Duration;

use freehold_box::account::SiteOptions;

use crate::kit::permits::Share;

/// How a test environment differs from the usual one.
pub struct Options {
    /// How much faster than in production time passes, for the operator and for EC2.
    pub scale: u32,
    /// Settings of the operator by their flags; the seconds are unscaled.
    pub settings: BTreeMap<&'static str, u32>,
    /// EC2's own settings; its clock runs at the scale.
    pub simulator: ec2sim::Options,
    /// The operator's calls to EC2 go by the tap, too.
    pub tapped_ec2: bool,
    /// From a machine's start to its Node, on the wall clock.
    pub boot: Duration,
    /// The operator is a service account with the rights that the chart gives it for the namespaces that it
    /// watches.
    pub has_own_rights: bool,
    /// A second namespace that the operator watches, beside the test environment's own.
    pub second_namespace: Option<&'static str>,
    /// The operator watches every namespace, and so looks after the NodeClasses; only on a control plane of
    /// its own, since it would see the other tests' Databases.
    pub watches_all: bool,
    /// How much of the host it needs.
    pub share: Share,
}

impl Default for Options {
    /// Sixty times as fast. Some proportions are not the default ones, so that a machine that compiles
    /// meanwhile can keep up: look-ups while something is pending are a third of a second apart, and a
    /// machine has two minutes to join, and to be well again.
    fn default() -> Self {
        let settings = BTreeMap::from([
            ("pending-sync-interval", 20),
            ("registration-timeout", 7200),
            ("loss-grace-period", 7200),
        ]);
        Self {
            scale: 60,
            settings,
            simulator: ec2sim::Options { delays: ec2sim::Delays::realistic(), ..ec2sim::Options::default() },
            tapped_ec2: false,
            boot: SiteOptions::fast().boot,
            has_own_rights: false,
            second_namespace: None,
            watches_all: false,
            share: Share::One,
        }
    }
}

impl Options {
    /// The usual ones, but for these settings in seconds.
    pub fn with<const N: usize>(settings: [(&'static str, u32); N]) -> Self {
        let mut options = Self::default();
        options.settings.extend(settings);
        options
    }
}
