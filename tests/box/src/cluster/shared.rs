//! One control plane for all tests of a test binary, on a runtime of its own.
//!
//! A test's own runtime ends with the test and takes its tasks and connections with it; the control plane
//! must outlive each. No code stops it at the end, because a test binary has no end to which code could be
//! attached: the pipe of each process ends that process ([`crate::base::process`]).

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
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

/// Runs a test on the shared runtime. A failed one shows its surroundings as it ends, and then what failed
/// once more: of a long log, a person reads the end.
pub fn run<F: Future>(test: F) -> F::Output {
    catch_unwind(AssertUnwindSafe(|| RUNTIME.block_on(test))).unwrap_or_else(|failed| {
        let message = panic_message(failed.as_ref());
        eprintln!("==== what failed\n{message}");
        resume_unwind(failed)
    })
}

/// The message of a panic.
pub fn panic_message(failed: &(dyn Any + Send)) -> &str {
    let formatted = failed.downcast_ref::<String>().map(String::as_str);
    formatted.or_else(|| failed.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

/// The shared control plane; the first caller starts it. Use inside [`run`] only.
pub async fn control_plane() -> Result<&'static Arc<ControlPlane>, control_plane::Error> {
    CONTROL_PLANE
        .get_or_try_init(|| async {
            Ok(Arc::new(ControlPlane::start(ControlPlaneOptions::named("tests")).await?))
        })
        .await
}
