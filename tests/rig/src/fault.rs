//! What a driver can do to a request: refuse it, delay it, or lose its answer.

use std::time::Duration;

use super::request::Call;

/// What happens to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is refused with this HTTP status (409, 410, 429, 500, 503, 504), and is not carried out.
    Refuse {
        /// The HTTP status.
        code: u16,
        /// After how many seconds the client may come again.
        retry_after: Option<u32>,
    },
    /// It is carried out, and the client gets no answer but a broken connection.
    LoseAnswer,
    /// The connection breaks before it is carried out.
    LoseRequest,
    /// It is carried out after this time.
    DelayRequest(Duration),
    /// It is carried out after this time, whether or not the client still waits for it: a request that was
    /// sent when its process was stopped.
    ArriveLate(Duration),
    /// It is carried out at once, and is answered after this time.
    DelayAnswer(Duration),
}

/// Decides about each request, in the order in which the requests arrive. None lets it pass.
pub type Decide = Box<dyn FnMut(&Call) -> Option<Fault> + Send>;
