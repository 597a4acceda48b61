//! Observe, NodeClass: reads what EC2 and the cluster have of what it names. Only reads.

use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::api::{Database, Node, NodeClass, Volume};
use crate::cloud::CloudError;
use crate::cloud::call::Call;
use crate::cloud::catalog::{Image, InstanceType, SecurityGroup, Subnet};
use crate::cloud::limits::Wait;
use crate::cloud::turns::{Caller, Priority};
use crate::cluster::if_served;
use crate::controller::call_blocked::CallBlocked;
use crate::controller::pass::call_blocked::call_blocked;
use crate::controller::pass::context::Context;

/// Everything that a NodeClass' plan depends on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The NodeClass, read fresh.
    pub class: NodeClass,
    /// What EC2 has, or why it could not be read.
    pub catalog: Result<Catalog, CallBlocked>,
    /// The StorageClass of the name.
    pub storage_class: Option<StorageClass>,
    /// What uses the class (`Database team-a/orders`); read only while the class is being deleted.
    pub users: Vec<String>,
}

/// What EC2 has of what the class names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The image.
    pub image: Option<Image>,
    /// Those of the subnets that there are.
    pub subnets: Vec<Subnet>,
    /// Those of the security groups that there are.
    pub security_groups: Vec<SecurityGroup>,
    /// The instance types that match the class' patterns.
    pub instance_types: Vec<InstanceType>,
}

/// Reads; `None` when the object is gone, or is another of its name.
pub async fn observe(class: &NodeClass, ctx: &Context) -> Result<Option<Observed>, kube::Error> {
    let fresh = if_served(Api::<NodeClass>::all(ctx.client.clone()).get_opt(&class.name_any()).await)?;
    let Some(class) = fresh.filter(|fresh| fresh.metadata.uid == class.metadata.uid) else {
        return Ok(None);
    };
    let storage_classes = Api::<StorageClass>::all(ctx.client.clone());
    Ok(Some(Observed {
        catalog: catalog(&class, ctx).await,
        storage_class: storage_classes.get_opt(&class.spec.storage_class_name).await?,
        users: if class.metadata.deletion_timestamp.is_some() {
            users(&class.name_any(), ctx).await?
        } else {
            Vec::new()
        },
        class,
    }))
}

async fn catalog(class: &NodeClass, ctx: &Context) -> Result<Catalog, CallBlocked> {
    let (spec, uid, cloud) = (&class.spec, class.uid().unwrap_or_default(), &ctx.cloud);
    let subnets: Vec<String> = spec.subnets.iter().map(|subnet| subnet.id.clone()).collect();
    let (groups, patterns) = (&spec.security_group_ids, &spec.instance_types);
    Ok(Catalog {
        image: read(Call::DescribeImages, cloud.describe_image(&spec.image_id), &uid, ctx).await?,
        subnets: read(Call::DescribeSubnets, cloud.describe_subnets(&subnets), &uid, ctx).await?,
        security_groups: if groups.is_empty() {
            Vec::new()
        } else {
            read(Call::DescribeSecurityGroups, cloud.describe_security_groups(groups), &uid, ctx).await?
        },
        instance_types: read(Call::DescribeInstanceTypes, cloud.describe_instance_types(patterns), &uid, ctx)
            .await?,
    })
}

/// Makes a call if the rate limits allow it. It leaves a reserve to the databases.
async fn read<T>(
    call: Call,
    answer: impl Future<Output = Result<T, CloudError>>,
    class: &str,
    ctx: &Context,
) -> Result<T, CallBlocked> {
    let caller = Caller { namespace: "", object: class, priority: Priority::Create };
    let limit = ctx.limits.try_take(call, &caller, ctx.clock.now());
    limit.map_err(|Wait { until }| CallBlocked::RateLimited { until })?;
    answer.await.map_err(|error| call_blocked(call, &error, ctx))
}

/// What names the class, in all namespaces.
async fn users(class: &str, ctx: &Context) -> Result<Vec<String>, kube::Error> {
    let mut users = all_of(ctx, |database: &Database| database.spec.node_class_name == class).await?;
    users.extend(all_of(ctx, |node: &Node| node.spec.node_class_name == class).await?);
    users.extend(all_of(ctx, |volume: &Volume| volume.spec.node_class_name == class).await?);
    Ok(users)
}

async fn all_of<K>(ctx: &Context, is_user: impl Fn(&K) -> bool) -> Result<Vec<String>, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let all = Api::<K>::all(ctx.client.clone()).list(&ListParams::default()).await?;
    let name = |object: &K| {
        format!("{} {}/{}", K::kind(&()), object.namespace().unwrap_or_default(), object.name_any())
    };
    Ok(all.items.iter().filter(|object| is_user(object)).map(name).collect())
}
