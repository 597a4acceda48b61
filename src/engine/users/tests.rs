//! Tables of the statements about users, and of what is read of one.

use super::*;

fn given(role: UserRole, databases: &[&str]) -> Rights {
    Rights { role, databases: databases.iter().map(|name| (*name).to_owned()).collect() }
}

fn mark(role: UserRole, databases: &[&str]) -> Mark {
    let rights = given(role, databases);
    Mark { uid: "6f1c2a54-6c3c".to_owned(), rights, password: "9d3e/2".to_owned(), change: None }
}

fn wanted(role: UserRole, before: Option<Mark>) -> WantedUser {
    let mark = mark(role, &["app", "audit-log"]);
    let (username, tried_in) = ("shop".to_owned(), "app".to_owned());
    WantedUser { username, mark, to_grant: Vec::new(), tried_in, before }
}

#[test]
fn a_comment_that_freehold_has_not_written_is_no_mark() {
    let changed = Mark { change: Some("pending-1a".to_owned()), ..mark(UserRole::Owner, &["app"]) };
    for mark in [mark(UserRole::Write, &["app", "audit_log"]), mark(UserRole::Read, &[]), changed] {
        assert_eq!(Mark::read(&mark.text()), Some(mark));
    }
    let of = |rest: &str| format!("freehold.dev/DatabaseUser 6f1c {rest}");
    for comment in [
        String::new(),
        "the shop".to_owned(),
        "freehold.dev/group 1".to_owned(),
        of("Write app"),
        of("Write app 9d3e/2 pending-1a more"),
        of("Write app 9d3e/2 "),
        of("Write app 9d3e/2 $freehold$"),
        of("Write app "),
        of("Write app $freehold$;"),
        of("Superuser app 9d3e/2"),
        of("Write a'pp 9d3e/2"),
    ] {
        assert_eq!(Mark::read(&comment), None, "{comment}");
    }
}

#[test]
fn a_role_that_is_read_says_whose_it_is_and_what_it_may_do() {
    let row = |comment: Option<&str>, is_privileged: &str| {
        read_role(&[vec![comment.map(str::to_owned), Some(is_privileged.to_owned())]])
    };
    let shown = |mark, is_privileged| Some(Some(ShownRole { mark, is_privileged }));
    assert_eq!(read_role(&[]), Some(None), "there is none");
    assert_eq!(row(None, "f"), shown(None, false));
    assert_eq!(row(Some("of the shop"), "t"), shown(None, true));
    assert_eq!(
        row(Some(&mark(UserRole::Read, &["app"]).text()), "f"),
        shown(Some(mark(UserRole::Read, &["app"])), false)
    );
    assert_eq!(read_role(&[vec![None]]), None, "another form");
}

#[test]
fn a_new_user_is_created_with_its_rights_and_no_password_in_plain_text() {
    let user = wanted(UserRole::Owner, None);
    let statement = change(&user, "1a", "SCRAM-SHA-256$4096:c2FsdA==$a:b");
    let lines = [
        "IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'shop') THEN RAISE EXCEPTION",
        "CREATE ROLE \"shop\";",
        "LOGIN INHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS",
        "PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$a:b';",
        "GRANT \"freehold_owner_app\" TO \"shop\";",
        "GRANT \"freehold_owner_audit-log\" TO \"shop\";",
        "ALTER ROLE \"shop\" IN DATABASE \"audit-log\" SET role TO \"freehold_owner_audit-log\";",
        "IS 'freehold.dev/DatabaseUser 6f1c2a54-6c3c Owner app,audit-log 9d3e/2 pending-1a';",
    ];
    let mut rest = statement.as_str();
    for line in lines {
        let (_, after) = rest.split_once(line).unwrap_or_else(|| panic!("no {line:?} in {statement}"));
        rest = after;
    }
    let confirmed = confirm(&user, "1a");
    let (from, to) = ("Owner app,audit-log 9d3e/2 pending-1a'", "Owner app,audit-log 9d3e/2'");
    assert!(confirmed.contains(&format!("pg_authid') = 'freehold.dev/DatabaseUser 6f1c2a54-6c3c {from}")));
    assert!(confirmed.contains(&format!("IS 'freehold.dev/DatabaseUser 6f1c2a54-6c3c {to}")));
}

#[test]
fn one_that_is_there_is_changed_only_as_it_was_read_and_has_all_rights_until_it_is_confirmed() {
    let before = Mark { password: "9d3e/1".to_owned(), ..mark(UserRole::Owner, &["app", "old"]) };
    let user = wanted(UserRole::Read, Some(before));
    let changed = change(&user, "1a", "SCRAM");
    let of = "'freehold.dev/DatabaseUser 6f1c2a54-6c3c Owner";
    assert!(changed.contains(&format!("= {of} app,old 9d3e/1')")), "{changed}");
    assert!(changed.contains(&format!("IS {of} app,audit-log,old 9d3e/2 pending-1a';")), "{changed}");
    assert!(!changed.contains("CREATE ROLE") && !changed.contains(" SET role TO"), "{changed}");
    assert!(!changed.contains(" LOGIN "), "a person may have revoked it: {changed}");
}

#[test]
fn sessions_end_where_a_right_is_taken_away() {
    let takes = |before: Option<Mark>| wanted(UserRole::Write, before).takes_away();
    assert!(!takes(None));
    assert!(!takes(Some(mark(UserRole::Write, &["app"]))), "another database is given");
    assert!(!takes(Some(mark(UserRole::Read, &["app", "audit-log"]))), "more is allowed");
    assert!(takes(Some(mark(UserRole::Owner, &["app"]))));
    assert!(takes(Some(mark(UserRole::Read, &["app", "old"]))));
    let other = Mark { uid: "other".to_owned(), ..mark(UserRole::Write, &["app"]) };
    let foreign = wanted(UserRole::Write, Some(other));
    assert!(foreign.takes_away(), "it was another DatabaseUser's");
    assert!(takes(Some(foreign.pending("1a"))), "and the operator ended before it was confirmed");
    let raised = wanted(UserRole::Owner, Some(mark(UserRole::Write, &["app"]))).pending("1a");
    assert!(takes(Some(raised)), "a raise that was interrupted, and set back");
}

#[test]
fn no_name_of_a_database_ends_a_statement() {
    for statement in [rights::on_what_comes("app'; --"), rights::on_what_is_there("app'; --")] {
        assert!(statement.contains("'freehold_read_app''; --'"), "{statement}");
    }
    let statement = databases(UserRole::Read, &["it's".to_owned()]);
    assert!(statement.contains("('it''s', 'freehold_read_it''s')"), "{statement}");
}

#[test]
fn what_is_not_the_users_of_this_mark_is_not_dropped() {
    let mark = mark(UserRole::Read, &["app"]);
    for statement in [lock_out("shop", &mark), disown("shop", &mark, "app"), drop_role("shop", &mark)] {
        let expected = "IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'shop'";
        assert!(statement.contains(expected), "{statement}");
    }
}
