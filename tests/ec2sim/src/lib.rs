//! A strict simulator of the part of EC2 and EBS that an operator of single machines lives on.
//!
//! One pure model with two faces: [`Simulator::serve`] speaks EC2's Query protocol, so that any AWS SDK works
//! against it, and [`Simulator::call`] is the same without a network. It knows nothing of who uses it.
//!
//! ```text
//!   AWS SDKs ──► wire ──┐
//!                       ├─► simulator: clock, faults, policies, journal, kept state ──► model: pure
//!   tests ─────► call ──┘
//! ```
//!
//! [`verify`] is a client that asks any EC2, this one or AWS', whether it behaves like that.
//!
//! It is only worth what it refuses: each behaviour that it vouches for is a [`Truth`], with a test that
//! fails when the behaviour is taken out. What it does not model is refused with `UnsupportedOperation`,
//! never answered with a friendly success.

mod action;
mod authorization;
mod call_facts;
mod clock;
mod fault;
mod faults;
mod iam;
mod journal;
mod kept;
mod model;
mod options;
mod outside;
mod params;
mod refusal;
mod response;
mod simulator;
mod truths;
pub mod verify;
mod view;
mod wildcard;
mod wire;
mod world;

pub use action::reads;
pub use fault::{Effect, Fault, TagMatch};
pub use iam::{Policy, PolicyError};
pub use journal::{Fate, JournalEntry};
pub use model::{Model, Phase, Transition, rates};
pub use options::{Clock, Delays, Limits, Options, Visibility};
pub use outside::{Outside, OutsideAction, Sight};
pub use refusal::{ApiError, Refusal};
pub use response::{Page, Reservation, Response, StateChange, SubnetView, TagView};
pub use simulator::Simulator;
pub use truths::{Truth, Truths};
pub use view::{
    AttachmentState, AttachmentView, Health, Initialization, InitializationProgress, InstanceState,
    InstanceView, MetadataOptions, ModificationState, ModificationView, ScheduledEvent, Shape, SnapshotState,
    SnapshotView, StateReason, Tags, VolumeState, VolumeStatusView, VolumeView,
};
pub use world::{Image, InstanceType, SecurityGroup, Subnet, World, Zone};
