//! Every sentence about a DatabaseUser, in a golden file: a changed one shows in a review.

use super::*;
use crate::controller::database_user::messages;
use crate::controller::tests::golden::{Sentence, compare_sentences, complete, variant};

#[test]
fn every_sentence_is_in_the_golden_file() {
    let (shop, orders, name) = (|| "shop".to_owned(), || "orders".to_owned(), || "shop-user".to_owned());
    let waits = complete(vec![
        UserWait::NoDatabase(orders()),
        UserWait::DatabaseDeleting(orders()),
        UserWait::NoUsers("questdb"),
        UserWait::NoUsers("custom"),
        UserWait::SecretTaken(name()),
        UserWait::SecretUnreadable(name(), "secrets \"shop-user\" is forbidden".to_owned()),
        UserWait::SecretDamaged(name(), "the key password is missing or empty".to_owned()),
        UserWait::WritingSecret,
        UserWait::EngineNotReady(orders()),
        UserWait::EngineUnreadable("no connection to the engine at 10.0.0.1: refused".to_owned()),
        UserWait::NoSuchDatabases(vec!["audit".to_owned(), "stock".to_owned()]),
        UserWait::Foreign(shop()),
        UserWait::Privileged(shop()),
        UserWait::Taken { username: shop(), by: "store".to_owned() },
        UserWait::NotLetIn(shop(), "role \"shop\" is not permitted to log in".to_owned()),
        UserWait::Giving(shop()),
        UserWait::Rotating,
        UserWait::Dropping(shop()),
        UserWait::Kept(Box::new(UserWait::EngineNotReady(orders()))),
    ]);
    let waits = waits
        .iter()
        .map(|wait| Sentence::wait(variant(wait), wait.reason(), wait.is_stalled(), wait.message()));
    let databases = ["app", "audit"];
    let others = [
        Sentence::other("condition Ready", messages::READY.to_owned()),
        Sentence::other("event UserCreated", messages::events::created("shop", "Write", &databases)),
        Sentence::other("event UserChanged", messages::events::changed("shop", "Read", &databases)),
        Sentence::other("event PasswordRotated", messages::events::rotated("shop-user", 2)),
        Sentence::other("event UserDropped", messages::events::dropped("shop")),
    ];
    compare_sentences("database_user", &waits.chain(others).collect::<Vec<_>>());
}
