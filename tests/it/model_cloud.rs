//! The operator's `Cloud` on the EC2 model in process: the same calls in the Query protocol's words, without
//! a network.

mod catalog;
mod convert;
mod initializations;
mod lists;
mod params;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use ec2sim::{ApiError, Response, Simulator};
use freehold::api::{InstanceId, SnapshotId, VolumeId};
use freehold::cloud::catalog::{Image, InstanceType, SecurityGroup, Subnet};
use freehold::cloud::{
    Cloud, CloudError, CreateVolumeRequest, EbsVolume, Initialization, Instance, InstanceHealth,
    InstanceQuery, LaunchRequest, Modification, ModifyVolumeRequest, Snapshot, VolumeQuery,
};

use convert::{instance, snapshot, volume};
use params::{Params, instance_ids, launch_params, param, tag_filters, tag_list, tag_specification};

/// How long a call takes to EC2 and back; a call that takes for ever is not made, or never answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passage {
    /// Until it is carried out.
    pub there: Duration,
    /// From then until the caller has the answer.
    pub back: Duration,
    /// It arrives whatever becomes of the caller meanwhile.
    pub is_on_its_way: bool,
}

/// Decides how long each call of an action takes.
pub type Way = Box<dyn Fn(&str) -> Passage + Send + Sync>;

/// The model as the operator's cloud.
pub struct ModelCloud {
    simulator: Simulator,
    caller: String,
    way: Option<Way>,
}

impl ModelCloud {
    /// Calls the model as this access key id.
    pub fn new(simulator: Simulator, caller: &str) -> Self {
        Self { simulator, caller: caller.into(), way: None }
    }

    /// The same over a way that takes its time.
    pub fn over(simulator: Simulator, caller: &str, way: Way) -> Self {
        Self { way: Some(way), ..Self::new(simulator, caller) }
    }

    async fn call(&self, action: &'static str, params: &Params) -> Result<Response, CloudError> {
        let passage = self.way.as_ref().map(|way| way(action)).unwrap_or_default();
        let answer = if passage.is_on_its_way {
            let (simulator, caller, params) = (self.simulator.clone(), self.caller.clone(), params.clone());
            let arriving = tokio::spawn(async move {
                pause(passage.there).await;
                carry_out(&simulator, &caller, action, &params)
            });
            arriving.await.expect("the model answers")
        } else {
            pause(passage.there).await;
            carry_out(&self.simulator, &self.caller, action, params)
        };
        pause(passage.back).await;
        answer
    }

    async fn dry_run(&self, action: &'static str, mut params: Params) -> Result<(), CloudError> {
        params.push(param("DryRun", true));
        match self.call(action, &params).await {
            Ok(_) => Err(not_the_answer(action)),
            Err(accepted) if accepted.is_accepted_dry_run() => Ok(()),
            Err(refused) => Err(refused),
        }
    }
}

fn carry_out(
    simulator: &Simulator,
    caller: &str,
    action: &'static str,
    params: &Params,
) -> Result<Response, CloudError> {
    let mut all = vec![("Action".to_owned(), action.to_owned())];
    all.extend(params.iter().cloned());
    simulator.call(caller, &all).map_err(|error| match error {
        ApiError::Refused(refusal) => CloudError::new(
            action,
            Some(&refusal.code),
            &refusal.message,
            Some(refusal.status()),
            Some("in-process"),
        ),
        ApiError::NoAnswer => CloudError::in_doubt(action, "no answer"),
    })
}

