//! A mistake in user data: a value. Pure.

use super::form::{Form, Platform};

/// The most user data that EC2 takes, in bytes (EC2 user guide, "Run commands when you launch an EC2 instance
/// with user data input").
pub const LONGEST_USER_DATA: usize = 16_384;

/// The fewest pods that a machine must take: the database's, the EBS CSI driver's, the network plugin's.
pub const FEWEST_PODS: i64 = 3;

/// A mistake in user data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum Mistake {
    /// The user data has more bytes than EC2 takes.
    TooLong(usize),
    /// The user data is not of the form that the image reads.
    Form {
        /// The image.
        platform: Platform,
        /// The form of the user data.
        form: Form,
    },
    /// The user data cannot be read as what it is.
    Syntax {
        /// What it is.
        form: Form,
        /// What is wrong, and where.
        error: String,
    },
    /// The user data lacks these fields, without which no machine of this image joins.
    Incomplete(Vec<String>),
    /// The user data gives the label of a database's machine this value.
    Label(String),
    /// The user data sets a taint that no pod of a database tolerates (`key=value:effect`).
    Taint(String),
    /// The user data allows so few pods that the database's has no place.
    MaxPods(i64),
}
