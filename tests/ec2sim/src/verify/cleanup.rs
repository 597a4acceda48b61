//! Removes what a run has made.

use std::time::Duration;

use super::{
    answer::Stop,
    inventory::Inventory,
    target::{Target, say},
    wire::CallError,
};

/// How long the list of a run's resources must stay empty: a new one may be seen late.
const STAYS_EMPTY: Duration = Duration::from_secs(20);

/// Begins to remove what the last check has made, as far as it is allowed now; the rest is for
/// [`everything`].
pub(super) async fn begin(ec2: &Target) {
    let made = ec2.take_made();
    for id in &made {
        if id.starts_with("i-") {
            remove(ec2, id).await;
        }
    }
    for id in made.iter().filter(|id| !id.starts_with("i-")) {
        remove(ec2, id).await;
    }
}

/// Requests the removal of a resource; the refusal. At first none matters: what is left is listed, and
/// removed again.
async fn remove(ec2: &Target, id: &str) -> Option<CallError> {
    let (action, key) = match id.split_once('-') {
        Some(("i", _)) => ("TerminateInstances", "InstanceId.1"),
        Some(("vol", _)) => ("DeleteVolume", "VolumeId"),
        Some(("snap", _)) => ("DeleteSnapshot", "SnapshotId"),
        _ => return None,
    };
    ec2.call(action, &[(key, id)]).await.err()
}

/// Removes everything that has the run's tag, and waits until no list shows it any more; what is left if
/// that is not reached, each with the reason.
pub(super) async fn everything(ec2: &Target) -> Vec<String> {
    begin(ec2).await;
    let removed =
        ec2.until("that nothing of this run is left", async || Ok(is_empty(ec2).await.then_some(()))).await;
    match (removed, Inventory::of_run(ec2).await) {
        (Ok(()), _) => Vec::new(),
        (Err(_), Ok(inventory)) => {
            let mut left = Vec::new();
            for (id, state) in inventory.left() {
                let why =
                    remove(ec2, id).await.map(|error| format!(", {}", error.code())).unwrap_or_default();
                left.push(format!("{id} ({state}{why})"));
            }
            left
        }
        (Err(Stop::Differs(why) | Stop::NotAsked(why)), Err(_)) => vec![format!("not known: {why}")],
    }
}

/// Whether nothing is there; what is there is requested to be removed. An answer that does not come says
/// nothing, and the next look decides.
async fn is_empty(ec2: &Target) -> bool {
    if !is_empty_now(ec2).await {
        return false;
    }
    if ec2.is_paid {
        say(&format!("  nothing is listed; listed again in {} s", STAYS_EMPTY.as_secs()));
        tokio::time::sleep(STAYS_EMPTY).await;
    }
    is_empty_now(ec2).await
}

async fn is_empty_now(ec2: &Target) -> bool {
    let Ok(inventory) = Inventory::of_run(ec2).await else {
        return false;
    };
    for (id, state) in inventory.left() {
        if !["shutting-down", "deleting", "in-use"].contains(&state.as_str()) {
            remove(ec2, id).await;
        }
    }
    inventory.left().next().is_none()
}
