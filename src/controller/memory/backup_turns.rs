//! Which Backup of each Database has its turn in this process: of two that are begun at the same moment, one
//! must not see the engine's checkpoint of the other as its own.
//!
//! One whose finalizer was removed outside Freehold goes without a pass: the next Backup of the Database ends
//! its turn. A restart forgets it: the status of a Backup that has begun says so, and the others wait for
//! that.

use std::collections::HashMap;

use parking_lot::Mutex;

/// The Backup that has its turn, by UID, of each Database, by namespace and name.
#[derive(Default)]
pub struct BackupTurns {
    turns: Mutex<HashMap<(String, String), String>>,
}

impl BackupTurns {
    /// Takes the turn; false while another Backup of the Database has it.
    pub fn take(&self, namespace: &str, database: &str, uid: &str) -> bool {
        let mut turns = self.turns.lock();
        let place = (namespace.to_owned(), database.to_owned());
        turns.entry(place).or_insert_with(|| uid.to_owned()) == uid
    }

    /// The Backup that has the turn of this Database.
    pub fn holder(&self, namespace: &str, database: &str) -> Option<String> {
        self.turns.lock().get(&(namespace.to_owned(), database.to_owned())).cloned()
    }

    /// The Backup is over, or gone.
    pub fn end(&self, uid: &str) {
        self.turns.lock().retain(|_, other| other != uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_backup_of_a_database_at_a_time_has_the_turn() {
        let turns = BackupTurns::default();
        assert!(turns.take("team-a", "orders", "one") && turns.take("team-a", "orders", "one"));
        assert!(!turns.take("team-a", "orders", "two") && turns.take("team-b", "orders", "two"));
        assert_eq!(turns.holder("team-a", "orders").as_deref(), Some("one"));
        turns.end("one");
        assert_eq!(turns.holder("team-a", "orders"), None);
        assert!(turns.take("team-a", "orders", "three") && !turns.take("team-a", "orders", "one"));
    }
}
