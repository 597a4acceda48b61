//! What a user leaves that is dropped, what Freehold has not created, and the users in restored data.

use freehold::api::database_user::UserRole;
use freehold::engine::client::{Access, Engines as _, PgWire};
use freehold::engine::users::{Login, Mark, WantedUser};
use pretty_assertions::assert_eq;

use super::{may, may_not, of, put, shown, user, with_shop};
use crate::postgresql::{connected, on_each_major, sql};

#[tokio::test]
async fn a_dropped_user_leaves_what_it_owned_and_is_dropped_in_every_database() {
    on_each_major(async |_server, access| {
        let shop = with_shop(&access).await;
        let wanted = user("shop", UserRole::Owner, 1, None);
        put(&access, &wanted, 1).await.unwrap();
        put(&access, &user("other", UserRole::Owner, 1, None), 1).await.unwrap();
        may(&of(&access, "shop", 1), "CREATE TABLE groups (id int); RESET ROLE; CREATE TABLE own (id int)")
            .await;
        sql(&access, "CREATE DATABASE aside; ").await;
        sql(&access, "CREATE DATABASE of_shop OWNER shop").await;
        let aside = Access { database: "aside".to_owned(), ..access.clone() };
        let given = "CREATE TABLE given (id int); ALTER TABLE given OWNER TO shop; \
        CREATE FUNCTION does(what text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER \
        AS $$ BEGIN EXECUTE what; END $$; ALTER FUNCTION does(text) OWNER TO shop; \
        GRANT CREATE ON SCHEMA public TO shop";
        sql(&aside, given).await;
        let (open, _connection) = connected(&of(&access, "shop", 1)).await.unwrap();
        PgWire.drop_user(&access, "shop", &wanted.mark).await.unwrap();
        assert!(open.batch_execute("SELECT 1").await.is_err(), "its sessions end");
        assert_eq!(shown(&access, "shop", UserRole::Owner).await.role, None);
        assert!(PgWire.drop_user(&access, "shop", &wanted.mark).await.is_err(), "it is not there");
        may(
            &of(&access, "other", 1),
            "ALTER TABLE own ADD COLUMN x int; ALTER TABLE groups ADD COLUMN x int",
        )
        .await;
        sql(&shop, "SELECT * FROM own").await;
        sql(&aside, "SELECT * FROM given").await;
        let left = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'of_shop' \
        UNION SELECT pg_get_userbyid(proowner) FROM pg_proc WHERE proname = 'does'";
        let (client, _of_client) = connected(&aside).await.unwrap();
        let left = client.query_one(left, &[]).await.unwrap().get::<_, String>(0);
        assert_eq!(left, "freehold_left", "a function of the user's does not run as a superuser");
        let does = Access { database: "aside".to_owned(), ..of(&access, "other", 1) };
        may_not(&does, "SELECT does('CREATE ROLE another SUPERUSER')").await;
        let foreign = PgWire.drop_user(&access, "admin", &wanted.mark).await;
        assert!(foreign.is_err(), "without the comment nothing is dropped");
    })
    .await;
}

#[tokio::test]
async fn what_freehold_has_not_created_is_seen_and_a_database_that_is_created_anew_lacks_its_rights() {
    on_each_major(async |_server, access| {
        with_shop(&access).await;
        sql(&access, "CREATE ROLE shop LOGIN CREATEROLE; COMMENT ON ROLE shop IS 'of the shop'").await;
        let role = shown(&access, "shop", UserRole::Read).await.role.unwrap();
        assert_eq!((role.mark, role.is_privileged), (None, true));
        assert!(put(&access, &user("shop", UserRole::Read, 1, None), 1).await.is_err());
        sql(&access, "DROP OWNED BY shop; DROP ROLE shop").await;
        let of_groups =
            "SELECT string_agg(quote_ident(rolname), ', ') FROM pg_roles WHERE rolname LIKE 'freehold%'";
        let (client, _connection) = connected(&access).await.unwrap();
        assert!(client.query_one(of_groups, &[]).await.unwrap().get::<_, Option<String>>(0).is_some());

        sql(&access, "CREATE DATABASE stock").await;
        sql(&access, "CREATE ROLE freehold_write_stock LOGIN").await;
        let mut buyer = user("buyer", UserRole::Read, 1, None);
        buyer.to_grant = vec!["stock".to_owned()];
        let taken = put(&access, &buyer, 1).await.unwrap_err().to_string();
        assert!(
            taken.contains("role freehold_write_stock exists and was not created by Freehold"),
            "{taken}"
        );
        put(&access, &user("buyer", UserRole::Read, 1, None), 1).await.unwrap();
        assert_eq!(shown(&access, "buyer", UserRole::Read).await.lacking, Vec::<String>::new());
        sql(&access, "DROP DATABASE shop").await;
        assert_eq!(shown(&access, "buyer", UserRole::Read).await.missing.len(), 2);
        sql(&access, "CREATE DATABASE shop").await;
        assert_eq!(shown(&access, "buyer", UserRole::Read).await.lacking, ["shop"]);
    })
    .await;
}

