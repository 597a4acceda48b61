//! The EC2 client of the virtual CSI driver, and of a person. It uses HTTP like any other, so the journal
//! shows its calls.

use aws_sdk_ec2::config::retry::RetryConfig;
use aws_sdk_ec2::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_ec2::error::ProvideErrorMetadata;
use aws_sdk_ec2::types::{Instance, InstanceType, ResourceType, Tag, TagSpecification, Volume, VolumeType};
use data_encoding::BASE64;

/// The access key id by which the journal distinguishes the CSI driver from the operator.
pub const CALLER: &str = "csi-driver";

/// The CSI driver's client for the simulator at `endpoint`.
pub fn client(endpoint: &str, region: &str) -> aws_sdk_ec2::Client {
    client_of(CALLER, endpoint, region)
}

/// A client of this name in the journal.
pub fn client_of(caller: &str, endpoint: &str, region: &str) -> aws_sdk_ec2::Client {
    let config = aws_sdk_ec2::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(endpoint)
        .region(Region::new(region.to_owned()))
        .credentials_provider(Credentials::new(caller, "box", None, None, "box"))
        .retry_config(RetryConfig::standard())
        .build();
    aws_sdk_ec2::Client::from_conf(config)
}

/// A call that failed: EC2's code, or none when there was no answer, and a sentence.
#[derive(Debug, thiserror::Error)]
#[error("failed to {doing}: {code}: {message}")]
pub struct Error {
    doing: String,
    /// EC2's code.
    pub code: String,
    message: String,
}

/// Names what was being done.
pub fn failed<E: ProvideErrorMetadata + std::fmt::Debug>(doing: String) -> impl FnOnce(E) -> Error {
    move |error| Error {
        doing,
        code: error.code().unwrap_or("no answer").to_owned(),
        message: error.message().map_or_else(|| format!("{error:?}"), str::to_owned),
    }
}

/// The volume as EC2 shows it; none if it is not there.
pub async fn volume(client: &aws_sdk_ec2::Client, id: &str) -> Result<Option<Volume>, Error> {
    let answer = client.describe_volumes().volume_ids(id).send().await.map_err(failed(format!(
        "describe \
        volume {id}"
    )));
    match answer {
        Ok(output) => Ok(output.volumes.unwrap_or_default().into_iter().next()),
        Err(error) if error.code == "InvalidVolume.NotFound" => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates a gp3 volume of this many GiB, with a token of the SDK's own; its id.
pub async fn create_volume(client: &aws_sdk_ec2::Client, zone: &str, size: i32) -> Result<String, Error> {
    let created = client
        .create_volume()
        .availability_zone(zone)
        .size(size)
        .volume_type(VolumeType::Gp3)
        .send()
        .await
        .map_err(failed(format!("create a volume in {zone}")))?;
    Ok(created.volume_id.unwrap_or_default())
}

/// The instance as EC2 shows it; none if it is not there.
pub async fn instance(client: &aws_sdk_ec2::Client, id: &str) -> Result<Option<Instance>, Error> {
    let answer = client.describe_instances().instance_ids(id).send().await.map_err(failed(format!(
        "describe \
        instance {id}"
    )));
    match answer {
        Ok(output) => {
            let reservations = output.reservations.unwrap_or_default();
            Ok(reservations
                .into_iter()
                .flat_map(|reservation| reservation.instances.unwrap_or_default())
                .next())
        }
        Err(error) if error.code == "InvalidInstanceID.NotFound" => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is launched by hand: one instance, with no tag but its name.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The value of its tag `Name`.
    pub name: &'a str,
    /// The machine image.
    pub image: &'a str,
    /// The instance type.
    pub instance_type: &'a str,
    /// The subnet.
    pub subnet: &'a str,
    /// The security group; without one EC2 takes the VPC's own.
    pub security_group: Option<&'a str>,
    /// The script of the first boot.
    pub user_data: &'a str,
}

/// Launches it, with a token of the SDK's own, so that a call that is repeated launches nothing twice; none
/// if EC2 answers without an instance.
pub async fn launch(client: &aws_sdk_ec2::Client, launch: Launch<'_>) -> Result<Option<String>, Error> {
    let name = Tag::builder().key("Name").value(launch.name).build();
    let tags = TagSpecification::builder().resource_type(ResourceType::Instance).tags(name).build();
    let launched = client
        .run_instances()
        .image_id(launch.image)
        .instance_type(InstanceType::from(launch.instance_type))
        .subnet_id(launch.subnet)
        .set_security_group_ids(launch.security_group.map(|group| vec![group.to_owned()]))
        .user_data(BASE64.encode(launch.user_data.as_bytes()))
        .tag_specifications(tags)
        .min_count(1)
        .max_count(1)
        .send()
        .await
        .map_err(failed(format!("launch the machine {}", launch.name)))?;
    Ok(launched.instances.unwrap_or_default().into_iter().find_map(|instance| instance.instance_id))
}
