"""Talks to a running ec2sim with boto3 and fails on any surprise. The endpoint comes from AWS_ENDPOINT_URL_EC2."""

import os
import sys
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

ZONE = "us-east-1b"
SUBNET = "subnet-0b000000000000000"
USER_DATA = "role=check\n"


def expect(condition, what):
    """Ends the program if something is not as it should be."""
    if not condition:
        sys.exit(f"surprise: {what}")


def refused(code, call, **arguments):
    """Expects a call to be refused with this code."""
    try:
        call(**arguments)
    except ClientError as error:
        got = error.response["Error"]["Code"]
        expect(got == code, f"{got} instead of {code}: {error}")
    else:
        sys.exit(f"surprise: {call.__name__} was not refused with {code}")


def wait(what, ready):
    """Asks again until it is so, for at most 20 seconds."""
    deadline = time.monotonic() + 20
    while not ready():
        expect(time.monotonic() < deadline, f"still waiting for {what}")
        time.sleep(0.1)


def launch_request(token, **more):
    """A whole launch as an operator would ask for it."""
    return {
        "ImageId": "ami-0000000000000000a",
        "InstanceType": "r7i.large",
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": token,
        "SubnetId": SUBNET,
        "SecurityGroupIds": ["sg-00000000000000001"],
        "IamInstanceProfile": {"Name": "nodes"},
        "UserData": USER_DATA,
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled"},
        "BlockDeviceMappings": [
            {
                "DeviceName": "/dev/xvda",
                "Ebs": {"VolumeSize": 20, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True},
            }
        ],
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": [{"Key": "owner", "Value": token}, {"Key": "Name", "Value": "a <b> & c"}]}
            for kind in ("instance", "volume")
        ],
        **more,
    }


def check_instances(ec2):
    """Launch, look up, and be refused."""
    launched = ec2.run_instances(**launch_request("python-1"))["Instances"][0]
    again = ec2.run_instances(**launch_request("python-1"))["Instances"][0]
    expect(launched["InstanceId"] == again["InstanceId"], "the same token made another instance")
    refused("IdempotentParameterMismatch", ec2.run_instances, **launch_request("python-1", InstanceType="m7i.large"))
    refused("DryRunOperation", ec2.run_instances, **launch_request("python-2", DryRun=True))
    instance_id = launched["InstanceId"]
    ec2.get_waiter("instance_running").wait(InstanceIds=[instance_id], WaiterConfig={"Delay": 1, "MaxAttempts": 20})

    filters = [{"Name": "client-token", "Values": ["python-1"]}, {"Name": "tag:owner", "Values": ["python-*"]}]
    found = ec2.describe_instances(Filters=filters)["Reservations"][0]["Instances"][0]
    expect(found["InstanceId"] == instance_id, "the filters found something else")
    expect(found["State"] == {"Code": 16, "Name": "running"}, found["State"])
    expect(found["Placement"]["AvailabilityZone"] == ZONE, found["Placement"])
    expect(found["MetadataOptions"]["HttpTokens"] == "required", found["MetadataOptions"])
    expect({"Key": "Name", "Value": "a <b> & c"} in found["Tags"], found["Tags"])
    expect(len(found["BlockDeviceMappings"]) == 1, found["BlockDeviceMappings"])
    wait(
        "status checks",
        lambda: [
            status["InstanceStatus"]["Status"]
            for status in ec2.describe_instance_status(InstanceIds=[instance_id])["InstanceStatuses"]
        ]
        == ["ok"],
    )
    console = ec2.get_console_output(InstanceId=instance_id)
    expect(console["InstanceId"] == instance_id, console)
    refused("InvalidInstanceID.NotFound", ec2.describe_instances, InstanceIds=["i-00000000000000000"])
    refused("InvalidParameterValue", ec2.describe_instances, Filters=[{"Name": "colour", "Values": ["red"]}])
    return instance_id


def check_pages(ec2):
    """A list in several pages is whole."""
    ids = {
        ec2.create_volume(AvailabilityZone=ZONE, Size=1, ClientToken=f"python-page-{number}")["VolumeId"]
        for number in range(12)
    }
    pages = list(ec2.get_paginator("describe_volumes").paginate(PaginationConfig={"PageSize": 5}))
    seen = {volume["VolumeId"] for page in pages for volume in page["Volumes"]}
    expect(len(pages) >= 3, f"{len(pages)} pages")
    expect(ids <= seen, "the pages do not hold all volumes")
    refused("InvalidParameterCombination", ec2.describe_volumes, VolumeIds=sorted(ids), MaxResults=5)
    for volume_id in ids:
        ec2.get_waiter("volume_available").wait(VolumeIds=[volume_id], WaiterConfig={"Delay": 1, "MaxAttempts": 20})
        ec2.delete_volume(VolumeId=volume_id)
    deleted = [{"Name": "volume-id", "Values": sorted(ids)}]
    wait("the volumes to be gone", lambda: not ec2.describe_volumes(Filters=deleted)["Volumes"])


