//! The decision table of loss and repair that `docs/repair.md` shows, compared with what the code does.

use freehold::api::Reason;
use freehold::controller::node::cause::Cause;

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    /// What is seen.
    pub fact: &'static str,
    /// What is decided.
    pub decision: &'static str,
    /// How long it must last.
    pub grace: &'static str,
    /// How it is made certain that nothing on the old machine can write.
    pub fence: &'static str,
    /// What happens when that takes too long.
    pub bound: &'static str,
    /// The condition's reason; of `Lost` where the row has a cause.
    pub reason: Reason,
    /// The event on the Node; none where a condition is all.
    pub event: Option<&'static str>,
    /// The cause that the code judges.
    pub cause: Option<Cause>,
}

const AT_ONCE: &str = "none";
const GRACE: &str = "`--loss-grace-period` (5 min)";
const REPLACE: &str = "declare the machine lost, replace it";
const STAGES: &str = "stop, stop by force, terminate: `--fence-step-timeout` (2 min) each";
const IS_PROOF: &str = "it is the proof";
const FAILS: &str = "`FenceFailed` after 6 min";
const POSTPONED: &str = "none; while five others that serve (or 1 % of the Nodes, half of these in its own namespace) are \
    replaced, postponed (`RepairPostponed`)";
const NOT_NEEDED: &str = "not needed: a planned move";

