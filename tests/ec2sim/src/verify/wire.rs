//! One signed request of EC2's Query protocol, and its answer, as they are: no SDK, so that also what an SDK
//! would not send can be asked.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use aws_credential_types::{
    Credentials,
    provider::{ProvideCredentials, SharedCredentialsProvider},
};
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SigningSettings, sign},
    sign::v4,
};
use bytes::Bytes;
use http::{Request, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

use super::element::Element;

/// The version of the API whose documentation the truths come from.
const VERSION: &str = "2016-11-15";

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Credentials that end sooner than this are asked for anew.
const LEFT: Duration = Duration::from_mins(5);

const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// Why a call has no answer of success.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    /// EC2 refused it.
    #[error("{code}: {message}")]
    Refused { code: String, message: String },

    /// Whether it was carried out is not known.
    #[error("no answer: {0}")]
    NoAnswer(String),
}

impl CallError {
    /// EC2's error code, or `no answer`.
    pub(super) fn code(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            Self::NoAnswer(_) => "no answer",
        }
    }
}

/// A way to one EC2.
#[derive(Debug)]
pub(super) struct Wire {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    endpoint: Uri,
    region: String,
    provider: SharedCredentialsProvider,
    credentials: Mutex<Option<Credentials>>,
}

impl Wire {
    /// A way to the EC2 at `endpoint`, as the one whom `provider` has the credentials of.
    ///
    /// # Errors
    /// If the host has no certificates of authorities.
    pub(super) fn new(
        endpoint: Uri,
        region: &str,
        provider: SharedCredentialsProvider,
    ) -> std::io::Result<Self> {
        let connector =
            HttpsConnectorBuilder::new().with_native_roots()?.https_or_http().enable_http1().build();
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            endpoint,
            region: region.to_owned(),
            provider,
            credentials: Mutex::new(None),
        })
    }

    /// Makes one request, once.
    pub(super) async fn send<K: AsRef<str>, V: AsRef<str>>(
        &self,
        action: &str,
        params: &[(K, V)],
    ) -> Result<Element, CallError> {
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("Action", action)
            .append_pair("Version", VERSION)
            .extend_pairs(params)
            .finish();
        let request = self.signed(form).await.map_err(CallError::NoAnswer)?;
        let (status, body) = self.exchange(request).await.map_err(CallError::NoAnswer)?;
        let answer = Element::read(&body);
        if (200..300).contains(&status) {
            return answer.map_err(|error| CallError::NoAnswer(format!("the answer is no XML: {error}")));
        }
        let answer = answer.unwrap_or_default();
        let part = |name: &str| answer.text(&format!("Errors/Error/{name}")).to_owned();
        let code = part("Code");
        if code.is_empty() {
            let code = format!("HTTP {status}");
            return Err(CallError::Refused { code, message: "no error in EC2's form".to_owned() });
        }
        Err(CallError::Refused { code, message: part("Message") })
    }

    /// Sends a JSON document to a path of the endpoint that is no part of EC2; the status.
    pub(super) async fn post(&self, path: &str, document: String) -> Result<u16, String> {
        let request = Request::post(self.uri(path)?).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Full::from(document)).map_err(|error| error.to_string())?;
        Ok(self.exchange(request).await?.0)
    }

    /// Reads a path of the endpoint that is no part of EC2; the status and the body.
    pub(super) async fn get(&self, path: &str) -> Result<(u16, String), String> {
        let request = Request::get(self.uri(path)?).body(Full::default());
        self.exchange(request.map_err(|error| error.to_string())?).await
    }

    fn uri(&self, path: &str) -> Result<Uri, String> {
        let mut parts = self.endpoint.clone().into_parts();
        parts.path_and_query = Some(path.parse().map_err(|_| format!("{path} is not a path"))?);
        Uri::from_parts(parts).map_err(|error| error.to_string())
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<(u16, String), String> {
        let answered = async {
            let response = self.client.request(request).await.map_err(|error| chain(&error))?;
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.map_err(|error| chain(&error))?;
            Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
        };
        match tokio::time::timeout(PATIENCE, answered).await {
            Ok(result) => result,
            Err(_) => Err(format!("none within {} s", PATIENCE.as_secs())),
        }
    }

    async fn signed(&self, form: String) -> Result<Request<Full<Bytes>>, String> {
        let uri = self.uri("/")?;
        let host = uri.authority().map(ToString::to_string).ok_or("the endpoint has no host")?;
        let identity = self.credentials().await?.into();
        #[expect(clippy::disallowed_methods, reason = "a signature has the present time")]
        let now = SystemTime::now();
        let settings = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name("ec2")
            .time(now)
            .settings(SigningSettings::default())
            .build()
            .map_err(|error| error.to_string())?
            .into();
        let headers = [("content-type", FORM), ("host", &host)];
        let signable = SignableRequest::new(
            "POST",
            uri.to_string(),
            headers.into_iter(),
            SignableBody::Bytes(form.as_bytes()),
        );
        let (instructions, _) = sign(signable.map_err(|error| error.to_string())?, &settings)
            .map_err(|error| error.to_string())?
            .into_parts();
        let mut request = Request::post(uri)
            .header(header::CONTENT_TYPE, FORM)
            .header(header::HOST, host)
            .body(Full::from(form))
            .map_err(|error| error.to_string())?;
        instructions.apply_to_request_http1x(&mut request);
        Ok(request)
    }

    async fn credentials(&self) -> Result<Credentials, String> {
        #[expect(clippy::disallowed_methods, reason = "whether the credentials still hold")]
        let soon = SystemTime::now() + LEFT;
        let kept = self.credentials.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(kept) = kept.filter(|kept| kept.expiry().is_none_or(|end| end > soon)) {
            return Ok(kept);
        }
        let given = self.provider.provide_credentials().await;
        let given = given.map_err(|error| format!("no credentials: {}", chain(&error)))?;
        *self.credentials.lock().unwrap_or_else(PoisonError::into_inner) = Some(given.clone());
        Ok(given)
    }
}

/// An error with everything that it comes from.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}
