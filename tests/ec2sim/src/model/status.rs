//! `DescribeInstanceStatus`: checks and scheduled events.

use super::{
    Effects, Model,
    lists::{Query, USUAL},
};
use crate::{InstanceState, InstanceView, Refusal, Response, Truth, params::Reader};

const FILTERS: [&str; 11] = [
    "availability-zone",
    "event.code",
    "event.description",
    "event.instance-event-id",
    "instance-state-code",
    "instance-state-name",
    "instance-status.reachability",
    "instance-status.status",
    "system-status.reachability",
    "system-status.status",
    "event.not-before",
];

impl Model {
    pub(super) fn describe_instance_status(
        &self,
        r: &mut Reader,
        effects: &Effects,
    ) -> Result<Response, Refusal> {
        let query = Query::read(r, "InstanceId", &FILTERS, &USUAL, &self.rules.truths)?;
        let all = r.flag("IncludeAllInstances")?;
        let dry_run = r.flag("DryRun")?;
        r.finish()?;
        if dry_run {
            return Err(Refusal::dry_run());
        }
        let mut page = self.instance_page(&query, effects, status_values)?;
        page.items.retain(|view| all || view.state == InstanceState::Running);
        for view in &mut page.items {
            if !self.holds(Truth::ScheduledEvents) {
                view.events.clear();
            }
        }
        Ok(Response::InstanceStatuses(page))
    }
}

fn status_values(view: &InstanceView, name: &str) -> Vec<String> {
    let one = |value: &str| vec![value.to_owned()];
    match name {
        "availability-zone" => one(&view.zone),
        "event.code" => view.events.iter().map(|event| event.code.clone()).collect(),
        "event.description" => view.events.iter().map(|event| event.description.clone()).collect(),
        "event.instance-event-id" => view.events.iter().map(|event| event.id.clone()).collect(),
        "event.not-before" => view.events.iter().map(|event| event.not_before.to_string()).collect(),
        "instance-state-code" => vec![view.state.code().to_string()],
        "instance-state-name" => one(view.state.as_str()),
        "instance-status.reachability" => one(view.instance_status.reachability()),
        "instance-status.status" => one(view.instance_status.as_str()),
        "system-status.reachability" => one(view.system_status.reachability()),
        "system-status.status" => one(view.system_status.as_str()),
        _ => Vec::new(),
    }
}
