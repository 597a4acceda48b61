//! The statements that give the three roles of a database their rights. They create the roles that are not
//! there.

use super::{group, group_mark};
use crate::api::database_user::UserRole;
use crate::api::keys::GROUP_COMMENT;
use crate::engine::verify::literal;

/// One at a time: two that change a row of a catalogue at once fail (`tuple concurrently updated`).
const IN_TURN: &str = "PERFORM pg_advisory_xact_lock(hashtextextended('the roles of a database', 0));";

/// The rights on what the administrator or an owner creates from now on in the database that this is a
/// connection to. Before those on what is there: a table that is created meanwhile has either.
pub fn on_what_comes(database: &str) -> String {
    let [read, write, owner] = holders(database);
    format!(
        "DO $freehold$ DECLARE
  holder name; creator name;
BEGIN
  {IN_TURN}
  FOREACH holder IN ARRAY ARRAY[{read}, {write}, {owner}]::name[] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = holder) THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN', holder);
      EXECUTE format('COMMENT ON ROLE %I IS %L', holder, '{GROUP_COMMENT}');
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = holder AND (rolcanlogin OR rolsuper OR rolcreaterole
        OR rolcreatedb OR rolreplication OR rolbypassrls
        OR coalesce(shobj_description(oid, 'pg_authid'), '') !~ '^{GROUP_COMMENT}')) THEN
      RAISE EXCEPTION 'role % exists and was not created by Freehold: rename it', quote_ident(holder);
    END IF;
  END LOOP;
  FOREACH creator IN ARRAY ARRAY[current_user, {owner}]::name[] LOOP
    FOREACH holder IN ARRAY ARRAY[{read}, {write}, {owner}]::name[] LOOP
      CONTINUE WHEN holder = creator;
      EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I GRANT USAGE ON SCHEMAS TO %I', creator, holder);
      EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I GRANT SELECT ON TABLES TO %I', creator, holder);
      EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I GRANT SELECT ON SEQUENCES TO %I', creator, holder);
      CONTINUE WHEN holder = {read};
      EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I GRANT INSERT, UPDATE, DELETE ON TABLES TO %I',
        creator, holder);
      EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I GRANT ALL ON SEQUENCES TO %I', creator, holder);
      CONTINUE WHEN holder = {write};
      EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I GRANT TRUNCATE ON TABLES TO %I',
        creator, holder);
    END LOOP;
  END LOOP;
END $freehold$"
    )
}

/// The rights on all that is there in the database that this is a connection to. The comments of the roles
/// say that they have them.
///
/// An owner has no right to make triggers of the administrator's tables, nor references to them: the
/// functions of a trigger, and of a cast that a reference needs, would run as the superuser. It creates in
/// `public` and in schemas of its own.
pub fn on_what_is_there(database: &str) -> String {
    let [read, write, owner] = holders(database);
    let (database, mark) = (literal(database), literal(&group_mark()));
    format!(
        "DO $freehold$ DECLARE
  holder name; place name;
BEGIN
  {IN_TURN}
  FOR place IN SELECT nspname FROM pg_namespace
      WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I, %I, %I', place, {read}, {write}, {owner});
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I, %I, %I', place, {read}, {write}, {owner});
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I TO %I, %I',
      place, {write}, {owner});
    EXECUTE format('GRANT TRUNCATE ON ALL TABLES IN SCHEMA %I TO %I', place, {owner});
    EXECUTE format('GRANT SELECT ON ALL SEQUENCES IN SCHEMA %I TO %I', place, {read});
    EXECUTE format('GRANT ALL ON ALL SEQUENCES IN SCHEMA %I TO %I, %I', place, {write}, {owner});
    CONTINUE WHEN place <> 'public';
    EXECUTE format('GRANT CREATE ON SCHEMA %I TO %I', place, {owner});
  END LOOP;
  EXECUTE format('GRANT CREATE ON DATABASE %I TO %I', {database}, {owner});
  FOREACH holder IN ARRAY ARRAY[{read}, {write}, {owner}]::name[] LOOP
    EXECUTE format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO %I', {database}, holder);
    EXECUTE format('COMMENT ON ROLE %I IS %L', holder, {mark});
  END LOOP;
END $freehold$"
    )
}

/// The three roles of a database, as literals.
fn holders(database: &str) -> [String; 3] {
    [UserRole::Read, UserRole::Write, UserRole::Owner].map(|role| literal(&group(role, database)))
}
