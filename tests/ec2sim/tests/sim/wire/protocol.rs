//! EC2's Query protocol: forms in, XML out.

use super::http::{RUN, Server, options};

#[tokio::test]
async fn a_launch_is_answered_in_the_shape_of_ec2() {
    let server = Server::start(options()).await;
    let more = [
        ("SubnetId", "subnet-0b000000000000000"),
        ("UserData", "aGVsbG8="),
        ("TagSpecification.1.ResourceType", "instance"),
        ("TagSpecification.1.Tag.1.Key", "Name"),
        ("TagSpecification.1.Tag.1.Value", "a <b> & \"c\""),
    ];
    let answer = server.call(&[&RUN[..], &more].concat()).await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.body.starts_with(
        "<RunInstancesResponse \
        xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>"
    ));
    assert!(answer.body.contains("<instanceState><code>0</code><name>pending</name></instanceState>"));
    assert!(answer.body.contains("<placement><availabilityZone>us-east-1b</availabilityZone>"));
    assert!(answer.body.contains("<launchTime>2026-03-01T00:00:00.000Z</launchTime>"));
    assert!(answer.body.contains("<key>Name</key><value>a &lt;b&gt; &amp; "), "{}", answer.body);
    let instance = server.sim.instances().remove(0);
    assert_eq!(answer.text("instanceId"), Some(instance.id.as_str()));
    assert_eq!(instance.user_data.as_deref(), Some("hello"));
    assert_eq!(instance.private_dns, "ip-10-0-16-4.ec2.internal");
    server.stop().await;
}

#[tokio::test]
async fn a_refusal_has_ec2s_shape_and_status() {
    let server = Server::start(options()).await;
    let answer =
        server.call(&[("Action", "DescribeVolumes"), ("VolumeId.1", "vol-00000000000000000")]).await.unwrap();
    assert_eq!(answer.status, 400);
    assert!(answer.body.starts_with("<Response><Errors><Error><Code>InvalidVolume.NotFound</Code><Message>"));
    assert!(answer.body.contains("</Errors><RequestID>"));
    let answer = server.call(&[&RUN[..], &[("DryRun", "true")]].concat()).await.unwrap();
    assert_eq!((answer.status, answer.text("Code")), (412, Some("DryRunOperation")));
    let answer = server.call(&[("Action", "CreateFleet")]).await.unwrap();
    assert_eq!((answer.status, answer.text("Code")), (400, Some("UnsupportedOperation")));
    server.stop().await;
}

#[tokio::test]
async fn a_request_beyond_the_rate_is_answered_with_503() {
    let mut options = options();
    options.limits.rate = Some(1.0);
    let server = Server::start(options).await;
    for _ in 0..5 {
        assert_eq!(server.call(&RUN).await.unwrap().status, 200);
    }
    let answer = server.call(&RUN).await.unwrap();
    assert_eq!((answer.status, answer.text("Code")), (503, Some("RequestLimitExceeded")));
    server.stop().await;
}

#[tokio::test]
async fn an_unsigned_request_is_refused_and_a_get_is_as_good_as_a_post() {
    let server = Server::start(options()).await;
    let answer = server.send("POST", "/", "", "Action=DescribeInstances").await.unwrap();
    assert_eq!((answer.status, answer.text("Code")), (401, Some("AuthFailure")));
    let presigned = "/?Action=DescribeAvailabilityZones&Version=2016-11-15&X-Amz-Credential=tester%2F20260301%2Fus-east-1%2Fec2";
    let answer = server.send("GET", presigned, "", "").await.unwrap();
    assert_eq!((answer.status, answer.count("zoneName")), (200, 3));
    assert_eq!(server.sim.journal()[0].caller, "tester");
    server.stop().await;
}

#[tokio::test]
async fn a_list_goes_on_with_the_token_of_its_page() {
    let server = Server::start(options()).await;
    for _ in 0..7 {
        let volume = [("Action", "CreateVolume"), ("AvailabilityZone", "us-east-1a"), ("Size", "1")];
        assert_eq!(server.call(&volume).await.unwrap().status, 200);
    }
    let list = [("Action", "DescribeVolumes"), ("MaxResults", "5")];
    let first = server.call(&list).await.unwrap();
    assert_eq!(first.count("volumeId"), 5);
    let token = first.text("nextToken").unwrap();
    let second = server.call(&[&list[..], &[("NextToken", token)]].concat()).await.unwrap();
    assert_eq!((second.count("volumeId"), second.text("nextToken")), (2, None));
    server.stop().await;
}