/// Every row.
pub const DECISIONS: [Decision; 20] = [
    Decision {
        fact: "EC2 shows the instance terminated, or it is proven gone",
        decision: REPLACE,
        grace: AT_ONCE,
        fence: IS_PROOF,
        bound: "at once",
        reason: Reason::InstanceTerminated,
        event: Some("MachineLost"),
        cause: Some(Cause::Terminated),
    },
    Decision {
        fact: "EC2 shows it stopped, by the operator or outside Freehold",
        decision: "declare the machine lost, replace it, terminate the stopped instance; if it is started \
            again, end it again",
        grace: AT_ONCE,
        fence: IS_PROOF,
        bound: "at once",
        reason: Reason::InstanceStopped,
        event: Some("MachineLost"),
        cause: Some(Cause::Stopped),
    },
    Decision {
        fact: "EC2 is terminating it, and Freehold did not request that",
        decision: REPLACE,
        grace: AT_ONCE,
        fence: "EC2's proof is awaited; terminated again after 4 min",
        bound: FAILS,
        reason: Reason::InstanceTerminated,
        event: Some("MachineLost"),
        cause: Some(Cause::ShuttingDown),
    },
    Decision {
        fact: "EC2 is stopping it, and Freehold did not request that",
        decision: REPLACE,
        grace: AT_ONCE,
        fence: "EC2's proof is awaited; by force after 2 min, terminated after 4",
        bound: FAILS,
        reason: Reason::InstanceStopped,
        event: Some("MachineLost"),
        cause: Some(Cause::Stopping),
    },
    Decision {
        fact: "it runs, and EC2's system or instance check fails",
        decision: REPLACE,
        grace: GRACE,
        fence: STAGES,
        bound: FAILS,
        reason: Reason::InstanceImpaired,
        event: Some("MachineSuspected, MachineLost"),
        cause: Some(Cause::Impaired),
    },
    Decision {
        fact: "it runs, and its Kubernetes node is not Ready: the kubelet is dead, the network cut, the \
            machine hangs",
        decision: REPLACE,
        grace: GRACE,
        fence: STAGES,
        bound: FAILS,
        reason: Reason::NodeNotReady,
        event: Some("MachineSuspected, MachineLost"),
        cause: Some(Cause::NotReady),
    },
    Decision {
        fact: "it runs, and its Kubernetes node is gone, with Freehold's finalizer removed from it",
        decision: "a kubelet that starts again registers again; else declare the machine lost, replace it",
        grace: GRACE,
        fence: STAGES,
        bound: "`FenceFailed` after 6 min; without the Kubernetes node, Kubernetes detaches only after 6 min \
            of its own",
        reason: Reason::NodeGone,
        event: Some("MachineSuspected, MachineLost"),
        cause: Some(Cause::NodeGone),
    },
    Decision {
        fact: "every step of a fence was requested, and EC2 does not show the instance stopped or terminated",
        decision: "nothing moves, whatever else happens; the request is repeated every 2 min",
        grace: "6 min",
        fence: "EC2's proof ends it",
        bound: "none: a person may stop the instance by any means",
        reason: Reason::FenceFailed,
        event: Some("FenceFailed"),
        cause: None,
    },
    Decision {
        fact: "the Nodes of a watched namespace have not been listed since the operator started; or the \
               lost machines of five databases (or of 1 % of the Nodes) are being stopped, or half of \
               these in its own namespace while others have Nodes; or the last full EC2 inventory sync \
               is older than 3 × `--instance-sync-interval`; or EC2 refuses to list the zone, or more \
               than half of at least 4 machines in it look lost (not of one namespace alone), or did \
               within `--loss-grace-period`; or no kubelet of any database's machine reports, and there is \
               more than one such machine (only the Nodes that are not listed and the number of repairs \
               postpone a terminated one)",
        decision: "begin no repair",
        grace: AT_ONCE,
        fence: "none: nothing is done to the machine",
        bound: "checked again every 5 s (`--requeue-interval`)",
        reason: Reason::RepairPostponed,
        event: Some("RepairPostponed"),
        cause: None,
    },
    Decision {
        fact: "the machine stays pending in EC2, or runs and its kubelet never registers",
        decision: "terminate it, launch another: 3 times, after 1, 5 and 15 min, then once an hour; the console \
            goes to the operator's log",
        grace: "`--registration-timeout` (15 min)",
        fence: "none: the volume was never attached to it",
        bound: "`Stalled` after the fourth",
        reason: Reason::NeverJoined,
        event: Some("InstanceTerminating"),
        cause: None,
    },
    Decision {
        fact: "the kubelet has registered, and the machine does not become ready for its database: it is not \
            Ready, or without the EBS CSI driver",
        decision: "report it: a wrong image or network would do the same to the next machine; another \
            machine is launched when a person deletes the Node",
        grace: "`--registration-timeout` (15 min)",
        fence: "none: the volume was never attached to it",
        bound: "`Stalled`",
        reason: Reason::AwaitingInitialization,
        event: None,
        cause: None,
    },
    Decision {
        fact: "the Kubernetes node of a healthy machine is deleted outside Freehold (its finalizer keeps it, \
            but the deletion cannot be undone)",
        decision: "replace the machine as planned: the new one is ready before the old one is drained",
        grace: "twice `--lease-poll-interval` (10 s), in which EC2 shows whether the machine has ended; while \
            five others that serve (or 1 % of the Nodes, half of these in its own namespace) are replaced, \
            postponed (`RepairPostponed`)",
        fence: NOT_NEEDED,
        bound: "none: the database runs on the old machine meanwhile",
        reason: Reason::KubernetesNodeDeleted,
        event: Some("ReplacementNeeded"),
        cause: None,
    },
    Decision {
        fact: "EC2 has scheduled an event for a healthy machine: retirement, stop, reboot, or maintenance of its \
            host",
        decision: "replace the machine as planned, as soon as that is announced",
        grace: POSTPONED,
        fence: NOT_NEEDED,
        bound: "none: the database runs on the old machine meanwhile, until the event comes",
        reason: Reason::EventScheduled,
        event: Some("ReplacementNeeded"),
        cause: None,
    },
    Decision {
        fact: "the Kubernetes node of a healthy machine is cordoned outside Freehold, as by `kubectl drain` (an \
            adopted machine may be)",
        decision: "replace the machine as planned; if it is uncordoned before the database has moved, it stays",
        grace: POSTPONED,
        fence: NOT_NEEDED,
        bound: "none: the database runs on the old machine meanwhile",
        reason: Reason::Cordoned,
        event: Some("ReplacementNeeded"),
        cause: None,
    },
    Decision {
        fact: "machines of one database are replaced one after the other for causes outside Freehold, each \
            within an hour of its launch (60 × `--relaunch-backoff`)",
        decision: "pause the next replacement: 1, 5 and 15 min, then an hour; one that may come back is declared \
            lost that much later",
        grace: "the pause counts from the first sign of a loss, and from the launch of a machine that serves",
        fence: "as for its cause",
        bound: "`Stalled` from the fifth on; a deleted Node ends the pause",
        reason: Reason::InstanceLost,
        event: None,
        cause: None,
    },
    Decision {
        fact: "the Node (`node.freehold.dev`) of a healthy machine is deleted outside Freehold",
        decision: "replace the machine as planned",
        grace: AT_ONCE,
        fence: NOT_NEEDED,
        bound: "none: the database runs on the old machine meanwhile",
        reason: Reason::AwaitingMove,
        event: None,
        cause: None,
    },
    Decision {
        fact: "a Node is deleted, its kubelet reports, and the database's pod does not end, or its volume is not \
            detached",
        decision: "terminate it without waiting any longer",
        grace: "`--kubelet-silence-timeout` (5 min) after the pod's own grace, or after the pod has ended",
        fence: "the termination",
        bound: "none: its volume is not attached elsewhere before EC2 shows it terminated",
        reason: Reason::AwaitingTermination,
        event: Some("InstanceTerminating"),
        cause: None,
    },
    Decision {
        fact: "a Node is deleted, and the kubelet of its machine does not report",
        decision: "terminate it without waiting for its pods",
        grace: "`--kubelet-silence-timeout` (5 min)",
        fence: "the termination",
        bound: "none: its volume is not attached elsewhere before EC2 shows it terminated",
        reason: Reason::AwaitingTermination,
        event: Some("InstanceTerminating"),
        cause: None,
    },
    Decision {
        fact: "the StatefulSet is deleted outside Freehold",
        decision: "create it again; the pod comes back on the same machine with the same volume",
        grace: AT_ONCE,
        fence: NOT_NEEDED,
        bound: "at once",
        reason: Reason::AwaitingPod,
        event: None,
        cause: None,
    },
    Decision {
        fact: "the claim is deleted outside Freehold (Kubernetes keeps it while the pod uses it)",
        decision: "create it again for the same PersistentVolume once it is gone",
        grace: AT_ONCE,
        fence: NOT_NEEDED,
        bound: "the pod's next restart",
        reason: Reason::AwaitingBinding,
        event: None,
        cause: None,
    },
];

