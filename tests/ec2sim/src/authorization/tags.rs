//! Tags: those of a new resource, which demand `ec2:CreateTags` beside the creation, and those of an existing
//! one.

use super::call::Call;
use crate::{
    iam::{Context, IfDenied, Request, keys::TAG_KEYS},
    params::Reader,
    view::Tags,
};

/// The tags that a creation gives, by resource type.
pub(super) struct NewTags {
    by_type: Vec<(String, Tags)>,
}

impl NewTags {
    pub(super) fn read(given: &mut Reader) -> Self {
        let mut by_type = Vec::new();
        for index in given.indexes("TagSpecification") {
            let at = format!("TagSpecification.{index}");
            let resource_type = given.text(&format!("{at}.ResourceType")).unwrap_or_default();
            by_type.push((resource_type, read(given, &format!("{at}.Tag"))));
        }
        Self { by_type }
    }

    /// What the creation of a resource of this type says of its tags.
    pub(super) fn of(&self, context: Context, resource_type: &str) -> Context {
        let found = self.by_type.iter().find(|(named, _)| named == resource_type);
        match found {
            Some((_, tags)) => requested(context, tags),
            None => context,
        }
    }

    /// Source: EC2 user guide, "Grant permission to tag Amazon EC2 resources during creation": if tags are
    /// given there is an additional authorisation of `ec2:CreateTags`, with `ec2:CreateAction`.
    pub(super) fn requests(&self, call: &Call<'_>) -> Vec<Request> {
        let given = self.by_type.iter().filter(|(_, tags)| !tags.is_empty());
        let requests = given.map(|(resource_type, tags)| Request {
            action: "ec2:CreateTags".to_owned(),
            resource: call.arns.ec2(resource_type, "*"),
            context: requested(call.context(), tags).with("ec2:CreateAction", &call.action),
            if_denied: IfDenied::CallRefused,
        });
        requests.collect()
    }
}

/// `CreateTags` or `DeleteTags` on what exists.
pub(super) fn on_existing(call: &mut Call<'_>) -> Vec<Request> {
    let ids = call.given.list("ResourceId");
    let tags = read(&mut call.given, "Tag");
    let on = |id: &String| {
        let (resource, context) = call.held(id)?;
        // DeleteTags has no other keys than those of tags.
        let context = match call.model.tags_of(id).filter(|_| call.action == "DeleteTags") {
            Some(held) => call.tagged(held),
            None => context,
        };
        Some(call.request(resource, requested(context, &tags)))
    };
    ids.iter().filter_map(on).collect()
}

/// Reads `<at>.N.Key` and `<at>.N.Value`.
fn read(given: &mut Reader, at: &str) -> Tags {
    let mut tags = Tags::new();
    for index in given.indexes(at) {
        let value = given.text(&format!("{at}.{index}.Value")).unwrap_or_default();
        if let Some(key) = given.text(&format!("{at}.{index}.Key")) {
            tags.insert(key, value);
        }
    }
    tags
}

fn requested(context: Context, tags: &Tags) -> Context {
    context.with_tags("aws:RequestTag/", tags).with_list(TAG_KEYS, tags.keys().cloned().collect())
}
