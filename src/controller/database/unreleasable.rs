//! Why a deleted Database cannot release its database now, as data. Pure.

use super::object_name::ObjectName;

/// Why a database cannot be released now. It goes on as any other until then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum Unreleasable {
    /// It is paused: nothing runs that could go on.
    Paused,
    /// It has no machine yet.
    NoMachine,
    /// One Node takes the place of another.
    Moving {
        /// The Node that the database runs on.
        from: String,
        /// The other one.
        to: String,
    },
    /// A Node or Volume is not ready.
    NotReady {
        /// Which.
        object: ObjectName,
        /// The message of its condition Ready.
        message: Option<String>,
    },
    /// The claim of this name is being deleted, and goes with its pod.
    ClaimDeleted(String),
    /// The engine may have the next password already, which the Secret does not have in force.
    Rotating,
    /// The Service keeps clients out, since the database may go back to the data that it had.
    Closed,
    /// The pod of this name does not run on the machine of the Database.
    NoPod(String),
}
