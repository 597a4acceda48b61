//! A client of the API server that writes while the term lasts, and reads at any time.

use std::sync::Arc;

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use kube::client::retry::RetryPolicy;
use tower::BoxError;
use tower::retry::Retry;

use crate::term::Term;

/// The same client, but that no write is sent after the end of the term: every write of every pass goes
/// through here, so that none must remember it. What the API server cannot answer now is sent again as kube's
/// clients do it by themselves, and is asked about each time: the client that is given must not do so.
pub fn within(term: Arc<Term>, client: &Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let client = client.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, term) = (client.clone(), Arc::clone(&term));
        async move {
            if request.method() != Method::GET {
                term.check()?;
            }
            Ok::<_, BoxError>(client.send(request).await?)
        }
    });
    Client::new(Retry::new(RetryPolicy::server_retry(), service), namespace)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::Response;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;
    use kube::api::{DeleteParams, PostParams};
    use parking_lot::Mutex;

    use super::*;
    use crate::clock::SystemClock;

    /// An API server that answers with these statuses in turn, and notes the methods.
    fn server(statuses: Vec<u16>) -> (Client, Arc<Mutex<Vec<String>>>) {
        let (asked, statuses) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(statuses)));
        let notes = Arc::clone(&asked);
        let service = tower::service_fn(move |request: Request<Body>| {
            notes.lock().push(request.method().to_string());
            let status = statuses.lock().pop().unwrap_or(200);
            let body = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}"#;
            let answer = Response::builder().status(status).body(Body::from(body.as_bytes().to_vec()));
            async move { Ok::<_, BoxError>(answer?) }
        });
        (Client::new(service, "default"), asked)
    }

    fn term() -> Arc<Term> {
        let term = Arc::new(Term::new(Arc::new(SystemClock)));
        term.renewed(term.about_to_renew(), Duration::from_secs(7));
        term
    }

    #[tokio::test]
    async fn without_a_term_everything_is_read_and_nothing_is_written() {
        let (client, asked) = server(Vec::new());
        let term = term();
        let maps: Api<ConfigMap> = Api::default_namespaced(within(Arc::clone(&term), &client));
        maps.create(&PostParams::default(), &ConfigMap::default()).await.unwrap();
        term.end();
        maps.get("a").await.unwrap();
        let error = maps.delete("a", &DeleteParams::default()).await.unwrap_err();
        assert!(
            crate::error_chain::Chain(&error).to_string().contains("does not lead any more"),
            "{error:?}"
        );
        assert_eq!(*asked.lock(), ["POST", "GET"]);
    }

    #[tokio::test]
    async fn what_is_sent_again_is_asked_about_again() {
        let (client, asked) = server(vec![503; 20]);
        let term = term();
        let maps: Api<ConfigMap> = Api::default_namespaced(within(Arc::clone(&term), &client));
        let (notes, ends) = (Arc::clone(&asked), Arc::clone(&term));
        let ending = async move {
            while notes.lock().len() < 2 {
                tokio::task::yield_now().await;
            }
            ends.end();
        };
        let nothing = ConfigMap::default();
        let params = PostParams::default();
        let (answer, ()) = tokio::join!(maps.create(&params, &nothing), ending);
        assert!(
            crate::error_chain::Chain(&answer.unwrap_err()).to_string().contains("does not lead any more")
        );
        assert_eq!(*asked.lock(), ["POST", "POST"]);
    }
}
