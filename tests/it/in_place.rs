//! An EBS volume that a database used before it was adopted, with a PersistentVolume and a claim that
//! Freehold has not made: a Volume uses the three as they are, and gives them back, or keeps them as its
//! policy says.

use std::collections::BTreeMap;

use freehold::api::Volume;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::env::Env as _;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

const CLAIM: &str = "data-orders-0";

fn records(env: &RigEnv) -> Api<PersistentVolume> {
    Api::all(env.client())
}

/// The name of the PersistentVolume, which has no namespace.
fn record(env: &RigEnv) -> String {
    format!("pvc-{}", env.namespace())
}

/// An EBS volume with the tag of the person who adopts, its PersistentVolume and its claim, bound to each
/// other; gives the id and the zone.
async fn found(env: &RigEnv) -> (String, String) {
    let zone = env.ec2().world().subnets[0].zone.clone();
    let adopt = env.proof("orders");
    let create = [
        ("Action", "CreateVolume"),
        ("AvailabilityZone", &zone),
        ("Size", "100"),
        ("VolumeType", "gp3"),
        ("TagSpecification.1.ResourceType", "volume"),
        ("TagSpecification.1.Tag.1.Key", "freehold.dev/adopt"),
        ("TagSpecification.1.Tag.1.Value", &adopt),
        ("TagSpecification.1.Tag.2.Key", "Name"),
        ("TagSpecification.1.Tag.2.Value", "legacy-orders"),
    ];
    let id = env.call("a-person", &create).remove(0);
    let size = json!({"storage": "100Gi"});
    let made: PersistentVolume = serde_json::from_value(json!({
        "metadata": {"name": record(env), "labels": {"app.kubernetes.io/name": "legacy"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": size, "storageClassName": "freehold",
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {"namespace": env.namespace(), "name": CLAIM},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": id, "fsType": "xfs"},
        },
    }))
    .unwrap();
    records(env).create(&PostParams::default(), &made).await.unwrap();
    let made: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {"name": CLAIM, "labels": {"app": "orders"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "freehold", "volumeName": record(env),
            "resources": {"requests": size}},
    }))
    .unwrap();
    env.api::<PersistentVolumeClaim>().create(&PostParams::default(), &made).await.unwrap();
    within(CALM, "the claim and its PersistentVolume being bound", || async {
        let claim = env.api::<PersistentVolumeClaim>().get(CLAIM).await.map_err(|error| error.to_string())?;
        let record = records(env).get(&record(env)).await.map_err(|error| error.to_string())?;
        let phases = [claim.status.and_then(|it| it.phase), record.status.and_then(|it| it.phase)];
        let are_bound = phases.iter().all(|phase| phase.as_deref() == Some("Bound"));
        seen(are_bound.then_some(()), || format!("{phases:?}"))
    })
    .await;
    (id, zone)
}

/// The Volume of this name, which is to adopt them, and would give them back.
async fn adopt(env: &RigEnv, name: &str, (id, zone): &(String, String)) {
    let volume: Volume = serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Volume",
        "metadata": {"name": name, "labels": {
            "freehold.dev/database": "orders", "freehold.dev/database-uid": "uid-of-orders",
        }},
        "spec": {
            "nodeClassName": env.class(), "size": "120Gi", "type": "gp3", "iops": 6000, "fileSystem": "xfs",
            "zone": zone, "deletionPolicy": "Retain", "release": true,
            "adopt": {"volumeID": id, "persistentVolumeName": record(env), "claimName": CLAIM},
        },
    }))
    .unwrap();
    env.api::<Volume>().create(&PostParams::default(), &volume).await.unwrap();
    within(CALM, &format!("Volume {name} being ready"), || async {
        let volume = env.api::<Volume>().get(name).await.map_err(|error| error.to_string())?;
        let ready = volume.conditions().iter().find(|condition| condition.type_ == "Ready").cloned();
        let is_ready = ready.as_ref().is_some_and(|ready| ready.status == "True");
        seen(is_ready.then_some(()), || format!("{ready:?}"))
    })
    .await;
}

