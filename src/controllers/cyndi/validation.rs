//! Compares a table with the inventory: each side in one snapshot of its database, with ids streamed and merged as
//! they arrive.

use std::pin::Pin;
use std::time::Duration;

use deadpool_postgres::Transaction;
use futures::{FutureExt, Stream, StreamExt, stream};
use tokio::time::timeout;
use tokio_postgres::{CopyOutStream, IsolationLevel};
use uuid::Uuid;

use super::copy::Decoder;
use super::database::{Database, DatabaseError, asked, within};
use super::merge;
use super::sql::Selection;
use super::tables::counted;
use super::verdict::Verdict;
use crate::telemetry::Secrets;

/// The time limit of a validation: fifty million ids take minutes.
const VALIDATION: Duration = Duration::from_mins(30);
const DOING: &str = "compare hosts";
/// The most ids in a batch: single ids of ten millions would each cost a step of a stream.
const BATCH: usize = 1024;

/// One side of the comparison: a database, and the selection of its rows.
#[derive(Debug)]
pub struct Source<'a> {
    pub database: &'a mut Database,
    pub selection: &'a Selection,
}

/// Compares the inventory with the table.
///
/// # Errors
/// [`DatabaseError`] when a database does not return everything: that is not a failed validation. The connections are closed then.
pub async fn validate(
    inventory: Source<'_>,
    table: Source<'_>,
    threshold: i64,
) -> Result<Verdict, DatabaseError> {
    let (left, right) = (inventory.database, table.database);
    let work = both((left, inventory.selection), (right, table.selection), threshold);
    let ended = match timeout(VALIDATION, work).await {
        Ok(ended) => ended,
        Err(_) => Err(DatabaseError::TooLong { doing: DOING, within: VALIDATION }),
    };
    if ended.is_err() {
        left.give_up();
        right.give_up();
    }
    ended
}

async fn both(
    left: (&mut Database, &Selection),
    right: (&mut Database, &Selection),
    threshold: i64,
) -> Result<Verdict, DatabaseError> {
    let (secrets_left, secrets_right) = (left.0.secrets(), right.0.secrets());
    let inventory = snapshot(left.0, &secrets_left).await?;
    let table = snapshot(right.0, &secrets_right).await?;
    let (hosts, rows) = futures::try_join!(
        counted(&inventory, left.1, &secrets_left),
        counted(&table, right.1, &secrets_right)
    )?;
    let verdict = match Verdict::by_counts(hosts, rows, threshold) {
        Some(hopeless) => hopeless,
        None => {
            let (of_inventory, of_table) = futures::try_join!(
                ids(&inventory, left.1, &secrets_left),
                ids(&table, right.1, &secrets_right)
            )?;
            Verdict::by_ids(merge::compare(of_inventory, of_table).await?, threshold)
        }
    };
    asked(DOING, &secrets_left, inventory.commit()).await?;
    asked(DOING, &secrets_right, table.commit()).await?;
    Ok(verdict)
}

/// Starts a read-only transaction on a snapshot of the database.
async fn snapshot<'a>(
    database: &'a mut Database,
    secrets: &Secrets,
) -> Result<Transaction<'a>, DatabaseError> {
    let start = database
        .client()?
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start();
    let transaction = asked(DOING, secrets, start).await?;
    let bound = VALIDATION.as_millis();
    let longer = format!("SET LOCAL statement_timeout = {bound}");
    asked(DOING, secrets, transaction.execute(&longer, &[])).await?;
    // One side may be idle while it waits for the other, which has much more data.
    let longer = format!("SET LOCAL idle_in_transaction_session_timeout = {bound}");
    asked(DOING, secrets, transaction.execute(&longer, &[])).await?;
    Ok(transaction)
}

async fn ids<'a>(
    transaction: &Transaction<'_>,
    selection: &Selection,
    secrets: &'a Secrets,
) -> Result<impl Stream<Item = Result<Vec<Uuid>, DatabaseError>> + use<'a>, DatabaseError> {
    let copy = asked(DOING, secrets, transaction.copy_out(&selection.ids())).await?;
    let reading = Reading { copy: Some(Box::pin(copy)), decoder: Decoder::default(), secrets };
    Ok(stream::try_unfold(reading, |mut reading| async move {
        let ids = reading.batch().await?;
        Ok(ids.map(|ids| (ids, reading)))
    }))
}

struct Reading<'a> {
    /// None after its end, since it must not be polled again.
    copy: Option<Pin<Box<CopyOutStream>>>,
    decoder: Decoder,
    secrets: &'a Secrets,
}

impl Reading<'_> {
    /// Returns the next batch of ids; None at the end.
    async fn batch(&mut self) -> Result<Option<Vec<Uuid>>, DatabaseError> {
        let Some(copy) = &mut self.copy else { return Ok(None) };
        let mut ids = Vec::with_capacity(BATCH);
        loop {
            while let Some(id) = self.decoder.take_id()? {
                ids.push(id);
            }
            if ids.len() >= BATCH {
                return Ok(Some(ids));
            }
            // Each row is a message: if one has arrived already, no timer is needed.
            let come = match copy.next().now_or_never() {
                Some(come) => {
                    come.transpose().map_err(|error| DatabaseError::of(DOING, &error, self.secrets))?
                }
                None if !ids.is_empty() => return Ok(Some(ids)),
                None => {
                    let next = async { copy.next().await.transpose() };
                    within(VALIDATION, DOING, self.secrets, next).await?
                }
            };
            match come {
                Some(bytes) => self.decoder.feed(&bytes),
                None => {
                    self.decoder.end()?;
                    self.copy = None;
                    return Ok(Some(ids));
                }
            }
        }
    }
}
