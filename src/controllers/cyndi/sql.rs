//! Builds SQL statements, and checks those that users wrote with a lexer. Pure.
//!
//! What an administrator or an owner of a pipeline writes is run with the rights of a database's owner. So it is
//! checked before: a script of indexes must be nothing but `CREATE [UNIQUE] INDEX` on the new table, and a condition
//! must be one expression that ends where it began. What the lexer does not know is refused, never passed on.

use super::config::Config;
use super::crd::CyndiPipelineSpec;
use super::names::{READER, SCHEMA, Table, VIEW, quoted};

/// Longest script or condition that is read: many times what indexes of a table with twelve columns take.
const MAX_TEXT: usize = 64 * 1024;
/// Most of a statement that an error quotes.
const MAX_QUOTED: usize = 200;
/// Where the name of the new table stands in a script.
const PLACE: &str = "{{.TableName}}";

/// The columns of a table; `last_check_in` came last, and stays there.
const COLUMNS: &str = "\
id uuid PRIMARY KEY, account varchar(10), display_name varchar(200) NOT NULL, tags jsonb NOT NULL, \
updated timestamptz NOT NULL, created timestamptz NOT NULL, stale_timestamp timestamptz NOT NULL, system_profile jsonb NOT NULL, \
insights_id uuid, reporter varchar(255) NOT NULL, per_reporter_staleness jsonb NOT NULL, org_id varchar(36), groups jsonb, \
last_check_in timestamptz NOT NULL";

/// What the view shows.
const VIEW_COLUMNS: &str = "\
id, account, display_name, created, updated, stale_timestamp, stale_timestamp + INTERVAL '7' DAY AS stale_warning_timestamp, \
stale_timestamp + INTERVAL '14' DAY AS culled_timestamp, tags, system_profile, insights_id, reporter, per_reporter_staleness, org_id, \
groups, last_check_in";

/// The default indexes: name, method and columns.
const INDEXES: [(&str, &str, &str); 12] = [
    ("account", "btree", "account"),
    ("org_id", "btree", "org_id"),
    ("display_name", "btree", "display_name"),
    ("last_check_in", "btree", "last_check_in"),
    ("stale_timestamp", "btree", "stale_timestamp"),
    ("insights_id", "btree", "insights_id"),
    ("insights_reporter", "btree", "reporter"),
    ("org_id_id", "btree", "org_id, id"),
    ("tags", "gin", "tags jsonb_path_ops"),
    ("system_profile", "gin", "system_profile jsonb_path_ops"),
    ("per_reporter_staleness", "gin", "per_reporter_staleness jsonb_path_ops"),
    ("groups", "gin", "groups jsonb_path_ops"),
];

