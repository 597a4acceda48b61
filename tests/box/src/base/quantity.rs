//! Reads sizes as Kubernetes writes them.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Bytes of one GiB, the unit of EBS.
const GIB: u64 = 1 << 30;

/// The bytes that a quantity of storage stands for; none for what is not a whole number with a usual suffix.
pub fn bytes(quantity: &Quantity) -> Option<u64> {
    let text = quantity.0.trim();
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let factor = match suffix {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => GIB,
        "Ti" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// The GiB that EBS must give for so many bytes: rounded up.
pub const fn gib(bytes: u64) -> u64 {
    bytes.div_ceil(GIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_both_families_of_units() {
        for (text, expected) in [
            ("5", Some(5)),
            ("2k", Some(2_000)),
            ("1Gi", Some(1 << 30)),
            ("1G", Some(1_000_000_000)),
            ("3Ti", Some(3 << 40)),
            ("1.5Gi", None),
            ("ten", None),
            ("", None),
        ] {
            assert_eq!(bytes(&Quantity(text.to_owned())), expected, "{text}");
        }
    }

    #[test]
    fn a_part_of_a_gib_needs_a_whole_one() {
        assert_eq!([gib(0), gib(1), gib(1 << 30), gib((1 << 30) + 1)], [0, 1, 1, 2]);
    }
}
