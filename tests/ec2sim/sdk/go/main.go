// Talks to a running ec2sim with the AWS SDK for Go and fails on any surprise. The endpoint comes from AWS_ENDPOINT_URL_EC2.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
)

const (
	zone    = "us-east-1b"
	subnet  = "subnet-0b000000000000000"
	patient = 20 * time.Second
)

// expect ends the program if something is not as it should be.
func expect(condition bool, what string, values ...any) {
	if !condition {
		fmt.Fprintln(os.Stderr, "surprise:", fmt.Sprintf(what, values...))
		os.Exit(1)
	}
}

// must passes a value on, or ends the program with the error.
func must[T any](value T, err error) T {
	expect(err == nil, "%v", err)
	return value
}

// refused expects a call to be refused with this code.
func refused(code string, err error) {
	var apiError smithy.APIError
	expect(errors.As(err, &apiError), "%v instead of %s", err, code)
	expect(apiError.ErrorCode() == code, "%s instead of %s", apiError.ErrorCode(), code)
}

func static(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "go", SecretAccessKey: "unused"}, nil
}

func launch(token string) *ec2.RunInstancesInput {
	tags := []types.Tag{{Key: aws.String("owner"), Value: aws.String(token)}}
	return &ec2.RunInstancesInput{
		ImageId:          aws.String("ami-0000000000000000a"),
		InstanceType:     types.InstanceTypeR7iLarge,
		MinCount:         aws.Int32(1),
		MaxCount:         aws.Int32(1),
		ClientToken:      aws.String(token),
		SubnetId:         aws.String(subnet),
		SecurityGroupIds: []string{"sg-00000000000000001"},
		UserData:         aws.String(base64.StdEncoding.EncodeToString([]byte("role=check\n"))),
		MetadataOptions:  &types.InstanceMetadataOptionsRequest{HttpTokens: types.HttpTokensStateRequired},
		BlockDeviceMappings: []types.BlockDeviceMapping{{
			DeviceName: aws.String("/dev/xvda"),
			Ebs: &types.EbsBlockDevice{
				VolumeSize: aws.Int32(20), VolumeType: types.VolumeTypeGp3,
				Encrypted: aws.Bool(true), DeleteOnTermination: aws.Bool(true),
			},
		}},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: tags}},
	}
}

func checkInstance(ctx context.Context, client *ec2.Client) string {
	first := must(client.RunInstances(ctx, launch("go-1"))).Instances[0]
	again := must(client.RunInstances(ctx, launch("go-1"))).Instances[0]
	expect(*first.InstanceId == *again.InstanceId, "the same token made another instance")
	other := launch("go-1")
	other.InstanceType = types.InstanceTypeM7iLarge
	_, err := client.RunInstances(ctx, other)
	refused("IdempotentParameterMismatch", err)
	dry := launch("go-2")
	dry.DryRun = aws.Bool(true)
	_, err = client.RunInstances(ctx, dry)
	refused("DryRunOperation", err)

	id := *first.InstanceId
	running := ec2.NewInstanceRunningWaiter(client, func(o *ec2.InstanceRunningWaiterOptions) {
		o.MinDelay, o.MaxDelay = 100*time.Millisecond, time.Second
	})
	expect(running.Wait(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}}, patient) == nil, "it does not run")
	found := must(client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: []types.Filter{
		{Name: aws.String("client-token"), Values: []string{"go-1"}},
	}})).Reservations[0].Instances[0]
	expect(*found.InstanceId == id, "the filter found %s", *found.InstanceId)
	expect(*found.Placement.AvailabilityZone == zone, "it is in %s", *found.Placement.AvailabilityZone)
	expect(*found.Tags[0].Value == "go-1", "it has the tags %v", found.Tags)
	_, err = client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{"i-00000000000000000"}})
	refused("InvalidInstanceID.NotFound", err)
	return id
}

func checkPages(ctx context.Context, client *ec2.Client) {
	made := map[string]bool{}
	for number := range 12 {
		volume := must(client.CreateVolume(ctx, &ec2.CreateVolumeInput{
			AvailabilityZone: aws.String(zone), Size: aws.Int32(1), ClientToken: aws.String(fmt.Sprint("go-page-", number)),
		}))
		made[*volume.VolumeId] = true
	}
	pages := ec2.NewDescribeVolumesPaginator(client, &ec2.DescribeVolumesInput{MaxResults: aws.Int32(5)})
	count := 0
	for ; pages.HasMorePages(); count++ {
		for _, volume := range must(pages.NextPage(ctx)).Volumes {
			delete(made, *volume.VolumeId)
		}
	}
	expect(count >= 3 && len(made) == 0, "%d pages lack %v", count, made)
}

