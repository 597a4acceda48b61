//! Every setting of the operator: flags with environment variables, printed at start.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

/// The settings of `freehold run`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Settings {
    /// Identifies this cluster in tags and tokens, for ever. Default: the UID of the namespace kube-system.
    #[arg(long, env = "FREEHOLD_CLUSTER_ID")]
    pub cluster_id: Option<String>,

    /// Watch Databases of this namespace only. Default: all namespaces.
    #[arg(long, env = "FREEHOLD_NAMESPACE")]
    pub namespace: Option<String>,

    /// The address of the metrics (`/metrics`) and health (`/livez`, `/readyz`) endpoints.
    #[arg(long, env = "FREEHOLD_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,

    /// The share of EC2's published request limits that this operator takes, above 0 and at most 1: others use the account, too.
    #[arg(long, env = "FREEHOLD_EC2_SHARE", default_value_t = 0.5)]
    pub ec2_share: f64,

    /// How many objects of a kind are worked on at once.
    #[arg(long, env = "FREEHOLD_CONCURRENCY", default_value_t = 16)]
    pub concurrency: u16,

    /// Divides every duration below, for tests against a simulator whose clock runs faster. 1 in production.
    #[arg(long, env = "FREEHOLD_TIME_SCALE", default_value_t = 1.0, hide = true)]
    pub time_scale: f64,

    /// The durations.
    #[command(flatten)]
    pub timing: Timing,
}

/// Every duration that a decision depends on, in seconds on the command line.
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// Between two lists of all instances.
    #[arg(long, env = "FREEHOLD_SWEEP_INSTANCES", default_value = "60", value_parser = seconds)]
    pub sweep_instances: Duration,

    /// Between two lists of all volumes while none is pending.
    #[arg(long, env = "FREEHOLD_SWEEP_VOLUMES", default_value = "300", value_parser = seconds)]
    pub sweep_volumes: Duration,

    /// Between two lists while anything is pending.
    #[arg(long, env = "FREEHOLD_SWEEP_PENDING", default_value = "4", value_parser = seconds)]
    pub sweep_pending: Duration,

    /// How long complete look-ups must stay empty, after the last possible send of a creating call, until what it would have made is
    /// proven absent. AWS accepts a signed request for 15 minutes (Signature Version 4), so never below that in production.
    #[arg(long, env = "FREEHOLD_ABSENCE_WINDOW", default_value = "1200", value_parser = seconds)]
    pub absence_window: Duration,

    /// How long after its start an attempt in doubt may be sent again with its token. AWS does not promise how long a token is
    /// remembered; about 12 hours were seen.
    #[arg(long, env = "FREEHOLD_TOKEN_RESEND", default_value = "21600", value_parser = seconds)]
    pub token_resend: Duration,

    /// How long a type counts as unavailable in a zone after EC2 said that it has no capacity.
    #[arg(long, env = "FREEHOLD_OFFERING_PAUSE", default_value = "180", value_parser = seconds)]
    pub offering_pause: Duration,

    /// How long creating calls pause after a quota error.
    #[arg(long, env = "FREEHOLD_QUOTA_PAUSE", default_value = "600", value_parser = seconds)]
    pub quota_pause: Duration,

    /// How long an object pauses after EC2 refused for lack of permission.
    #[arg(long, env = "FREEHOLD_FORBIDDEN_PAUSE", default_value = "300", value_parser = seconds)]
    pub forbidden_pause: Duration,

    /// How long a running instance may take to register its kubelet.
    #[arg(long, env = "FREEHOLD_REGISTRATION", default_value = "900", value_parser = seconds)]
    pub registration: Duration,

    /// The pause before the first replacement of a machine that never joined; the second takes 5 times, the third 15 times as long.
    #[arg(long, env = "FREEHOLD_REJOIN_PAUSE", default_value = "60", value_parser = seconds)]
    pub rejoin_pause: Duration,

    /// How long a machine's kubelet must be silent until the machine of a deleted Node is terminated without waiting for its pods.
    #[arg(long, env = "FREEHOLD_SILENCE", default_value = "300", value_parser = seconds)]
    pub silence: Duration,

    /// How long a machine that EC2 shows running must be impaired, not Ready, or without its Kubernetes node, until it is given up: what
    /// comes back within minutes (a reboot, a short partition) costs less than a move.
    #[arg(long, env = "FREEHOLD_LOSS_GRACE", default_value = "300", value_parser = seconds)]
    pub loss_grace: Duration,

    /// How long each stage of a fence lasts: stop, then stop by force, then terminate. EC2 stops a healthy instance within a minute.
    #[arg(long, env = "FREEHOLD_FENCE_STEP", default_value = "120", value_parser = seconds)]
    pub fence_step: Duration,

    /// Between two looks at the kubelets' Leases: one list from the API server's cache for the whole fleet. Real time: kubelets do not run
    /// faster with a faster clock.
    #[arg(long, env = "FREEHOLD_LEASE_LOOK", default_value = "5", value_parser = seconds)]
    pub lease_look: Duration,

    /// How long a kubelet's Lease may stay the same until EC2 is asked about its machine. Kubelets renew every 10 s, and a change is seen up
    /// to one look later. Real time, too.
    #[arg(long, env = "FREEHOLD_LEASE_LATE", default_value = "17", value_parser = seconds)]
    pub lease_late: Duration,

    /// How long edits of a volume are gathered before they become one ModifyVolume.
    #[arg(long, env = "FREEHOLD_COALESCE", default_value = "3", value_parser = seconds)]
    pub coalesce: Duration,

    /// How long EC2 may take to show a modification whose answer may be lost, before the same is asked for again.
    #[arg(long, env = "FREEHOLD_MODIFICATION_DOUBT", default_value = "60", value_parser = seconds)]
    pub modification_doubt: Duration,

    /// The rolling window in which EBS allows four modifications of a volume.
    #[arg(long, env = "FREEHOLD_MODIFICATION_WINDOW", default_value = "86400", value_parser = seconds)]
    pub modification_window: Duration,

    /// Between two looks at something that is awaited and wakes nobody when it changes.
    #[arg(long, env = "FREEHOLD_RECHECK", default_value = "5", value_parser = seconds)]
    pub recheck: Duration,

    /// Between two passes over an object that nothing has changed on.
    #[arg(long, env = "FREEHOLD_RESYNC", default_value = "900", value_parser = seconds)]
    pub resync: Duration,

    /// The longest that one pass may take.
    #[arg(long, env = "FREEHOLD_PASS_TIMEOUT", default_value = "60", value_parser = seconds)]
    pub pass_timeout: Duration,

    /// The first pause after a failed pass; it doubles with each failure.
    #[arg(long, env = "FREEHOLD_RETRY_FIRST", default_value = "1", value_parser = seconds)]
    pub retry_first: Duration,

    /// The longest pause after a failed pass.
    #[arg(long, env = "FREEHOLD_RETRY_LONGEST", default_value = "300", value_parser = seconds)]
    pub retry_longest: Duration,
}