/// The table in Markdown.
pub fn table() -> String {
    let mut lines = vec![
        "| fact | decision | grace period | fence | limit | reason | event |".to_owned(),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(DECISIONS.iter().map(|row| {
        let event = row.event.map_or_else(String::new, |event| {
            event.split(", ").map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        });
        let Decision { fact, decision, grace, fence, bound, reason, .. } = row;
        format!("| {fact} | {decision} | {grace} | {fence} | {bound} | `{}` | {event} |", reason.as_str())
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use strum::IntoEnumIterator;

    use super::*;
    use freehold::settings::Timing;

    const PAGE: &str = include_str!("../../docs/repair.md");

    #[test]
    fn the_page_shows_the_table_that_the_code_keeps() {
        let shown: Vec<&str> = PAGE.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(shown, table().lines().collect::<Vec<_>>());
    }

    #[test]
    fn every_cause_has_one_row_that_says_what_the_code_does() {
        for cause in Cause::iter() {
            let rows: Vec<&Decision> = DECISIONS.iter().filter(|row| row.cause == Some(cause)).collect();
            let [row] = rows.as_slice() else { panic!("{cause:?} has {} rows", rows.len()) };
            assert_eq!(row.reason, cause.reason(), "{cause:?}");
            assert_eq!(row.grace == GRACE, cause.has_grace(), "{cause:?}");
            assert_eq!(row.fence == IS_PROOF, cause.is_proof(), "{cause:?}");
            assert_eq!(
                row.event.is_some_and(|event| event.contains("MachineSuspected")),
                cause.has_grace(),
                "{cause:?}"
            );
        }
    }

    #[test]
    fn the_times_in_the_table_are_the_defaults() {
        let timing = Timing::default();
        let seconds = [
            timing.loss_grace_period,
            timing.fence_step_timeout,
            timing.registration_timeout,
            timing.kubelet_silence_timeout,
            timing.relaunch_backoff,
            timing.requeue_interval,
        ];
        assert_eq!(seconds.map(|duration| duration.as_secs()), [300, 120, 900, 300, 60, 5]);
    }
}
