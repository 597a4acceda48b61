//! The authorisation requests of each call, from its parameters and the account as it is.
//!
//! Source: Service Authorization Reference, "Actions, resources, and condition keys for Amazon EC2": the
//! resource types of each action and the condition keys of each type; a `*` in the place of the id of what
//! does not exist yet, as EC2's own messages have it (aws/karpenter-provider-aws#7370). The tags of what
//! exists are the true ones, even while callers do not see them: no page says that authorisation lags.

mod create;
mod encryption;
mod held;
mod launch;
mod tags;
mod volume;

use super::{
    arn::Arns,
    context::Context,
    request::{IfDenied, Request},
};
use crate::{Model, Truths, params::Reader};

/// A call that is about to be authorised.
struct Call<'a> {
    model: &'a Model,
    arns: Arns<'a>,
    action: String,
    given: Reader,
}

/// The requests that a call is made of. A call that the model refuses for its form may have none.
pub(super) fn of_call(model: &Model, params: &[(String, String)]) -> Vec<Request> {
    let Ok(given) = Reader::new(params, &Truths::all()) else {
        return Vec::new();
    };
    let arns = Arns { world: model.world() };
    let action = given.action().to_owned();
    let mut call = Call { model, arns, action: action.clone(), given };
    match action.as_str() {
        "RunInstances" => launch::requests(&mut call),
        "TerminateInstances" | "StopInstances" | "StartInstances" | "RebootInstances" => {
            let ids = call.given.list("InstanceId");
            ids.iter().filter_map(|id| call.on(id)).collect()
        }
        "GetConsoleOutput" => call.on_named(&["InstanceId"]),
        "CreateVolume" => create::volume(&mut call),
        "CreateSnapshot" => create::snapshot(&mut call),
        "ModifyVolume" | "DeleteVolume" => call.on_named(&["VolumeId"]),
        "DeleteSnapshot" => call.on_named(&["SnapshotId"]),
        "AttachVolume" => {
            let volume = call.given.text("VolumeId").unwrap_or_default();
            let instance = call.on_named(&["InstanceId"]);
            let grant = encryption::of_attachment(&call, &volume);
            instance.into_iter().chain(call.on(&volume)).chain(grant).collect()
        }
        "DetachVolume" => call.on_named(&["InstanceId", "VolumeId"]),
        "CreateTags" | "DeleteTags" => tags::on_existing(&mut call),
        // These have no resource-level permissions.
        action if action.starts_with("Describe") => vec![call.request("*".to_owned(), call.context())],
        // The model refuses what it does not know.
        _ => Vec::new(),
    }
}

impl Call<'_> {
    /// What every request of EC2 says of itself.
    fn context(&self) -> Context {
        let region = &self.arns.world.region;
        Context::default().with("aws:RequestedRegion", region).with("ec2:Region", region)
    }

    /// The call's own action on a resource.
    fn request(&self, resource: String, context: Context) -> Request {
        let action = format!("ec2:{}", self.action);
        Request { action, resource, context, if_denied: IfDenied::CallRefused }
    }

    /// The call's own action on what exists, or should; none for an id of an unknown kind.
    fn on(&self, id: &str) -> Option<Request> {
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
    fn on_named(&mut self, names: &[&str]) -> Vec<Request> {
        let ids: Vec<String> = names.iter().filter_map(|name| self.given.text(name)).collect();
        ids.iter().filter_map(|id| self.on(id)).collect()
    }
}

#[cfg(test)]
mod tests;
