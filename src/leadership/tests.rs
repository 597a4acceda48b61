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

/// When something happened, in seconds since the term began.
type Times = Arc<Mutex<Vec<u64>>>;

/// A leader whose API server takes these times in turn for its answers to renewals, and 10 ms from then on;
/// with when each renewal was sent, in seconds since the term began.
fn leader(takes: Vec<Duration>) -> (Leadership, Held, Times) {
    let (leadership, held, sent, _) = leader_of(takes, Duration::from_millis(10));
    (leadership, held, sent)
}

/// The same with an API server that takes this long for its answer to an event; with when each event was
/// answered, in seconds since the term began.
fn leader_of(mut takes: Vec<Duration>, event_takes: Duration) -> (Leadership, Held, Times, Times) {
    takes.reverse();
    let (sent, published, began) = (Times::default(), Times::default(), Instant::now());
    let (notes, events, takes) = (Arc::clone(&sent), Arc::clone(&published), Mutex::new(takes));
    let service = tower::service_fn(move |request: Request<Body>| {
        let mut takes_so_long = Duration::from_millis(10);
        if request.method() == Method::PUT {
            notes.lock().push(began.elapsed().as_secs());
            takes_so_long = takes.lock().pop().unwrap_or(takes_so_long);
        }
        let is_event = request.uri().path().contains("/events");
        let events = Arc::clone(&events);
        async move {
            tokio::time::sleep(if is_event { event_takes } else { takes_so_long }).await;
            if is_event {
                events.lock().push(began.elapsed().as_secs());
            }
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
    (leadership, held, sent, published)
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

#[tokio::test(start_paused = true)]
async fn an_api_server_that_takes_long_for_the_event_has_it_all_the_same_and_no_renewal_waits_for_it() {
    let (leadership, mut held, sent, published) = leader_of(Vec::new(), Duration::from_secs(15));
    assert!(leads(&leadership, &mut held).await);
    assert_eq!(sent.lock()[..4], [2, 4, 6, 8]);
    assert_eq!(*published.lock(), [15]);
}
