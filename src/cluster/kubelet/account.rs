//! The ServiceAccount as which kubelets are asked: a machine is given a token with which nothing can be done
//! but to read statistics, and that for ten minutes.
//!
//! The operator's own token would give whoever has taken over one machine all of the operator's rights.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use kube::{Client, config::AuthInfo};
use serde::{Serialize, Serializer};
use tokio::sync::Mutex;

use super::failure::Failure;
use crate::api::database::Unmeasured;
use crate::error_chain::Chain;
use crate::time::later;

/// For how long a token is requested, in seconds: the least that the API server gives.
const LASTS: i64 = 600;

/// How long before its end a token is given to no kubelet any more.
const LEAST: Duration = Duration::from_secs(120);

/// A ServiceAccount, written `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    namespace: String,
    name: String,
}

impl FromStr for Account {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("it must be NAMESPACE/NAME of a ServiceAccount".to_owned()),
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Serialize for Account {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The tokens of an account: one is requested when the last one is about to end.
pub(super) struct Tokens {
    accounts: Api<ServiceAccount>,
    name: String,
    last: Mutex<Option<(String, Timestamp)>>,
}

impl Tokens {
    pub(super) fn of(client: Client, account: &Account) -> Self {
        let accounts = Api::namespaced(client, &account.namespace);
        Self { accounts, name: account.name.clone(), last: Mutex::default() }
    }

    /// The credentials that a kubelet is sent.
    pub(super) async fn auth_info(&self, now: Timestamp) -> Result<AuthInfo, Failure> {
        let mut last = self.last.lock().await;
        if let Some((token, ends)) = last.as_ref()
            && later(now, LEAST) < *ends
        {
            return Ok(with(token));
        }
        let spec = TokenRequestSpec { expiration_seconds: Some(LASTS), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let answer = self.accounts.create_token_request(&self.name, &PostParams::default(), &request).await;
        let answer = answer.map_err(|error| {
            let is_final = matches!(&error, kube::Error::Api(answer) if [403, 404].contains(&answer.code));
            let unmeasured = if is_final { Unmeasured::NoAccount } else { Unmeasured::Unreachable };
            let why = format!("no token of ServiceAccount {}: {}", self.name, Chain(&error));
            Failure { unmeasured, why }
        })?;
        let status = answer.status.ok_or_else(|| {
            Failure::unreachable("the API server answered a TokenRequest without a token".to_owned())
        })?;
        let auth_info = with(&status.token);
        *last = Some((status.token, status.expiration_timestamp.0));
        Ok(auth_info)
    }
}

fn with(token: &str) -> AuthInfo {
    AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_a_namespace_and_a_name() {
        assert_eq!("a/b".parse::<Account>().map(|it| it.to_string()), Ok("a/b".to_owned()));
        for text in ["", "a", "/b", "a/", "a/b/c"] {
            assert!(text.parse::<Account>().is_err(), "{text}");
        }
    }
}
