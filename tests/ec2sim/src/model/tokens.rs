//! Client tokens: what was made with them, for whom they are refused, when they are forgotten.

use super::{Model, records::TokenRecord};
use crate::{InstanceState, Refusal, Truth, params::Reader};

/// The most characters that a token may have (EC2 developer guide, "Ensuring idempotency").
const LONGEST: usize = 64;

impl Model {
    /// The token of a request. Without one each call makes something new.
    pub(super) fn read_token(&self, r: &mut Reader, hash: &str) -> Option<String> {
        let token = r.text("ClientToken").filter(|token| !token.is_empty());
        token.or_else(|| (!self.holds(Truth::NoTokenNewResource)).then(|| hash.to_owned()))
    }

    /// The resources that were made with this token before, if it is remembered; refuses a token that can't
    /// be used.
    pub(super) fn made_with(
        &self,
        action: &str,
        token: &str,
        zone: Option<&str>,
        hash: &str,
    ) -> Result<Option<Vec<String>>, Refusal> {
        if self.holds(Truth::TokenLengthLimited) && (token.len() > LONGEST || !token.is_ascii()) {
            return Err(Refusal::value(format!("Client token must be at most {LONGEST} ASCII characters")));
        }
        let Some(record) = self.state.tokens.get(&self.token_key(action, token, zone)) else {
            return Ok(None);
        };
        if !self.holds(Truth::TokenGivesSameResource) {
            return Ok(None);
        }
        if self.holds(Truth::TokensForgotten) && self.state.now >= record.at + self.rules.token_lifetime {
            return Ok(None);
        }
        if self.holds(Truth::TokenMismatchRefused) && record.hash != hash {
            return Err(mismatch());
        }
        Ok(Some(record.resources.clone()))
    }

    pub(super) fn remember(
        &mut self,
        action: &str,
        token: &str,
        zone: Option<&str>,
        hash: &str,
        resources: Vec<String>,
    ) {
        let key = self.token_key(action, token, zone);
        let at = self.state.now;
        if self.holds(Truth::TokensForgotten) {
            let lifetime = self.rules.token_lifetime;
            self.state.tokens.retain(|_, record| at < record.at + lifetime);
        }
        self.state.tokens.insert(key, TokenRecord { hash: hash.to_owned(), resources, at });
    }

    /// Refuses the token of an instance that is no more (error-code reference,
    /// `IdempotentInstanceTerminated`).
    pub(super) fn refuse_token_of_terminated(&self, instances: &[String]) -> Result<(), Refusal> {
        let is_alive = |id: &String| {
            self.state.instances.get(id).is_some_and(|held| held.view.state != InstanceState::Terminated)
        };
        if self.holds(Truth::TokenOfTerminatedRefused) && !instances.iter().all(is_alive) {
            return Err(Refusal::new(
                "IdempotentInstanceTerminated",
                "The client token was used by a request whose instance has been terminated",
            ));
        }
        Ok(())
    }

    fn token_key(&self, action: &str, token: &str, zone: Option<&str>) -> String {
        let zone = zone.filter(|_| self.holds(Truth::TokenPerZone)).unwrap_or("");
        let token =
            if self.holds(Truth::TokenCaseSensitive) { token.to_owned() } else { token.to_lowercase() };
        format!("{action}/{zone}/{token}")
    }
}

pub(super) fn mismatch() -> Refusal {
    Refusal::new(
        "IdempotentParameterMismatch",
        "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).",
    )
}
