//! The checks, a function for each truth that a client can see.

mod attachments;
mod instances;
mod lists;
mod modifications;
mod rates;
mod requests;
mod snapshots;
mod tokens;
mod volumes;

use super::{answer::Verdict, target::Target};
use crate::Truth;

/// Why a truth about quotas is not asked about.
const QUOTA: &str = "a quota of the account would have to be reached";

/// Asks an EC2 whether a truth holds.
pub(super) async fn ask(truth: Truth, ec2: &Target) -> Verdict {
    match truth {
        Truth::TokenGivesSameResource => tokens::same_resource(ec2).await.into(),
        Truth::TokenMismatchRefused => tokens::mismatch(ec2).await.into(),
        Truth::TokenLengthLimited => tokens::length(ec2).await.into(),
        Truth::TokenCaseSensitive => tokens::case(ec2).await.into(),
        Truth::TokenPerZone => tokens::per_zone(ec2).await.into(),
        Truth::TokenOfTerminatedRefused => tokens::of_terminated(ec2).await.into(),
        Truth::TokenOnlyWhereDefined => tokens::only_where_defined(ec2).await.into(),
        Truth::KmsRefusalIsLate => tokens::late_refusal_of_key(ec2).await.into(),
        Truth::NoTokenNewResource => tokens::none(ec2).await.into(),
        Truth::TokenFilterOnlyOnInstances => tokens::filter(ec2).await.into(),
        Truth::TokensForgotten => tokens::forgotten(ec2).await.into(),
        Truth::TerminatedVisibleForAnHour => instances::terminated_is_visible(ec2).await.into(),
        Truth::InstancePassesThroughStates => instances::states(ec2).await.into(),
        Truth::LaunchMayDie => instances::dies(ec2).await.into(),
        Truth::StatusInitializing => instances::status(ec2).await.into(),
        Truth::InstanceStateRefusals => instances::refusals(ec2).await.into(),
        Truth::VolumesHeldUntilTerminated => instances::volumes_held(ec2).await.into(),
        Truth::DeleteOnTermination => instances::delete_on_termination(ec2).await.into(),
        Truth::VolumePassesThroughStates => volumes::states(ec2).await.into(),
        Truth::VolumeRanges => volumes::ranges(ec2).await.into(),
        Truth::DeleteRefusesUsedVolume => volumes::delete_of_used(ec2).await.into(),
        Truth::AttachmentPassesThroughStates => attachments::states(ec2).await.into(),
        Truth::AttachRefusesUsedVolume => attachments::used_volume(ec2).await.into(),
        Truth::AttachRefusesOtherZone => attachments::other_zone(ec2).await.into(),
        Truth::AttachRefusesInstanceState => attachments::instance_state(ec2).await.into(),
        Truth::AttachRefusesTakenDevice => attachments::taken_device(ec2).await.into(),
        Truth::AttachRefusesTooMany => attachments::too_many(ec2).await.into(),
        Truth::DetachRefusesRoot => attachments::root(ec2).await.into(),
        Truth::SizeUsableAtOptimizing => modifications::size(ec2).await.into(),
        Truth::OneModificationAtATime => modifications::one_at_a_time(ec2).await.into(),
        Truth::ModificationBudget => modifications::budget(ec2).await.into(),
        Truth::VolumesOnlyGrow => modifications::only_grow(ec2).await.into(),
        Truth::SnapshotPassesThroughStates => snapshots::states(ec2).await.into(),
        Truth::SnapshotRate => snapshots::rate(ec2).await.into(),
        Truth::SnapshotMinimumSize => snapshots::minimum_size(ec2).await.into(),
        Truth::InitializationRateRange => snapshots::initialization_rate(ec2).await.into(),
        Truth::InitializationTakesTime => {
            Verdict::NotSeen("EC2 shows it up to five minutes late, and a small volume is whole by then")
        }
        Truth::RequestRate => rates::requests(ec2).await.into(),
        Truth::UnfilteredDescribeRate => rates::unfiltered(ec2).await.into(),
        Truth::FilterLimits => lists::filters(ec2).await.into(),
        Truth::MaxResultsRange => lists::page_sizes(ec2).await.into(),
        Truth::MaxResultsWithoutIds => lists::page_size_and_ids(ec2).await.into(),
        Truth::VolumePagesOf500 => lists::pages_of_500(ec2).await.into(),
        Truth::UnknownIdFailsWhole => lists::unknown_id(ec2).await.into(),
        Truth::DryRun => requests::dry_run(ec2).await.into(),
        Truth::UnknownRefused => requests::unknown(ec2).await.into(),
        Truth::LimitBeforeToken | Truth::VcpuQuotaPerFamily | Truth::VolumeQuotaPerType => {
            Verdict::NotSeen(QUOTA)
        }
        Truth::LateSend => Verdict::NotSeen("a request would have to be held up on its way to EC2"),
        Truth::EventualConsistency => {
            Verdict::NotSeen("EC2 may show things late and need not; no client can make it do so")
        }
        Truth::EmptyPages => {
            Verdict::NotSeen("EC2 may send an empty page and need not; no client can make it do so")
        }
        Truth::ScheduledEvents => Verdict::NotSeen("only AWS schedules events"),
        Truth::SnapshotConcurrency => {
            Verdict::NotSeen("six snapshots of one volume would have to be pending for more than a minute")
        }
        Truth::ResourceRate => Verdict::NotSeen("more than 1,000 instances would have to be launched"),
        Truth::ZoneDownFailsSweeps => Verdict::NotSeen("no client can disrupt a zone"),
        Truth::PolicyHolds => Verdict::NotSeen("a second caller with fewer rights would be needed"),
    }
}
