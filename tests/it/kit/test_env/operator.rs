//! The operator of a test environment as a process: started, killed where the tap stops it, stopped.

use std::path::PathBuf;

use tokio::sync::oneshot::Receiver;

use super::TestEnv;
use crate::kit::process::Operator;
use crate::kit::tap::Which;
use crate::kit::wait::LIMIT;

impl TestEnv {
    /// Starts the operator.
    pub fn start_operator(&mut self) {
        self.starts += 1;
        let name = format!("operator-{}", self.starts);
        self.operator = Some(Operator::start(
            self.control_plane.folder(),
            self.folder.path(),
            &name,
            &self.settings,
            &self.environment,
        ));
    }

    /// SIGKILL.
    pub fn kill_operator(&mut self) {
        self.operator.take().unwrap().kill();
    }

    /// Waits until the operator has come to where the tap stops it.
    pub async fn reaches(&self, which: Which, reached: Receiver<()>) {
        let heard = tokio::time::timeout(LIMIT, reached).await;
        assert!(heard.is_ok_and(|heard| heard.is_ok()), "the operator never came to {which:?}");
    }

    /// SIGKILL as soon as the operator has come to where the tap stops it.
    pub async fn kill_at(&mut self, which: Which, reached: Receiver<()>) {
        self.reaches(which, reached).await;
        self.kill_operator();
        self.tap.thaw();
    }

    /// SIGTERM; gives whether the end was with 0, and the operator's whole log.
    pub async fn stop_operator(&mut self) -> (bool, String) {
        self.operator.take().unwrap().stop().await
    }

    /// The running operator, to see whether it has ended.
    pub fn operator_mut(&mut self) -> &mut Operator {
        self.operator.as_mut().unwrap()
    }

    /// The running operator.
    pub fn operator(&self) -> &Operator {
        self.operator.as_ref().unwrap()
    }

    /// Where the log of the operator's last start is.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.path().join(format!("operator-{}.log", self.starts))
    }
}
