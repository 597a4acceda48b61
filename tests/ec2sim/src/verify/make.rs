//! Short ways to make instances, volumes and snapshots, all with the run's tag, and to look at them.

use super::{
    answer::{Checked, check},
    element::Element,
    target::{TAG, Target},
    wire::CallError,
};

/// The parameters of a call.
pub(super) type Params = Vec<(String, String)>;

/// Parameters, those of `more` in the place of, or after, those of `base`.
fn merged(base: &[(&str, &str)], more: &[(&str, &str)]) -> Params {
    let kept = base.iter().filter(|(key, _)| !more.iter().any(|(other, _)| other == key));
    let given = more.iter().filter(|(_, value)| !value.is_empty());
    kept.chain(given).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

impl Target {
    /// The parameters of a launch. An empty value in `more` takes a parameter out.
    pub(super) fn launch_params(&self, more: &[(&str, &str)]) -> Params {
        let base = [
            ("ImageId", self.place.image.as_str()),
            ("InstanceType", &self.place.instance_type),
            ("SubnetId", &self.place.subnet),
            ("MinCount", "1"),
            ("MaxCount", "1"),
            ("TagSpecification.1.ResourceType", "instance"),
            ("TagSpecification.1.Tag.1.Key", TAG),
            ("TagSpecification.1.Tag.1.Value", &self.run),
            ("TagSpecification.2.ResourceType", "volume"),
            ("TagSpecification.2.Tag.1.Key", TAG),
            ("TagSpecification.2.Tag.1.Value", &self.run),
        ];
        merged(&base, more)
    }

    /// The parameters of a new volume of 1 GiB.
    pub(super) fn volume_params(&self, more: &[(&str, &str)]) -> Params {
        let base = [("AvailabilityZone", self.place.zone.as_str()), ("Size", "1"), ("VolumeType", "gp3")];
        let mut params = merged(&base, more);
        params.extend(self.tags("volume"));
        params
    }

    /// The parameters of a new snapshot.
    pub(super) fn snapshot_params(&self, volume: &str) -> Params {
        let mut params = merged(&[("VolumeId", volume)], &[]);
        params.extend(self.tags("snapshot"));
        params
    }

    fn tags(&self, resource_type: &str) -> Params {
        let tag = [
            ("TagSpecification.1.ResourceType", resource_type),
            ("TagSpecification.1.Tag.1.Key", TAG),
            ("TagSpecification.1.Tag.1.Value", &self.run),
        ];
        merged(&tag, &[])
    }

    /// Launches an instance; its id.
    pub(super) async fn launch(&self, more: &[(&str, &str)]) -> Checked<String> {
        let answer = self.must("RunInstances", &self.launch_params(more)).await?;
        let id = answer.items("instancesSet").next().map(|item| item.text("instanceId").to_owned());
        let id = id.unwrap_or_default();
        check(!id.is_empty(), "RunInstances answers without an instance")?;
        Ok(id)
    }

    /// An instance that runs.
    pub(super) async fn running(&self) -> Checked<String> {
        let id = self.launch(&[]).await?;
        self.instance_becomes(&id, "running").await?;
        Ok(id)
    }

    /// Creates a volume; its id.
    pub(super) async fn create(&self, more: &[(&str, &str)]) -> Checked<String> {
        let answer = self.must("CreateVolume", &self.volume_params(more)).await?;
        let id = answer.text("volumeId").to_owned();
        check(!id.is_empty(), "CreateVolume answers without a volume")?;
        Ok(id)
    }

    /// A volume that is available.
    pub(super) async fn available(&self, more: &[(&str, &str)]) -> Checked<String> {
        let id = self.create(more).await?;
        self.volume_becomes(&id, "available").await?;
        Ok(id)
    }

    /// A snapshot that is completed.
    pub(super) async fn completed_snapshot(&self, volume: &str) -> Checked<String> {
        let id =
            self.must("CreateSnapshot", &self.snapshot_params(volume)).await?.text("snapshotId").to_owned();
        self.until(&format!("snapshot {id} completed"), async || {
            Ok(self.snapshot(&id).await?.filter(|seen| seen.text("status") == "completed"))
        })
        .await?;
        Ok(id)
    }

    pub(super) async fn terminate(&self, id: &str) -> Checked<Element> {
        self.must("TerminateInstances", &[("InstanceId.1", id)]).await
    }

    /// The parameters of an attachment.
    pub(super) fn attachment(volume: &str, instance: &str, device: &str) -> Params {
        merged(&[("VolumeId", volume), ("InstanceId", instance), ("Device", device)], &[])
    }

    /// Attaches a volume and waits until it is attached.
    pub(super) async fn attached(&self, volume: &str, instance: &str, device: &str) -> Checked {
        self.must("AttachVolume", &Self::attachment(volume, instance, device)).await?;
        self.until(&format!("{volume} attached"), async || {
            let seen = self.volume(volume).await?;
            let state = seen.and_then(|seen| {
                seen.items("attachmentSet").next().map(|held| held.text("status").to_owned())
            });
            Ok((state.as_deref() == Some("attached")).then_some(()))
        })
        .await
    }

    /// The instance as a list by its id shows it; `None` if it does not exist, or is not seen yet.
    pub(super) async fn instance(&self, id: &str) -> Checked<Option<Element>> {
        let answer = self.found("DescribeInstances", "InstanceId.1", id).await?;
        Ok(answer.and_then(|answer| {
            answer.items("reservationSet").flat_map(|one| one.items("instancesSet")).next().cloned()
        }))
    }

    /// The volume as a list by its id shows it.
    pub(super) async fn volume(&self, id: &str) -> Checked<Option<Element>> {
        let answer = self.found("DescribeVolumes", "VolumeId.1", id).await?;
        Ok(answer.and_then(|answer| answer.items("volumeSet").next().cloned()))
    }

    /// The snapshot as a list by its id shows it.
    pub(super) async fn snapshot(&self, id: &str) -> Checked<Option<Element>> {
        let answer = self.found("DescribeSnapshots", "SnapshotId.1", id).await?;
        Ok(answer.and_then(|answer| answer.items("snapshotSet").next().cloned()))
    }

    /// The state of an instance; `gone` if it does not exist.
    pub(super) async fn instance_state(&self, id: &str) -> Checked<String> {
        let seen = self.instance(id).await?;
        Ok(seen.map_or_else(|| "gone".to_owned(), |seen| seen.text("instanceState/name").to_owned()))
    }

    /// The state of a volume; `gone` if it does not exist.
    pub(super) async fn volume_state(&self, id: &str) -> Checked<String> {
        let seen = self.volume(id).await?;
        Ok(seen.map_or_else(|| "gone".to_owned(), |seen| seen.text("status").to_owned()))
    }

    pub(super) async fn instance_becomes(&self, id: &str, state: &str) -> Checked {
        self.until(&format!("{id} {state}"), async || {
            Ok((self.instance_state(id).await? == state).then_some(()))
        })
        .await
    }

    pub(super) async fn volume_becomes(&self, id: &str, state: &str) -> Checked {
        self.until(&format!("{id} {state}"), async || {
            Ok((self.volume_state(id).await? == state).then_some(()))
        })
        .await
    }

    async fn found(&self, action: &str, key: &str, id: &str) -> Checked<Option<Element>> {
        match self.call(action, &[(key, id)]).await {
            Ok(answer) => Ok(Some(answer)),
            Err(CallError::Refused { code, .. }) if code.ends_with(".NotFound") => Ok(None),
            Err(error) => Err(super::target::stopped(action, &error)),
        }
    }
}
