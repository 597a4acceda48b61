//! Builds requests and filters as types of the SDK, and gathers lists from their pages.

use std::collections::BTreeMap;

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::create_snapshot::builders::CreateSnapshotFluentBuilder;
use aws_sdk_ec2::operation::create_tags::builders::CreateTagsFluentBuilder;
use aws_sdk_ec2::operation::create_volume::builders::CreateVolumeFluentBuilder;
use aws_sdk_ec2::operation::delete_tags::builders::DeleteTagsFluentBuilder;
use aws_sdk_ec2::operation::modify_volume::builders::ModifyVolumeFluentBuilder;
use aws_sdk_ec2::operation::run_instances::builders::RunInstancesFluentBuilder;
use aws_sdk_ec2::types::{
    BlockDeviceMapping, EbsBlockDevice, Filter, HttpTokensState, IamInstanceProfileSpecification,
    InstanceMetadataOptionsRequest, InstanceMetadataTagsState, ResourceType, Tag, TagSpecification,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::whole::incomplete;
use crate::api::{SnapshotId, VolumeId};
use crate::cloud::call::Call;
use crate::cloud::{
    CloudError, CreateVolumeRequest, Disk, InstanceQuery, LaunchRequest, ModifyVolumeRequest,
    VALUES_PER_FILTER, VolumeQuery,
};

/// The largest page of instances, statuses and snapshots (EC2 API reference, `MaxResults`).
pub(super) const INSTANCE_PAGE: i32 = 1000;

/// The largest page of volumes; EC2 answers a larger page size with this one.
pub(super) const VOLUME_PAGE: i32 = 500;

/// The events that EC2 schedules for an instance (EC2 User Guide, "Scheduled events for your instances").
const EVENT_CODES: [&str; 5] =
    ["instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"];

pub(super) fn run_instances(client: &Client, request: &LaunchRequest) -> RunInstancesFluentBuilder {
    let LaunchRequest {
        token,
        subnet_id,
        instance_type,
        image_id,
        user_data,
        security_group_ids,
        instance_profile,
        disks,
        kms_key_id,
        tags,
    } = request;
    let mapping = |disk: &Disk| {
        let ebs = EbsBlockDevice::builder()
            .volume_size(disk.size)
            .volume_type(disk.volume_type.as_str().into())
            .encrypted(true)
            .set_kms_key_id(kms_key_id.clone())
            .delete_on_termination(true)
            .build();
        BlockDeviceMapping::builder().device_name(&disk.device).ebs(ebs).build()
    };
    // Hop limit 1: no pod without hostNetwork reaches the machine's credentials. Tags stay out of the
    // metadata: nothing needs them there, and they would forbid characters that EC2 allows elsewhere.
    let metadata = InstanceMetadataOptionsRequest::builder()
        .http_tokens(HttpTokensState::Required)
        .http_put_response_hop_limit(1)
        .instance_metadata_tags(InstanceMetadataTagsState::Disabled)
        .build();
    client
        .run_instances()
        .client_token(&token.0)
        .min_count(1)
        .max_count(1)
        .subnet_id(subnet_id)
        .instance_type(instance_type.as_str().into())
        .image_id(image_id)
        .set_user_data(Some(STANDARD.encode(user_data)).filter(|text| !text.is_empty()))
        .set_security_group_ids(Some(security_group_ids.clone()))
        .set_iam_instance_profile(
            instance_profile
                .as_ref()
                .map(|name| IamInstanceProfileSpecification::builder().name(name).build()),
        )
        .set_block_device_mappings(Some(disks.iter().map(mapping).collect()))
        .metadata_options(metadata)
        // Tags in the creating call: they exist whenever the resource does (though lists may show them
        // later), and a process that dies after the call leaves nothing that cannot be found.
        .tag_specifications(tag_specification(ResourceType::Instance, tags))
        .tag_specifications(tag_specification(ResourceType::Volume, tags))
        .tag_specifications(tag_specification(ResourceType::NetworkInterface, tags))
}

pub(super) fn create_volume(client: &Client, request: &CreateVolumeRequest) -> CreateVolumeFluentBuilder {
    let CreateVolumeRequest {
        token,
        zone,
        size,
        volume_type,
        iops,
        throughput,
        snapshot_id,
        initialization_rate,
        kms_key_id,
        tags,
    } = request;
    client
        .create_volume()
        .client_token(&token.0)
        .availability_zone(zone)
        .size(*size)
        .volume_type(volume_type.as_str().into())
        .set_iops(*iops)
        .set_throughput(*throughput)
        .set_snapshot_id(snapshot_id.as_ref().map(|id| id.0.clone()))
        .set_volume_initialization_rate(*initialization_rate)
        .encrypted(true)
        .set_kms_key_id(kms_key_id.clone())
        .tag_specifications(tag_specification(ResourceType::Volume, tags))
}

pub(super) fn modify_volume(client: &Client, request: &ModifyVolumeRequest) -> ModifyVolumeFluentBuilder {
    let ModifyVolumeRequest { id, size, volume_type, iops, throughput } = request;
    client
        .modify_volume()
        .volume_id(&id.0)
        .size(*size)
        .volume_type(volume_type.as_str().into())
        .set_iops(*iops)
        .set_throughput(*throughput)
}

pub(super) fn create_snapshot(
    client: &Client,
    volume: &VolumeId,
    tags: &BTreeMap<String, String>,
) -> CreateSnapshotFluentBuilder {
    client
        .create_snapshot()
        .volume_id(&volume.0)
        .tag_specifications(tag_specification(ResourceType::Snapshot, tags))
}

pub(super) fn create_tags(
    client: &Client,
    id: &str,
    tags: &BTreeMap<String, String>,
) -> CreateTagsFluentBuilder {
    client.create_tags().resources(id).set_tags(Some(tag_list(tags)))
}

pub(super) fn delete_tags(
    client: &Client,
    ids: &[String],
    tags: &BTreeMap<String, String>,
) -> DeleteTagsFluentBuilder {
    client.delete_tags().set_resources(Some(ids.to_vec())).set_tags(Some(tag_list(tags)))
}

fn tag_list(tags: &BTreeMap<String, String>) -> Vec<Tag> {
    tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()
}

fn tag_specification(resource: ResourceType, tags: &BTreeMap<String, String>) -> TagSpecification {
    TagSpecification::builder().resource_type(resource).set_tags(Some(tag_list(tags))).build()
}

/// How one list call selects.
#[derive(Debug, PartialEq)]
pub(super) enum Selection {
    Filters(Vec<Filter>),
    Ids(Vec<String>),
}

/// The selection of each list call that the query needs.
pub(super) fn instance_selections(query: &InstanceQuery) -> Vec<Selection> {
    match query {
        InstanceQuery::Tags(tags) => vec![Selection::Filters(tag_filters(tags))],
        InstanceQuery::Tokens(tokens) => {
            let tokens: Vec<_> = tokens.iter().map(|token| token.0.clone()).collect();
            chunked("client-token", &tokens).into_iter().map(Selection::Filters).collect()
        }
        InstanceQuery::Among(ids) => {
            let ids: Vec<_> = ids.iter().map(|id| id.0.clone()).collect();
            chunked("instance-id", &ids).into_iter().map(Selection::Filters).collect()
        }
        InstanceQuery::Ids(ids) => {
            let chunks = ids.chunks(VALUES_PER_FILTER);
            chunks.map(|ids| Selection::Ids(ids.iter().map(|id| id.0.clone()).collect())).collect()
        }
    }
}

/// The filters of each list call that the query needs.
pub(super) fn volume_filters(query: &VolumeQuery) -> Vec<Vec<Filter>> {
    match query {
        VolumeQuery::Tags(tags) => vec![tag_filters(tags)],
        VolumeQuery::Ids(ids) => chunked("volume-id", &ids.iter().map(|id| id.0.clone()).collect::<Vec<_>>()),
    }
}

/// By a filter: an id that EC2 does not know is left out of the answer instead of failing the call.
pub(super) fn snapshot_filters(id: &SnapshotId) -> Vec<Filter> {
    vec![filter("snapshot-id", [id.0.clone()])]
}

/// One filter a tag: all must match. Lists by tag may miss a new resource for minutes (EC2 developer guide,
/// "Eventual consistency"): an empty answer is a fact with a time, never a verdict.
pub(super) fn tag_filters(tags: &BTreeMap<String, String>) -> Vec<Filter> {
    tags.iter().map(|(key, value)| filter(&format!("tag:{key}"), [literal(value)])).collect()
}

/// What carries the tag with this value, of the kinds that a launch tags. Backups copy the tags of a volume
/// to snapshots, which are not meant.
pub(super) fn tagged_filters(key: &str, value: &str) -> Vec<Filter> {
    let kinds = [ResourceType::Instance, ResourceType::NetworkInterface, ResourceType::Volume];
    vec![
        filter("key", [literal(key)]),
        filter("value", [literal(value)]),
        filter("resource-type", kinds.map(|kind| kind.as_str().to_owned())),
    ]
}

/// Three lists that together name every unhealthy instance, however many there are.
pub(super) fn health_filters() -> [Filter; 3] {
    [
        filter("system-status.status", ["impaired".to_owned()]),
        filter("instance-status.status", ["impaired".to_owned()]),
        filter("event.code", EVENT_CODES.map(str::to_owned)),
    ]
}

pub(super) fn filter(name: &str, values: impl IntoIterator<Item = String>) -> Filter {
    Filter::builder().name(name).set_values(Some(values.into_iter().collect())).build()
}

/// No values make no call: a filter without values would match everything.
pub(super) fn chunked(name: &str, values: &[String]) -> Vec<Vec<Filter>> {
    values.chunks(VALUES_PER_FILTER).map(|values| vec![filter(name, values.to_vec())]).collect()
}

/// The value so that EC2 takes no character of it for a wildcard (EC2 API reference, "Filters").
fn literal(value: &str) -> String {
    value.chars().fold(String::new(), |mut text, character| {
        if matches!(character, '*' | '?' | '\\') {
            text.push('\\');
        }
        text.push(character);
        text
    })
}

/// A list from its pages: complete, or an error.
pub(super) struct Gathered<T> {
    call: Call,
    items: Vec<T>,
    next_token: Option<String>,
}

impl<T> Gathered<T> {
    pub fn new(call: Call) -> Self {
        Self { call, items: Vec::new(), next_token: None }
    }

    /// Adds a page. EC2 sends the list's element in every page, an empty one, too; a page without it was cut.
    pub fn add(&mut self, items: Option<Vec<T>>, next_token: Option<String>) -> Result<(), CloudError> {
        self.items.extend(items.ok_or_else(|| incomplete(self.call, "list"))?);
        self.next_token = next_token.filter(|token| !token.is_empty());
        Ok(())
    }

    /// All pages, if the last one says that it is the last: the SDK's paginator ends without a word when EC2
    /// repeats a page's token.
    pub fn finish(self) -> Result<Vec<T>, CloudError> {
        match self.next_token {
            None => Ok(self.items),
            Some(_) => Err(incomplete(self.call, "last page")),
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::api::{ClientToken, InstanceId};
    use crate::cloud::{Class, LAUNCH_SHAPE};

    #[test]
    fn a_launch_is_the_request_that_the_shape_stands_for() {
        let config = aws_sdk_ec2::Config::builder()
            .behavior_version(aws_sdk_ec2::config::BehaviorVersion::v2026_01_12())
            .build();
        let request = LaunchRequest {
            token: ClientToken("token".into()),
            subnet_id: "subnet-1".into(),
            instance_type: "r7i.large".into(),
            image_id: "ami-1".into(),
            user_data: "boot".into(),
            security_group_ids: vec!["sg-1".into()],
            instance_profile: Some("profile".into()),
            disks: vec![Disk { device: "/dev/xvda".into(), size: 30, volume_type: "gp3".into() }],
            kms_key_id: Some("key".into()),
            tags: BTreeMap::from([("Name".into(), "orders".into())]),
        };
        let sent = run_instances(&Client::from_conf(config), &request);
        let found = format!("shape {LAUNCH_SHAPE}: {:#?}\n", sent.as_input());
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cloud/ec2/run_instances.golden.txt");
        if std::env::var_os("FREEHOLD_BLESS").is_some() {
            std::fs::write(path, &found).unwrap();
        }
        // A difference needs the next LAUNCH_SHAPE: EC2 refuses another request with the same token.
        assert_eq!(std::fs::read_to_string(path).unwrap(), found);
    }

    #[test]
    fn a_query_is_split_into_calls_that_ec2_takes_and_an_empty_one_makes_none() {
        let tokens =
            |count: usize| InstanceQuery::Tokens((0..count).map(|n| ClientToken(format!("t-{n}"))).collect());
        let volumes =
            |count: usize| VolumeQuery::Ids((0..count).map(|n| VolumeId(format!("vol-{n}"))).collect());
        for (count, sizes) in [(0, vec![]), (200, vec![200]), (401, vec![200, 200, 1])] {
            let by_token: Vec<usize> = instance_selections(&tokens(count))
                .iter()
                .map(|selection| match selection {
                    Selection::Filters(filters) => filters[0].values().len(),
                    Selection::Ids(ids) => panic!("tokens are no ids: {ids:?}"),
                })
                .collect();
            let by_id: Vec<usize> =
                volume_filters(&volumes(count)).iter().map(|filters| filters[0].values().len()).collect();
            assert_eq!((by_token, by_id), (sizes.clone(), sizes));
        }
    }

    #[test]
    fn instances_are_requested_by_id_and_not_by_a_filter_so_that_a_disrupted_zone_does_not_fail_the_others() {
        let query = InstanceQuery::Ids(vec![InstanceId("i-1".into())]);
        assert_eq!(instance_selections(&query), [Selection::Ids(vec!["i-1".into()])]);
    }

    #[test]
    fn a_tags_value_is_matched_literally() {
        let filters =
            tag_filters(&BTreeMap::from([("freehold.dev/cluster-id".to_owned(), r"prod*?\1".to_owned())]));
        assert_eq!(filters, [filter("tag:freehold.dev/cluster-id", [r"prod\*\?\\1".to_owned()])]);
    }

    #[test]
    fn a_list_is_complete_only_if_its_last_page_says_so() {
        let mut gathered = Gathered::new(Call::DescribeInstances);
        gathered.add(Some(vec![1]), Some("more".into())).unwrap();
        gathered.add(Some(vec![]), Some("more".into())).unwrap();
        let error = gathered.finish().unwrap_err();
        assert_eq!((error.class, error.action), (Class::InDoubt, "DescribeInstances"));

        let mut gathered = Gathered::new(Call::DescribeInstances);
        gathered.add(Some(vec![1]), Some("more".into())).unwrap();
        gathered.add(Some(vec![2]), Some(String::new())).unwrap();
        assert_eq!(gathered.finish().unwrap(), [1, 2]);
    }

    #[test]
    fn a_page_without_its_list_is_no_empty_page() {
        assert!(Gathered::<i32>::new(Call::DescribeVolumes).add(None, None).is_err());
    }
}
