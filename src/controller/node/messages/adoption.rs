//! The sentences of a Node that adopts an instance. Pure.

use crate::api::InstanceId;
use crate::api::keys::{ADOPT_TAG, CLUSTER_ID_TAG, NODE_UID_TAG};
use crate::controller::node::wait::adoption::{AdoptionRefusal, AdoptionWait};

impl AdoptionWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::NotRead(id) => format!(
                "instance {id} is not read from EC2 yet: the operator's own rate limit for calls to EC2 is \
                reached"
            ),
            Self::Refused { id, cause } => {
                format!("instance {id} cannot be adopted: {}", cause.message(id))
            }
            Self::NotRunning(id) => format!(
                "instance {id} is stopped: start it, and its adoption continues; Freehold neither starts \
                nor terminates it"
            ),
            Self::Adopting(id) => format!("adopting instance {id}"),
            Self::Tagging(id) => format!("tagging the adopted instance {id} with this Node's tags"),
            Self::TagsNotShown(id) => {
                format!("EC2 does not show the new tags of the adopted instance {id} yet")
            }
            Self::NoKubernetesNode { id, provider_id } => format!(
                "instance {id} runs, and no Kubernetes node with the labels of its type and zone has the \
                providerID {provider_id}; still searching"
            ),
        }
    }
}

impl AdoptionRefusal {
    fn message(&self, id: &InstanceId) -> String {
        match self {
            Self::NotFound => "EC2 does not know it: correct the id in spec.adopt of the Database".to_owned(),
            Self::NoTag { wanted } => format!(
                "it does not carry the tag {ADOPT_TAG}={wanted}: to allow the adoption, run aws ec2 \
                create-tags --resources {id} --tags Key={ADOPT_TAG},Value={wanted}"
            ),
            Self::OtherCluster => {
                format!("its tag {CLUSTER_ID_TAG} is another cluster's: release it there first")
            }
            Self::OtherNode => format!("its tag {NODE_UID_TAG} is another Node's: release it there first"),
            Self::Zone { instance, volume } => format!("it is in {instance}, and the volume is in {volume}"),
            Self::Ended => "EC2 shows it terminated, or about to be".to_owned(),
        }
    }
}
