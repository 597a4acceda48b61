//! What a run on AWS makes and costs at most, said before anything is made.

use std::time::Duration;

/// US$ an hour for an instance of the types that are likely, Linux on demand in us-east-1 (EC2 pricing page,
/// "On-Demand"; Regions differ by up to a half).
const TYPES: [(&str, f64); 3] = [("t3.nano", 0.0052), ("t3.micro", 0.0104), ("t3.small", 0.0208)];

/// US$ an hour for a public IPv4 address, which a default subnet gives (VPC pricing page).
const ADDRESS: f64 = 0.005;

/// US$ for a GiB of gp3 in an hour: 0.08 a month (EBS pricing page).
const GIB: f64 = 0.08 / 730.0;

/// US$ for volumes of other shapes and for volumes that EC2 should have refused: 64 TiB of gp3 for two
/// minutes.
const SHAPES: f64 = 0.30;

/// What all Regions and rounding up to minutes may add.
const MARGIN: f64 = 2.0;

/// No run launches more instances than this: a test counts them.
pub(super) const INSTANCES: f64 = 50.0;

/// GiB of an instance's root volume.
const ROOT: f64 = 8.0;

/// No run makes more GiB of other volumes and snapshots than this: a test counts them.
pub(super) const DATA: f64 = 150.0;
pub(super) const DATA_LONG: f64 = DATA + 501.0;

/// When no further check is begun.
pub(super) fn end(is_long: bool) -> Duration {
    if is_long { Duration::from_hours(6) } else { Duration::from_hours(2) }
}

/// What will be made, for how long, and what it costs at most.
pub(super) fn statement(region: &str, instance_type: &str, is_long: bool, takes_rates: bool) -> String {
    let hours = end(is_long).as_secs_f64() / 3600.0;
    let data = if is_long { DATA_LONG } else { DATA };
    let storage = (INSTANCES * ROOT + data) * GIB;
    let bound = |price: f64| (INSTANCES * (price + ADDRESS) + storage) * hours * MARGIN + SHAPES;
    let cost = match TYPES.iter().find(|(name, _)| *name == instance_type) {
        Some((_, price)) => format!(
            "at most US$ {:.2}: if every instance and volume existed for the whole time, at twice the\n  \
             price of us-east-1 (US$ {price} an hour for {instance_type}, {ADDRESS} for its address,\n  \
             0.08 a month for a GiB of gp3)",
            bound(*price)
        ),
        None => format!(
            "at most US$ {:.2} and {:.0} hours of {instance_type}, whose price is not known here",
            bound(0.0),
            INSTANCES * hours
        ),
    };
    let pages = if is_long { ", among them 501 at once" } else { "" };
    let rates = if takes_rates {
        "\n  besides: the account's request rates for RunInstances and DescribeVolumes in this Region are\n  \
         used up, each for some seconds"
    } else {
        ""
    };
    format!(
        "This run makes, in {region}, in the account of your credentials:\n  \
         up to {INSTANCES} instances of {instance_type}, one or two at a time, each for some minutes and\n  \
         terminated after its check\n  \
         up to {data} GiB of EBS volumes, 1 to 10 GiB each{pages}, and of snapshots of 1 or 2 GiB{rates}\n\
         Requests that EC2 must refuse are made, too: volumes of 64 TiB, and volumes with a KMS key that\n\
         does not exist.\n\
         It begins no check after {hours} h, and removes what it has made at its end, after a failure, and\n\
         at Ctrl-C.\n\
         Cost: {cost}."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_said_before() {
        // The figure is in the pages.
        let usual = statement("us-east-1", "t3.nano", false, false);
        assert!(usual.contains("at most US$ 2.58:"), "{usual}");
        assert!(!usual.contains("501"), "{usual}");
        let other = statement("eu-west-1", "m7i.large", true, true);
        assert!(other.contains("300 hours of m7i.large") && other.contains("501"), "{other}");
    }
}