async fn pause(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

fn not_the_answer(action: &'static str) -> CloudError {
    CloudError::in_doubt(action, "the answer is another action's")
}

#[async_trait]
impl Cloud for ModelCloud {
    async fn run_instance(&self, request: &LaunchRequest) -> Result<Instance, CloudError> {
        let params = launch_params(request);
        let Response::RunInstances(reservation) = self.call("RunInstances", &params).await? else {
            return Err(not_the_answer("RunInstances"));
        };
        reservation.instances.into_iter().next().map(instance).ok_or_else(|| not_the_answer("RunInstances"))
    }

    async fn check_launch(&self, request: &LaunchRequest) -> Result<(), CloudError> {
        self.dry_run("RunInstances", launch_params(request)).await
    }

    async fn stop_instances(&self, ids: &[InstanceId], force: bool) -> Result<(), CloudError> {
        let mut params = instance_ids(ids);
        params.push(param("Force", force));
        self.call("StopInstances", &params).await.map(|_| ())
    }

    async fn terminate_instances(&self, ids: &[InstanceId]) -> Result<(), CloudError> {
        self.call("TerminateInstances", &instance_ids(ids)).await.map(|_| ())
    }

    async fn describe_instances(&self, query: &InstanceQuery) -> Result<Vec<Instance>, CloudError> {
        self.instances(query).await
    }

    async fn describe_unhealthy_instances(&self) -> Result<Vec<InstanceHealth>, CloudError> {
        self.unhealthy().await
    }

    async fn describe_health(&self, ids: &[InstanceId]) -> Result<Vec<InstanceHealth>, CloudError> {
        self.health(ids).await
    }

    async fn console_output(&self, id: &InstanceId) -> Result<String, CloudError> {
        let Response::ConsoleOutput { output, .. } =
            self.call("GetConsoleOutput", &vec![param("InstanceId", id)]).await?
        else {
            return Err(not_the_answer("GetConsoleOutput"));
        };
        Ok(output)
    }

    async fn create_volume(&self, request: &CreateVolumeRequest) -> Result<EbsVolume, CloudError> {
        let mut params = vec![
            param("ClientToken", &request.token),
            param("AvailabilityZone", &request.zone),
            param("Size", request.size),
            param("VolumeType", &request.volume_type),
            param("Encrypted", true),
        ];
        params.extend(request.iops.map(|iops| param("Iops", iops)));
        params.extend(request.throughput.map(|throughput| param("Throughput", throughput)));
        params.extend(request.snapshot_id.iter().map(|id| param("SnapshotId", id)));
        params.extend(request.initialization_rate.map(|rate| param("VolumeInitializationRate", rate)));
        params.extend(request.kms_key_id.iter().map(|key| param("KmsKeyId", key)));
        params.extend(tag_specification(1, "volume", &request.tags));
        let Response::Volume(view) = self.call("CreateVolume", &params).await? else {
            return Err(not_the_answer("CreateVolume"));
        };
        Ok(volume(view))
    }

    async fn modify_volume(&self, request: &ModifyVolumeRequest) -> Result<(), CloudError> {
        let mut params = vec![
            param("VolumeId", &request.id),
            param("Size", request.size),
            param("VolumeType", &request.volume_type),
        ];
        params.extend(request.iops.map(|iops| param("Iops", iops)));
        params.extend(request.throughput.map(|throughput| param("Throughput", throughput)));
        self.call("ModifyVolume", &params).await.map(|_| ())
    }

    async fn delete_volume(&self, id: &VolumeId) -> Result<(), CloudError> {
        self.call("DeleteVolume", &vec![param("VolumeId", id)]).await.map(|_| ())
    }

    async fn tag_resource(&self, id: &str, tags: &BTreeMap<String, String>) -> Result<(), CloudError> {
        self.call("CreateTags", &tag_list(&[id.to_owned()], tags)).await.map(|_| ())
    }

    async fn untag_resources(
        &self,
        ids: &[String],
        tags: &BTreeMap<String, String>,
    ) -> Result<(), CloudError> {
        self.call("DeleteTags", &tag_list(ids, tags)).await.map(|_| ())
    }

    async fn check_untag(&self, ids: &[String], tags: &BTreeMap<String, String>) -> Result<(), CloudError> {
        self.dry_run("DeleteTags", tag_list(ids, tags)).await
    }

    async fn describe_tagged(&self, key: &str, value: &str) -> Result<Vec<String>, CloudError> {
        self.tagged(key, value).await
    }

    async fn describe_volumes(&self, query: &VolumeQuery) -> Result<Vec<EbsVolume>, CloudError> {
        self.volumes(query).await
    }

    async fn describe_modifications(&self, ids: &[VolumeId]) -> Result<Vec<Modification>, CloudError> {
        self.modifications(ids).await
    }

    async fn describe_initializations(&self, ids: &[VolumeId]) -> Result<Vec<Initialization>, CloudError> {
        self.initializations(ids).await
    }

    async fn create_snapshot(
        &self,
        volume: &VolumeId,
        tags: &BTreeMap<String, String>,
    ) -> Result<Snapshot, CloudError> {
        let mut params = vec![param("VolumeId", volume)];
        params.extend(tag_specification(1, "snapshot", tags));
        let Response::Snapshot(view) = self.call("CreateSnapshot", &params).await? else {
            return Err(not_the_answer("CreateSnapshot"));
        };
        Ok(snapshot(view))
    }

    async fn delete_snapshot(&self, id: &SnapshotId) -> Result<(), CloudError> {
        self.call("DeleteSnapshot", &vec![param("SnapshotId", id)]).await.map(|_| ())
    }

    async fn describe_snapshots(&self, tags: &BTreeMap<String, String>) -> Result<Vec<Snapshot>, CloudError> {
        let mut params = tag_filters(tags);
        params.push(param("Owner.1", "self"));
        self.snapshots(&params).await
    }

    async fn describe_snapshot(&self, id: &SnapshotId) -> Result<Option<Snapshot>, CloudError> {
        let filter = [param("Filter.1.Name", "snapshot-id"), param("Filter.1.Value.1", id)];
        let params = filter.into_iter().chain([param("Owner.1", "self")]).collect();
        Ok(self.snapshots(&params).await?.into_iter().next())
    }

    async fn describe_image(&self, id: &str) -> Result<Option<Image>, CloudError> {
        self.image(id).await
    }

    async fn describe_subnets(&self, ids: &[String]) -> Result<Vec<Subnet>, CloudError> {
        self.subnets(ids).await
    }

    async fn describe_security_groups(&self, ids: &[String]) -> Result<Vec<SecurityGroup>, CloudError> {
        self.security_groups(ids).await
    }

    async fn describe_instance_types(&self, patterns: &[String]) -> Result<Vec<InstanceType>, CloudError> {
        self.instance_types(patterns).await
    }
}
