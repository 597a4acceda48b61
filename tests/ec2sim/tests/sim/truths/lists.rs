//! Filters, pages and ids.

use ec2sim::{Effect, Fault, Truth};

use super::kit::{Kit, OTHER_SUBNET, both_ways, check, equal};

/// Source: API reference, "Filter": at most 50 filters, EC2 user guide: up to 200 values each;
/// `FilterLimitExceeded`.
#[test]
fn a_list_has_at_most_50_filters_with_200_values_each() {
    both_ways(Truth::FilterLimits, |truths| {
        let kit = Kit::new(truths);
        let filters = |count: usize, values: usize| {
            let mut all = Vec::new();
            for filter in 1..=count {
                all.push((format!("Filter.{filter}.Name"), "instance-id".to_owned()));
                all.extend(
                    (1..=values)
                        .map(|value| (format!("Filter.{filter}.Value.{value}"), format!("i-{value}"))),
                );
            }
            all
        };
        for (count, values, expected) in
            [(50, 1, "ok"), (51, 1, "FilterLimitExceeded"), (1, 200, "ok"), (1, 201, "FilterLimitExceeded")]
        {
            let all = filters(count, values);
            let all: Vec<_> = all.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            equal((count, values, kit.code("DescribeInstances", &all).as_str()), (count, values, expected))?;
        }
        Ok(())
    });
}

/// Source: `API_DescribeInstances`: "this value can be between 5 and 1000".
#[test]
fn the_size_of_a_page_has_a_range() {
    both_ways(Truth::MaxResultsRange, |truths| {
        let kit = Kit::new(truths);
        for (action, size, expected) in [
            ("DescribeInstances", "5", "ok"),
            ("DescribeInstances", "1000", "ok"),
            ("DescribeInstances", "4", "InvalidParameterValue"),
            ("DescribeInstances", "1001", "InvalidParameterValue"),
            ("DescribeVolumes", "4", "InvalidParameterValue"),
            ("DescribeInstanceTypes", "101", "InvalidParameterValue"),
        ] {
            equal((action, kit.code(action, &[("MaxResults", size)]).as_str()), (action, expected))?;
        }
        Ok(())
    });
}

/// Source: `API_DescribeInstances`: "You cannot specify this parameter and the instance IDs parameter in the
/// same request."
#[test]
fn a_page_size_and_a_list_of_ids_exclude_each_other() {
    both_ways(Truth::MaxResultsWithoutIds, |truths| {
        let kit = Kit::new(truths);
        let (instance, volume) = (kit.running()?, kit.available(&[])?);
        let page = ("MaxResults", "5");
        kit.refuses(
            "InvalidParameterCombination",
            "DescribeInstances",
            &[("InstanceId.1", &instance), page],
        )?;
        kit.refuses("InvalidParameterCombination", "DescribeVolumes", &[("VolumeId.1", &volume), page])
    });
}

/// Source: `API_DescribeVolumes`: values larger than 500 return 500 results.
#[test]
fn a_page_of_more_than_500_volumes_has_500() {
    both_ways(Truth::VolumePagesOf500, |truths| {
        let kit = Kit::new(truths);
        for _ in 0..501 {
            kit.create_volume(&[])?;
        }
        let (volumes, next) = kit.volumes(&[("MaxResults", "1000")])?;
        equal(volumes.len(), 500)?;
        let next = next.ok_or("no next page")?;
        let (volumes, last) = kit.volumes(&[("MaxResults", "1000"), ("NextToken", &next)])?;
        equal((volumes.len(), last), (1, None))
    });
}

/// Source: EC2 developer guide, "Pagination": a page may hold fewer results than asked for, or none, with
/// more to follow.
#[test]
fn a_page_may_be_empty_and_still_carry_a_token() {
    both_ways(Truth::EmptyPages, |truths| {
        let kit = Kit::new(truths);
        for size in ["1", "1", "1", "1", "1", "2"] {
            kit.create_volume(&[("Size", size)])?;
        }
        let of_two = [("Filter.1.Name", "size"), ("Filter.1.Value.1", "2"), ("MaxResults", "5")];
        let (volumes, next) = kit.volumes(&of_two)?;
        equal(volumes.len(), 0)?;
        let next = next.ok_or("no next page")?;
        let (volumes, last) = kit.volumes(&[&of_two[..], &[("NextToken", &next)]].concat())?;
        equal((volumes.len(), last), (1, None))?;
        // The same can be asked for at any moment.
        kit.sim.add_fault(Fault::on("DescribeVolumes", Effect::EmptyPage).nth(1));
        let (volumes, next) = kit.volumes(&[])?;
        equal(volumes.len(), 0)?;
        let (volumes, _) = kit.volumes(&[("NextToken", &next.ok_or("no next page")?)])?;
        equal(volumes.len(), 6)
    });
}

/// Source: EC2 user guide, "List and filter": an id list fails with `Invalid…NotFound`, a filter just finds
/// nothing.
#[test]
fn one_unknown_id_fails_the_whole_list_and_a_filter_does_not_fail() {
    both_ways(Truth::UnknownIdFailsWhole, |truths| {
        let kit = Kit::new(truths);
        let id = kit.running()?;
        let unknown = "i-00000000000000000";
        let by_filter = [
            ("Filter.1.Name", "instance-id"),
            ("Filter.1.Value.1", id.as_str()),
            ("Filter.1.Value.2", unknown),
        ];
        equal(kit.listed(&by_filter)?, vec![id.clone()])?;
        let by_id = [("InstanceId.1", id.as_str()), ("InstanceId.2", unknown)];
        kit.refuses("InvalidInstanceID.NotFound", "DescribeInstances", &by_id)
    });
}

/// Source: `API_DescribeInstances`: in the rare case of a disrupted zone, a call without ids, or with ids of
/// that zone, might fail; with ids of the other zones it works normally.
#[test]
fn while_a_zone_is_disrupted_a_list_without_ids_fails() {
    both_ways(Truth::ZoneDownFailsSweeps, |truths| {
        let kit = Kit::new(truths);
        let (here, there) = (kit.running()?, kit.run(&[("SubnetId", OTHER_SUBNET)])?);
        kit.sim.add_fault(Fault::always(Effect::ZoneDown { zone: "us-east-1b".into() }));
        kit.refuses("Unavailable", "DescribeInstances", &[])?;
        kit.refuses("Unavailable", "DescribeInstances", &[("InstanceId.1", &there)])?;
        equal(kit.listed(&[("InstanceId.1", &here)])?, vec![here])?;
        kit.sim.clear_faults();
        check(kit.listed(&[])?.len() == 2, "the zone is still down")
    });
}
