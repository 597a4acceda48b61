//! Who comes first of those that wait for a rate limit: repairs, then one call of each namespace in turn.
//! Pure.
//!
//! One tenant may have a thousand calls waiting, another one a single call: first come, first served would
//! make the second wait for the first's thousand. So this is start-time fair queueing (Goyal, Vin and Cheng,
//! 1996) with the namespaces as its flows and one token as the cost of every call. No caller is woken: each
//! has a time at which it comes again, and its place until shortly after it.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// Which requests come first when a bucket runs low.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Reads, the fence of a lost machine, and the machine that replaces it: before all others, and may take
    /// the last token.
    Repair,
    /// What else a database that exists needs, as the machine after a pause: in the turn of its namespace.
    Existing,
    /// What a new database needs: in the turn of its namespace, after what its other databases need.
    #[default]
    Create,
}

/// Who makes a call, and how urgent it is.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// Its namespace; empty for what the operator needs for all of them.
    pub namespace: &'a str,
    /// The UID of the object that the call is for: one that comes again keeps its place.
    pub object: &'a str,
    /// How urgent the call is.
    pub priority: Priority,
}

/// The calls that wait for one rate limit.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    repairs: Lane,
    others: Lane,
    arrivals: u64,
}

/// The calls of which none is more urgent than another.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// By namespace. One that has nothing waiting is kept only while it is ahead of the round.
    flows: BTreeMap<String, Flow>,
    /// How many calls each namespace that always waits has been given.
    round: u64,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    /// The round after that of its last call.
    served: u64,
    /// In this order.
    waiting: Vec<Waiting>,
}

#[derive(Clone, Debug)]
struct Waiting {
    object: String,
    priority: Priority,
    /// Among namespaces that are equal the one that came first comes first.
    arrival: u64,
    /// One that has not come again by then has lost its place.
    until: Timestamp,
}

impl Waiting {
    fn is_of(&self, caller: &Caller<'_>) -> bool {
        self.object == caller.object && self.priority == caller.priority
    }
}

impl Turns {
    /// How many waiting calls come before this one.
    pub(super) fn ahead(&self, caller: &Caller<'_>) -> usize {
        if caller.priority == Priority::Repair {
            return self.repairs.ahead(caller);
        }
        let repairs: usize = self.repairs.flows.values().map(|flow| flow.waiting.len()).sum();
        repairs + self.others.ahead(caller)
    }

    /// Whether any call waits.
    pub(super) fn has_waiting(&self) -> bool {
        [&self.repairs, &self.others]
            .into_iter()
            .any(|lane| lane.flows.values().any(|flow| !flow.waiting.is_empty()))
    }

    /// The call waits, and keeps its place until then.
    pub(super) fn wait(&mut self, caller: &Caller<'_>, until: Timestamp) {
        if let Some(waiting) = self.lane(caller).waiting(caller) {
            waiting.until = until;
            return;
        }
        // It may have become more or less urgent.
        self.forget(caller.object);
        self.arrivals += 1;
        let Caller { namespace, object, priority } = *caller;
        let waiting = Waiting { object: object.to_owned(), priority, arrival: self.arrivals, until };
        let flow = self.lane(caller).flows.entry(namespace.to_owned()).or_default();
        flow.waiting.insert(flow.place_of_new(priority), waiting);
    }

    /// The call is made.
    pub(super) fn served(&mut self, caller: &Caller<'_>) {
        self.forget(caller.object);
        let lane = self.lane(caller);
        let flow = lane.flows.entry(caller.namespace.to_owned()).or_default();
        let round = lane.round.max(flow.served);
        flow.served = round + 1;
        lane.round = round;
        lane.clean();
    }

    /// This object makes no call any more.
    pub(super) fn forget(&mut self, object: &str) {
        for lane in [&mut self.repairs, &mut self.others] {
            for flow in lane.flows.values_mut() {
                flow.waiting.retain(|waiting| waiting.object != object);
            }
            lane.clean();
        }
    }

    /// Takes their places from those that have not come again.
    pub(super) fn expire(&mut self, now: Timestamp) {
        for lane in [&mut self.repairs, &mut self.others] {
            for flow in lane.flows.values_mut() {
                flow.waiting.retain(|waiting| waiting.until >= now);
            }
            lane.clean();
        }
    }

    /// The bucket is full: where no call waits, all namespaces are equal again.
    pub(super) fn rest(&mut self) {
        for lane in [&mut self.repairs, &mut self.others] {
            if lane.flows.values().all(|flow| flow.waiting.is_empty()) {
                *lane = Lane::default();
            }
        }
    }

    /// How many namespaces it remembers.
    #[cfg(test)]
    pub(super) fn namespaces(&self) -> usize {
        self.repairs.flows.len() + self.others.flows.len()
    }

    fn lane(&mut self, caller: &Caller<'_>) -> &mut Lane {
        if caller.priority == Priority::Repair { &mut self.repairs } else { &mut self.others }
    }
}

impl Lane {
    fn ahead(&self, caller: &Caller<'_>) -> usize {
        let own = self.flows.get(caller.namespace);
        let (place, arrival) = own.map_or((0, u64::MAX), |flow| flow.place(caller));
        let round = self.round_of(own) + place;
        let is_ahead = |(its_round, its_arrival): (u64, u64)| (its_round, its_arrival) < (round, arrival);
        let others = self.flows.iter().filter(|(namespace, _)| *namespace != caller.namespace);
        let ahead: usize = others
            .map(|(_, flow)| {
                let rounds = self.round_of(Some(flow))..;
                rounds.zip(&flow.waiting).filter(|(its, waiting)| is_ahead((*its, waiting.arrival))).count()
            })
            .sum();
        ahead + usize::try_from(place).unwrap_or(usize::MAX)
    }

    fn waiting(&mut self, caller: &Caller<'_>) -> Option<&mut Waiting> {
        let flow = self.flows.get_mut(caller.namespace)?;
        flow.waiting.iter_mut().find(|waiting| waiting.is_of(caller))
    }

    /// The round of its next call: a namespace that comes anew is not given what it did not ask for before.
    fn round_of(&self, flow: Option<&Flow>) -> u64 {
        self.round.max(flow.map_or(0, |flow| flow.served))
    }

    fn clean(&mut self) {
        let round = self.round;
        self.flows.retain(|_, flow| !flow.waiting.is_empty() || flow.served > round);
    }
}

impl Flow {
    /// Its place in the namespace, and when it came.
    fn place(&self, caller: &Caller<'_>) -> (u64, u64) {
        let own = self.waiting.iter().enumerate().find(|(_, waiting)| waiting.is_of(caller));
        let (place, arrival) = own.map_or_else(
            || (self.place_of_new(caller.priority), u64::MAX),
            |(place, waiting)| (place, waiting.arrival),
        );
        (u64::try_from(place).unwrap_or(u64::MAX), arrival)
    }

    /// After all that are as urgent.
    fn place_of_new(&self, priority: Priority) -> usize {
        self.waiting.iter().take_while(|waiting| waiting.priority <= priority).count()
    }
}