/// Why a text is not sent to a database. It names the statement.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum SqlError {
    #[error("{what} has more than {MAX_TEXT} bytes")]
    TooLong { what: &'static str },
    #[error("{what} cannot be read as SQL: {why}")]
    Unread { what: &'static str, why: &'static str },
    #[error(
        "{what} may only be CREATE [UNIQUE] INDEX on the new table `{{{{.TableName}}}}`, not: {statement}"
    )]
    NoIndex { what: &'static str, statement: String },
    #[error("db.schema must begin with CREATE TABLE inventory.{{{{.TableName}}}} (…), not: {statement}")]
    NoTable { statement: String },
    #[error("{what} must be one condition without `;` and with all parentheses closed: {text}")]
    NoCondition { what: &'static str, text: String },
}

/// The statements that make `table`, in their order.
///
/// # Errors
/// [`SqlError`] where the spec or the ConfigMap has a script of its own that is more than it may be.
pub fn make_table(table: &Table, config: &Config, spec: &CyndiPipelineSpec) -> Result<Vec<String>, SqlError> {
    let mut statements = match &config.table {
        Some(script) => own_table(table, script)?,
        None => vec![format!("CREATE TABLE {} ({COLUMNS})", table.quoted())],
    };
    match spec.db_table_index_sql.as_deref().map(str::trim).filter(|script| !script.is_empty()) {
        Some(script) => statements.extend(own_indexes(table, "dbTableIndexSQL", script)?),
        None => statements.extend(INDEXES.map(|(name, method, columns)| {
            let index = quoted(&format!("{table}_{name}_index"));
            format!("CREATE INDEX {index} ON {} USING {method} ({columns})", table.quoted())
        })),
    }
    statements.push(format!("GRANT SELECT ON {} TO {}", table.quoted(), quoted(READER)));
    Ok(statements)
}

/// The statements that have the view show `table`; `anew` where its columns differ and it has to be made again.
#[must_use]
pub fn show(table: &Table, anew: bool) -> Vec<String> {
    let view = view();
    let select = format!("SELECT {VIEW_COLUMNS} FROM {}", table.quoted());
    let mut statements = if anew {
        vec![format!("DROP VIEW {view}"), format!("CREATE VIEW {view} AS {select}")]
    } else {
        vec![format!("CREATE OR REPLACE VIEW {view} AS {select}")]
    };
    statements.push(format!("GRANT SELECT ON {view} TO {}", quoted(READER)));
    statements
}

/// The view as SQL has it.
#[must_use]
pub fn view() -> String {
    format!("{}.{}", quoted(SCHEMA), quoted(VIEW))
}

/// Selects the inventory's hosts that belong into the table: `FROM` and `WHERE` of a query with the alias `h`.
///
/// # Errors
/// [`SqlError`] where a filter is more than a condition.
pub fn hosts_of_inventory(
    config: &Config,
    spec: &CyndiPipelineSpec,
    insights: &str,
) -> Result<Selection, SqlError> {
    let mut joins: Vec<&str> = Vec::new();
    let mut parts: Vec<String> = Vec::new();
    for filter in &spec.additional_filters {
        if let Some(join) = filter.get("join").map(|join| join.trim()).filter(|join| !join.is_empty()) {
            condition("the join of a filter", join)?;
            if !joins.contains(&join) {
                joins.push(join);
            }
        }
        if let Some(clause) = filter.get("where").map(|clause| clause.trim()).filter(|it| !it.is_empty()) {
            condition("the where of a filter", clause)?;
            parts.push(format!("({clause})"));
        }
    }
    if spec.insights_only {
        condition("the condition for hosts with an insights id", insights)?;
        parts.push(format!("({insights})"));
    }
    let mut from = format!("{}.{} h", quoted(&config.inventory_schema), quoted("hosts"));
    for join in &joins {
        from.push(' ');
        from.push_str(join);
    }
    let clause = if parts.is_empty() { String::new() } else { format!(" WHERE {}", parts.join(" AND ")) };
    Ok(Selection { rest: format!("FROM {from}{clause}"), joined: !joins.is_empty() })
}

/// A selection of rows: the part after the columns of a query whose table has the alias `h`.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    rest: String,
    /// A join may bring a host more than once.
    joined: bool,
}

impl Selection {
    /// Selects all rows of a pipeline's table, which is never filtered.
    #[must_use]
    pub fn all(table: &Table) -> Self {
        Self { rest: format!("FROM {} h", table.quoted()), joined: false }
    }

    #[must_use]
    pub fn count(&self) -> String {
        let what = if self.joined { "DISTINCT h.id" } else { "*" };
        format!("SELECT count({what}) {}", self.rest)
    }

    /// Streams the ids in the order of their bytes, which no collation touches.
    #[must_use]
    pub fn ids(&self) -> String {
        let distinct = if self.joined { "DISTINCT " } else { "" };
        format!(
            "COPY (SELECT {distinct}h.id::uuid AS id {} ORDER BY id) TO STDOUT (FORMAT binary)",
            self.rest
        )
    }
}

