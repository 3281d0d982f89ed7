//! Builds SQL statements, and checks those that users wrote with a lexer. Pure.
//!
//! SQL of an administrator or of a pipeline's owner is run with the permissions of the database's owner. So it is
//! checked before: a script of indexes may contain only `CREATE [UNIQUE] INDEX` on the new table, and a condition
//! must be a single expression. Whatever the lexer does not recognise is rejected.

mod lexer;
#[cfg(test)]
mod tests;

use self::lexer::{MAX_TEXT, Statement, Token, Words, split};
use super::config::Config;
use super::crd::CyndiPipelineSpec;
use super::names::{READER, SCHEMA, Table, VIEW, quoted};

/// How much of a statement an error quotes.
const MAX_QUOTED: usize = 200;
/// The placeholder for the new table in a script.
const PLACE: &str = "{{.TableName}}";

/// The columns of a table; `last_check_in` was added last, and stays at the end.
const COLUMNS: &str = "\
id uuid PRIMARY KEY, account varchar(10), display_name varchar(200) NOT NULL, tags jsonb NOT NULL, \
updated timestamptz NOT NULL, created timestamptz NOT NULL, stale_timestamp timestamptz NOT NULL, system_profile jsonb NOT NULL, \
insights_id uuid, reporter varchar(255) NOT NULL, per_reporter_staleness jsonb NOT NULL, org_id varchar(36), groups jsonb, \
last_check_in timestamptz NOT NULL";

/// The columns of the view.
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

/// Why a text is not sent to a database. The error names the statement.
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

/// Returns the statements that create `table`, in their order.
///
/// # Errors
/// [`SqlError`] when a script of the spec or the ConfigMap contains more than is allowed.
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

/// Returns the statements that make the view show `table`; `anew` drops it first, because its columns differ.
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

/// Returns the quoted name of the view.
#[must_use]
pub fn view() -> String {
    format!("{}.{}", quoted(SCHEMA), quoted(VIEW))
}

/// Selects the inventory's hosts that belong into the table: `FROM` and `WHERE` of a query with the alias `h`.
///
/// # Errors
/// [`SqlError`] when a filter is more than a condition.
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
    /// Whether a join may return a host more than once.
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

    /// Returns a COPY statement for the ids in the order of their bytes, independent of collations.
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
    // Go templates allow blanks inside the braces.
    script.replace("{{ .TableName }}", PLACE).replace(PLACE, &table.to_string())
}

/// Returns the statement, if it creates an index of `table`.
fn index(table: &Table, what: &'static str, statement: Statement) -> Result<String, SqlError> {
    let mut words = Words(&statement.tokens);
    let mut begins = words.word("create");
    words.word("unique");
    begins &= words.word("index");
    // Not possible within a transaction, which creates the table.
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

/// Rejects a text that is more than one expression or clause.
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
    // A `;` at the end was parsed as the end of a statement; it must not appear in the middle of the query.
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
