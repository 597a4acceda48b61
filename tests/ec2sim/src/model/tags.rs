//! Tags: with a create, afterwards, and in a list of their own.
//!
//! Source: EC2 user guide, "Tag your Amazon EC2 resources" (restrictions), and `API_CreateTags`.

use super::{
    Effects, Model,
    dry_run::refuse_dry_run,
    lists::{Query, USUAL, page},
};
use crate::{Refusal, Response, params::Reader, response::TagView, view::Tags};

/// The most tags on a resource, characters in a key, and in a value.
const TAGS: usize = 50;
const KEY: usize = 128;
const VALUE: usize = 256;

const FILTERS: [&str; 4] = ["key", "resource-id", "resource-type", "value"];

/// The tags that a create gives to what it makes, by resource type.
#[derive(Debug)]
pub(super) struct TagSpecs {
    by_type: Vec<(String, Tags)>,
}

impl TagSpecs {
    /// Reads `TagSpecification.N`; each one's type must be among `types`, and may be named once.
    pub(super) fn read(r: &mut Reader, types: &[&str]) -> Result<Self, Refusal> {
        let mut by_type: Vec<(String, Tags)> = Vec::new();
        for index in r.indexes("TagSpecification") {
            let at = format!("TagSpecification.{index}");
            let resource_type = r.required(&format!("{at}.ResourceType"))?;
            if !types.contains(&resource_type.as_str()) {
                return Err(Refusal::value(format!(
                    "'{resource_type}' is not a valid taggable resource type \
                    for this operation."
                )));
            }
            if by_type.iter().any(|(other, _)| *other == resource_type) {
                return Err(Refusal::value(format!(
                    "'{resource_type}' is specified more than once in tag \
                    specifications"
                )));
            }
            by_type.push((resource_type, read_tags(r, &format!("{at}.Tag"))?));
        }
        Ok(Self { by_type })
    }

    /// The tags for a type.
    pub(super) fn of(&self, resource_type: &str) -> Tags {
        self.by_type
            .iter()
            .find(|(named, _)| named == resource_type)
            .map(|(_, tags)| tags.clone())
            .unwrap_or_default()
    }
}

/// Reads `<at>.N.Key` and `<at>.N.Value`.
fn read_tags(r: &mut Reader, at: &str) -> Result<Tags, Refusal> {
    let mut tags = Tags::new();
    for index in r.indexes(at) {
        let key = r.required(&format!("{at}.{index}.Key"))?;
        let value = r.text(&format!("{at}.{index}.Value")).unwrap_or_default();
        if key.to_lowercase().starts_with("aws:") {
            return Err(Refusal::value(format!(
                "Value ( {key} ) for parameter key is invalid. Tag keys starting with 'aws:' are reserved \
                    for internal use"
            )));
        }
        if key.chars().count() > KEY || value.chars().count() > VALUE {
            return Err(Refusal::value(format!(
                "Tag key exceeds {KEY} or tag value exceeds {VALUE} \
                characters: {key}"
            )));
        }
        if tags.insert(key.clone(), value).is_some() {
            return Err(Refusal::value(format!("Duplicate tag key '{key}' specified.")));
        }
    }
    if tags.len() > TAGS {
        return Err(too_many());
    }
    Ok(tags)
}

fn too_many() -> Refusal {
    Refusal::new("TagLimitExceeded", format!("A resource may have no more than {TAGS} tags."))
}

impl Model {
    pub(super) fn create_tags(&mut self, r: &mut Reader) -> Result<Response, Refusal> {
        let ids = self.read_tagged(r)?;
        let tags = read_tags(r, "Tag")?;
        let dry_run = self.read_end(r)?;
        if tags.is_empty() {
            return Err(Refusal::missing("Tag"));
        }
        for id in &ids {
            let mut after = self.tags_mut(id).map(|tags| tags.clone()).unwrap_or_default();
            after.extend(tags.clone());
            if after.len() > TAGS {
                return Err(too_many());
            }
        }
        refuse_dry_run(dry_run)?;
        for id in &ids {
            if let Some(held) = self.tags_mut(id) {
                held.extend(tags.clone());
            }
        }
        self.changed();
        Ok(Response::Done)
    }

