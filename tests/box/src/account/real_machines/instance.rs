//! One instance's machine: what EC2 shows of the instance is compared with what the machine does, again and
//! again.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use ec2sim::{Fate, Health, InstanceState, InstanceView, Outside, Simulator};
use k8s_openapi::jiff::Timestamp;

use super::shared::Shared;
use crate::base::error_chain::chain;
use crate::machines::machine::{Console, Machine, Spec};

/// How long a shut-down may take inside the machine; EC2's own time for it, which ends it too, is the
/// simulator's.
const GRACE: Duration = Duration::from_secs(60);

/// How long the machines may take to shut down at the end of a site.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// The reason with which EC2 stops an instance on request.
const ASKED_FOR: &str = "Client.UserInitiatedShutdown";

/// What EC2 shows, as far as it matters to a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wish {
    /// To run, and which boot this is.
    Run { boot: String },
    /// To shut down.
    ShutDown,
    /// To be without power; its disk stays.
    Off,
    /// To be gone.
    Gone,
}

/// Runs until the instance is gone or the site stops.
pub async fn follow(shared: Arc<Shared>, id: String) {
    let mut changes = shared.simulator.changes();
    // The boot that was begun; a machine whose power was cut behind EC2's back stays dark until the next.
    let mut begun: Option<String> = None;
    let mut is_hung = false;
    while !shared.stop.is_cancelled() {
        changes.mark_unchanged();
        let view = shared.simulator.instance(&id);
        let wish = wish(&shared.simulator, view.as_ref());
        match (&wish, view) {
            (Wish::Run { boot }, Some(view)) if begun.as_ref() != Some(boot) => {
                // Given up when EC2 changes its mind; then it is looked at anew.
                tokio::select! {
                    () = start(&shared, &view, is_hung) => {
                        begun = Some(boot.clone());
                        is_hung = false;
                    }
                    () = changed(&shared, &id, &wish) => {}
                }
                continue;
            }
            (Wish::Run { .. }, Some(view)) => follow_health(&shared, &view, &mut is_hung).await,
            // It does not hear that it should.
            (Wish::ShutDown, _) if is_hung => {}
            (Wish::ShutDown, _) => {
                begun = None;
                tokio::select! {
                    () = shared.shut_down(&id, GRACE) => {}
                    () = changed(&shared, &id, &wish) => continue,
                }
            }
            (Wish::Off, _) => {
                begun = None;
                is_hung = false;
                shared.cut_power(&id).await;
            }
            (Wish::Gone | Wish::Run { .. }, _) => {
                shared.cut_power(&id).await;
                shared.free_slot(&id);
                remove_disk(&shared, &id).await;
                return;
            }
        }
        tokio::select! {
            _ = changes.changed() => {}
            () = shared.stop.cancelled() => {}
        }
    }
    shared.shut_down(&id, STOP_LIMIT).await;
}

fn wish(simulator: &Simulator, view: Option<&InstanceView>) -> Wish {
    let Some(view) = view else { return Wish::Gone };
    match view.state {
        InstanceState::Running => Wish::Run { boot: boot_id(view) },
        InstanceState::Terminated => Wish::Gone,
        InstanceState::Stopping
            if view.state_reason.as_ref().is_some_and(|reason| reason.code == ASKED_FOR) =>
        {
            Wish::ShutDown
        }
        InstanceState::ShuttingDown if was_asked_to_terminate(simulator, &view.id) => Wish::ShutDown,
        // What happens behind the owner's back takes the power away.
        InstanceState::Pending
        | InstanceState::Stopping
        | InstanceState::Stopped
        | InstanceState::ShuttingDown => Wish::Off,
    }
}

/// Tells one boot from the next.
fn boot_id(view: &InstanceView) -> String {
    format!("{}-{}", view.running_at.map(Timestamp::as_millisecond).unwrap_or_default(), view.reboots)
}

/// EC2 gives the same reason for every cause; the journal has the call.
fn was_asked_to_terminate(simulator: &Simulator, id: &str) -> bool {
    simulator.journal().iter().any(|entry| {
        entry.action == "TerminateInstances"
            && matches!(entry.fate, Fate::Committed | Fate::Lost)
            && entry.resources.iter().any(|resource| resource == id)
    })
}

/// Returns when EC2 shows something else, or the site stops.
async fn changed(shared: &Shared, id: &str, wish_before: &Wish) {
    let mut changes = shared.simulator.changes();
    loop {
        changes.mark_unchanged();
        if wish(&shared.simulator, shared.simulator.instance(id).as_ref()) != *wish_before {
            return;
        }
        tokio::select! {
            _ = changes.changed() => {}
            () = shared.stop.cancelled() => return,
        }
    }
}

async fn remove_disk(shared: &Shared, id: &str) {
    let folder = shared.folder.join(id);
    // A disk may have a hundred thousand files.
    let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
    match removed {
        Ok(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(instance = id, %error, "could not remove the disk of a machine");
        }
        Ok(_) | Err(_) => {}
    }
}

/// Boots the machine, after a shut-down if it runs: a reboot. One that hangs hears nothing; EC2 then reboots
/// it the hard way.
async fn start(shared: &Shared, view: &InstanceView, is_hung: bool) {
    if is_hung {
        shared.cut_power(&view.id).await;
    } else {
        shared.shut_down(&view.id, GRACE).await;
    }
    tokio::time::sleep(shared.boot).await;
    let console = console(shared, &view.id);
    let spec = match view.private_ip.parse::<Ipv4Addr>() {
        Ok(address) => spec(shared, view, address),
        Err(error) => return console(&format!("the machine has no address: {error}")),
    };
    match Machine::boot(shared.resources.clone(), spec, console.clone()).await {
        Ok(machine) => shared.runs(machine),
        Err(error) => {
            tracing::error!(instance = view.id, error = chain(&error), "a machine does not boot");
            console(&chain(&error));
        }
    }
}

fn spec(shared: &Shared, view: &InstanceView, private_ip: Ipv4Addr) -> Spec {
    Spec {
        instance: view.id.clone(),
        region: view.zone.trim_end_matches(|letter: char| letter.is_ascii_lowercase()).to_owned(),
        zone: view.zone.clone(),
        instance_type: view.instance_type.clone(),
        private_ip,
        private_dns: view.private_dns.clone(),
        user_data: view.user_data.clone(),
        disk: shared.folder.join(&view.id),
        slot: shared.slot(&view.id),
    }
}

fn console(shared: &Shared, id: &str) -> Console {
    let (simulator, id) = (shared.simulator.clone(), id.to_owned());
    Arc::new(move |line: &str| {
        tracing::debug!(instance = id, line, "console");
        let _ = simulator.outside(&Outside::Console(line.to_owned()).to(&id));
    })
}

/// A machine whose status checks fail hangs; when they pass again it goes on where it was.
async fn follow_health(shared: &Shared, view: &InstanceView, is_hung: &mut bool) {
    let hangs = view.instance_status == Health::Impaired || view.system_status == Health::Impaired;
    if hangs == *is_hung {
        return;
    }
    *is_hung = hangs;
    let Some(machine) = shared.machine(&view.id) else { return };
    if hangs { machine.freeze().await } else { machine.thaw().await }
}
