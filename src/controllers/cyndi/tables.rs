//! Changes the database of an application: creates and drops tables, and switches the view.
//!
//! Each change is one transaction, which is rolled back if this process is no longer the leader: a process that was suspended
//! in the middle of it must not commit after another one has taken over. Nothing is dropped with CASCADE:
//! a table that a foreign view uses stays, and the error says so.

use std::time::Duration;

use deadpool_postgres::Transaction;
use tokio::time::sleep;
use tokio_postgres::error::SqlState;

use super::database::{Database, DatabaseError, asked};
use super::names::{SCHEMA, Table, VIEW, quoted};
use super::plan::View;
use super::sql::{self, Selection};
use crate::controllers::kit::fence::Fence;
use crate::telemetry::Secrets;

/// How long queries of the view may be blocked by switching it: if somebody holds a lock for longer, the switch is retried later.
const VIEW_LOCK: Duration = Duration::from_millis(90);
/// The number of attempts to switch the view in one pass, and the wait between them.
const VIEW_ATTEMPTS: u32 = 5;
const VIEW_WAIT: Duration = Duration::from_millis(200);

/// Selects this controller's tables; the pattern has no wildcard that a foreign name could match.
const TABLES: &str = "\
SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND c.relname ~ '^hosts_v1_[0-9]+$' ORDER BY 1";

const KIND: &str = "\
SELECT c.relkind::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
WHERE n.nspname = $1 AND c.relname = $2";

/// Selects what the view reads from the system catalog: `information_schema` omits tables of other roles.
const SHOWN: &str = "\
SELECT DISTINCT tn.nspname::text, t.relname::text FROM pg_catalog.pg_depend d \
JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid \
JOIN pg_catalog.pg_class v ON v.oid = r.ev_class \
JOIN pg_catalog.pg_namespace vn ON vn.oid = v.relnamespace \
JOIN pg_catalog.pg_class t ON t.oid = d.refobjid \
JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace \
WHERE d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass \
AND vn.nspname = $1 AND v.relname = $2 AND v.relkind = 'v' AND t.oid <> v.oid ORDER BY 1, 2";

impl Database {
    /// Lists this controller's tables.
    ///
    /// # Errors
    /// When the database fails, as for all of these.
    pub async fn tables(&mut self) -> Result<Vec<Table>, DatabaseError> {
        let secrets = self.secrets();
        let rows = asked("list the tables", &secrets, self.client()?.query(TABLES, &[&SCHEMA])).await?;
        Ok(rows.iter().filter_map(|row| row.try_get(0).ok()).filter_map(Table::parse).collect())
    }

    /// Returns the table that the view shows.
    ///
    /// # Errors
    /// Also when something else has its name.
    pub async fn view(&mut self) -> Result<View, DatabaseError> {
        let secrets = self.secrets();
        let client = self.client()?;
        let doing = "look at inventory.hosts";
        let kind = asked(doing, &secrets, client.query_opt(KIND, &[&SCHEMA, &VIEW])).await?;
        let Some(kind) = kind else { return Ok(View::Missing) };
        match kind.try_get(0).unwrap_or_default() {
            "v" => {}
            "r" | "p" => return Err(DatabaseError::NoView("a table")),
            "m" => return Err(DatabaseError::NoView("a materialized view")),
            _ => return Err(DatabaseError::NoView("something else")),
        }
        let rows = asked(doing, &secrets, client.query(SHOWN, &[&SCHEMA, &VIEW])).await?;
        let named = |at: usize, row: &tokio_postgres::Row| row.try_get::<_, String>(at).unwrap_or_default();
        let shown: Vec<_> = rows.iter().map(|row| (named(0, row), named(1, row))).collect();
        Ok(match shown.as_slice() {
            [(schema, table)] if schema == SCHEMA => {
                Table::parse(table).map_or_else(|| View::Other(table.clone()), View::Shows)
            }
            [] => View::Other("nothing".to_owned()),
            several => {
                View::Other(several.iter().map(|(_, table)| table.as_str()).collect::<Vec<_>>().join(","))
            }
        })
    }

    /// Creates a table with its indexes and privileges in one transaction.
    ///
    /// # Errors
    /// Also when a schema or a role is missing.
    pub async fn make(&mut self, statements: &[String]) -> Result<(), DatabaseError> {
        let (secrets, fence) = (self.secrets(), self.fence());
        let client = self.client()?;
        let doing = "make the table";
        let transaction = asked(doing, &secrets, client.transaction()).await?;
        all(&transaction, doing, &secrets, statements).await?;
        Fence::leave(fence.as_ref())?;
        asked(doing, &secrets, transaction.commit()).await
    }

