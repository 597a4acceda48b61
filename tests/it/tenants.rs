//! Tenants that share one cluster, one operator and one AWS account: what one does must not reach the other's
//! databases, and what each may do the platform team decides.

mod access;
mod admission;
mod adopted;
pub mod alone;
mod altered;
mod contract;
mod images;
mod left_behind;
mod protection;
mod quota;
mod recreated;
mod release;
