//! The sentences of a Node that is being deleted. Pure.

use crate::api::InstanceId;
use crate::controller::blocker::Blocker;
use crate::controller::node::wait::deletion::DeletionWait;

impl DeletionWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::OtherFinalizers => "waiting for other controllers to remove their finalizers".to_owned(),
            Self::Absence(id) => {
                format!("EC2 does not list instance {id}; waiting until its absence is proven")
            }
            Self::Adopted(id) => format!("instance {id} has this Node's tags; adopting it to terminate it"),
            Self::Found(id) => {
                format!("instance {id} was launched for this Node; recording it to terminate it")
            }
            Self::NotResent => "nothing is launched for a Node that is being deleted".to_owned(),
            Self::Terminated(id) => format!("instance {id} is being terminated"),
            Self::ShuttingDown(ids) => match ids.as_slice() {
                [id] => format!("EC2 is terminating instance {id}"),
                ids => format!("EC2 is terminating instances {}", joined(ids)),
            },
            Self::StoppedTerminated { loss } => format!("{loss}; the stopped instance is being terminated"),
            Self::Duplicates(blockers) => {
                blockers.iter().map(Blocker::message).collect::<Vec<_>>().join("; ")
            }
            Self::Attached(attached) => attached.message(),
            Self::Releasing(id) => format!(
                "releasing instance {id}, which goes on running: removing what Freehold has put on it and on its \
                Kubernetes node"
            ),
            Self::Released(id) => format!("instance {id} is released: it goes on running without Freehold"),
            Self::Gone => "the machine is gone".to_owned(),
        }
    }
}

fn joined(ids: &[InstanceId]) -> String {
    ids.iter().map(|id| id.0.as_str()).collect::<Vec<_>>().join(", ")
}
