//! Every sentence that more than one kind reports, as one file that a person can read: `messages.golden.txt`
//! (FREEHOLD_BLESS=1 writes it anew).

use std::collections::BTreeSet;

use jiff::Timestamp;
use strum::EnumCount;

use super::*;
use crate::api::{InstanceId, Reason, SnapshotId};
use crate::cloud::call::Call;
use crate::cloud::{CloudError, VolumeState};

const GOLDEN: &str = "src/controller/messages.golden.txt";

fn until() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn blockers() -> Vec<Blocker> {
    let volume = || VolumeId("vol-1".to_owned());
    let second = |kept| Blocker::Duplicate(InstanceId("i-2".to_owned()), kept);
    let not_fenced = |message: Option<&str>| Blocker::NotFenced {
        node: "orders-1".to_owned(),
        reason: Reason::Fencing,
        message: message.map(str::to_owned),
    };
    let core_node = "ip-10-0-0-1".to_owned();
    let at_limit = |cause| {
        let core_node = core_node.clone();
        Blocker::ReplacementsAtLimit { cause, core_node, underway: 5, limit: 5 }
    };
    let all = vec![
        Blocker::PodsRemain(vec!["team-a/orders-0".to_owned(), "team-a/other".to_owned()]),
        Blocker::NotDetached(vec!["csi-1".to_owned()]),
        Blocker::StillAttached(vec![volume(), VolumeId("vol-2".to_owned())]),
        Blocker::DatabaseRuns { core_node: core_node.clone(), until: None },
        Blocker::DatabaseRuns { core_node: core_node.clone(), until: Some(until()) },
        Blocker::FleetPartial,
        Blocker::RepairsAtLimit { underway: 5, limit: 5 },
        Blocker::NamespaceRepairsAtLimit { underway: 3, limit: 3 },
        at_limit(ReplacementCause::KubernetesNodeDeleted),
        at_limit(ReplacementCause::EventScheduled),
        at_limit(ReplacementCause::Cordoned),
        at_limit(ReplacementCause::Unknown),
        Blocker::InventoryOld,
        Blocker::NoKubeletReports,
        Blocker::ZoneRefused,
        Blocker::ZoneDown { joined: 10, lost: 6 },
        Blocker::ZoneRecovering(until()),
        second(DuplicateKept::ForeignToken),
        second(DuplicateKept::Database),
        second(DuplicateKept::DataVolume),
        Blocker::SnapshotTagMissing {
            id: SnapshotId("snap-1".to_owned()),
            key: "freehold/uid".to_owned(),
            value: "uid".to_owned(),
        },
        Blocker::TagMissing { id: volume(), key: "freehold/uid".to_owned(), value: "uid".to_owned() },
        Blocker::NotAvailable(volume(), VolumeState::InUse),
        Blocker::Released(volume()),
        Blocker::PodStopping("orders-0".to_owned()),
        Blocker::PodRuns("orders-0".to_owned()),
        Blocker::StatefulSetRuns("orders".to_owned()),
        not_fenced(Some("what the Node reports")),
        not_fenced(None),
        Blocker::ChangeNotSeen("orders".to_owned()),
    ];
    let kinds: BTreeSet<&str> = all.iter().map(Into::into).collect();
    assert_eq!(kinds.len(), Blocker::COUNT, "an example of every variant");
    all
}

fn blocked_calls() -> Vec<CallBlocked> {
    let answered = |call: Call, code: &str, until: Option<Timestamp>| {
        let error = CloudError::new(call.as_str(), Some(code), "what EC2 says", None, None);
        CallBlocked::Refused { call, error, until }
    };
    let blocker = Blocker::RepairsAtLimit { underway: 5, limit: 5 };
    vec![
        CallBlocked::RateLimited { until: until() },
        answered(Call::RunInstances, "UnauthorizedOperation", Some(until())),
        answered(Call::CreateVolume, "InvalidParameterValue", None),
        answered(Call::ModifyVolume, "InvalidParameterValue", None),
        answered(Call::ModifyVolume, "VolumeModificationRateExceeded", Some(until())),
        answered(Call::ModifyVolume, "IncorrectModificationState", Some(until())),
        CallBlocked::RepairPostponed { loss: "instance i-1 is stopped".to_owned(), blocker, until: until() },
    ]
}

#[test]
fn every_sentence_is_as_the_golden_file_has_it() {
    let blockers = blockers().into_iter().map(|it| (it.reason(), it.message()));
    let calls = blocked_calls().into_iter().map(|it| (it.reason(), it.message()));
    let mut lines: Vec<String> =
        blockers.chain(calls).map(|(reason, message)| format!("{} | {message}\n", reason.as_str())).collect();
    lines.push(format!("{} | {}\n", Reason::Progressing.as_str(), step_failed("what failed")));
    let volume = VolumeId("vol-1".to_owned());
    let unclaimed = [
        unclaimed_instance(&InstanceId("i-1".to_owned()), std::slice::from_ref(&volume)),
        unclaimed_volume(&volume),
    ];
    lines.extend(unclaimed.map(|message| format!("- | {message}\n")));
    let text = lines.concat();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(GOLDEN);
    if std::env::var_os("FREEHOLD_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    pretty_assertions::assert_eq!(
        text,
        std::fs::read_to_string(&path).unwrap_or_default(),
        "FREEHOLD_BLESS=1 writes {GOLDEN}"
    );
}
