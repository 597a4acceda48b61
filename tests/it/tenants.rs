//! Two tenants on one cluster: what one does must not reach the other's databases.

mod alone;