func checkVolume(ctx context.Context, client *ec2.Client, instance string) {
	made := must(client.CreateVolume(ctx, &ec2.CreateVolumeInput{
		AvailabilityZone: aws.String(zone), Size: aws.Int32(100), VolumeType: types.VolumeTypeGp3,
		Iops: aws.Int32(3000), Throughput: aws.Int32(125), Encrypted: aws.Bool(true),
	}))
	ids := []string{*made.VolumeId}
	available := ec2.NewVolumeAvailableWaiter(client, func(o *ec2.VolumeAvailableWaiterOptions) {
		o.MinDelay, o.MaxDelay = 100*time.Millisecond, time.Second
	})
	free := func() {
		expect(available.Wait(ctx, &ec2.DescribeVolumesInput{VolumeIds: ids}, patient) == nil, "it is not available")
	}
	free()
	must(client.AttachVolume(ctx, &ec2.AttachVolumeInput{
		VolumeId: made.VolumeId, InstanceId: aws.String(instance), Device: aws.String("/dev/xvdba"),
	}))
	_, err := client.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: made.VolumeId})
	refused("VolumeInUse", err)
	until("the attachment", func() bool {
		volume := must(client.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{VolumeIds: ids})).Volumes[0]
		return volume.Attachments[0].State == types.VolumeAttachmentStateAttached
	})
	must(client.ModifyVolume(ctx, &ec2.ModifyVolumeInput{
		VolumeId: made.VolumeId, Size: aws.Int32(200), Iops: aws.Int32(6000), Throughput: aws.Int32(500),
	}))
	until("the modification", func() bool {
		input := &ec2.DescribeVolumesModificationsInput{VolumeIds: ids}
		modification := must(client.DescribeVolumesModifications(ctx, input)).VolumesModifications[0]
		return modification.ModificationState == types.VolumeModificationStateCompleted
	})
	grown := must(client.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{VolumeIds: ids})).Volumes[0]
	expect(*grown.Size == 200 && *grown.Iops == 6000 && *grown.Throughput == 500, "it has %d GiB", *grown.Size)
	must(client.CreateTags(ctx, &ec2.CreateTagsInput{
		Resources: ids, Tags: []types.Tag{{Key: aws.String("colour"), Value: aws.String("grün <1>")}},
	}))
	tags := must(client.DescribeTags(ctx, &ec2.DescribeTagsInput{Filters: []types.Filter{
		{Name: aws.String("resource-id"), Values: ids},
	}})).Tags
	expect(len(tags) == 1 && *tags[0].Value == "grün <1>", "it has the tags %v", tags)
	status := must(client.DescribeVolumeStatus(ctx, &ec2.DescribeVolumeStatusInput{VolumeIds: ids})).VolumeStatuses[0]
	expect(status.InitializationStatusDetails == nil, "an empty volume has nothing to read")
	must(client.DetachVolume(ctx, &ec2.DetachVolumeInput{VolumeId: made.VolumeId}))
	free()
	must(client.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: made.VolumeId}))
}

// until asks again until it is so, for as long as it is patient.
func until(what string, ready func() bool) {
	for deadline := time.Now().Add(patient); !ready(); time.Sleep(100 * time.Millisecond) {
		expect(time.Now().Before(deadline), "still waiting for %s", what)
	}
}

func main() {
	ctx := context.Background()
	endpoint := os.Getenv("AWS_ENDPOINT_URL_EC2")
	expect(endpoint != "", "AWS_ENDPOINT_URL_EC2 is not set")
	client := ec2.New(ec2.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(endpoint),
		Credentials:  aws.CredentialsProviderFunc(static),
		Retryer:      aws.NopRetryer{},
	})
	zones := must(client.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})).AvailabilityZones
	expect(len(zones) == 3 && *zones[1].ZoneName == zone, "%d zones", len(zones))
	kinds := must(client.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{
		InstanceTypes: []types.InstanceType{types.InstanceTypeR7iLarge},
	})).InstanceTypes
	expect(*kinds[0].MemoryInfo.SizeInMiB == 16384, "%d MiB", *kinds[0].MemoryInfo.SizeInMiB)
	instance := checkInstance(ctx, client)
	checkPages(ctx, client)
	checkVolume(ctx, client, instance)
	ended := must(client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{instance}}))
	expect(ended.TerminatingInstances[0].CurrentState.Name == types.InstanceStateNameShuttingDown, "it does not end")
	_, err := client.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{})
	refused("UnsupportedOperation", err)
	fmt.Println("the SDK for Go and ec2sim understand each other")
}
