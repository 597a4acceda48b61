//! The story of a life: what was written, called and done, in order, in a line each.

use ec2sim::JournalEntry;
use freehold_rig::Write;

use super::house::House;

impl House {
    /// The whole story.
    pub fn story(&self) -> String {
        let writes = self.server.journal().into_iter().filter(is_told).map(|it| (it.at, told_write(&it)));
        let calls = self
            .ec2
            .journal()
            .into_iter()
            .filter(|it| !ec2sim::reads(&it.action))
            .map(|it| (it.time, told_call(&it)));
        let deeds = self.chaos.deeds().into_iter();
        let mut lines: Vec<_> = writes.chain(calls).chain(deeds).collect();
        lines.sort_by_key(|(at, _)| *at);
        let first = lines.first().map(|(at, _)| *at).unwrap_or_default();
        let told = lines.into_iter().map(|(at, line)| {
            let seconds = at.duration_since(first).as_secs_f64();
            format!("{seconds:>10.3}  {line}\n")
        });
        format!("seed {}\n{}", self.seed, told.collect::<String>())
    }
}

/// Leases, events and refused writes of the cluster's own players tell nothing.
fn is_told(write: &Write) -> bool {
    let kinds = ["leases.coordination.k8s.io", "events.events.k8s.io"];
    !kinds.contains(&write.resource.as_str())
        && (write.after != write.before || write.caller.starts_with("operator"))
}

fn told_write(write: &Write) -> String {
    // What is random in a Secret is no decision.
    let body = if write.resource == "secrets" { String::new() } else { write.body.to_string() };
    let short: String = body.chars().take(200).collect();
    let part = if write.subresource.is_empty() { String::new() } else { format!("/{}", write.subresource) };
    format!(
        "{} {:?} {}{part} {}/{} {}: {short}",
        write.caller, write.verb, write.resource, write.namespace, write.name, write.code
    )
}

fn told_call(entry: &JournalEntry) -> String {
    let late = entry.late_of.map(|sent| format!(", sent as {sent}")).unwrap_or_default();
    format!(
        "EC2 {} {} {:?}: {} {:?}{late}",
        entry.caller, entry.action, entry.resources, entry.answer, entry.fate
    )
}
