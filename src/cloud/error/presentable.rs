//! EC2's sentences as tenants may read them: without encoded details, ARNs and account ids.
//!
//! Conditions and events are read by tenants, to whom the account, its roles and its keys are of no use. The
//! operator's log has the whole sentence (`ec2::failed`).

/// The longest message that is passed on, in characters: it ends up in conditions.
const LONGEST: usize = 600;

/// What EC2's refusals end with: long, and a person who may decode it can read the policy.
const ENCODED: &str = "Encoded authorization failure message";

/// How many digits the id of an AWS account has (Account Management guide, "View AWS account identifiers").
const ACCOUNT_DIGITS: usize = 12;

/// The message, fit for a condition.
pub fn presentable(message: &str) -> String {
    let plain = message.split(ENCODED).next().unwrap_or_default().trim();
    let text = plain.split(' ').map(without_account).collect::<Vec<_>>().join(" ");
    let mut cut: String = text.chars().take(LONGEST).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

/// A word without the account: of an ARN of EC2's the resource is left (`subnet/subnet-1`), of another
/// service's only the resource's type (`role/…`).
fn without_account(word: &str) -> String {
    let Some((before, arn)) = word.find("arn:").map(|at| word.split_at(at)) else {
        return without_account_ids(word);
    };
    // arn:partition:service:region:account:resource (IAM user guide, "Amazon Resource Names").
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let &[_, _, service, _, _, resource] = parts.as_slice() else { return format!("{before}…") };
    if service == "ec2" {
        return format!("{before}{}", without_account_ids(resource));
    }
    let resource_type = resource.split(['/', ':']).next().unwrap_or_default();
    let end = resource.trim_end_matches(|character: char| !character.is_alphanumeric()).len();
    format!("{before}{resource_type}/…{}", &resource[end..])
}

/// The text with an ellipsis in place of each account id.
fn without_account_ids(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some(at) = rest.find(|character: char| character.is_ascii_digit()) {
        let digits = rest[at..].chars().take_while(char::is_ascii_digit).count();
        let (before, after) = (&rest[..at], &rest[at + digits..]);
        // Part of an id or of a UUID otherwise.
        let is_alone = !kept.ends_with(char::is_alphanumeric)
            && !before.ends_with(|character: char| character.is_alphanumeric() || character == '-')
            && !after.starts_with(char::is_alphanumeric);
        kept.push_str(before);
        kept.push_str(if is_alone && digits == ACCOUNT_DIGITS { "…" } else { &rest[at..at + digits] });
        rest = after;
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_no_account_no_role_and_no_encoded_details() {
        let rows = [
            (
                "You are not authorized to perform this operation. User: \
                 arn:aws:sts::123456789012:assumed-role/freehold/eks-1 is not authorized to perform: \
                 ec2:RunInstances on resource: arn:aws:ec2:eu-west-1:123456789012:subnet/subnet-1 because no \
                 identity-based policy allows the ec2:RunInstances action. Encoded authorization failure \
                 message: AbCdEf0123",
                "You are not authorized to perform this operation. User: assumed-role/… is not authorized to \
                 perform: ec2:RunInstances on resource: subnet/subnet-1 because no identity-based policy \
                 allows the ec2:RunInstances action.",
            ),
            (
                "not authorized to perform: iam:PassRole on resource: arn:aws-cn:iam::123456789012:role/a/nodes",
                "not authorized to perform: iam:PassRole on resource: role/…",
            ),
            (
                "the key 'arn:aws:kms:us-east-1:123456789012:key/1234' is disabled",
                "the key 'key/…' is disabled",
            ),
            ("an image: arn:aws:ec2:us-east-1::image/ami-1", "an image: image/ami-1"),
            ("something like arn:aws", "something like …"),
            ("the account 123456789012, and (123456789012)", "the account …, and (…)"),
        ];
        for (message, expected) in rows {
            assert_eq!(presentable(message), expected);
        }
    }

    #[test]
    fn what_only_looks_like_an_account_id_stays() {
        for message in [
            "The volume 'vol-123456789012' does not exist.",
            "Token 00000000-0000-0000-0000-000000000001",
            "The instance ID 'i-0a123456789012bcd' does not exist",
            "1234567890123 is too large",
            "Invalid value '12345678901' for size: 42 GiB",
        ] {
            assert_eq!(presentable(message), message);
        }
    }

    #[test]
    fn a_very_long_message_is_cut() {
        assert_eq!(presentable(&"é".repeat(5000)).chars().count(), LONGEST + 1);
    }
}
