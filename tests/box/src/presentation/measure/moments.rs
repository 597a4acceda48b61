//! From what was seen to the parts of an outage. Pure.

use std::time::{Duration, Instant};

use super::log::{Sighting, What};
use crate::presentation::demo::parts::{Way, divide};
use crate::writer::Gap;

/// Who is who in one move or loss.
#[derive(Clone, Debug)]
pub struct Change {
    /// The Kubernetes node that the pod was on.
    pub from: String,
    /// The pod that was on it.
    pub pod: String,
    /// The Kubernetes node that it came to.
    pub to: String,
    /// The pod that came: its UID.
    pub successor: String,
    /// `vol-…`.
    pub volume: String,
    /// The outage, as the writer saw it.
    pub outage: Gap,
}

/// What ended a machine, and how it was learned.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When its power went.
    pub killed: Instant,
    /// When EC2 showed it as terminated.
    pub terminated: Instant,
}

/// The parts of an outage after a loss.
#[derive(Clone, Debug, PartialEq)]
pub struct LossParts {
    /// All of it.
    pub way: Way,
    /// From the end of the machine until whoever acts had the proof.
    pub detection: Duration,
    /// From then until a row was acknowledged again.
    pub after_proof: Duration,
}

const STOP: (&str, &str) = ("stop", "the engine's stop, until its pod is gone");
const RELEASE: (&str, &str) =
    ("release", "until the kubelet reports that it does not use the volume: with its Node's status");
const DETACH: (&str, &str) =
    ("detach", "until the VolumeAttachment is gone: controller-manager, CSI driver, DetachVolume");
const MACHINE: (&str, &str) =
    ("machine", "until the other machine is there for the pod, as far as that took longer");
const ATTACH: (&str, &str) =
    ("attach", "until the volume is attached to it: controller-manager, CSI driver, AttachVolume");
const CLAIM: (&str, &str) =
    ("claim", "until its kubelet has reported that it uses the volume, as far as that took longer");
const MOUNT: (&str, &str) = ("mount", "file system, mount, the pod's sandbox");
const ENGINE: (&str, &str) = ("engine", "the engine's start, until its pod is Ready");
const CLIENT: (&str, &str) = ("client", "until the client has found it and a row is acknowledged");

/// The parts of a move between two healthy machines; none if a moment was missed.
pub fn of_move(change: &Change, seen: &[Sighting]) -> Option<Way> {
    let since = Since { began: change.outage.began, seen };
    since.divided(vec![part(STOP, since.gone(change)?), part(RELEASE, since.released(change)?)], change)
}

/// The parts after a loss; none if a moment was missed. `by_operator`: the operator acts, and its proof
/// counts; else a person's, who has it when EC2 does.
pub fn of_loss(change: &Change, loss: &Loss, by_operator: bool, seen: &[Sighting]) -> Option<LossParts> {
    let since = Since { began: change.outage.began, seen };
    let terminated = loss.terminated.saturating_duration_since(change.outage.began);
    let proof = if by_operator { since.proven(change)?.max(terminated) } else { terminated };
    let first = vec![
        part(("end", "from the power cut until EC2 shows the instance as terminated"), terminated),
        part(("detect", "until the operator has seen that"), proof),
        part(("fence", "the taint, and the pod's deletion: until it is gone"), since.gone(change)?),
    ];
    let way = since.divided(first, change)?;
    let detection = (change.outage.began + proof).saturating_duration_since(loss.killed);
    Some(LossParts { way, detection, after_proof: change.outage.length.saturating_sub(proof) })
}

/// A part's name, what it is, and its end since the outage began.
type Moment = (&'static str, &'static str, Duration);

fn part((name, what): (&'static str, &'static str), end: Duration) -> Moment {
    (name, what, end)
}

/// Looks for the first time that something was seen.
struct Since<'a> {
    began: Instant,
    seen: &'a [Sighting],
}

