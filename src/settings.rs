//! Every setting of the operator: flags with environment variables, printed at start.

mod kubelets;
mod network;

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use serde::Serialize;

pub use self::kubelets::Kubelets;
pub use self::network::{Network, Peers};

/// The settings of `freehold run`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Settings {
    /// Identifies this cluster in tags and tokens, for ever. Default: the UID of the namespace kube-system.
    #[arg(long, env = "FREEHOLD_CLUSTER_ID")]
    pub cluster_id: Option<String>,

    /// Watch Databases of these namespaces only: comma-separated, or the flag more than once. Default: all
    /// namespaces.
    #[arg(long, env = "FREEHOLD_NAMESPACE", value_name = "NAMESPACE", value_delimiter = ',',
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub namespace: Vec<String>,

    /// How the log is written.
    #[arg(long, env = "FREEHOLD_LOG_FORMAT", value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,

    /// The address of the metrics (`/metrics`) and health (`/livez`, `/readyz`) endpoints.
    #[arg(long, env = "FREEHOLD_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,

    /// The share of EC2's published request limits that this operator uses, above 0 and at most 1: other
    /// programs use the account, too.
    #[arg(long, env = "FREEHOLD_EC2_SHARE", default_value_t = 0.5)]
    pub ec2_share: f64,

    /// How many objects of a kind are reconciled at once; with `--namespace`, in each namespace.
    #[arg(long, env = "FREEHOLD_CONCURRENCY", default_value_t = 16, value_parser = value_parser!(u16).range(1..))]
    pub concurrency: u16,

    /// Divides every duration below, for tests against a simulator whose clock runs faster. 1 in production.
    #[arg(long, env = "FREEHOLD_TIME_SCALE", default_value_t = 1.0, hide = true)]
    pub time_scale: f64,

    /// The PriorityClass of databases' pods: nothing of a lower priority keeps them off their machines, and
    /// nothing of theirs preempts them there. It must exist. A pod that exists keeps its own until it is next
    /// replaced. Default: none.
    #[arg(long, env = "FREEHOLD_DATABASE_PRIORITY_CLASS")]
    pub database_priority_class: Option<String>,

    /// How kubelets are asked how much of a file system is used.
    #[command(flatten)]
    pub kubelets: Kubelets,

    /// What the databases' NetworkPolicies admit beside their clients.
    #[command(flatten)]
    pub network: Network,

    /// Which operator acts.
    #[command(flatten)]
    pub election: Election,

    /// The durations.
    #[command(flatten)]
    pub timing: Timing,
}

/// How the operator that acts is chosen: the names and the meaning of the durations are those of Kubernetes'
/// own controllers. All of it is real time, whatever the time scale: other operators and the API server are.
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
pub struct Election {
    /// Names this process in the Lease. It must be the name of one running process at a time: a process takes
    /// a Lease of its own name at once. In the chart the pod's name. Default: the host's name and a random
    /// number, so that a process that is started again waits for the end of the former one's Lease.
    #[arg(long, env = "FREEHOLD_LEADER_ELECT_IDENTITY")]
    pub leader_elect_identity: Option<String>,

    /// Names this installation in the Lease, the same for all of its replicas: an operator of another one
    /// does not stand by but refuses to act, and says so. In the chart the namespace and the name of the
    /// Deployment.
    #[arg(long, env = "FREEHOLD_INSTALLATION", default_value = "", hide_default_value = true)]
    pub installation: String,

    /// How long an operator that stands by waits since the Lease last changed until it takes it: with a
    /// second or two for the start, this is how long nothing acts after the leader was killed.
    #[arg(long, env = "FREEHOLD_LEADER_ELECT_LEASE_DURATION", default_value = "10", value_parser = seconds)]
    pub leader_elect_lease_duration: Duration,

    /// How long after its last renewal the leader acts. It ends then. The API server may take half of it for
    /// an answer. The rest of the lease duration is for clocks that do not run equally fast; at least a tenth
    /// of it.
    #[arg(long, env = "FREEHOLD_LEADER_ELECT_RENEW_DEADLINE", default_value = "7", value_parser = seconds)]
    pub leader_elect_renew_deadline: Duration,

