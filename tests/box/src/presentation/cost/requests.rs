//! What the operator requested of the API server in a stage, counted from the audit log.

use std::collections::BTreeMap;

use crate::cluster::audit::Request;
use crate::cluster::control_plane::OPERATOR_USER;
use crate::presentation::demo::observer::Calls;

/// Where kubelets keep their Leases.
const KUBELETS: &str = "kube-node-lease";

/// Where an operator that is given no namespace has its Lease, and reports that it leads.
const ELECTIONS: &str = "kube-system";

/// The kind of the definitions of Freehold's kinds.
const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// The operator's requests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// All of them, by verb and kind.
    pub by_kind: Calls,
    /// Changes that were requested, events among them.
    pub writes: u64,
    /// Events.
    pub events: u64,
    /// Objects that were read one by one.
    pub gets: u64,
    /// Lists.
    pub lists: u64,
    /// Watches that were begun, or begun again.
    pub watches: u64,
    /// How often the kind was listed that was listed most.
    pub most_lists: u64,
    /// Objects that were read one by one, of the kinds of which there were several. The definitions of the
    /// kinds are not among them: there are as many however many databases there are.
    pub gets_of_many: u64,
}

impl Requests {
    /// Counts those of the operator. Those that follow the clock and not the databases are among all of them
    /// and in no sum: for the election, and the lists of the kubelets' Leases.
    pub fn of_operator(requests: &[Request]) -> Self {
        let mut counted = Self::default();
        let mut lists: BTreeMap<String, u64> = BTreeMap::new();
        let mut gets: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for request in requests.iter().filter(|request| is_operators(request)) {
            let kind = kind(request);
            let clocked = if follows_the_clock(request) { " (clock)" } else { "" };
            *counted.by_kind.entry(format!("{} {kind}{clocked}", request.verb)).or_default() += 1;
            if follows_the_clock(request) {
                continue;
            }
            match request.verb.as_str() {
                "get" => {
                    counted.gets += 1;
                    gets.entry(kind).or_default().push(&request.name);
                }
                "list" => {
                    counted.lists += 1;
                    *lists.entry(kind).or_default() += 1;
                }
                "watch" => counted.watches += 1,
                _ => counted.writes += 1,
            }
            if request.is_write() && is_event(request) {
                counted.events += 1;
            }
        }
        counted.most_lists = lists.into_values().max().unwrap_or_default();
        gets.remove(DEFINITIONS);
        counted.gets_of_many = gets.into_values().map(of_many).sum();
        counted
    }
}

/// How many reads of one kind these are, unless all are of one object.
fn of_many(mut names: Vec<&str>) -> u64 {
    let reads = names.len();
    names.sort_unstable();
    names.dedup();
    if names.len() > 1 { u64::try_from(reads).unwrap_or(u64::MAX) } else { 0 }
}

/// Whether the operator made it.
pub fn is_operators(request: &Request) -> bool {
    request.user == OPERATOR_USER
}

/// Whether it is about an event.
pub fn is_event(request: &Request) -> bool {
    request.resource == "events"
}

/// Whether it is made as often for one database as for a thousand.
pub fn follows_the_clock(request: &Request) -> bool {
    match request.resource.as_str() {
        "leases" => request.namespace != KUBELETS || request.verb == "list",
        "events" => request.namespace == ELECTIONS,
        _ => false,
    }
}

/// `databases.freehold.dev/status`: the plural, the group and the subresource.
fn kind(request: &Request) -> String {
    let (resource, sub) = request.resource.split_once('/').unwrap_or((&request.resource, ""));
    let group = if request.group.is_empty() { String::new() } else { format!(".{}", request.group) };
    let sub = if sub.is_empty() { String::new() } else { format!("/{sub}") };
    format!("{resource}{group}{sub}")
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A request at this millisecond about an object of the namespace `default`: of `group resource`, or of
    /// a resource of the core group.
    pub fn request(at: i64, user: &str, verb: &str, what: &str, name: &str) -> Request {
        let (group, resource) = what.split_once(' ').unwrap_or(("", what));
        Request {
            received: jiff::Timestamp::from_millisecond(at).unwrap(),
            user: user.to_owned(),
            user_agent: String::new(),
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            code: 200,
            is_forbidden: false,
        }
    }

    fn in_namespace(namespace: &str, request: Request) -> Request {
        Request { namespace: namespace.to_owned(), ..request }
    }

    fn operators(verb: &str, what: &str, name: &str) -> Request {
        request(0, OPERATOR_USER, verb, what, name)
    }

    #[test]
    fn the_operators_requests_are_counted_by_what_they_do() {
        let counted = Requests::of_operator(&[
            request(0, "admin", "create", "freehold.dev databases", "a"),
            operators("list", "freehold.dev databases", ""),
            operators("watch", "freehold.dev databases", ""),
            operators("patch", "freehold.dev databases", "a"),
            operators("patch", "freehold.dev databases/status", "a"),
            operators("patch", "freehold.dev databases/status", "a"),
            operators("create", "events.k8s.io events", "a.1"),
            operators("get", "secrets", "a-credentials"),
        ]);
        assert_eq!(
            (counted.writes, counted.events, counted.gets, counted.lists, counted.watches),
            (4, 1, 1, 1, 1)
        );
        let by_kind: Vec<(&str, u64)> =
            counted.by_kind.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
        assert_eq!(
            by_kind,
            [
                ("create events.events.k8s.io", 1),
                ("get secrets", 1),
                ("list databases.freehold.dev", 1),
                ("patch databases.freehold.dev", 1),
                ("patch databases.freehold.dev/status", 2),
                ("watch databases.freehold.dev", 1),
            ]
        );
    }

    #[test]
    fn what_follows_the_clock_is_shown_and_in_no_sum() {
        let lease = "coordination.k8s.io leases";
        let counted = Requests::of_operator(&[
            in_namespace("kube-system", operators("update", lease, "freehold")),
            in_namespace("kube-system", operators("get", lease, "freehold")),
            in_namespace("kube-system", operators("create", "events.k8s.io events", "freehold.1")),
            in_namespace("kube-node-lease", operators("list", lease, "")),
        ]);
        assert_eq!(counted.by_kind.len(), 4);
        assert!(counted.by_kind.keys().all(|kind| kind.ends_with(" (clock)")), "{counted:?}");
        assert_eq!(Requests { by_kind: Calls::new(), ..counted }, Requests::default());
    }

    #[test]
    fn a_lease_that_is_read_for_each_machine_is_counted() {
        let lease = "coordination.k8s.io leases";
        let of_machine = |name| in_namespace("kube-node-lease", operators("get", lease, name));
        let counted = Requests::of_operator(&[of_machine("ip-1"), of_machine("ip-2")]);
        assert_eq!((counted.gets, counted.gets_of_many), (2, 2));
    }

    #[test]
    fn reads_one_by_one_of_many_objects_are_told_from_reads_of_the_only_one() {
        let counted = Requests::of_operator(&[
            operators("get", "namespaces", "kube-system"),
            operators("get", "namespaces", "kube-system"),
            operators("get", "apiextensions.k8s.io customresourcedefinitions", "nodes.freehold.dev"),
            operators("get", "apiextensions.k8s.io customresourcedefinitions", "volumes.freehold.dev"),
            operators("get", "secrets", "a"),
            operators("get", "secrets", "b"),
            operators("get", "secrets", "b"),
            operators("list", "pods", ""),
            operators("list", "pods", ""),
            operators("list", "secrets", ""),
        ]);
        assert_eq!((counted.gets, counted.gets_of_many, counted.most_lists), (7, 3, 2));
    }
}
