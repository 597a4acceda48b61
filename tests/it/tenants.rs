//! Tenants that share one cluster, one operator and one AWS account: what one does must not reach the other's
//! databases.

mod admission;
mod alone;
mod quota;