    /// The interval between two renewals, and between two looks of an operator that stands by. At most half
    /// of the renew deadline.
    #[arg(long, env = "FREEHOLD_LEADER_ELECT_RETRY_PERIOD", default_value = "2", value_parser = seconds)]
    pub leader_elect_retry_period: Duration,
}

impl Election {
    /// The name of this process; without a configured one it is another one each time.
    pub fn identity(&self) -> String {
        self.leader_elect_identity.clone().unwrap_or_else(|| {
            let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            format!("{}_{:08x}", host.trim(), getrandom::u32().unwrap_or_default())
        })
    }

    /// What makes no sense, as a sentence that names the flag.
    pub fn fault(&self) -> Option<String> {
        let (duration, deadline) = (self.leader_elect_lease_duration, self.leader_elect_renew_deadline);
        if duration.mul_f64(0.9) < deadline {
            return Some(format!(
                "--leader-elect-renew-deadline is {}: it must be at most nine tenths of \
                --leader-elect-lease-duration ({})",
                deadline.as_secs_f64(),
                duration.as_secs_f64()
            ));
        }
        let period = self.leader_elect_retry_period;
        if period.is_zero() || period * 2 > deadline {
            return Some(format!(
                "--leader-elect-retry-period is {}: it must be above 0 and at most half of \
                --leader-elect-renew-deadline ({})",
                period.as_secs_f64(),
                deadline.as_secs_f64()
            ));
        }
        None
    }
}

impl Default for Election {
    fn default() -> Self {
        Self {
            leader_elect_identity: None,
            installation: String::new(),
            leader_elect_lease_duration: Duration::from_secs(10),
            leader_elect_renew_deadline: Duration::from_secs(7),
            leader_elect_retry_period: Duration::from_secs(2),
        }
    }
}

/// How the log is written, to standard error.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object a line, for programs that collect logs.
    Json,
    /// One line of text for a person, in colour on a terminal.
    Text,
}

