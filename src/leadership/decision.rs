//! Who may lead: the decision over the Leases of all operators, as functions of values.

use std::time::Duration;

use super::scope::Scope;

/// What a Lease says, in values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The name of the Lease.
    pub lease: String,
    /// Who holds it; empty if it was released.
    pub holder: String,
    /// The installation of the last holder; empty if it named none.
    pub installation: String,
    /// The cluster id of the last holder; empty if a hand removed it.
    pub cluster_id: String,
    /// What the last holder watches; `None` if the Lease is not an operator's.
    pub scope: Option<Scope>,
    /// For how long each renewal holds.
    pub duration: Duration,
    /// How many terms there were before this one.
    pub transitions: i32,
}

/// A Lease, and for how long it has stayed the same: from the moment at which this process first saw this
/// version of it until it sent the request whose answer showed the version again, by its monotonic clock. The
/// times in a Lease are of the holder's clock, and are compared with nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What it says.
    pub claim: Claim,
    /// For how long.
    pub unchanged_for: Duration,
}

/// This operator, which would lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its identity: of this process and of no other that runs.
    pub identity: String,
    /// The installation that it is of, the same for its replicas; empty if it names none.
    pub installation: String,
    /// Its cluster id in EC2.
    pub cluster_id: String,
    /// What it watches.
    pub scope: Scope,
    /// For how long each of its renewals holds.
    pub duration: Duration,
}

/// What a candidate does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It takes the Lease.
    Take,
    /// Another replica leads: it stands by.
    StandBy {
        /// The replica.
        holder: String,
    },
    /// It must not act.
    Refuse(Refusal),
}

/// Why an operator must not act beside what is there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another installation acts for the same namespaces.
    #[error(
        "operator {holder} of installation {theirs:?} acts for {scope}, and this one is of installation \
        {ours:?}: uninstall one of the two"
    )]
    Installation {
        /// Who acts.
        holder: String,
        /// Its installation.
        theirs: String,
        /// Ours.
        ours: String,
        /// The namespaces, for a sentence.
        scope: String,
    },
    /// Another operator acts for some of the same namespaces.
    #[error(
        "operator {holder} of installation {theirs:?} acts for {scope} and holds Lease kube-system/{lease}, \
        and this one watches {ours}: stop one of the two, or let them watch different namespaces"
    )]
    Overlap {
        /// The Lease of the other.
        lease: String,
        /// Who acts.
        holder: String,
        /// Its installation.
        theirs: String,
        /// What it watches, for a sentence.
        scope: String,
        /// What this one watches.
        ours: String,
    },
    /// The last operator of this scope had another cluster id: this one would find nothing in EC2 that the
    /// other created.
    #[error(
        "the last operator for {scope} ran with the cluster id {theirs:?} (Lease kube-system/{lease}), and \
        this one runs with {ours:?}, which finds nothing in EC2 that the other created: give it the former \
        id, or, if nothing was created under that, delete the Lease"
    )]
    ClusterId {
        /// The Lease.
        lease: String,
        /// The recorded one.
        theirs: String,
        /// Ours.
        ours: String,
        /// The namespaces, for a sentence.
        scope: String,
    },
}

/// Whether its holder may still act.
pub fn is_held(seen: &Seen, ours: Duration) -> bool {
    !seen.claim.holder.is_empty() && seen.unchanged_for < seen.claim.duration.max(ours)
}

/// What a candidate does, given every Lease of an operator.
pub fn decide(all: &[Seen], us: &Candidate) -> Decision {
    if let Some(refusal) = overlapping(all, us) {
        return Decision::Refuse(refusal);
    }
    let name = us.scope.lease_name();
    let Some(own) = all.iter().find(|seen| seen.claim.lease == name) else { return Decision::Take };
    let claim = &own.claim;
    if !claim.cluster_id.is_empty() && claim.cluster_id != us.cluster_id {
        return Decision::Refuse(Refusal::ClusterId {
            lease: name,
            theirs: claim.cluster_id.clone(),
            ours: us.cluster_id.clone(),
            scope: us.scope.shown(),
        });
    }
    let is_of_us = claim.installation == us.installation;
    // The process that held it under this identity has ended, or this one would not run: a new term.
    if !is_held(own, us.duration) || is_of_us && claim.holder == us.identity {
        return Decision::Take;
    }
    let holder = claim.holder.clone();
    if is_of_us {
        return Decision::StandBy { holder };
    }
    Decision::Refuse(Refusal::Installation {
        holder,
        theirs: claim.installation.clone(),
        ours: us.installation.clone(),
        scope: us.scope.shown(),
    })
}

