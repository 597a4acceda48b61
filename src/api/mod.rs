//! What people write and read: the custom resources of `freehold.dev/v1alpha1`. Types only: no client, no
//! cloud, no clock.

pub mod backup;
pub mod backup_schedule;
pub mod condition;
pub mod creation;
pub mod database;
mod database_access;
mod database_adoption;
mod database_application_user;
mod database_auto_grow;
mod database_config;
mod database_engine;
mod database_resources;
mod database_restore;
mod database_served;
mod database_status;
mod database_storage;
mod database_tls;
mod database_upgrade;
pub mod database_user;
mod database_wal_archive;
pub mod event;
pub mod ids;
pub mod keys;
pub mod names;
pub mod node;
pub mod node_class;
mod node_class_images;
mod node_class_limits;
pub mod node_class_status;
pub mod size;
pub mod verification;
pub mod volume;

pub use backup::{Backup, BackupSpec, BackupStatus};
pub use backup_schedule::{BackupSchedule, BackupScheduleSpec, BackupScheduleStatus};
pub use condition::{ConditionType, Reason};
pub use database::{Database, DatabaseSpec, DatabaseStatus, DeletionPolicy};
pub use database_user::{DatabaseUser, DatabaseUserSpec, DatabaseUserStatus};
pub use event::EventReason;
pub use ids::{ClientToken, InstanceId, SnapshotId, VolumeId};
pub use node::{Node, NodeSpec, NodeStatus};
pub use node_class::{NodeClass, NodeClassSpec};
pub use node_class_status::NodeClassStatus;
pub use size::Size;
pub use volume::{Volume, VolumeSpec, VolumeStatus};
