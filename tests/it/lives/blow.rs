//! What becomes of an operator at one of its requests.

use std::time::Duration;

/// What becomes of an operator at a request that may change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter)]
pub enum Blow {
    /// It is killed, and the request is not sent any more.
    Before,
    /// It is killed; the request is carried out, and its answer is lost.
    Lost,
    /// The answer arrives, and then it is killed.
    After,
    /// The request is carried out, and its answer is lost; nothing becomes of the operator.
    Unanswered,
    /// Its process is stopped with the request on its way (SIGSTOP), and goes on later.
    Stopped,
    /// The request is carried out; from then on nothing passes between it and the API server for a while.
    /// EC2 still answers.
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