/// The settings and the statements with which the engine's start locks users in restored data.
fn of_start() -> (Vec<&'static str>, &'static str) {
    let start = include_str!("../../../../src/engine/postgresql/start.sh");
    let between = |from: &str, to: &str| start.split_once(from).unwrap().1.split_once(to).unwrap().0;
    let alone = between("postgres --single -D \"$PGDATA\" \"$@\" ", " postgres >/dev/null");
    let settings = alone.split(" -c ").map(|part| part.trim_matches([' ', '\\', '\n']));
    let settings = settings.map(|setting| setting.trim_start_matches("-c "));
    let settings = settings.filter(|setting| !setting.starts_with("config_file=")).collect();
    (settings, between("<<'STATEMENTS'\n", "STATEMENTS\n"))
}

/// What a user may leave in `public` of the administrator's database on PostgreSQL 14: an operator that is
/// taken for the one that compares ids.
const HOSTILE: &str = "CREATE FUNCTION hostile(oid, regclass) RETURNS bool LANGUAGE plpgsql AS \
    $$ BEGIN RAISE EXCEPTION 'a user of the data runs as a superuser'; END $$; \
    CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = hostile)";

#[tokio::test]
async fn users_in_restored_data_are_locked_until_their_database_user_lets_them_in_again() {
    on_each_major(async |mut server, access| {
        with_shop(&access).await;
        let made = user("shop", UserRole::Owner, 1, None);
        for name in ["shop", "dropped", "locked"] {
            put(&access, &user(name, UserRole::Owner, 1, None), 1).await.unwrap();
        }
        sql(
            &access,
            "ALTER ROLE locked NOLOGIN; CREATE ROLE person LOGIN; COMMENT ON ROLE person IS 'a b c'",
        )
        .await;
        // A database may be called as a comment of a user that is taken over begins.
        let of_name = "CREATE ROLE named LOGIN; \
        COMMENT ON ROLE named IS 'freehold.dev/DatabaseUser uid Owner taken-x secret/1'";
        sql(&access, of_name).await;
        sql(&access, HOSTILE).await;
        sql(&access, "CHECKPOINT").await;
        server.kill();
        let (settings, statements) = of_start();
        assert!(settings.contains(&"search_path=pg_catalog"), "{settings:?}");
        // What was interrupted is done again.
        for statements in [statements.lines().next().unwrap(), statements] {
            server.carry_out_alone(&settings, &format!("{statements}\n")).await.unwrap();
        }
        server.start().await.unwrap();
        let (client, _connection) = connected(&access).await.unwrap();
        let open = "SELECT string_agg(rolname, ' ' ORDER BY rolname) FROM pg_roles WHERE rolcanlogin";
        assert_eq!(client.query_one(open, &[]).await.unwrap().get::<_, String>(0), "admin person");

        let found = shown(&access, "shop", UserRole::Owner).await.role.unwrap().mark.unwrap();
        assert_eq!((&found.uid, &found.rights), (&made.mark.uid, &made.mark.rights));
        assert_eq!(found.change.as_deref(), Some("pending-restored"));
        let named = shown(&access, "named", UserRole::Owner).await.role.unwrap().mark.unwrap();
        assert_eq!(named.change.as_deref(), Some("pending-restored"), "it is not taken over");
        put(&access, &WantedUser { before: Some(found), ..made.clone() }, 1).await.unwrap();
        may(&of(&access, "shop", 1), "CREATE TABLE new (id int)").await;
        let found = shown(&access, "locked", UserRole::Owner).await.role.unwrap().mark.unwrap();
        assert_eq!(
            found,
            user("locked", UserRole::Owner, 1, None).mark,
            "a person has locked it, and it stays so"
        );
        let other = user("dropped", UserRole::Read, 2, None);
        let found = shown(&access, "dropped", UserRole::Read).await.role.unwrap().mark.unwrap();
        let taking = Mark { uid: "another".to_owned(), ..other.mark };
        put(&access, &WantedUser { mark: taking, before: Some(found), ..other }, 2).await.unwrap();
        assert_eq!(PgWire.login(&of(&access, "dropped", 2)).await.unwrap(), Login::In);
    })
    .await;
}
