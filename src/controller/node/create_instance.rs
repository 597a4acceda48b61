//! How a Node's instance is created: RunInstances, and its attempt in the Node's status.

use kube::ResourceExt;

use crate::api::creation::Attempt;
use crate::api::node::NodeCreation;
use crate::api::{ClientToken, EventReason, InstanceId, Node, NodeStatus};
use crate::cloud::call::Call;
use crate::cloud::error::CapacityOf;
use crate::cloud::identity::Kind;
use crate::cloud::turns::Priority;
use crate::cloud::{Class, CloudError, error};
use crate::cluster::events::Happened;
use crate::controller::creation::act::Creation;
use crate::controller::node::messages;
use crate::controller::node::plan::offering::{demand, request};
use crate::controller::pass::acted::Acted;
use crate::controller::pass::context::Context;
use crate::time::later;

/// One attempt to launch an instance.
pub struct CreateInstance<'a> {
    /// The request, but for the user data.
    pub creation: &'a NodeCreation,
    /// The user data of the recorded hash.
    pub user_data: &'a str,
    /// How urgent the call is.
    pub priority: Priority,
}

impl Creation for CreateInstance<'_> {
    type Object = Node;
    type Status = NodeStatus;
    type Id = InstanceId;

    const CALL: Call = Call::RunInstances;
    const KIND: Kind = Kind::Node;

    fn priority(&self) -> Priority {
        self.priority
    }

    fn attempt(&self) -> &Attempt {
        &self.creation.attempt
    }

    fn token(&self) -> Option<&ClientToken> {
        Some(&self.creation.client_token)
    }

    fn announce(&self, status: &mut NodeStatus) {
        status.creation = Some(self.creation.clone());
        status.instance_id = None;
        status.provider_id = None;
        status.core_node_name = None;
        status.instance_type = None;
        status.zone = None;
    }

    fn attempt_in(status: &mut NodeStatus) -> Option<&mut Attempt> {
        status.creation.as_mut().map(|creation| &mut creation.attempt)
    }

    fn identify(status: &mut NodeStatus, id: &InstanceId) {
        status.instance_id = Some(id.clone());
    }

    async fn send(&self, ctx: &Context) -> Result<InstanceId, CloudError> {
        let NodeCreation { subnet_id, zone, .. } = self.creation;
        let instance = ctx.cloud.run_instance(&request(self.creation, self.user_data)).await?;
        if !instance.zone.is_empty() && instance.zone != *zone {
            ctx.offerings.mark_elsewhere(subnet_id, zone, &instance.zone, ctx.clock.now());
        }
        Ok(instance.id)
    }

    /// A profile that EC2 does not know for so long was not made moments ago: the name is wrong.
    fn is_old(&self, ctx: &Context) -> bool {
        ctx.clock.now() >= later(self.attempt().started_at.0, ctx.timing.unavailable_offering_ttl)
    }

    fn remember(&self, error: &CloudError, acted: &Acted<Node>, ctx: &Context) {
        if error.class == Class::Capacity {
            let NodeCreation { instance_type, zone, subnet_id, image_id, .. } = self.creation;
            let now = ctx.clock.now();
            match error::capacity_of(error.code.as_deref()) {
                CapacityOf::Offering => ctx.offerings.mark_unavailable(instance_type, zone, now),
                CapacityOf::Subnet => ctx.offerings.mark_full(subnet_id, now),
                CapacityOf::Image => ctx.offerings.mark_unsupported(image_id, instance_type, zone, now),
            }
        }
        if let Some(kind) = error.code.as_deref().and_then(error::quota) {
            let (quota, amount) = demand(self.creation).refused(kind);
            ctx.offerings.reach_quota(
                quota,
                amount,
                &acted.object.uid().unwrap_or_default(),
                ctx.clock.now(),
            );
        }
    }

    fn created(&self, id: &InstanceId) -> Happened {
        Happened::normal(
            EventReason::InstanceLaunched,
            messages::events::instance_launched(id, self.creation),
        )
    }

    fn refused(&self, error: &CloudError) -> Happened {
        Happened::warning(EventReason::LaunchRefused, messages::events::launch_refused(self.creation, error))
    }
}