/// For how many intervals between sweeps what EC2 showed is trusted with the decision to give a machine up.
const SWEEPS_OF_TRUST: u32 = 3;

impl Timing {
    /// How old what EC2 showed of machines may be for the decision to give one up.
    pub fn trust(&self) -> Duration {
        self.sweep_instances.saturating_mul(SWEEPS_OF_TRUST)
    }

    /// The same proportions, this many times faster.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let scale = |duration: Duration| duration.div_f64(factor);
        Self {
            sweep_instances: scale(self.sweep_instances),
            sweep_volumes: scale(self.sweep_volumes),
            sweep_pending: scale(self.sweep_pending),
            absence_window: scale(self.absence_window),
            token_resend: scale(self.token_resend),
            offering_pause: scale(self.offering_pause),
            quota_pause: scale(self.quota_pause),
            forbidden_pause: scale(self.forbidden_pause),
            registration: scale(self.registration),
            rejoin_pause: scale(self.rejoin_pause),
            silence: scale(self.silence),
            loss_grace: scale(self.loss_grace),
            fence_step: scale(self.fence_step),
            // Kubelets renew their Leases in real time.
            lease_look: self.lease_look,
            lease_late: self.lease_late,
            coalesce: scale(self.coalesce),
            modification_doubt: scale(self.modification_doubt),
            modification_window: scale(self.modification_window),
            recheck: scale(self.recheck),
            resync: scale(self.resync),
            // A pass talks to a real API server however fast the clock runs.
            pass_timeout: self.pass_timeout,
            retry_first: scale(self.retry_first),
            retry_longest: scale(self.retry_longest),
        }
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            sweep_instances: Duration::from_secs(60),
            sweep_volumes: Duration::from_secs(300),
            sweep_pending: Duration::from_secs(4),
            absence_window: Duration::from_secs(1200),
            token_resend: Duration::from_secs(21600),
            offering_pause: Duration::from_secs(180),
            quota_pause: Duration::from_secs(600),
            forbidden_pause: Duration::from_secs(300),
            registration: Duration::from_secs(900),
            rejoin_pause: Duration::from_secs(60),
            silence: Duration::from_secs(300),
            loss_grace: Duration::from_secs(300),
            fence_step: Duration::from_secs(120),
            lease_look: Duration::from_secs(5),
            lease_late: Duration::from_secs(17),
            coalesce: Duration::from_secs(3),
            modification_doubt: Duration::from_secs(60),
            modification_window: Duration::from_secs(86400),
            recheck: Duration::from_secs(5),
            resync: Duration::from_secs(900),
            pass_timeout: Duration::from_secs(60),
            retry_first: Duration::from_secs(1),
            retry_longest: Duration::from_secs(300),
        }
    }
}

/// Reads a duration in seconds, with a fraction if need be.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{text:?} is not a duration: it must be zero or more seconds"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    #[test]
    fn the_flags_defaults_are_the_librarys_defaults() {
        let line = Line::parse_from(["freehold"]);
        assert_eq!(line.settings.timing, Timing::default());
    }

    #[test]
    fn a_negative_duration_is_refused_with_a_sentence() {
        assert!(seconds("-1").is_err_and(|text| text.contains("zero or more seconds")));
    }
}
