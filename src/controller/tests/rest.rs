//! When the model of a life is at rest.

/// So many equal plans without an action, each after what the one before waited for, are rest: longer than
/// the look-ups of a proof of absence take.
const REST: usize = 8;

/// The last plans of a life.
#[expect(clippy::option_option, reason = "a plan may wait for nothing, and there may be none yet")]
pub struct Rest<Wait> {
    waiting: Option<Option<Wait>>,
    equal: usize,
}

impl<Wait: Clone + PartialEq> Rest<Wait> {
    /// Before the first plan.
    pub fn new() -> Self {
        Self { waiting: None, equal: 0 }
    }

    /// Takes the next plan: what it waits for, and whether it is one of rest, with no action, while nothing
    /// moves and nothing happens any more. Returns whether the life is at rest.
    pub fn is_reached(&mut self, waiting: Option<&Wait>, is_quiet: bool) -> bool {
        let is_equal = is_quiet && self.waiting.as_ref().map(Option::as_ref) == Some(waiting);
        self.equal = if is_equal { self.equal + 1 } else { 0 };
        self.waiting = Some(waiting.cloned());
        self.equal >= REST
    }
}
