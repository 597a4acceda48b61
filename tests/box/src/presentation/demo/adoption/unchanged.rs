//! What an adoption and a release must leave as it is: pod, process, machine, volume, the volume's files, the
//! manifests.

use data_encoding::HEXLOWER;
use ec2sim::{InstanceView, VolumeView};
use freehold::api::keys::ADOPT_TAG;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::files::VolumeFiles;
use crate::legacy::{Legacy, Manifests};
use crate::presentation::demo::common::Failure;
use crate::presentation::demo::pod_access::first_process_of;
use crate::presentation::demo::report::Fact;
use crate::presentation::demo::world::{World, restarts};
use crate::writer::Writer;

/// The fields of an instance that say how its status checks went.
const CHECKS: [&str; 2] = ["system_status", "instance_status"];

/// A legacy database as it was found, and the client that writes to it, where one does.
pub struct Found {
    pub legacy: Legacy,
    pub writer: Option<Writer>,
    /// The failures of the client until then, while the database was made.
    failures: u64,
    pub facts: Vec<Fact>,
    manifests: Manifests,
    files: Option<VolumeFiles>,
}

impl Found {
    /// The database as it is now.
    pub async fn of(legacy: Legacy, writer: Option<Writer>, world: &World) -> Result<Self, Failure> {
        let files = match &writer {
            Some(_) => Some(VolumeFiles::of(pod(&legacy, world)?)?),
            None => None,
        };
        let failures = writer.as_ref().map_or(0, Writer::failures);
        let manifests = manifests(&legacy, world).await?;
        let mut found = Self { legacy, writer, failures, facts: Vec::new(), manifests, files };
        found.facts = found.facts_of(world)?;
        Ok(found)
    }

    /// What says that nothing was started, moved or attached anew, and that the client had no error.
    fn facts_of(&self, world: &World) -> Result<Vec<Fact>, Failure> {
        let pod = pod(&self.legacy, world)?;
        let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let started = |status: &k8s_openapi::api::core::v1::ContainerStatus| {
            status.state.as_ref()?.running.as_ref()?.started_at.as_ref().map(|time| time.0.to_string())
        };
        let containers: Vec<String> = statuses
            .map(|status| {
                let id = status.container_id.as_deref().unwrap_or_default();
                format!("{}, started at {}", id, started(status).unwrap_or_default())
            })
            .collect();
        let (instance, volume) = (instance(&self.legacy, world)?, volume(&self.legacy, world)?);
        let attachment = volume.attachment.as_ref().ok_or("the volume is attached to nothing")?;
        let mut facts = vec![
            fact("pod", format!("{}, UID {}", pod.name_any(), pod.uid().unwrap_or_default())),
            fact("container", containers.join("; ")),
            fact("restarts", restarts(pod).to_string()),
            fact("instance", format!("{}, launched at {}", instance.id, instance.launched_at)),
            fact("EBS volume", volume.id.clone()),
            fact(
                "attachment",
                format!(
                    "{} as {} since {}",
                    attachment.instance_id, attachment.device, attachment.attached_at
                ),
            ),
        ];
        if let Some(writer) = &self.writer {
            let process = first_process_of(pod)?;
            let ticks = process.started;
            facts.push(fact("engine", format!("process {}, started {ticks} ticks after boot", process.id)));
            facts.push(fact("errors at the client", (writer.failures() - self.failures).to_string()));
        }
        Ok(facts)
    }

    /// Whether it runs as it was found; gives what is known of the files of its volume, where there are any.
    pub fn runs_as_found(&self, world: &World) -> Result<Option<String>, Failure> {
        let differing = differing(&self.facts, &self.facts_of(world)?);
        if !differing.is_empty() {
            let last = self.writer.as_ref().and_then(Writer::last_failure).unwrap_or_default();
            return Err(format!("not as it was found: {}; {last}", differing.join("; ")).into());
        }
        let Some(files) = &self.files else { return Ok(None) };
        files.compare(&VolumeFiles::of(pod(&self.legacy, world)?)?).map(Some)
    }

