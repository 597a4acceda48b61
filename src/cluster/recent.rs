//! Answers of the API server that are used again for a moment, of what no watch shows.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long an answer is used again.
const MOMENT: Duration = Duration::from_secs(60);

/// The answers, by what was asked. A restart forgets them: the first pass of each object asks anew.
#[derive(Debug)]
pub struct Recent<T> {
    moment: Duration,
    answers: Mutex<HashMap<String, (Instant, T)>>,
}

impl<T: Clone> Recent<T> {
    /// Nothing was asked yet. Time passes so many times as fast as it does in production.
    pub fn new(time_scale: f64) -> Self {
        Self { moment: MOMENT.div_f64(time_scale), answers: Mutex::default() }
    }

    /// How long an answer is used again.
    pub fn moment(&self) -> Duration {
        self.moment
    }

    /// The answer, if it is recent.
    pub fn get(&self, key: &str) -> Option<T> {
        self.younger(key, self.moment)
    }

    /// The last answer, also where it is asked anew just now: to show it.
    pub fn last(&self, key: &str) -> Option<T> {
        self.younger(key, self.kept())
    }

    fn younger(&self, key: &str, age: Duration) -> Option<T> {
        let answers = self.answers.lock();
        answers.get(key).filter(|(at, _)| at.elapsed() < age).map(|(_, answer)| answer.clone())
    }

    /// How long an answer can be shown.
    fn kept(&self) -> Duration {
        self.moment * 2
    }

    /// For how much longer the answer is used again; zero when it is not recent.
    pub fn left(&self, key: &str) -> Duration {
        let answers = self.answers.lock();
        answers.get(key).map_or(Duration::ZERO, |(at, _)| self.moment.saturating_sub(at.elapsed()))
    }

    /// This was just answered; `None`: nothing that may be used again.
    pub fn put(&self, key: &str, answer: Option<T>) {
        let mut answers = self.answers.lock();
        // What nothing asks for any more has no other end.
        answers.retain(|_, (at, _)| at.elapsed() < self.kept());
        match answer {
            Some(answer) => drop(answers.insert(key.to_owned(), (Instant::now(), answer))),
            None => drop(answers.remove(key)),
        }
    }
}

/// What an object of a namespace is asked for by.
pub fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_used_again_for_a_minute() {
        let recent = Recent::new(1.0);
        recent.put("a", Some(1));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!((recent.get("a"), recent.left("a")), (Some(1), Duration::from_secs(1)));
        assert_eq!((recent.get("b"), recent.left("b")), (None, Duration::ZERO));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((recent.get("a"), recent.last("a")), (None, Some(1)));
        recent.put("b", Some(2));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(recent.last("a"), Some(1), "another answer is no end of this one");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(recent.last("a"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_gone_is_forgotten_at_once() {
        let recent = Recent::new(1.0);
        recent.put("a", Some(1));
        recent.put("a", None);
        assert_eq!(recent.get("a"), None);
    }
}