impl Since<'_> {
    /// The parts of an outage: those that are its own, and those of every way to another machine after them.
    fn divided(&self, mut parts: Vec<Moment>, change: &Change) -> Option<Way> {
        parts.extend([
            part(DETACH, self.detached(change)?),
            part(MACHINE, self.opened(change)?),
            part(ATTACH, self.attached(change)?),
            part(CLAIM, self.claimed(change)?),
            part(MOUNT, self.mounted(change)?),
            part(ENGINE, self.ready(change)?.min(change.outage.length)),
            part(CLIENT, change.outage.length),
        ]);
        Some(divide(&parts))
    }

    /// The first time since the outage's begin.
    fn first(&self, is_it: impl Fn(&What) -> bool) -> Option<Duration> {
        let found = self.seen.iter().find(|sighting| sighting.at >= self.began && is_it(&sighting.what))?;
        Some(found.at.saturating_duration_since(self.began))
    }

    /// Zero if it was so when the outage began.
    fn first_if_not_before(
        &self,
        is_about: impl Fn(&What) -> bool,
        is_it: impl Fn(&What) -> bool,
    ) -> Option<Duration> {
        let before =
            self.seen.iter().rev().find(|sighting| sighting.at < self.began && is_about(&sighting.what));
        if before.is_some_and(|sighting| is_it(&sighting.what)) {
            return Some(Duration::ZERO);
        }
        self.first(is_it)
    }

    fn gone(&self, change: &Change) -> Option<Duration> {
        self.first(|what| matches!(what, What::PodGone(uid) if *uid == change.pod))
    }

    fn released(&self, change: &Change) -> Option<Duration> {
        self.first(|what| {
            matches!(what, What::Machine { name, in_use,
        .. } if *name == change.from && !uses(in_use, change))
        })
    }

    fn detached(&self, change: &Change) -> Option<Duration> {
        self.first(|what| matches!(what, What::AttachmentGone(machine) if *machine == change.from))
    }

    fn opened(&self, change: &Change) -> Option<Duration> {
        let is_about = |what: &What| matches!(what, What::Machine { name, .. } if *name == change.to);
        self.first_if_not_before(is_about, |what| {
            matches!(what, What::Machine { name, is_open: true,
        .. } if *name == change.to)
        })
    }

    fn attached(&self, change: &Change) -> Option<Duration> {
        self.first(|what| {
            matches!(what, What::Attachment { machine,
        is_attached: true } if *machine == change.to)
        })
    }

    fn claimed(&self, change: &Change) -> Option<Duration> {
        self.first(|what| {
            matches!(what, What::Machine { name, in_use,
        .. } if *name == change.to && uses(in_use, change))
        })
    }

    fn mounted(&self, change: &Change) -> Option<Duration> {
        self.first(|what| {
            matches!(what, What::Pod { uid, has_sandbox: true,
        .. } if *uid == change.successor)
        })
    }

    fn ready(&self, change: &Change) -> Option<Duration> {
        self.first(|what| matches!(what, What::Pod { uid, is_ready: true, .. } if *uid == change.successor))
    }

    /// The operator acts on its proof before it writes that it has it.
    fn proven(&self, change: &Change) -> Option<Duration> {
        self.first(|what| match what {
            What::Proven(machine) => *machine == change.from,
            What::Machine { name, is_out, .. } => *is_out && *name == change.from,
            What::Pod { .. } | What::PodGone(_) | What::Attachment { .. } | What::AttachmentGone(_) => false,
        })
    }
}

