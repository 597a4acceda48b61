//! The time of the objects' timestamps.

use std::sync::Arc;

use jiff::Timestamp;

/// Says what time it is.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// Any source of time.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Tokio's time, which a paused runtime steps, counted from `start`. To be called inside the runtime.
    pub fn of_tokio(start: Timestamp) -> Self {
        let began = tokio::time::Instant::now();
        Self::new(move || start + began.elapsed())
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// The time as the API server writes it, in whole seconds.
    pub fn stamp(&self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Clock").field(&self.now()).finish()
    }
}