/// Every duration that a decision depends on, in seconds on the command line.
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// The interval between two EC2 inventory syncs of all instances.
    #[arg(long, env = "FREEHOLD_INSTANCE_SYNC_INTERVAL", default_value = "60", value_parser = seconds)]
    pub instance_sync_interval: Duration,

    /// The interval between two EC2 inventory syncs of all volumes while none is pending.
    #[arg(long, env = "FREEHOLD_VOLUME_SYNC_INTERVAL", default_value = "300", value_parser = seconds)]
    pub volume_sync_interval: Duration,

    /// The interval between two EC2 inventory syncs while anything is pending.
    #[arg(long, env = "FREEHOLD_PENDING_SYNC_INTERVAL", default_value = "4", value_parser = seconds)]
    pub pending_sync_interval: Duration,

    /// How long complete look-ups must stay empty, after the last possible send of a creating call, until
    /// what it would have created is proven absent. AWS accepts a signed request for 15 minutes (Signature
    /// Version 4), so never below that in production.
    #[arg(long, env = "FREEHOLD_ABSENCE_WINDOW", default_value = "1200", value_parser = seconds)]
    pub absence_window: Duration,

    /// How long after its start an unconfirmed attempt may be sent again with its client token. AWS does not
    /// promise how long a token is remembered; about 12 hours were observed.
    #[arg(long, env = "FREEHOLD_CLIENT_TOKEN_MAX_AGE", default_value = "21600", value_parser = seconds)]
    pub client_token_max_age: Duration,

    /// How long an offering (an instance type in a zone) counts as unavailable after EC2 reported that it has
    /// no capacity; twenty times as long after EC2 reported that it does not support it there.
    #[arg(long, env = "FREEHOLD_UNAVAILABLE_OFFERING_TTL", default_value = "180", value_parser = seconds)]
    pub unavailable_offering_ttl: Duration,

    /// How long a new database does not request as much of a quota of the AWS account again after EC2
    /// reported that the quota is reached, for itself or for another object; and a change of a volume, after
    /// its own refusal.
    #[arg(long, env = "FREEHOLD_QUOTA_RETRY_INTERVAL", default_value = "600", value_parser = seconds)]
    pub quota_retry_interval: Duration,

    /// The interval between two requests for an object after EC2 refused for lack of permission.
    #[arg(long, env = "FREEHOLD_FORBIDDEN_RETRY_INTERVAL", default_value = "300", value_parser = seconds)]
    pub forbidden_retry_interval: Duration,

    /// How long a running instance may take to register its kubelet.
    #[arg(long, env = "FREEHOLD_REGISTRATION_TIMEOUT", default_value = "900", value_parser = seconds)]
    pub registration_timeout: Duration,

    /// How long the pod of an adopted database may take to accept connections, on a machine and with a volume
    /// that are ready, until it goes back to what it ran as before; four times as long for an engine that
    /// runs, which may be recovering. Long enough to pull a large image, and for an engine that recovers as
    /// long as Freehold's own start-up probes allow.
    #[arg(long, env = "FREEHOLD_ADOPTED_START_TIMEOUT", default_value = "900", value_parser = seconds)]
    pub adopted_start_timeout: Duration,

    /// How long the kubelet may have no image of a changed spec.engine to start, as when it cannot be pulled,
    /// until the database goes back to the engine that it served as. Counted from when the pod could start
    /// its container: it must be longer than the slowest pull.
    #[arg(long, env = "FREEHOLD_IMAGE_PULL_TIMEOUT", default_value = "300", value_parser = seconds)]
    pub image_pull_timeout: Duration,

    /// The backoff before a machine that never joined, or one that took a lost one's place and was soon lost,
    /// is replaced; the second takes 5 times, the third 15 times, and each further one 60 times as long.
    #[arg(long, env = "FREEHOLD_RELAUNCH_BACKOFF", default_value = "60", value_parser = seconds)]
    pub relaunch_backoff: Duration,

    /// How long a machine's kubelet must not report until the machine of a deleted Node is terminated without
    /// waiting for its pods.
    #[arg(long, env = "FREEHOLD_KUBELET_SILENCE_TIMEOUT", default_value = "300", value_parser = seconds)]
    pub kubelet_silence_timeout: Duration,

    /// The grace period of a machine that EC2 shows running: how long it must be impaired, not Ready, or
    /// without its Kubernetes node, until it is declared lost. What comes back within minutes (a reboot, a
    /// short partition) costs less than a move.
    #[arg(long, env = "FREEHOLD_LOSS_GRACE_PERIOD", default_value = "300", value_parser = seconds)]
    pub loss_grace_period: Duration,

    /// How long each step of a fence may take until the next one: stop, stop by force, terminate. EC2 stops a
    /// healthy instance within a minute.
    #[arg(long, env = "FREEHOLD_FENCE_STEP_TIMEOUT", default_value = "120", value_parser = seconds)]
    pub fence_step_timeout: Duration,

    /// The interval between two reads of the kubelets' Leases: one list from the API server's cache for the
    /// whole fleet. Real time: kubelets do not run faster with a faster clock.
    #[arg(long, env = "FREEHOLD_LEASE_POLL_INTERVAL", default_value = "5", value_parser = seconds)]
    pub lease_poll_interval: Duration,

    /// The interval between two readings of how much of a file system is used, for databases whose volume
    /// grows by itself (spec.storage.autoGrow). Each is a request to the kubelet of the machine, which itself
    /// looks once a minute.
    #[arg(long, env = "FREEHOLD_DISK_USAGE_INTERVAL", default_value = "60", value_parser = interval)]
    pub disk_usage_interval: Duration,

    /// How long a kubelet's Lease may stay the same until the state of its machine is requested from EC2.
    /// Kubelets renew every 10 s, and a change is seen up to one poll interval later. Real time, too.
    #[arg(long, env = "FREEHOLD_LEASE_STALE_AFTER", default_value = "17", value_parser = seconds)]
    pub lease_stale_after: Duration,

    /// The longest grace of a foreign pod that is deleted from a database's machine: it ends as if its own
    /// were not longer, and the machine's end waits for it that long and no longer. Kubernetes' own default.
    /// Real time, too: kubelets count it.
    #[arg(long, env = "FREEHOLD_FOREIGN_POD_GRACE", default_value = "30", value_parser = seconds)]
    pub foreign_pod_grace: Duration,

    /// The window in which edits of a volume are combined into one ModifyVolume.
    #[arg(long, env = "FREEHOLD_MODIFY_COALESCE_WINDOW", default_value = "3", value_parser = seconds)]
    pub modify_coalesce_window: Duration,

    /// How long EC2 may take to show an unconfirmed modification, before it is requested again.
    #[arg(long, env = "FREEHOLD_MODIFY_UNCONFIRMED_TIMEOUT", default_value = "60", value_parser = seconds)]
    pub modify_unconfirmed_timeout: Duration,

    /// How long the engine may hold a checkpoint for a Backup until it is released, whether a snapshot has
    /// started or not, and the pause before the next one. QuestDB frees no space while it holds one. A
    /// snapshot starts within a second, mostly.
    #[arg(long, env = "FREEHOLD_CHECKPOINT_HOLD_LIMIT", default_value = "300", value_parser = seconds)]
    pub checkpoint_hold_limit: Duration,

    /// The rolling window in which EBS allows four modifications of a volume.
    #[arg(long, env = "FREEHOLD_MODIFY_BUDGET_WINDOW", default_value = "86400", value_parser = seconds)]
    pub modify_budget_window: Duration,

    /// The interval between two reconciles of an object that waits for something that is not watched.
    #[arg(long, env = "FREEHOLD_REQUEUE_INTERVAL", default_value = "5", value_parser = seconds)]
    pub requeue_interval: Duration,

    /// The interval between two reconciles of an object on which nothing has changed.
    #[arg(long, env = "FREEHOLD_RESYNC_INTERVAL", default_value = "900", value_parser = seconds)]
    pub resync_interval: Duration,

    /// The longest time that one reconcile may take.
    #[arg(long, env = "FREEHOLD_RECONCILE_TIMEOUT", default_value = "60", value_parser = seconds)]
    pub reconcile_timeout: Duration,

    /// The backoff after the first failed reconcile; it doubles with each failure.
    #[arg(long, env = "FREEHOLD_RETRY_INITIAL_BACKOFF", default_value = "1", value_parser = seconds)]
    pub retry_initial_backoff: Duration,

    /// The longest backoff after a failed reconcile; a tenth of it for a Node whose machine looks lost.
    #[arg(long, env = "FREEHOLD_RETRY_MAX_BACKOFF", default_value = "300", value_parser = seconds)]
    pub retry_max_backoff: Duration,
}