async fn delete(env: &RigEnv, name: &str) {
    env.api::<Volume>().delete(name, &DeleteParams::default()).await.unwrap();
    within(CALM, &format!("Volume {name} being gone"), || async {
        let left = env.api::<Volume>().get_opt(name).await.map_err(|error| error.to_string())?;
        seen(left.is_none().then_some(()), || format!("{:?}", left.map(|left| left.status)))
    })
    .await;
}

/// The three as they are, but for what every write changes.
async fn state(env: &RigEnv, id: &str) -> (Value, Value, BTreeMap<String, String>, u32) {
    let mut record = records(env).get(&record(env)).await.unwrap();
    let mut claim = env.api::<PersistentVolumeClaim>().get(CLAIM).await.unwrap();
    for meta in [&mut record.metadata, &mut claim.metadata] {
        (meta.managed_fields, meta.resource_version) = (None, None);
    }
    // The provisioner's, which follows the reclaim policy a little later.
    record.finalizers_mut().retain(|it| !it.starts_with("external-provisioner."));
    let disk = env.ec2().volume(id).unwrap();
    let tags = disk.tags.into_iter().collect();
    (serde_json::to_value(record).unwrap(), serde_json::to_value(claim).unwrap(), tags, disk.shape.size)
}

#[test]
fn a_volume_in_use_is_adopted_without_a_change_of_it_and_given_back_as_it_was_found() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let place = found(&env).await;
        let before = state(&env, &place.0).await;
        adopt(&env, "orders-1", &place).await;
        let volume = env.api::<Volume>().get("orders-1").await.unwrap();
        let (record, claim, tags, size) = state(&env, &place.0).await;
        assert_eq!(record["spec"]["persistentVolumeReclaimPolicy"], "Retain");
        assert_eq!(record["metadata"]["annotations"]["freehold.dev/former-reclaim-policy"], "Delete");
        assert_eq!(record["metadata"]["labels"]["freehold.dev/volume-uid"], json!(volume.metadata.uid));
        assert_eq!(tags.get("freehold.dev/volume-uid"), volume.metadata.uid.as_ref());
        assert_eq!(tags["Name"], "legacy-orders", "the name stays");
        assert_eq!((&claim, size), (&before.1, 100), "the claim is not owned, and nothing is modified");

        delete(&env, "orders-1").await;
        assert_eq!(state(&env, &place.0).await, before);
        let expected = [("CreateTags", 1), ("DeleteTags", 1)].map(|(call, count)| (call.to_owned(), count));
        assert_eq!(env.mutations(), BTreeMap::from(expected), "and no other call that changes anything");

        // Once it is taken over, it is a volume like any other, and its record has the name that it has.
        adopt(&env, "orders-2", &place).await;
        let taken = Patch::Merge(json!({"spec": {"release": false}}));
        env.api::<Volume>().patch("orders-2", &PatchParams::default(), &taken).await.unwrap();
        within(CALM, "the claim being owned and the volume grown", || async {
            let claim =
                env.api::<PersistentVolumeClaim>().get(CLAIM).await.map_err(|error| error.to_string())?;
            let size = env.ec2().volume(&place.0).map(|disk| disk.shape.size);
            let owners: Vec<_> = claim.owner_references().iter().map(|owner| owner.name.clone()).collect();
            seen((owners == ["orders-2"] && size == Some(120)).then_some(()), || {
                format!("{owners:?} {size:?}")
            })
        })
        .await;
        delete(&env, "orders-2").await;
        let left = env.api::<PersistentVolumeClaim>().get_opt(CLAIM).await.unwrap();
        assert!(left.is_none(), "{left:?}");
        let kept = records(&env).get(&self::record(&env)).await.unwrap();
        assert_eq!(kept.labels()["freehold.dev/retained"], "true");
        assert_eq!(env.ec2().volume(&place.0).unwrap().shape.size, 120);
        assert_eq!(env.mutations().get("CreateVolume"), None);
        env.close().await;
    });
}