def check_volume(ec2, instance_id):
    """Make, attach, grow, snapshot, detach, delete."""
    tags = [{"ResourceType": "volume", "Tags": [{"Key": "owner", "Value": "python"}]}]
    made = ec2.create_volume(
        AvailabilityZone=ZONE, Size=100, VolumeType="gp3", Iops=3000, Throughput=125, TagSpecifications=tags, Encrypted=True
    )
    volume_id = made["VolumeId"]
    ec2.get_waiter("volume_available").wait(VolumeIds=[volume_id], WaiterConfig={"Delay": 1, "MaxAttempts": 20})
    ec2.attach_volume(VolumeId=volume_id, InstanceId=instance_id, Device="/dev/xvdba")
    refused("VolumeInUse", ec2.delete_volume, VolumeId=volume_id)

    def attachment():
        attachments = ec2.describe_volumes(VolumeIds=[volume_id])["Volumes"][0]["Attachments"]
        return attachments[0]["State"] if attachments else None

    wait("the attachment", lambda: attachment() == "attached")
    grown = ec2.modify_volume(VolumeId=volume_id, Size=200, Iops=6000, Throughput=500)["VolumeModification"]
    expect((grown["OriginalSize"], grown["TargetSize"]) == (100, 200), grown)
    refused("InvalidParameterValue", ec2.modify_volume, VolumeId=volume_id, Size=10)

    def modification():
        return ec2.describe_volumes_modifications(VolumeIds=[volume_id])["VolumesModifications"][0]["ModificationState"]

    wait("the modification", lambda: modification() == "completed")
    volume = ec2.describe_volumes(VolumeIds=[volume_id])["Volumes"][0]
    expect((volume["Size"], volume["Iops"], volume["Throughput"]) == (200, 6000, 500), volume)

    snapshot_id = ec2.create_snapshot(VolumeId=volume_id, Description="check")["SnapshotId"]
    ec2.get_waiter("snapshot_completed").wait(SnapshotIds=[snapshot_id], WaiterConfig={"Delay": 1, "MaxAttempts": 20})
    rated = ec2.create_volume(AvailabilityZone=ZONE, SnapshotId=snapshot_id, VolumeInitializationRate=300)
    expect(rated["VolumeInitializationRate"] == 300, rated)
    status = ec2.describe_volume_status(VolumeIds=[rated["VolumeId"]])["VolumeStatuses"][0]
    details = status["InitializationStatusDetails"]
    expect(details["InitializationType"] == "provisioned-rate", details)
    expect(details["Progress"] < 100 and details["EstimatedTimeToCompleteInSeconds"] > 0, details)
    ec2.get_waiter("volume_available").wait(VolumeIds=[rated["VolumeId"]], WaiterConfig={"Delay": 1, "MaxAttempts": 20})
    ec2.delete_volume(VolumeId=rated["VolumeId"])
    ec2.delete_snapshot(SnapshotId=snapshot_id)
    ec2.create_tags(Resources=[volume_id], Tags=[{"Key": "colour", "Value": "grün"}])
    listed = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [volume_id]}])["Tags"]
    expect({tag["Key"]: tag["Value"] for tag in listed} == {"owner": "python", "colour": "grün"}, listed)
    ec2.delete_tags(Resources=[volume_id], Tags=[{"Key": "colour"}])

    ec2.detach_volume(VolumeId=volume_id)
    wait("the volume to be free", lambda: attachment() is None)
    ec2.delete_volume(VolumeId=volume_id)
    gone = [{"Name": "volume-id", "Values": [volume_id]}]
    wait("the volume to be gone", lambda: not ec2.describe_volumes(Filters=gone)["Volumes"])
    refused("InvalidVolume.NotFound", ec2.describe_volumes, VolumeIds=[volume_id])


def check_end(ec2, instance_id):
    """Stop, start and terminate; the token is dead afterwards."""
    ec2.stop_instances(InstanceIds=[instance_id])
    ec2.get_waiter("instance_stopped").wait(InstanceIds=[instance_id], WaiterConfig={"Delay": 1, "MaxAttempts": 20})
    ec2.start_instances(InstanceIds=[instance_id])
    ec2.get_waiter("instance_running").wait(InstanceIds=[instance_id], WaiterConfig={"Delay": 1, "MaxAttempts": 20})
    ec2.reboot_instances(InstanceIds=[instance_id])
    ending = ec2.terminate_instances(InstanceIds=[instance_id])["TerminatingInstances"][0]
    expect(ending["CurrentState"]["Name"] == "shutting-down", ending)
    ec2.get_waiter("instance_terminated").wait(InstanceIds=[instance_id], WaiterConfig={"Delay": 1, "MaxAttempts": 20})
    refused("IdempotentInstanceTerminated", ec2.run_instances, **launch_request("python-1"))


def check_catalog(ec2):
    """What was there before."""
    subnets = ec2.describe_subnets(Filters=[{"Name": "availability-zone", "Values": [ZONE]}])["Subnets"]
    expect([subnet["SubnetId"] for subnet in subnets] == [SUBNET], subnets)
    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    expect(len(zones) == 3 and zones[1]["ZoneName"] == ZONE, zones)
    kind = ec2.describe_instance_types(InstanceTypes=["r7i.large"])["InstanceTypes"][0]
    expect((kind["VCpuInfo"]["DefaultVCpus"], kind["MemoryInfo"]["SizeInMiB"]) == (2, 16384), kind)
    expect(kind["ProcessorInfo"]["SupportedArchitectures"] == ["x86_64"], kind)
    images = ec2.describe_images(Owners=["self"])["Images"]
    expect(images[0]["RootDeviceName"] == "/dev/xvda", images)
    expect(ec2.describe_security_groups()["SecurityGroups"][0]["GroupName"] == "nodes", "no security group")
    refused("UnsupportedOperation", ec2.describe_key_pairs)


def main():
    """Runs all checks."""
    expect("AWS_ENDPOINT_URL_EC2" in os.environ, "AWS_ENDPOINT_URL_EC2 is not set")
    ec2 = boto3.client(
        "ec2",
        region_name="us-east-1",
        aws_access_key_id="python",
        aws_secret_access_key="unused",
        config=Config(retries={"max_attempts": 0}),
    )
    check_catalog(ec2)
    instance_id = check_instances(ec2)
    check_pages(ec2)
    check_volume(ec2, instance_id)
    check_end(ec2, instance_id)
    print("boto3 and ec2sim understand each other")


if __name__ == "__main__":
    main()
