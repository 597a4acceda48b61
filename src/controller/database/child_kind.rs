//! The kinds of a Database's children that are neither Node, Volume nor Secret.

/// A kind of a Database's children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildKind {
    /// The StatefulSet.
    StatefulSet,
    /// The Service.
    Service,
    /// The ConfigMap.
    ConfigMap,
    /// The NetworkPolicy.
    NetworkPolicy,
    /// The PodDisruptionBudget.
    PodDisruptionBudget,
    /// The ServiceAccount.
    ServiceAccount,
    /// The DatabaseUser of the application.
    DatabaseUser,
}
