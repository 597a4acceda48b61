//! The settings by which kubelets are asked how much of a file system is used.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::cluster::kubelet::account::Account;

/// How kubelets are asked (spec.storage.autoGrow).
#[derive(Args, Clone, Debug, Default, Serialize)]
pub struct Kubelets {
    /// The ServiceAccount, NAMESPACE/NAME, as which kubelets are asked how much of a file system is used
    /// (spec.storage.autoGrow). It needs the right to get nodes/stats and must have no other, since each
    /// machine is given its token. Default: none, and kubelets are not asked.
    #[arg(long, env = "FREEHOLD_KUBELET_ACCOUNT", value_name = "NAMESPACE/NAME")]
    pub kubelet_account: Option<Account>,

    /// The file with the certificate authority of the kubelets' certificates, where that is not the cluster's
    /// own.
    #[arg(long, env = "FREEHOLD_KUBELET_CERTIFICATE_AUTHORITY", value_name = "FILE")]
    pub kubelet_certificate_authority: Option<PathBuf>,
}