fn uses(in_use: &[String], change: &Change) -> bool {
    in_use.iter().any(|it| it.ends_with(&change.volume))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change that begins at the first moment, and a log in tenths of seconds since then.
    fn change(seen: Vec<(i64, What)>) -> (Change, Vec<Sighting>) {
        let began = Instant::now() + Duration::from_secs(60);
        let at = |tenths: i64| {
            let moment = Duration::from_millis(tenths.unsigned_abs() * 100);
            if tenths < 0 { began.checked_sub(moment).unwrap() } else { began + moment }
        };
        let change = Change {
            from: "a".to_owned(),
            pod: "one".to_owned(),
            to: "b".to_owned(),
            successor: "two".to_owned(),
            volume: "vol-1".to_owned(),
            outage: Gap { began, length: Duration::from_millis(15_000) },
        };
        (change, seen.into_iter().map(|(tenths, what)| Sighting { at: at(tenths), what }).collect())
    }

    fn machine(name: &str, is_open: bool, uses: bool) -> What {
        let in_use =
            if uses { vec!["kubernetes.io/csi/ebs.csi.aws.com^vol-1".to_owned()] } else { Vec::new() };
        What::Machine { name: name.to_owned(), is_open, is_out: false, in_use }
    }

    fn attachment(machine: &str, is_attached: bool) -> What {
        What::Attachment { machine: machine.to_owned(), is_attached }
    }

    fn pod(uid: &str, has_sandbox: bool, is_ready: bool) -> What {
        What::Pod { uid: uid.to_owned(), has_sandbox, is_ready }
    }

    /// What is seen from the pod's end on.
    fn moved() -> Vec<(i64, What)> {
        vec![
            (12, What::PodGone("one".to_owned())),
            (13, pod("two", false, false)),
            (40, machine("b", true, true)),
            (70, machine("a", false, false)),
            (75, What::AttachmentGone("a".to_owned())),
            (76, attachment("b", false)),
            (90, attachment("b", true)),
            (100, pod("two", true, false)),
            (148, pod("two", true, true)),
        ]
    }

    fn names(way: &Way) -> Vec<(&'static str, f64)> {
        way.parts.iter().map(|part| (part.name, part.seconds)).collect()
    }

    #[test]
    fn a_move_has_its_parts_and_what_was_there_before_takes_no_time() {
        let before = vec![
            (-300, attachment("b", true)),
            (-200, What::AttachmentGone("a".to_owned())),
            (-100, machine("b", true, false)),
        ];
        let (change, seen) = change(before.into_iter().chain(moved()).collect());
        let way = of_move(&change, &seen).unwrap();
        let parts = [
            ("stop", 1.2),
            ("release", 5.8),
            ("detach", 0.5),
            ("machine", 0.0),
            ("attach", 1.5),
            ("claim", 0.0),
            ("mount", 1.0),
            ("engine", 4.8),
            ("client", 0.2),
        ];
        assert_eq!((names(&way), way.seconds), (parts.to_vec(), 15.0));
    }

    #[test]
    fn a_machine_that_was_closed_again_is_waited_for() {
        let before = vec![(-100, machine("b", true, false)), (-50, machine("b", false, false))];
        let (change, seen) = change(before.into_iter().chain(moved()).collect());
        let since = Since { began: change.outage.began, seen: &seen };
        assert_eq!(since.opened(&change), Some(Duration::from_secs(4)));
    }

    #[test]
    fn a_missing_moment_leaves_no_parts() {
        for missing in 0..moved().len() {
            let mut left = moved();
            let (_, what) = left.remove(missing);
            let matters = !matches!(
                what,
                What::Pod { is_ready: false, .. } | What::Attachment { is_attached: false, .. }
            );
            let (change, seen) = change(left);
            assert_eq!(of_move(&change, &seen).is_none(), matters, "without {what:?}");
        }
    }

    #[test]
    fn a_loss_is_counted_from_its_proof() {
        let out = What::Machine { name: "a".to_owned(), is_open: false, is_out: true, in_use: Vec::new() };
        let first =
            vec![(30, out), (31, What::Proven("a".to_owned())), (32, What::PodGone("one".to_owned()))];
        let (change, seen) = change(first.into_iter().chain(moved().into_iter().skip(1)).collect());
        let at = |tenths: u64| change.outage.began + Duration::from_millis(tenths * 100);
        let loss = Loss { killed: at(1), terminated: at(5) };

        let operator = of_loss(&change, &loss, true, &seen).unwrap();
        let parts = [
            ("end", 0.5),
            ("detect", 2.5),
            ("fence", 0.2),
            ("detach", 4.3),
            ("machine", 0.0),
            ("attach", 1.5),
            ("claim", 0.0),
            ("mount", 1.0),
            ("engine", 4.8),
            ("client", 0.2),
        ];
        assert_eq!(names(&operator.way), parts);
        assert_eq!(
            (operator.detection, operator.after_proof),
            (Duration::from_millis(2_900), Duration::from_millis(12_000))
        );

        let person = of_loss(&change, &loss, false, &seen).unwrap();
        assert_eq!(
            (person.detection, person.after_proof),
            (Duration::from_millis(400), Duration::from_millis(14_500))
        );
        assert_eq!(names(&person.way)[..3], [("end", 0.5), ("detect", 0.0), ("fence", 2.7)]);
    }
}
