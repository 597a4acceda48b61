//! The Database controller.

pub mod build;
pub mod password;