    pub(super) fn delete_tags(&mut self, r: &mut Reader) -> Result<Response, Refusal> {
        let ids = self.read_tagged(r)?;
        let mut wanted: Vec<(String, Option<String>)> = Vec::new();
        for index in r.indexes("Tag") {
            wanted.push((r.required(&format!("Tag.{index}.Key"))?, r.text(&format!("Tag.{index}.Value"))));
        }
        refuse_dry_run(self.read_end(r)?)?;
        for id in &ids {
            if let Some(tags) = self.tags_mut(id) {
                if wanted.is_empty() {
                    tags.clear();
                }
                // A tag is deleted with any value if none is named, and otherwise only with that one
                // (API_DeleteTags).
                tags.retain(|key, value| {
                    !wanted
                        .iter()
                        .any(|(name, only)| name == key && only.as_ref().is_none_or(|only| only == value))
                });
            }
        }
        self.changed();
        Ok(Response::Done)
    }

    pub(super) fn describe_tags(&self, r: &mut Reader, effects: &Effects) -> Result<Response, Refusal> {
        let query = Query::read(r, "", &FILTERS, &USUAL, &self.rules.truths)?;
        let dry_run = r.flag("DryRun")?;
        r.finish()?;
        refuse_dry_run(dry_run)?;
        let instances = self
            .state
            .instances
            .values()
            .map(|held| (&held.visible, held.order, &held.view.id, &held.view.tags));
        let volumes = self
            .state
            .volumes
            .values()
            .map(|held| (&held.visible, held.order, &held.view.id, &held.view.tags));
        let snapshots = self
            .state
            .snapshots
            .values()
            .map(|held| (&held.visible, held.order, &held.view.id, &held.view.tags));
        let mut all: Vec<_> = instances.chain(volumes).chain(snapshots).collect();
        all.retain(|(visible, ..)| self.sees_in_lists(visible) && self.sees_tags(visible));
        all.sort_by_key(|(_, order, ..)| *order);
        let mut items = Vec::new();
        for (_, order, id, tags) in all {
            for (place, (key, value)) in (0u64..).zip(tags) {
                let view = TagView {
                    resource_id: id.clone(),
                    resource_type: resource_type(id),
                    key: key.clone(),
                    value: value.clone(),
                };
                // Tags of a resource need places of their own for the pages: there are at most 50.
                items.push((order * 64 + place, view));
            }
        }
        Ok(Response::Tags(page(&query, items, &self.rules.truths, effects, |view| {
            query.matches(|name| match name {
                "key" => vec![view.key.clone()],
                "resource-id" => vec![view.resource_id.clone()],
                "resource-type" => vec![view.resource_type.to_owned()],
                "value" => vec![view.value.clone()],
                _ => Vec::new(),
            })
        })))
    }

    fn read_tagged(&self, r: &mut Reader) -> Result<Vec<String>, Refusal> {
        let ids = r.list("ResourceId");
        if ids.is_empty() {
            return Err(Refusal::missing("ResourceId"));
        }
        for id in &ids {
            match resource_type(id) {
                "instance" => drop(self.find_instance(id)?),
                "volume" => drop(self.find_volume(id)?),
                "snapshot" => drop(self.find_snapshot(id)?),
                _ => {
                    return Err(Refusal::new("InvalidID", format!("The ID '{id}' is not valid")));
                }
            }
        }
        Ok(ids)
    }

    /// The tags of the resource of this id.
    pub(super) fn tags_mut(&mut self, id: &str) -> Option<&mut Tags> {
        match resource_type(id) {
            "instance" => self.state.instances.get_mut(id).map(|held| &mut held.view.tags),
            "volume" => self.state.volumes.get_mut(id).map(|held| &mut held.view.tags),
            _ => self.state.snapshots.get_mut(id).map(|held| &mut held.view.tags),
        }
    }

    /// The tags of the resource of this id.
    pub(crate) fn tags_of(&self, id: &str) -> Option<&Tags> {
        let instance = self.state.instances.get(id).map(|held| &held.view.tags);
        let volume = || self.state.volumes.get(id).map(|held| &held.view.tags);
        let snapshot = || self.state.snapshots.get(id).map(|held| &held.view.tags);
        instance.or_else(volume).or_else(snapshot)
    }
}

fn resource_type(id: &str) -> &'static str {
    match id.split('-').next() {
        Some("i") => "instance",
        Some("vol") => "volume",
        Some("snap") => "snapshot",
        _ => "unknown",
    }
}
