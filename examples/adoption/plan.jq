# What is to be done with each row of the inventory: compares it with what Kubernetes and EC2 have. Only decides; adopt.sh acts.
# $objects: lists of kubectl; $volumes, $instances, $snapshots: of aws; $cluster, $class: the cluster's id and the NodeClass.

def owner: [(.metadata.ownerReferences // [])[] | select(.controller)] | first;
def unless(fact; problem): if fact then empty else problem end;
def names: gsub("^ +| +$"; "") | split(" ") | map(select(. != ""));

INDEX($objects[].items[]; "\(.kind)/\(.metadata.namespace // "")/\(.metadata.name)") as $known
| INDEX($volumes[].Volumes[]; .VolumeId) as $volume_of
| INDEX($instances[].Reservations[].Instances[]; .InstanceId) as $instance_of
| [inputs | gsub("[\"\r]"; "") | select(test("^[^#]"))] | map(split(","))
| .[0] as $columns | [.[1:][] | [$columns, .] | transpose | map({(.[0]): (.[1] // "")}) | add] as $rows
| $rows[] | . as $row | "\(.namespace)/\(.statefulset)" as $name | "\($cluster)/\($name)" as $tag
| $known["StatefulSet/\($name)"] as $set
| $known["Pod/\($name)-0"] as $pod
| $known["PersistentVolumeClaim/\(.namespace)/\(.claim)"] as $claim
| $known["PersistentVolume//\($claim.spec.volumeName)"] as $record
| $known["Node//\($pod.spec.nodeName)"] as $node
| $known["Database/\($name)"] as $database
| $volume_of[.volume_id] as $volume | $instance_of[.instance_id] as $instance
| [($volume.Attachments // [])[] | select(.InstanceId == $row.instance_id)] as $attached
| ($set | owner) as $owner | ($owner.kind == "Database" and $owner.uid == $database.metadata.uid) as $adopted
# Not whether it is Ready now: a database that was adopted long ago may just be repaired.
| ($adopted and $database.status.firstReadyAt != null) as $done
| [$snapshots[].Snapshots[] | select(.VolumeId == $row.volume_id and .State != "error")
    | select(any(.Tags[]; .Key == "freehold.dev/adopt" and .Value == $tag))] as $taken
| [
    unless($set; "there is no such StatefulSet"),
    unless(($set.spec.replicas // 1) == 1; "it has \($set.spec.replicas) replicas, not one"),
    unless($owner == null or $adopted; "\($owner.kind) \($owner.name) controls it"),
    unless(any(($pod.status.conditions // [])[]; .type == "Ready" and .status == "True"); "its pod is not Ready"),
    unless(any(($pod.spec.volumes // [])[]; .persistentVolumeClaim.claimName == $row.claim); "its pod has no claim \(.claim)"),
    unless(($record.spec.csi.volumeHandle // $record.spec.awsElasticBlockStore.volumeID // "") | endswith($row.volume_id);
      "claim \(.claim) is not of volume \(.volume_id)"),
    unless(($node.spec.providerID // "") | endswith("/" + $row.instance_id); "its pod does not run on \(.instance_id)"),
    unless([$rows[] | select(.instance_id == $row.instance_id)] | length == 1;
      "another row names \(.instance_id), too: a machine is of one Database"),
    unless($volume; "EC2 has no volume \(.volume_id) in this account and Region"),
    unless($instance.State.Name == "running"; "EC2 has no running instance \(.instance_id) in this account and Region"),
    unless(($attached | length) == 1; "\(.volume_id) is not attached to \(.instance_id)"),
    unless(all($attached[]; .DeleteOnTermination | not); "\(.volume_id) would be deleted with its instance (DeleteOnTermination)"),
    unless(any(($instance.Tags // [])[]; .Key == "aws:autoscaling:groupName") | not; "an Auto Scaling group may end \(.instance_id)"),
    unless(all(($volume.Tags // [], $instance.Tags // [])[]; .Key != "freehold.dev/adopt" or .Value == $tag);
      "the tag freehold.dev/adopt permits another Database"),
    unless($database == null or ($database.spec.adopt | [.statefulSetName, .volumeID, .instanceID])
        == [.statefulset, .volume_id, .instance_id]; "Database \($name) adopts something else, or nothing")
  ] as $problems
| (if $done then "already adopted" elif $problems != [] then "blocked" else "adoptable" end) as $state
| {
    name: $name, namespace, database: .statefulset,
    volume: .volume_id, instance: .instance_id, tag: $tag, snapshot: $taken[0].SnapshotId, podUIDBefore: $pod.metadata.uid,
    state: $state, problems: (if $done then [] else $problems end),
    manifest: {
      apiVersion: "freehold.dev/v1alpha1", kind: "Database",
      metadata: {name: .statefulset, namespace},
      spec: {
        engine: {type: .engine, version},
        nodeClassName: $class,
        # The type that it runs on first: a machine of a type that is not listed is replaced.
        instanceTypes: ([$instance.InstanceType] + ((.instance_types // "") | names - [$instance.InstanceType])),
        storage: ({
          size: "\($volume.Size)Gi", type: $volume.VolumeType,
          fileSystem: (if ($record.spec.csi.fsType // "") == "" then "ext4" else $record.spec.csi.fsType end)
        }
        + (if $volume.VolumeType | IN("gp3", "io1", "io2") then {iops: $volume.Iops} else {} end)
        + (if $volume.VolumeType == "gp3" then {throughput: $volume.Throughput} else {} end)),
        adopt: ({
          statefulSetName: .statefulset, claimName: .claim, volumeID: .volume_id, instanceID: .instance_id, serviceName: .service
        } + (if (.secret // "") == "" then {} else {credentialsSecretName: .secret} end)),
        deletionPolicy: "Retain"
      }
    }
  }
| if .state == "adoptable" then . else del(.manifest) end