fn own_table(table: &Table, script: &str) -> Result<Vec<String>, SqlError> {
    let (first, rest) = {
        let mut statements = split("db.schema", &placed(table, script))?.into_iter();
        (statements.next(), statements.collect::<Vec<_>>())
    };
    let Some(first) = first else { return Err(SqlError::NoTable { statement: String::new() }) };
    let mut words = Words(&first.tokens);
    let is_ours = words.word("create")
        && words.word("table")
        && words.table(table, true)
        && words.next_is(&Token::Open);
    if !is_ours {
        return Err(SqlError::NoTable { statement: cut(&first.text) });
    }
    let mut statements = vec![first.text];
    for statement in rest {
        statements.push(index(table, "db.schema", statement)?);
    }
    Ok(statements)
}

fn own_indexes(table: &Table, what: &'static str, script: &str) -> Result<Vec<String>, SqlError> {
    split(what, &placed(table, script))?.into_iter().map(|statement| index(table, what, statement)).collect()
}

fn placed(table: &Table, script: &str) -> String {
    // Go's templates take blanks inside the braces.
    script.replace("{{ .TableName }}", PLACE).replace(PLACE, &table.to_string())
}

/// The statement, if it makes an index of `table`.
fn index(table: &Table, what: &'static str, statement: Statement) -> Result<String, SqlError> {
    let mut words = Words(&statement.tokens);
    let mut begins = words.word("create");
    words.word("unique");
    begins &= words.word("index");
    // Outside of a transaction only, which the table is made in.
    let concurrently = words.word("concurrently");
    if words.word("if") {
        words.word("not");
        words.word("exists");
    }
    let named = words.word("on") || (words.name() && words.word("on"));
    words.word("only");
    if begins && !concurrently && named && words.table(table, false) {
        Ok(statement.text)
    } else {
        Err(SqlError::NoIndex { what, statement: cut(&statement.text) })
    }
}

/// Refuses what is more than one expression or clause.
fn condition(what: &'static str, text: &str) -> Result<(), SqlError> {
    let statements = split(what, text)?;
    let [statement] = statements.as_slice() else {
        return Err(SqlError::NoCondition { what, text: cut(text) });
    };
    let mut depth = 0_usize;
    for token in &statement.tokens {
        match token {
            Token::Open => depth += 1,
            Token::Close if depth == 0 => return Err(SqlError::NoCondition { what, text: cut(text) }),
            Token::Close => depth -= 1,
            Token::Word(_) | Token::Quoted(_) | Token::Literal | Token::Sign(_) => {}
        }
    }
    // A `;` at the end was read as the end of a statement; it may not stand in the middle of ours.
    if depth == 0 && statement.text.len() == text.trim().len() {
        Ok(())
    } else {
        Err(SqlError::NoCondition { what, text: cut(text) })
    }
}

fn cut(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// Without quotes, in lower case.
    Word(String),
    /// Between double quotes.
    Quoted(String),
    /// A text or a number.
    Literal,
    Open,
    Close,
    Sign(char),
}

#[derive(Debug)]
struct Statement {
    text: String,
    tokens: Vec<Token>,
}

/// Walks over the tokens of a statement.
struct Words<'a>(&'a [Token]);

impl Words<'_> {
    fn take(&mut self, fits: impl Fn(&Token) -> bool) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if fits(first) => {
                self.0 = rest;
                true
            }
            Some(_) | None => false,
        }
    }

    fn word(&mut self, wanted: &str) -> bool {
        self.take(|token| *token == Token::Word(wanted.to_owned()))
    }

    fn name(&mut self) -> bool {
        self.take(|token| matches!(token, Token::Word(_) | Token::Quoted(_)))
    }

    fn called(&mut self, name: &str) -> bool {
        self.take(|token| matches!(token, Token::Word(word) | Token::Quoted(word) if word == name))
    }

    fn next_is(&self, token: &Token) -> bool {
        self.0.first() == Some(token)
    }

    /// `inventory.TABLE`, the last thing before something that ends a name.
    fn table(&mut self, table: &Table, only_parenthesis: bool) -> bool {
        let named = self.called(SCHEMA)
            && self.take(|token| *token == Token::Sign('.'))
            && self.called(&table.to_string());
        let ends = self.next_is(&Token::Open)
            || (!only_parenthesis && self.next_is(&Token::Word("using".to_owned())));
        named && ends
    }
}

