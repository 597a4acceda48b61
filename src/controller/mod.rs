//! The six controllers, each of the same five steps: observe, plan, act, status, remember.

pub mod backup;
pub mod backup_schedule;
pub mod blocker;
pub mod call_blocked;
pub mod conditions;
pub mod contents;
pub mod copies;
pub mod creation;
pub mod database;
pub mod database_user;
pub mod disk_usage;
pub mod engine_access;
pub mod engine_container;
pub mod layout;
pub mod memory;
pub mod messages;
pub mod node;
pub mod node_class;
pub mod pass;
pub mod pattern;
pub mod recurrence;
pub mod restoring;
pub mod retention;
pub mod safety;
pub mod unclaimed;
pub mod volume;

#[cfg(test)]
pub(crate) mod tests {
    pub mod answers;
    pub mod facts;
    pub mod golden;
    pub mod plan_line;
    pub mod rest;
}