/// The first other Lease that is held for some of the same namespaces.
pub fn overlapping(all: &[Seen], us: &Candidate) -> Option<Refusal> {
    let name = us.scope.lease_name();
    let mut others = all.iter().filter(|seen| seen.claim.lease != name && is_held(seen, us.duration));
    others.find_map(|seen| {
        let scope = seen.claim.scope.as_ref().filter(|scope| scope.overlaps(&us.scope))?;
        Some(Refusal::Overlap {
            lease: seen.claim.lease.clone(),
            holder: seen.claim.holder.clone(),
            theirs: seen.claim.installation.clone(),
            scope: scope.shown(),
            ours: us.scope.shown(),
        })
    })
}

/// Why a term is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// It was not renewed in time.
    #[error("the Lease was not renewed within --leader-elect-renew-deadline")]
    NotRenewed,
    /// The wall clock was set.
    #[error("the wall clock was set by more than a minute: what was measured by it proves nothing")]
    ClockSet,
    /// Another process has it.
    #[error("{0:?} has taken the Lease")]
    Taken(String),
    /// It is gone.
    #[error("the Lease was deleted")]
    Deleted,
}

/// Whether a term goes on after the Lease was written by another client: it still has its holder and number.
pub fn goes_on(claim: Option<&Claim>, us: &Candidate, transitions: i32) -> Result<(), Lost> {
    match claim {
        None => Err(Lost::Deleted),
        Some(claim) if claim.holder == us.identity && claim.transitions == transitions => Ok(()),
        Some(claim) => Err(Lost::Taken(claim.holder.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: Duration = Duration::from_secs(10);

    fn us() -> Candidate {
        Candidate {
            identity: "b".to_owned(),
            installation: "system/freehold".to_owned(),
            cluster_id: "c1".to_owned(),
            scope: Scope::new([]),
            duration: TERM,
        }
    }

    fn of_team(name: &str) -> Candidate {
        Candidate { scope: Scope::new([name]), ..us() }
    }

    /// The Lease of an operator that renewed it three seconds ago.
    fn held(us: &Candidate) -> Seen {
        let claim = Claim {
            lease: us.scope.lease_name(),
            holder: "a".to_owned(),
            installation: us.installation.clone(),
            cluster_id: us.cluster_id.clone(),
            scope: Some(us.scope.clone()),
            duration: TERM,
            transitions: 4,
        };
        Seen { claim, unchanged_for: Duration::from_secs(3) }
    }

    fn with(us: &Candidate, change: impl FnOnce(&mut Seen)) -> Seen {
        let mut seen = held(us);
        change(&mut seen);
        seen
    }

    fn word(decision: Decision) -> String {
        match decision {
            Decision::Take => "take".to_owned(),
            Decision::StandBy { holder } => format!("stand by for {holder}"),
            Decision::Refuse(Refusal::Installation { theirs, .. }) => {
                format!("refuse: installed by {theirs}")
            }
            Decision::Refuse(Refusal::Overlap { lease, .. }) => format!("refuse: overlaps {lease}"),
            Decision::Refuse(Refusal::ClusterId { theirs, .. }) => format!("refuse: cluster id {theirs}"),
        }
    }

    #[test]
    fn every_row_of_the_decision() {
        let us = us();
        let rows: Vec<(&str, Candidate, Vec<Seen>, &str)> = vec![
            ("no operator has led yet", us.clone(), vec![], "take"),
            ("another replica renews", us.clone(), vec![held(&us)], "stand by for a"),
            (
                "unchanged for all but a moment of the term",
                us.clone(),
                vec![with(&us, |seen| {
                    seen.unchanged_for = TERM.checked_sub(Duration::from_millis(1)).unwrap();
                })],
                "stand by for a",
            ),
            (
                "unchanged for the whole term",
                us.clone(),
                vec![with(&us, |seen| seen.unchanged_for = TERM)],
                "take",
            ),
            (
                "the holder's term is longer than ours",
                us.clone(),
                vec![with(&us, |seen| (seen.unchanged_for, seen.claim.duration) = (TERM, TERM * 2))],
                "stand by for a",
            ),
            (
                "the holder's term is shorter than ours, which counts then",
                us.clone(),
                vec![with(&us, |seen| seen.claim.duration = Duration::from_secs(1))],
                "stand by for a",
            ),
            ("released", us.clone(), vec![with(&us, |seen| seen.claim.holder.clear())], "take"),
            (
                "our own of before, as this container was started again",
                us.clone(),
                vec![with(&us, |seen| "b".clone_into(&mut seen.claim.holder))],
                "take",
            ),
            (
                "a second release",
                us.clone(),
                vec![with(&us, |seen| "other/freehold".clone_into(&mut seen.claim.installation))],
                "refuse: installed by other/freehold",
            ),
            (
                "a second release whose pod has the name of ours",
                us.clone(),
                vec![with(&us, |seen| {
                    "b".clone_into(&mut seen.claim.holder);
                    "other/freehold".clone_into(&mut seen.claim.installation);
                })],
                "refuse: installed by other/freehold",
            ),
            (
                "a second release that was uninstalled",
                us.clone(),
                vec![with(&us, |seen| {
                    seen.claim.holder.clear();
                    "other/freehold".clone_into(&mut seen.claim.installation);
                })],
                "take",
            ),
            (
                "another cluster id, and released long ago",
                us.clone(),
                vec![with(&us, |seen| {
                    seen.claim.holder.clear();
                    "c0".clone_into(&mut seen.claim.cluster_id);
                    seen.unchanged_for = TERM * 1000;
                })],
                "refuse: cluster id c0",
            ),
            (
                "a record without a cluster id",
                us.clone(),
                vec![with(&us, |seen| {
                    seen.claim.holder.clear();
                    seen.claim.cluster_id.clear();
                })],
                "take",
            ),
        ];
        every(rows);
    }

    /// Each decision is as its row says.
    fn every(rows: Vec<(&str, Candidate, Vec<Seen>, &str)>) {
        for (name, us, all, expected) in rows {
            assert_eq!(word(decide(&all, &us)), expected, "{name}");
        }
    }

    #[test]
    fn an_operator_of_other_namespaces_is_let_be_and_one_of_the_same_is_not_acted_beside() {
        let (us, team) = (us(), of_team("team-a"));
        let overlap = format!("refuse: overlaps {}", team.scope.lease_name());
        every(vec![
            ("an operator of one of our namespaces", us.clone(), vec![held(&team)], &overlap),
            (
                "an operator of one of our namespaces, though our own Lease is free",
                us.clone(),
                vec![with(&us, |seen| seen.claim.holder.clear()), held(&team)],
                &overlap,
            ),
            (
                "an operator of one of our namespaces that has ended",
                us.clone(),
                vec![with(&team, |seen| seen.unchanged_for = TERM)],
                "take",
            ),
            ("an operator of all namespaces", team.clone(), vec![held(&us)], "refuse: overlaps freehold"),
            ("an operator of another namespace", of_team("team-b"), vec![held(&team)], "take"),
            (
                "another program's Lease",
                us.clone(),
                vec![with(&team, |seen| seen.claim.scope = None)],
                "take",
            ),
        ]);
    }

    #[test]
    fn two_operators_that_wrote_their_claims_at_once_see_each_other() {
        let (us, team) = (us(), of_team("team-a"));
        let all = [held(&us), held(&team)];
        assert!(overlapping(&all, &us).is_some() && overlapping(&all, &team).is_some());
    }

    #[test]
    fn a_term_goes_on_while_the_lease_has_its_holder_and_number() {
        let us = us();
        let ours = with(&us, |seen| "b".clone_into(&mut seen.claim.holder)).claim;
        assert_eq!(goes_on(Some(&ours), &us, 4), Ok(()));
        assert_eq!(goes_on(Some(&ours), &us, 3), Err(Lost::Taken("b".to_owned())));
        assert_eq!(goes_on(Some(&held(&us).claim), &us, 4), Err(Lost::Taken("a".to_owned())));
        assert_eq!(goes_on(None, &us, 4), Err(Lost::Deleted));
    }

    #[test]
    fn a_refusal_names_both_sides_and_the_way_out() {
        let (us, team) = (us(), of_team("team-a"));
        let said = overlapping(&[held(&team)], &us).unwrap().to_string();
        assert_eq!(
            said,
            format!(
                "operator a of installation \"system/freehold\" acts for namespace team-a and holds Lease \
                kube-system/{}, and this one watches all namespaces: stop one of the two, or let them watch \
                different namespaces",
                team.scope.lease_name()
            )
        );
    }
}
