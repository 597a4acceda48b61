//! The ways to move a database, or to bring it back, that are compared.

use clap::ValueEnum;

/// One way to move a database, or to bring it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Variant {
    /// The operator moves it to a machine of another type.
    PlannedReplacement,
    /// The operator brings it back after its instance was terminated outside Freehold.
    KilledInstance,
    /// The pod is deleted by hand, and another machine waits.
    BareMove,
    /// The machine's power is cut, the pod is deleted by hand at the right moment, and another machine waits.
    BareLoss,
}

impl Variant {
    /// What it is called.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PlannedReplacement => "planned replacement",
            Self::KilledInstance => "killed instance",
            Self::BareMove => "bare move",
            Self::BareLoss => "bare loss",
        }
    }

    /// What happens in it.
    pub fn what(self) -> &'static str {
        match self {
            Self::PlannedReplacement => {
                "The operator: the type in use leaves `spec.instanceTypes`; the new machine is launched and \
                    proven while the old one serves."
            }
            Self::KilledInstance => {
                "The operator: the instance is terminated behind its back, which cuts its power; the next \
                    machine is launched after that."
            }
            Self::BareMove => {
                "No operator: the same StatefulSet, PersistentVolume and claim; two healthy machines, and \
                    the pod is deleted by hand."
            }
            Self::BareLoss => {
                "No operator: the instance is terminated, which cuts its power; as soon as EC2 shows it as \
                 terminated the taint `node.kubernetes.io/out-of-service` is set and the pod is deleted with \
                 grace 0; another machine waits."
            }
        }
    }

    /// Whether the operator does it.
    pub fn is_the_operators(self) -> bool {
        matches!(self, Self::PlannedReplacement | Self::KilledInstance)
    }
}
