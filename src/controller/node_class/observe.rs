//! Observe, NodeClass: reads what EC2 and the cluster have of what it names. Only reads.

use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::catalog::Catalog;
use super::launch_check::{self, LaunchCheck};
use super::launches::{self, Launch};
use crate::api::node_class_status::{DryRun, EndedLaunch};
use crate::api::{Database, Node, NodeClass, Volume};
use crate::cloud::call::Call;
use crate::cloud::limits::Wait;
use crate::cloud::turns::{Caller, Priority};
use crate::cloud::{Class, CloudError};
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
    /// What EC2 answered to a dry run of a launch of this spec.
    pub launch_check: LaunchCheck,
    /// The launches of the class' Nodes, each Node's newest.
    pub launches: Vec<Launch>,
    /// The launch of this spec that EC2 is known to have ended.
    pub ended_launch: Option<EndedLaunch>,
    /// What uses the class (`Database team-a/orders`); read only while the class is being deleted.
    pub users: Vec<String>,
}

/// Reads; `None` when the object is gone, or is another of its name.
pub async fn observe(class: &NodeClass, ctx: &Context) -> Result<Option<Observed>, kube::Error> {
    let fresh = if_served(Api::<NodeClass>::all(ctx.client.clone()).get_opt(&class.name_any()).await)?;
    let Some(class) = fresh.filter(|fresh| fresh.metadata.uid == class.metadata.uid) else {
        return Ok(None);
    };
    let storage_classes = Api::<StorageClass>::all(ctx.client.clone());
    let status = class.status.clone().unwrap_or_default();
    let is_of_this_spec = status.observed_generation == class.metadata.generation;
    let launches = launches(&class.name_any(), ctx);
    let catalog = catalog(&class, ctx).await;
    let known = status.dry_run.filter(|_| is_of_this_spec);
    Ok(Some(Observed {
        launch_check: launch_check(&class, &catalog, &launches, known, ctx).await,
        launches,
        ended_launch: status.ended_launch.filter(|_| is_of_this_spec),
        catalog,
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

/// The launches of the class' Nodes, as the Nodes' status and the EC2 inventory show them.
fn launches(class: &str, ctx: &Context) -> Vec<Launch> {
    let launch = |node: &Node| {
        let id = node.status.as_ref()?.instance_id.clone();
        let shown = id.and_then(|id| {
            let instances = ctx.inventory.instances_of(&node.uid().unwrap_or_default());
            instances.by_id(&id).and_then(|instance| instance.state_reason.clone())
        });
        launches::of(node, shown.as_deref())
    };
    ctx.fleet.of_class(class).iter().filter_map(|node| launch(node)).collect()
}

/// Sends a dry run of a launch if one is due and no launch misses the request; otherwise gives what is known
/// of this spec. A dry run changes nothing in EC2.
async fn launch_check(
    class: &NodeClass,
    catalog: &Result<Catalog, CallBlocked>,
    launches: &[Launch],
    known: Option<DryRun>,
    ctx: &Context,
) -> LaunchCheck {
    let (uid, now) = (class.uid().unwrap_or_default(), ctx.clock.now());
    let is_kept = class.metadata.deletion_timestamp.is_none();
    let request = catalog
        .as_ref()
        .ok()
        .filter(|_| is_kept)
        .and_then(|catalog| launch_check::request(class, catalog, launches, &ctx.cluster_id, now));
    let Some(request) = request else { return LaunchCheck { answer: known, ..LaunchCheck::default() } };
    let last = ctx.launch_checks.last(&uid, class.metadata.generation);
    let is_due = launch_check::is_due(known.as_ref(), last, &ctx.timing, now);
    if !is_due || ctx.limits.try_take_spare(Call::RunInstances, now).is_err() {
        // One that is due follows within a minute, and not with the next look at the class: after a restart
        // all classes would take turns, one each quarter of an hour.
        return LaunchCheck { is_awaited: is_due || known.is_none(), answer: known, sent_at: None };
    }
    let answer = ctx.cloud.check_launch(&request).await;
    if answer.as_ref().is_err_and(|error| error.class == Class::Throttled) {
        ctx.limits.throttled(Call::RunInstances, ctx.clock.now());
    }
    let answer = launch_check::answer(answer, known, now);
    LaunchCheck { is_awaited: answer.is_none(), answer, sent_at: Some(now) }
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

/// What names the class, in all namespaces. A kind that is not served any more has no objects: its definition
/// is deleted at the same time.
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
    let all = Api::<K>::all(ctx.client.clone()).list(&ListParams::default()).await;
    let all = if_served(all.map(|list| list.items))?;
    let name = |object: &K| {
        format!("{} {}/{}", K::kind(&()), object.namespace().unwrap_or_default(), object.name_any())
    };
    Ok(all.iter().filter(|object| is_user(object)).map(name).collect())
}
