//! The flush of the engine before a planned stop in the model of a Database's life: a PostgreSQL that serves
//! on a healthy machine is not ended by Freehold without it, and not more often for it.

use super::*;
use crate::controller::database::cause::RestartCause;
use crate::controller::database::plan::action::Flush;

/// How long it takes.
const TAKES: Duration = Duration::from_secs(3);

impl Life {
    pub(super) fn begin_flush(&mut self, flush: &Flush) {
        assert!(self.is_serving(), "an engine that does not serve is not flushed");
        assert_eq!(self.pod.as_ref().and_then(ResourceExt::uid), Some(flush.pod_uid.clone()));
        self.flush = FlushView::Running(self.now);
    }

    pub(super) fn settle_flush(&mut self) -> bool {
        let FlushView::Running(since) = self.flush else { return false };
        let has_ended = self.now >= later(since, TAKES);
        if has_ended {
            self.flush = FlushView::Ended(self.now);
        }
        has_ended
    }

    /// The engine is stopped.
    pub(super) fn check_flushed(&self) {
        let is_healthy = self.host().is_some_and(|host| host.is_reporting() && !host.is_lost);
        let may_have_next =
            self.credentials.as_ref().is_none_or(|secret| build::next_password(&secret.0).is_some());
        let is_owed = self.stores_password() && self.is_serving() && is_healthy && !may_have_next;
        if is_owed && !self.is_broken && !self.is_deleting() {
            assert!(
                matches!(self.flush, FlushView::Ended(_)),
                "it is stopped, and its flush {:?}",
                self.flush
            );
        }
    }
}

/// Whether a pod is ended that another client has altered.
pub(super) fn is_of_altered(action: &Action) -> bool {
    let causes = [RestartCause::AlteredTemplate, RestartCause::AlteredFiles];
    matches!(action, Action::ReplacePod(.., why) if causes.contains(why))
}

proptest! {
    #[test]
    fn postgresql_is_flushed_before_it_is_stopped_and_stopped_once_however_often_the_operator_is(
        change in prop_oneof![
            Just(Event::Types(&["m7i.large"])),
            Just(Event::Setting("60s")),
            Just(Event::Pause),
        ],
        restarts in prop::collection::vec((0..20usize, delays()), 0..6),
    ) {
        let mut life = Life::of_postgresql();
        let pods = life.pods_made;
        let waiting = life.come_to_rest(&[restarts, vec![(0, change), (30, Event::Resume)]].concat());
        life.check_ready(waiting.as_ref());
        prop_assert_eq!(life.pods_made, pods + 1);
    }

    #[test]
    fn a_postgresql_that_is_stopped_is_ready_again_whatever_was_lost_or_changed(
        change in prop_oneof![Just(Event::Types(&["m7i.large"])), Just(Event::Setting("60s"))],
        events in some(mishaps()),
    ) {
        let mut life = Life::of_postgresql();
        let waiting = life.come_to_rest(&[events, vec![(0, change)]].concat());
        life.check_ready(waiting.as_ref());
    }
}