/// For how many sync intervals the EC2 inventory is trusted with the decision that a machine is lost.
const TRUSTED_SYNC_INTERVALS: u32 = 3;

impl Timing {
    /// How old the EC2 inventory may be for the decision that a machine is lost.
    pub fn trust(&self) -> Duration {
        self.instance_sync_interval.saturating_mul(TRUSTED_SYNC_INTERVALS)
    }

    /// The same proportions, this many times faster.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let scale = |duration: Duration| duration.div_f64(factor);
        Self {
            instance_sync_interval: scale(self.instance_sync_interval),
            volume_sync_interval: scale(self.volume_sync_interval),
            pending_sync_interval: scale(self.pending_sync_interval),
            absence_window: scale(self.absence_window),
            client_token_max_age: scale(self.client_token_max_age),
            unavailable_offering_ttl: scale(self.unavailable_offering_ttl),
            quota_retry_interval: scale(self.quota_retry_interval),
            forbidden_retry_interval: scale(self.forbidden_retry_interval),
            registration_timeout: scale(self.registration_timeout),
            adopted_start_timeout: scale(self.adopted_start_timeout),
            image_pull_timeout: scale(self.image_pull_timeout),
            relaunch_backoff: scale(self.relaunch_backoff),
            kubelet_silence_timeout: scale(self.kubelet_silence_timeout),
            loss_grace_period: scale(self.loss_grace_period),
            fence_step_timeout: scale(self.fence_step_timeout),
            // Kubelets renew their Leases in real time.
            lease_poll_interval: self.lease_poll_interval,
            lease_stale_after: self.lease_stale_after,
            disk_usage_interval: scale(self.disk_usage_interval),
            foreign_pod_grace: self.foreign_pod_grace,
            modify_coalesce_window: scale(self.modify_coalesce_window),
            modify_unconfirmed_timeout: scale(self.modify_unconfirmed_timeout),
            checkpoint_hold_limit: scale(self.checkpoint_hold_limit),
            modify_budget_window: scale(self.modify_budget_window),
            requeue_interval: scale(self.requeue_interval),
            resync_interval: scale(self.resync_interval),
            // A pass calls a real API server however fast the clock runs.
            reconcile_timeout: self.reconcile_timeout,
            retry_initial_backoff: scale(self.retry_initial_backoff),
            retry_max_backoff: scale(self.retry_max_backoff),
        }
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            instance_sync_interval: Duration::from_secs(60),
            volume_sync_interval: Duration::from_secs(300),
            pending_sync_interval: Duration::from_secs(4),
            absence_window: Duration::from_secs(1200),
            client_token_max_age: Duration::from_secs(21600),
            unavailable_offering_ttl: Duration::from_secs(180),
            quota_retry_interval: Duration::from_secs(600),
            forbidden_retry_interval: Duration::from_secs(300),
            registration_timeout: Duration::from_secs(900),
            adopted_start_timeout: Duration::from_secs(900),
            image_pull_timeout: Duration::from_secs(300),
            relaunch_backoff: Duration::from_secs(60),
            kubelet_silence_timeout: Duration::from_secs(300),
            loss_grace_period: Duration::from_secs(300),
            fence_step_timeout: Duration::from_secs(120),
            lease_poll_interval: Duration::from_secs(5),
            lease_stale_after: Duration::from_secs(17),
            disk_usage_interval: Duration::from_secs(60),
            foreign_pod_grace: Duration::from_secs(30),
            modify_coalesce_window: Duration::from_secs(3),
            modify_unconfirmed_timeout: Duration::from_secs(60),
            checkpoint_hold_limit: Duration::from_secs(300),
            modify_budget_window: Duration::from_secs(86400),
            requeue_interval: Duration::from_secs(5),
            resync_interval: Duration::from_secs(900),
            reconcile_timeout: Duration::from_secs(60),
            retry_initial_backoff: Duration::from_secs(1),
            retry_max_backoff: Duration::from_secs(300),
        }
    }
}