    /// Whether all manifests are as they were found, byte for byte; gives their sizes and digests, or names
    /// the first that differs.
    pub async fn is_released(&self, world: &World) -> Result<Result<Vec<Fact>, String>, Failure> {
        let now = manifests(&self.legacy, world).await?;
        for (what, before) in &self.manifests {
            if now.get(what) != Some(before) {
                let after = now.get(what).map(String::as_str).unwrap_or_default();
                return Ok(Err(format!("{what} was\n{before}\nand is\n{after}")));
            }
        }
        let digest = |text: &String| HEXLOWER.encode(&Sha256::digest(text.as_bytes()));
        let told = |(what, text): (&String, &String)| {
            fact(what, format!("{} bytes, SHA-256 {}", text.len(), digest(text)))
        };
        Ok(Ok(self.manifests.iter().map(told).collect()))
    }
}

fn fact(what: &str, value: String) -> Fact {
    Fact { what: what.to_owned(), value }
}

/// The facts that are others now, in words.
fn differing(before: &[Fact], now: &[Fact]) -> Vec<String> {
    let pairs = before.iter().zip(now).filter(|(before, now)| before != now);
    pairs.map(|(before, now)| format!("{} was {}, and is {}", before.what, before.value, now.value)).collect()
}

/// The manifests, and what EC2 shows of machine and volume.
async fn manifests(legacy: &Legacy, world: &World) -> Result<Manifests, Failure> {
    let mut manifests = legacy.manifests().await?;
    let (instance, volume) = (instance(legacy, world)?, volume(legacy, world)?);
    manifests.insert(format!("EC2 instance {}", instance.id), text(instance)?);
    manifests.insert(format!("EBS volume {}", volume.id), text(volume)?);
    Ok(manifests)
}

/// What EC2 shows, but for the tag that permits the adoption, and the checks, which end by themselves.
fn text(view: &impl Serialize) -> Result<String, Failure> {
    let mut value = serde_json::to_value(view)?;
    if let Some(parts) = value.as_object_mut() {
        parts.retain(|key, _| !CHECKS.contains(&key.as_str()));
    }
    if let Some(tags) = value.get_mut("tags").and_then(Value::as_object_mut) {
        tags.remove(ADOPT_TAG);
    }
    Ok(serde_norway::to_string(&value)?)
}

fn pod<'a>(legacy: &Legacy, world: &'a World) -> Result<&'a Pod, Failure> {
    let name = format!("{}-0", legacy.name);
    let pod = world.pods.iter().find(|pod| pod.name_any() == name);
    pod.ok_or_else(|| format!("the pod {name} is not there").into())
}

fn instance<'a>(legacy: &Legacy, world: &'a World) -> Result<&'a InstanceView, Failure> {
    let instance = world.ec2.instances.iter().find(|instance| instance.id == legacy.instance);
    instance.ok_or_else(|| format!("EC2 does not list {}", legacy.instance).into())
}

/// The volume of its claim.
fn volume<'a>(legacy: &Legacy, world: &'a World) -> Result<&'a VolumeView, Failure> {
    let claim = world.claims.iter().find(|claim| claim.name_any() == legacy.claim());
    let record = claim.and_then(|claim| claim.spec.as_ref()?.volume_name.as_deref());
    let record = world.records.iter().find(|it| Some(it.name_any().as_str()) == record);
    let id = record.and_then(|record| Some(&record.spec.as_ref()?.csi.as_ref()?.volume_handle));
    let volume = world.ec2.volumes.iter().find(|volume| Some(&volume.id) == id);
    volume.ok_or_else(|| format!("EC2 does not list the volume of claim {}", legacy.claim()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_that_differs_is_named_with_both_values() {
        let before = [fact("pod", "a".to_owned()), fact("restarts", "0".to_owned())];
        assert_eq!(differing(&before, &before), [] as [String; 0]);
        let now = [fact("pod", "a".to_owned()), fact("restarts", "1".to_owned())];
        assert_eq!(differing(&before, &now), ["restarts was 0, and is 1"]);
    }
}
