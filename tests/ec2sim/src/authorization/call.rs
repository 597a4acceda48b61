//! A call that is about to be authorised, and its requests on what exists.

use super::arn::Arns;
use crate::{
    Model,
    iam::{Context, IfDenied, Request},
    params::Reader,
};

/// A call that is about to be authorised.
pub(super) struct Call<'a> {
    pub(super) model: &'a Model,
    pub(super) arns: Arns<'a>,
    pub(super) action: String,
    pub(super) given: Reader,
}

impl Call<'_> {
    /// What every request of EC2 says of itself.
    pub(super) fn context(&self) -> Context {
        let region = &self.arns.world.region;
        Context::default().with("aws:RequestedRegion", region).with("ec2:Region", region)
    }

    /// The call's own action on a resource.
    pub(super) fn request(&self, resource: String, context: Context) -> Request {
        let action = format!("ec2:{}", self.action);
        Request { action, resource, context, if_denied: IfDenied::CallRefused }
    }

    /// The call's own action on what exists, or should; none for an id of an unknown kind.
    pub(super) fn on(&self, id: &str) -> Option<Request> {
        let (resource, context) = self.held(id)?;
        // The keys that this action, unlike others on the same type of resource, does not have.
        let missing: &[&str] = match self.action.as_str() {
            "DeleteSnapshot" | "RunInstances" => &["ec2:Encrypted"],
            "CreateVolume" => &["ec2:SnapshotID"],
            "CreateSnapshot" => &["ec2:AvailabilityZone", "ec2:ParentSnapshot"],
            _ => &[],
        };
        Some(self.request(resource, context.without(missing)))
    }

    /// The call's own action on what these parameters name.
    pub(super) fn on_named(&mut self, names: &[&str]) -> Vec<Request> {
        let ids: Vec<String> = names.iter().filter_map(|name| self.given.text(name)).collect();
        ids.iter().filter_map(|id| self.on(id)).collect()
    }
}
