//! Tests generated statements, and scripts and conditions that are rejected.

use std::collections::BTreeMap;

use super::*;

fn table() -> Table {
    Table::parse("hosts_v1_5").unwrap()
}

fn config() -> Config {
    Config::read("n", &BTreeMap::new(), &BTreeMap::new(), &CyndiPipelineSpec::default()).unwrap()
}

fn with_indexes(script: &str) -> Result<Vec<String>, SqlError> {
    let spec =
        CyndiPipelineSpec { db_table_index_sql: Some(script.to_owned()), ..CyndiPipelineSpec::default() };
    make_table(&table(), &config(), &spec)
}

#[test]
fn indexes_on_the_new_table_are_taken() {
    for script in [
        "CREATE INDEX {{.TableName}}_a ON inventory.{{.TableName}} (account)",
        "create unique index on inventory.{{ .TableName }} using btree (id);",
        "CREATE INDEX IF NOT EXISTS x ON ONLY inventory.hosts_v1_5 (a); CREATE INDEX \"y;\" ON \"inventory\".\"hosts_v1_5\" (b);",
        "CREATE INDEX x ON inventory.{{.TableName}} (a) WHERE reporter = 'it''s; DROP TABLE x'",
        "CREATE INDEX x ON inventory.{{.TableName}} USING GIN ((system_profile -> 'a') jsonb_path_ops)",
    ] {
        let statements = with_indexes(script).unwrap();
        assert_eq!(
            statements[1..statements.len() - 1].len(),
            script.matches("ON ").count().max(1),
            "{statements:?}"
        );
    }
    assert_eq!(with_indexes(" ").unwrap().len(), 14);
}

#[test]
fn everything_else_is_refused_with_the_statement() {
    for script in [
        "DROP TABLE inventory.hosts_v1_4",
        "CREATE INDEX x ON inventory.{{.TableName}} (a); DROP VIEW inventory.hosts",
        "CREATE INDEX x ON inventory.hosts_v1_4 (a)",
        "CREATE INDEX x ON public.{{.TableName}} (a)",
        "CREATE INDEX x ON {{.TableName}} (a)",
        "CREATE INDEX CONCURRENTLY x ON inventory.{{.TableName}} (a)",
        "CREATE TABLE inventory.x (a int)",
        "CREATE INDEX x ON inventory.{{.TableName}}.y (a)",
        "CREATE INDEX x ON inventory.{{.TableName}}",
        "CREATE INDEX x ON inventory.\"{{.TableName}} (a)\" (a)",
        "CREATE UNIQUE UNIQUE INDEX x ON inventory.{{.TableName}} (a)",
        "CREATE OR REPLACE FUNCTION f() RETURNS int AS 'select 1' LANGUAGE sql",
        "BEGIN",
        "(",
        ")",
    ] {
        let error = with_indexes(script).unwrap_err();
        assert!(matches!(error, SqlError::NoIndex { .. }), "{script}: {error}");
    }
    let error = with_indexes("DROP  TABLE\n a").unwrap_err().to_string();
    assert_eq!(
        error,
        "dbTableIndexSQL may only be CREATE [UNIQUE] INDEX on the new table `{{.TableName}}`, not: DROP TABLE a"
    );
}

#[test]
fn what_cannot_be_read_safely_is_refused() {
    for script in [
        "CREATE INDEX x -- ON\n ON inventory.{{.TableName}} (a)",
        "CREATE INDEX x /* ; */ ON inventory.{{.TableName}} (a)",
        "CREATE INDEX x ON inventory.{{.TableName}} ($$a$$)",
        "CREATE INDEX x ON inventory.{{.TableName}} (E'\\'; DROP TABLE y; --')",
        "CREATE INDEX x ON inventory.{{.TableName}} ('\\')",
        "CREATE INDEX x ON inventory.{{.TableName}} (U&'a')",
        "CREATE INDEX x ON inventory.{{.TableName}} ('a",
        "CREATE INDEX \"x ON inventory.{{.TableName}} (a)",
        "CREATE INDEX x\0 ON inventory.{{.TableName}} (a)",
    ] {
        let error = with_indexes(script).unwrap_err();
        assert!(matches!(error, SqlError::Unread { .. }), "{script}: {error}");
    }
    assert!(matches!(with_indexes(&"a".repeat(MAX_TEXT + 1)), Err(SqlError::TooLong { .. })));
}

#[test]
fn an_own_table_comes_first_and_only_indexes_follow() {
    let made = |script: &str| {
        let config = Config { table: Some(script.to_owned()), ..config() };
        make_table(&table(), &config, &CyndiPipelineSpec::default())
    };
    let statements = made(
        "CREATE TABLE inventory.{{.TableName}} (id uuid); CREATE INDEX ON inventory.{{.TableName}} (id);",
    );
    assert_eq!(statements.unwrap()[0], "CREATE TABLE inventory.hosts_v1_5 (id uuid)");
    for wrong in [
        "",
        "DROP TABLE x",
        "CREATE TABLE inventory.hosts (id uuid)",
        "CREATE TABLE inventory.{{.TableName}} AS SELECT 1",
    ] {
        assert!(matches!(made(wrong), Err(SqlError::NoTable { .. })), "{wrong}");
    }
    let more = made("CREATE TABLE inventory.{{.TableName}} (id uuid); DROP TABLE x");
    assert!(matches!(more, Err(SqlError::NoIndex { what: "db.schema", .. })), "{more:?}");
}

#[test]
fn conditions_are_joined_and_stay_whole() {
    let filter = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    };
    let of = |filters: Vec<BTreeMap<String, String>>, insights_only| {
        let spec =
            CyndiPipelineSpec { additional_filters: filters, insights_only, ..CyndiPipelineSpec::default() };
        hosts_of_inventory(&config(), &spec, "canonical_facts ? 'insights_id'")
    };
    assert_eq!(of(vec![], false).unwrap().count(), "SELECT count(*) FROM \"public\".\"hosts\" h");
    let join = ("join", "JOIN groups g ON g.id = h.id");
    let both =
        of(vec![filter(&[("where", "a = 'it''s'"), join]), filter(&[("where", "b OR c"), join])], true)
            .unwrap();
    let rest = "FROM \"public\".\"hosts\" h JOIN groups g ON g.id = h.id WHERE (a = 'it''s') AND (b OR c) AND (canonical_facts ? 'insights_id')";
    assert_eq!(both.count(), format!("SELECT count(DISTINCT h.id) {rest}"));
    assert_eq!(
        both.ids(),
        format!("COPY (SELECT DISTINCT h.id::uuid AS id {rest} ORDER BY id) TO STDOUT (FORMAT binary)")
    );
    for wrong in
        ["a; DROP TABLE b", "a) OR (b", "a -- b", "a)) TO PROGRAM 'x' ((", "a;", "(a", "a /* b", "'", ";"]
    {
        assert!(of(vec![filter(&[("where", wrong)])], false).is_err(), "{wrong}");
        assert!(of(vec![filter(&[("join", wrong)])], false).is_err(), "{wrong}");
    }
}