    /// Switches the view to `table`. At every moment it shows this table or the previous one.
    ///
    /// # Errors
    /// Also when somebody holds a lock on the view for too long.
    pub async fn show(&mut self, table: &Table) -> Result<(), DatabaseError> {
        let mut anew = false;
        for _ in 1..VIEW_ATTEMPTS {
            match self.try_show(table, anew).await {
                Err(error) if is(&error, &SqlState::INVALID_TABLE_DEFINITION) && !anew => anew = true,
                Err(error) if is(&error, &SqlState::LOCK_NOT_AVAILABLE) => sleep(VIEW_WAIT).await,
                ended => return ended,
            }
        }
        self.try_show(table, anew).await
    }

    async fn try_show(&mut self, table: &Table, anew: bool) -> Result<(), DatabaseError> {
        let (secrets, fence) = (self.secrets(), self.fence());
        let client = self.client()?;
        let doing = "move the view inventory.hosts";
        let transaction = asked(doing, &secrets, client.transaction()).await?;
        let patience = format!("SET LOCAL lock_timeout = {}", VIEW_LOCK.as_millis());
        all(&transaction, doing, &secrets, &[patience]).await?;
        all(&transaction, doing, &secrets, &sql::show(table, anew)).await?;
        Fence::leave(fence.as_ref())?;
        asked(doing, &secrets, transaction.commit()).await
    }

    /// Drops a table that no view uses.
    ///
    /// # Errors
    /// Also when something depends on it.
    pub async fn drop_table(&mut self, table: &Table) -> Result<(), DatabaseError> {
        let statement = format!("DROP TABLE IF EXISTS {}", table.quoted());
        self.one("drop a table", &statement).await
    }

    /// Drops the view.
    ///
    /// # Errors
    /// Also when something depends on it.
    pub async fn drop_view(&mut self) -> Result<(), DatabaseError> {
        self.one("drop the view inventory.hosts", &format!("DROP VIEW IF EXISTS {}", sql::view())).await
    }

    /// Sets the password of a role by its verifier.
    ///
    /// # Errors
    /// Also when the role may not change its own password.
    pub async fn set_password(&mut self, role: &str, verifier: &str) -> Result<(), DatabaseError> {
        let statement = format!("ALTER ROLE {} PASSWORD '{verifier}'", quoted(role));
        self.one("set the password of a role", &statement).await
    }

    async fn one(&mut self, doing: &'static str, statement: &str) -> Result<(), DatabaseError> {
        let secrets = self.secrets();
        Fence::leave(self.fence().as_ref())?;
        asked(doing, &secrets, self.client()?.execute(statement, &[])).await.map(drop)
    }

    /// Counts the selected rows in a read-only transaction, whatever a filter's conditions do.
    ///
    /// # Errors
    /// Also when a condition fails.
    pub async fn count(&mut self, selection: &Selection) -> Result<u64, DatabaseError> {
        let secrets = self.secrets();
        let client = self.client()?;
        let doing = "count hosts";
        let transaction = asked(doing, &secrets, client.build_transaction().read_only(true).start()).await?;
        let count = counted(&transaction, selection, &secrets).await?;
        asked(doing, &secrets, transaction.commit()).await?;
        Ok(count)
    }
}

/// Counts the selected rows in an open transaction.
pub(super) async fn counted(
    transaction: &Transaction<'_>,
    selection: &Selection,
    secrets: &Secrets,
) -> Result<u64, DatabaseError> {
    let row = asked("count hosts", secrets, transaction.query_one(&selection.count(), &[])).await?;
    let count: i64 = row.try_get(0).unwrap_or_default();
    Ok(count.max(0).unsigned_abs())
}

/// Executes each statement with the extended protocol, so that one text cannot contain several statements.
async fn all(
    transaction: &Transaction<'_>,
    doing: &'static str,
    secrets: &Secrets,
    statements: &[String],
) -> Result<(), DatabaseError> {
    for statement in statements {
        asked(doing, secrets, transaction.execute(statement, &[])).await?;
    }
    Ok(())
}

fn is(error: &DatabaseError, state: &SqlState) -> bool {
    matches!(error, DatabaseError::Statement { code, .. } if code == state.code())
}
