//! One control plane for all tests of a test binary, on a runtime of its own.
//!
//! A test's own runtime ends with the test and takes its tasks and connections with it; the control plane
//! must outlive each. No code stops it at the end, because a test binary has no end to which code could be
//! attached: the pipe of each process ends that process ([`crate::base::process`]).

use std::future::Future;
use std::sync::{Arc, LazyLock};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::OnceCell;

use crate::cluster::control_plane::{self, ControlPlane, ControlPlaneOptions};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread().enable_all().build().expect(
        "a runtime needs nothing but threads, without \
        which no test runs either",
    )
});

static CONTROL_PLANE: OnceCell<Arc<ControlPlane>> = OnceCell::const_new();

/// Runs a test on the shared runtime.
pub fn run<F: Future>(test: F) -> F::Output {
    RUNTIME.block_on(test)
}

/// The shared control plane; the first caller starts it. Use inside [`run`] only.
pub async fn control_plane() -> Result<&'static Arc<ControlPlane>, control_plane::Error> {
    CONTROL_PLANE
        .get_or_try_init(|| async {
            Ok(Arc::new(ControlPlane::start(ControlPlaneOptions::named("tests")).await?))
        })
        .await
}
