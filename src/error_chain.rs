//! Prints an error with all its causes in one line, for logs and messages.

use std::error::Error as StdError;
use std::fmt::{self, Display};

/// An error with all its causes, in one line.
pub struct Chain<'a>(pub &'a (dyn StdError + 'static));

impl Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.0.to_string();
        f.write_str(&said)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            // Some errors print their cause themselves.
            let text = match error.downcast_ref::<kube::Error>() {
                // The API server's own sentence, without the rest of its answer.
                Some(kube::Error::Api(status)) => status.message.clone(),
                Some(_) | None => error.to_string(),
            };
            if !said.contains(&text) {
                write!(f, ": {text}")?;
                said = text;
            }
            cause = error.source();
        }
        Ok(())
    }
}
