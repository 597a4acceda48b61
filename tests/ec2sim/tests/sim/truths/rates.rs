//! Rate limits, on virtual time.

use ec2sim::{Limits, Truth, Truths};

use super::kit::{Kit, both_ways, check, equal, options};

fn limited(truths: Truths) -> Kit {
    let mut options = options(truths);
    options.limits = Limits { rate: Some(1.0), ..options.limits };
    Kit::with(options)
}

/// How many calls of an action go through at once.
fn burst(kit: &Kit, action: &str, params: &[(&str, &str)]) -> usize {
    (0..1000).take_while(|_| kit.code(action, params) != "RequestLimitExceeded").count()
}

/// Source: EC2 developer guide, "Request throttling for the Amazon EC2 API": request token bucket sizes and
/// refill rates.
#[test]
fn requests_beyond_the_accounts_rate_are_refused() {
    both_ways(Truth::RequestRate, |truths| {
        let kit = limited(truths);
        let run = [("ImageId", "ami-none")];
        equal(burst(&kit, "RunInstances", &run), 5)?;
        kit.pass(1);
        equal(burst(&kit, "RunInstances", &run), 2)?;
        equal(burst(&kit, "CreateVolume", &[]), 100)?;
        kit.pass(2);
        equal(burst(&kit, "CreateVolume", &[]), 10)?;
        equal(burst(&kit, "ModifyVolume", &[]), 50)?;
        equal(burst(&kit, "CreateTags", &[]), 100)?;
        equal(burst(&kit, "DescribeInstances", &[("MaxResults", "5")]), 100)?;
        kit.pass(1);
        equal(burst(&kit, "DescribeInstances", &[("MaxResults", "5")]), 20)
    });
}

/// Source: EC2 developer guide, "Request throttling": resource token bucket sizes (RunInstances 1000 / 2).
#[test]
fn resources_beyond_the_accounts_rate_are_refused() {
    both_ways(Truth::ResourceRate, |truths| {
        let kit = limited(truths);
        let many = |count: &str| kit.run(&[("MinCount", count), ("MaxCount", count)]);
        many("600")?;
        equal(many("600"), Err("RequestLimitExceeded".to_owned()))?;
        many("400")?;
        kit.pass(5);
        equal(many("20"), Err("RequestLimitExceeded".to_owned()))?;
        many("10").map(drop)
    });
}

/// Source: EC2 developer guide, "Request throttling": unfiltered and unpaginated non-mutating actions, 50 /
/// 10.
#[test]
fn a_describe_without_filter_and_page_has_a_smaller_allowance() {
    both_ways(Truth::UnfilteredDescribeRate, |truths| {
        let kit = limited(truths);
        equal(burst(&kit, "DescribeVolumes", &[]), 50)?;
        kit.pass(1);
        equal(burst(&kit, "DescribeVolumes", &[]), 10)?;
        check(
            burst(&kit, "DescribeVolumes", &[("MaxResults", "5")]) == 100,
            "the larger allowance was touched",
        )
    });
}
