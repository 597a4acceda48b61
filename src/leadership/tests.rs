//! How the leader renews its Lease while the API server is slow.

use http::{Method, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use tower::BoxError;

use super::*;
use crate::clock::SystemClock;

/// How long a test looks: the wall clock stands still meanwhile, and parts from the monotonic one by less
/// than a term allows.
const LONG: Duration = Duration::from_secs(40);

/// A leader whose API server takes these times in turn for its answers to renewals, and 10 ms from then on;
/// with when each renewal was sent, in seconds since the term began.
fn leader(mut takes: Vec<Duration>) -> (Leadership, Held, Arc<Mutex<Vec<u64>>>) {
    takes.reverse();
    let (sent, began) = (Arc::new(Mutex::new(Vec::new())), Instant::now());
    let (notes, takes) = (Arc::clone(&sent), Mutex::new(takes));
    let service = tower::service_fn(move |request: Request<Body>| {
        let mut takes_so_long = Duration::from_millis(10);
        if request.method() == Method::PUT {
            notes.lock().push(began.elapsed().as_secs());
            takes_so_long = takes.lock().pop().unwrap_or(takes_so_long);
        }
        async move {
            tokio::time::sleep(takes_so_long).await;
            let body = request.into_body().collect_bytes().await?;
            Ok::<_, BoxError>(Response::new(Body::from(body)))
        }
    });
    let term = Arc::new(Term::new(Arc::new(SystemClock)));
    let timing = Election::default();
    term.renewed(term.about_to_renew(), timing.leader_elect_renew_deadline);
    let client = Client::new(service, "default");
    let metrics = Metrics::new();
    let leadership = Leadership::new(client, &timing, "c1", Scope::new([]), term, metrics);
    let held = Held(record::taken(None, &leadership.us, jiff::Timestamp::UNIX_EPOCH));
    (leadership, held, sent)
}

/// Whether the leader still leads after [`LONG`].
async fn leads(leadership: &Leadership, held: &mut Held) -> bool {
    tokio::time::timeout(LONG, leadership.keep(held)).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_takes_three_seconds_for_every_answer_does_not_cost_the_term() {
    let (leadership, mut held, sent) = leader(vec![Duration::from_secs(3); 20]);
    assert!(leads(&leadership, &mut held).await, "renewed at {:?}", sent.lock());
    assert!(sent.lock().len() >= 12, "renewed at {:?}", sent.lock());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_without_an_answer_is_sent_again_within_the_term() {
    let (leadership, mut held, sent) = leader(vec![Duration::MAX]);
    assert!(leads(&leadership, &mut held).await);
    assert_eq!(sent.lock()[..3], [2, 5, 7], "the second follows the first's limit, 3.5 s, at once");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_answers_no_renewal_ends_the_term_at_its_deadline() {
    let (leadership, mut held, sent) = leader(vec![Duration::MAX; 20]);
    let began = Instant::now();
    assert!(!leads(&leadership, &mut held).await, "renewed at {:?}", sent.lock());
    assert_eq!(began.elapsed().as_secs(), 7);
}
