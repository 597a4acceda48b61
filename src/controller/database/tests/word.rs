//! A plan of the tables as one line.

use kube::ResourceExt;

use crate::controller::database::plan::action::{Action, Plan};
use crate::controller::tests::plan_line::PlanLine;

/// A plan in one line: its actions, then what it waits for.
pub(super) fn line(plan: &Plan) -> String {
    let waiting = plan.waiting.as_ref().map(|waiting| (waiting.reason(), waiting.is_stalled()));
    PlanLine::of(plan.actions.iter().map(word).collect(), waiting).text()
}

pub(super) fn word(action: &Action) -> String {
    let applied = |what: &str, uid: &Option<String>| format!("{what} {}", uid.as_deref().unwrap_or("new"));
    match action {
        Action::AddFinalizer => "add finalizer".to_owned(),
        Action::CreateCredentials(_) => "create credentials".to_owned(),
        Action::PrepareNextPassword(_, generation) => format!("prepare password {generation}"),
        Action::GiveNextPassword(access, _) => format!("give {access:?} the next password"),
        Action::PutNextPasswordInForce(..) => "put the next password in force".to_owned(),
        Action::StopForNextPassword(uid, ..) => format!("stop {uid} for the next password"),
        Action::RecordSettings(record) => match (&record.change, &record.rejected) {
            (Some(change), _) => format!("record {:?} [{}]", change.step, change.loaded.join(" ")),
            (None, Some(rejected)) => format!("reject: {}", rejected.message),
            (None, None) => "record nothing".to_owned(),
        },
        Action::ReloadSettings(load) => {
            let keys: Vec<&str> = load.change.keys().map(String::as_str).collect();
            let otherwise = if load.otherwise.is_some() { " or restart" } else { "" };
            format!("load {}{otherwise}", keys.join(" "))
        }
        Action::LoadCertificate(it) => format!("load certificate {} of {:?}", it.secret, it.access),
        Action::SwitchLog(_, access) => format!("switch the log of {access:?}"),
        Action::BeginFlush(flush) => format!("flush {:?} by {}", flush.access, flush.statement),
        Action::TakeRecord(record) => format!("hold {}", record.name_any()),
        Action::RecordRestore(restored) => format!("restore {}", restored.snapshot_id),
        Action::RecordRestoreInPlace(record) => {
            let what = if record.went_back.is_none() { "restore in place" } else { "go back from" };
            format!("{what} {}", record.backup.snapshot_id)
        }
        Action::RecordUpgrade(record) => match (&record.went_back, &record.snapshot_id) {
            (Some(back), _) => {
                format!("go back from an upgrade, to the data of before: {}", back.data_restored)
            }
            (None, Some(id)) => format!("upgrade with {id}"),
            (None, None) => "begin an upgrade".to_owned(),
        },
        Action::CreateBackup(backup) => format!("create Backup {}", backup.name_any()),
        Action::RecordData(_) => "record data".to_owned(),
        Action::ReleaseRecord(record) => format!("give back {}", record.name_any()),
        Action::TakeCredentials(_, held) => format!("take credentials of {}", held.0.name_any()),
        Action::DeleteRetainedCredentials(name, uid) => format!("delete kept {name} {uid}"),
        Action::RecordRelease(release) => format!("record release, as found {}", release.as_found),
        Action::ForgetRelease => "forget release".to_owned(),
        Action::ReleaseStatefulSet(object, _) => applied("release", &object.metadata.uid),
        Action::ReleaseChild(kind, live, _) => format!("release {kind:?} {}", live.name.as_deref().unwrap()),
        Action::AdoptStatefulSet(object, _) => applied("adopt", &object.metadata.uid),
        Action::RecordAdoption(_) => "record adoption".to_owned(),
        Action::GoBack(back) => format!("go back, {:?}", back.why),
        Action::GoBackToServed(back) => format!("go back from {:?}", back.engine.version),
        Action::ReportAltered(what, object) => format!("report {what:?} {}", object.name),
        Action::ApplyConfigMap(object) => applied("apply config", &object.metadata.uid),
        Action::ApplyService(object) => applied("apply service", &object.metadata.uid),
        Action::ApplyNetworkPolicy(object) => applied("apply policy", &object.metadata.uid),
        Action::ApplyDisruptionBudget(object) => applied("apply budget", &object.metadata.uid),
        Action::CreateApplicationUser(user) => format!("create user {}", user.name_any()),
        Action::UpdateApplicationUser(uid, spec) => format!("update user {uid} {spec}"),
        Action::CreateServiceAccount(object) => applied("create account", &object.metadata.uid),
        Action::MendServiceAccount(patch) => format!("mend account {patch}"),
        Action::ApplyStatefulSet(object) => {
            format!(
                "{} x{}",
                applied("apply set", &object.metadata.uid),
                object.spec.as_ref().unwrap().replicas.unwrap()
            )
        }
        Action::RestoreStatefulSet(object) => {
            let replicas = object.spec.as_ref().unwrap().replicas.unwrap();
            format!("{} x{replicas}", applied("restore set", &object.metadata.uid))
        }
        Action::ChangeImageSource(object) => applied("change image of", &object.metadata.uid),
        Action::Scale(uid, replicas) => format!("scale {uid} to {replicas}"),
        Action::CreateNode(ordinal, node, replacement) => {
            let place =
                replacement.as_ref().map(|it| format!(" for {}: {}", it.from, it.cause)).unwrap_or_default();
            format!(
                "create node {ordinal} {} in {}{place}",
                node.name_any(),
                node.spec.zone.as_deref().unwrap_or("any zone")
            )
        }
        Action::UpdateNode(name, uid, patch) => format!("update {name} {uid} {patch}"),
        Action::DeleteNode(name, uid, _) => format!("delete {name} {uid}"),
        Action::RecordZone(zone) => format!("record {zone}"),
        Action::CreateVolume(volume) => format!("create volume {} in {}", volume.spec.size, volume.spec.zone),
        Action::UpdateVolume(uid, patch) => format!("update {uid} {patch}"),
        Action::DeleteVolume(uid) | Action::DeleteCredentials(uid) => format!("delete {uid}"),
        Action::Label(name, uid, None) => format!("label {name} {uid}"),
        Action::Label(name, _, Some(moved)) => format!("label {name}, moved {}", moved.message()),
        Action::Unlabel(name, uid) => format!("unlabel {name} {uid}"),
        Action::Relabel(name, uid, former) => format!("relabel {name} {uid} {former}"),
        Action::ReplacePod(name, uid, None, why) => format!("replace {name} {uid}: {}", why.message()),
        Action::ReplacePod(name, uid, Some(version), why) => {
            format!("replace {name} {uid} of version {version}: {}", why.message())
        }
        Action::RecordNotStarting(record) => {
            format!("record {} pods, the last {}", record.pods, record.pod_uid)
        }
        Action::FreeClaim(claim) => format!("free {}", claim.name_any()),
        Action::KeepCredentials(held) => format!("keep {}", held.0.name_any()),
        Action::DeleteChild(kind, name, _) => format!("delete {kind:?} {name}"),
        Action::RemoveFinalizer => "remove finalizer".to_owned(),
    }
}
