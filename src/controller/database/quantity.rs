//! Kubernetes' quantities (`resource.Quantity`) as numbers. Pure.

/// The number that a quantity means; `None` where it is none.
pub(super) fn number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let unit = match suffix {
        "" => 1.0,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        "Ti" => 1_099_511_627_776.0,
        exponent => 10_f64.powi(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    Some(number.parse::<f64>().ok()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_compared_by_what_they_mean() {
        for (text, expected) in
            [("2", 2.0), ("500m", 0.5), ("1Ki", 1024.0), ("1.5G", 1.5e9), ("1e3", 1000.0), ("2E1", 20.0)]
        {
            assert_eq!(number(text), Some(expected), "{text}");
        }
        assert_eq!((number("lots"), number("")), (None, None));
    }
}
