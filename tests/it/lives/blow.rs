//! What becomes of an operator at one of its requests.

use std::time::Duration;

/// What becomes of an operator at a request that may change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
pub enum Blow {
    /// It is killed, and the request is not sent any more.
    #[strum(to_string = "killed before the request")]
    Before,
    /// It is killed; the request is carried out, and its answer is lost.
    #[strum(to_string = "killed, the answer on its way")]
    Lost,
    /// The answer arrives, and then it is killed.
    #[strum(to_string = "killed after the request")]
    After,
    /// The request is carried out, and its answer is lost; nothing becomes of the operator.
    #[strum(to_string = "only the answer is lost")]
    Unanswered,
    /// Its process is stopped with the request on its way (SIGSTOP), and goes on later.
    #[strum(to_string = "stopped (SIGSTOP)")]
    Stopped,
    /// The request is carried out; from then on nothing passes between it and the API server for a while.
    /// EC2 still answers.
    #[strum(to_string = "cut off from the API server")]
    CutOff,
}

/// A blow that is planned.
#[derive(Clone, Copy, Debug)]
pub struct Strike {
    /// At which of the operators' requests that may change something, from 1.
    pub number: usize,
    /// What becomes of the operator.
    pub blow: Blow,
    /// For how long it is away.
    pub away: Duration,
}
