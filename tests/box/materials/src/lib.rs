//! What a box is made of: its programs, built from pinned Go modules, and the images of its machines; and
//! what a host must have for it. Nothing here needs the operator or the AWS SDK, so all of it can be made
//! while those are compiled.

pub mod base;
pub mod helm;
pub mod images;
pub mod node_kind;
pub mod real;
pub mod release;
pub mod requirements;
pub mod tools;