/// Reads a duration in seconds, with a fraction if need be.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| format!("{text:?} is not a duration: it must be zero or more seconds"))
}

/// A time between two rounds of the same work: without one the work would never rest.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = seconds(text)?;
    if interval < Duration::from_secs(1) {
        Err("it must be at least one second".to_owned())
    } else {
        Ok(interval)
    }
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
        assert_eq!(line.settings.network, Network::default());
        assert_eq!(line.settings.election, Election::default());
        assert_eq!(line.settings.network.dns.0.len(), 2);
    }

    #[test]
    fn a_peer_that_names_no_one_is_refused_with_a_sentence() {
        let refused = "[{\"podSelector\": {}}, {}]".parse::<Peers>();
        assert!(refused.is_err_and(|text| text.contains("entry 2 names no one")));
        assert!("{}".parse::<Peers>().is_err_and(|text| text.contains("in JSON")));
    }

    #[test]
    fn a_negative_duration_is_refused_with_a_sentence() {
        assert!(seconds("-1").is_err_and(|text| text.contains("zero or more seconds")));
    }

    #[test]
    fn a_renew_deadline_leaves_time_for_unequal_clocks_and_for_a_second_try() {
        let with = |duration, deadline, period| Election {
            leader_elect_lease_duration: Duration::from_secs_f64(duration),
            leader_elect_renew_deadline: Duration::from_secs_f64(deadline),
            leader_elect_retry_period: Duration::from_secs_f64(period),
            ..Election::default()
        };
        for (election, expected) in [
            (Election::default(), None),
            (with(10.0, 9.0, 4.5), None),
            (with(10.0, 9.1, 2.0), Some("--leader-elect-renew-deadline is 9.1: it must be at most")),
            (with(10.0, 7.0, 3.6), Some("--leader-elect-retry-period is 3.6: it must be above 0 and")),
            (with(10.0, 7.0, 0.0), Some("--leader-elect-retry-period is 0: it must be above 0 and")),
        ] {
            let fault = election.fault();
            match expected {
                Some(expected) => {
                    assert!(fault.as_ref().is_some_and(|it| it.starts_with(expected)), "{fault:?}");
                }
                None => assert_eq!(fault, None),
            }
        }
    }

    #[test]
    fn two_processes_without_a_given_name_have_two() {
        let election = Election::default();
        assert_ne!(election.identity(), election.identity());
        let named = Election { leader_elect_identity: Some("freehold-0".to_owned()), ..election };
        assert_eq!(named.identity(), "freehold-0");
    }
}
