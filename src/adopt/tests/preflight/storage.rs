//! The checks of the volume with the data.

use serde_json::json;

use super::{check, each, findings, record};
use crate::adopt::found::Found;
use crate::adopt::tests::{VOLUME, from_json, questdb, running, wanted};
use crate::api::{InstanceId, VolumeId};
use crate::cloud::{Attachment, Modification, ModificationState};
use crate::command::finding::Level;

#[test]
fn the_volume_is_checked() {
    use Level::{Blocker, Note, Warning};
    each(&[
        (
            |found, _| found.volume.as_mut().unwrap().multi_attach = true,
            Blocker,
            "several instances",
            "modify-volume",
        ),
        (|found, _| found.volume.as_mut().unwrap().encrypted = false, Note, "it is not encrypted", ""),
        (|found, _| found.volume = None, Blocker, "EC2 does not list it", "get-caller-identity"),
        (
            |found, _| found.volume.as_mut().unwrap().attachments.clear(),
            Blocker,
            "it is not attached to i-0123456789abcdef0",
            "wait",
        ),
        (
            |found, _| {
                found.volume.as_mut().unwrap().attachments.push(Attachment {
                    instance: InstanceId("i-2".to_owned()),
                    device: "/dev/sdf".to_owned(),
                    delete_on_termination: false,
                });
            },
            Blocker,
            "it is attached to i-2 as well",
            "detach",
        ),
        (
            |found, _| found.volume.as_mut().unwrap().attachments[0].delete_on_termination = true,
            Blocker,
            "EC2 deletes it when i-0123456789abcdef0 is terminated",
            "aws ec2 modify-instance-attribute --instance-id i-0123456789abcdef0 --block-device-mappings \
                '[{\"DeviceName\":\"/dev/xvdba\",\"Ebs\":{\"DeleteOnTermination\":false}}]'",
        ),
        (|found, _| modification(found, ModificationState::Modifying), Warning, "is in progress", "wait"),
        (|found, _| modification(found, ModificationState::Optimizing), Note, "still optimizes", ""),
        (
            |found, _| record(found).access_modes = Some(vec!["ReadWriteMany".to_owned()]),
            Warning,
            "its access mode is ReadWriteMany",
            "",
        ),
        (
            |found, _| record(found).csi.as_mut().unwrap().fs_type = Some("btrfs".to_owned()),
            Blocker,
            "its file system is btrfs",
            "copy the data",
        ),
        (
            |found, _| found.storage_class.as_mut().unwrap().allow_volume_expansion = None,
            Warning,
            "allowVolumeExpansion",
            "kubectl patch storageclass gp3",
        ),
        (|found, _| found.storage_class = None, Warning, "it is not there", "create it again"),
        (
            |found, _| found.claims[0].claim.as_mut().unwrap().spec = None,
            Warning,
            "it names no StorageClass",
            "A claim that cannot grow",
        ),
        (
            |found, _| {
                let mut second = found.claims[0].clone();
                "wal-orders-0".clone_into(&mut second.name);
                found.claims.push(second);
            },
            Blocker,
            "several claims (data-orders-0, wal-orders-0)",
            "copy the data",
        ),
        (
            |found, _| {
                let volumes = &mut found.pod.as_mut().unwrap().spec.as_mut().unwrap().volumes;
                let folder = json!({"name": "scratch", "hostPath": {"path": "/mnt/nvme"}});
                volumes.as_mut().unwrap().push(from_json(folder));
            },
            Blocker,
            "has volume scratch besides the claim",
            "",
        ),
    ]);
    let mut found = running(&questdb());
    record(&mut found).access_modes = Some(vec!["ReadWriteOncePod".to_owned()]);
    record(&mut found).persistent_volume_reclaim_policy = Some("Retain".to_owned());
    assert_eq!(check(&found, &wanted()).len(), 1);
    record(&mut found).csi = None;
    assert!(findings(&found, &wanted())[0].message.contains("none of its claims is an EBS volume"));
}

fn modification(found: &mut Found, state: ModificationState) {
    let volume = VolumeId(VOLUME.to_owned());
    found.modification = Some(Modification { volume, state, started_at: None });
}