/// The statements of a script, read by the rules of PostgreSQL. Comments are left out of nothing: they are refused.
fn split(what: &'static str, script: &str) -> Result<Vec<Statement>, SqlError> {
    if script.len() > MAX_TEXT {
        return Err(SqlError::TooLong { what });
    }
    let unread = |why| SqlError::Unread { what, why };
    let mut statements = Vec::new();
    let (mut tokens, mut from, mut at) = (Vec::new(), 0, 0);
    while let Some(rest) = script.get(at..).filter(|rest| !rest.is_empty()) {
        let (read, token) = next_token(rest).map_err(unread)?;
        if token == Some(Token::Sign(';')) {
            finish(script.get(from..at), std::mem::take(&mut tokens), &mut statements);
            from = at + read;
        } else {
            tokens.extend(token);
        }
        at += read;
    }
    finish(script.get(from..), tokens, &mut statements);
    Ok(statements)
}

fn finish(text: Option<&str>, tokens: Vec<Token>, statements: &mut Vec<Statement>) {
    if !tokens.is_empty() {
        statements.push(Statement { text: text.unwrap_or_default().trim().to_owned(), tokens });
    }
}

/// How many bytes the token at the start of `rest` has, and what it is; none for blanks.
fn next_token(rest: &str) -> Result<(usize, Option<Token>), &'static str> {
    let mut chars = rest.chars();
    let Some(first) = chars.next() else { return Ok((0, None)) };
    let second = chars.next();
    let word = |c: char| c == '_' || c == '$' || c.is_alphanumeric();
    Ok(match first {
        '\0' => return Err("it has a NUL character"),
        c if c.is_whitespace() => (c.len_utf8(), None),
        '-' if second == Some('-') => return Err("it has a comment"),
        '/' if second == Some('*') => return Err("it has a comment"),
        // Dollar quotes, and parameters that nobody gives.
        '$' => return Err("it has a `$` outside of quotes and names"),
        // With these in front a text follows rules of its own.
        'e' | 'E' | 'u' | 'U' | 'b' | 'B' | 'x' | 'X' | 'n' | 'N'
            if matches!(second, Some('\''))
                || rest.get(1..3) == Some("&'")
                || rest.get(1..3) == Some("&\"") =>
        {
            return Err("it has a text with a prefix, such as E'…'");
        }
        '\'' => {
            let length = closed(rest, '\'').ok_or("a text is not closed")?;
            // What stands between backslashes and quotes depends on a setting of the server.
            if rest.get(..length).is_some_and(|text| text.contains('\\')) {
                return Err("a text has a backslash");
            }
            (length, Some(Token::Literal))
        }
        '"' => {
            let length = closed(rest, '"').ok_or("a quoted name is not closed")?;
            let name = rest.get(1..length - 1).unwrap_or_default().replace("\"\"", "\"");
            (length, Some(Token::Quoted(name)))
        }
        '(' => (1, Some(Token::Open)),
        ')' => (1, Some(Token::Close)),
        c if c.is_ascii_digit() => {
            (rest.find(|c: char| !word(c) && c != '.').unwrap_or(rest.len()), Some(Token::Literal))
        }
        c if word(c) => {
            let length = rest.find(|c: char| !word(c)).unwrap_or(rest.len());
            (length, Some(Token::Word(rest.get(..length).unwrap_or_default().to_ascii_lowercase())))
        }
        other => (other.len_utf8(), Some(Token::Sign(other))),
    })
}

/// Bytes of what begins and ends with `quote`, in which two of them stand for one.
fn closed(rest: &str, quote: char) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            if chars.peek().is_some_and(|(_, next)| *next == quote) {
                chars.next();
            } else {
                return Some(at + 1);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
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
            let spec = CyndiPipelineSpec {
                additional_filters: filters,
                insights_only,
                ..CyndiPipelineSpec::default()
            };
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
}
