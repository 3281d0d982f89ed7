//! Reads one list for all gatherers that need it: each object is passed to one after the other, and dropped. The server lists it
//! once, and nothing of it is kept here.
//!
//! The gatherers are isolated all the same: one that fails, panics or is late leaves, and the list continues for the others.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::failure::Failure;
use super::gatherer::{Begin, Context, Look, Shared};
use super::gatherers;
use super::under_way::{Ended, GATHERER_TIMEOUT, Row, UnderWay, guard};

/// How long gatherers that are ready wait for the others, some of which may first have to query every node. Late ones read a list of
/// their own.
const JOINING: Duration = Duration::from_mins(1);

/// How long a gatherer may take for one object; the others wait meanwhile.
const LOOKING: Duration = Duration::from_secs(30);

/// Its index in the table, its id, and how it prepares.
pub(super) type Member = (usize, &'static str, Begin);

/// A gatherer that is ready to read the list.
struct Reader {
    under_way: UnderWay,
    look: Box<dyn Look>,
}

impl Reader {
    async fn begin((at, id, begin): Member, context: &Context) -> Result<Self, (usize, Row)> {
        let under_way = UnderWay::new(at, id, context);
        match under_way.guard(|context| begin(context)).await {
            Ok(look) => Ok(Self { under_way, look }),
            Err(ended) => Err(under_way.row(&ended)),
        }
    }

    async fn end(self) -> (usize, Row) {
        let Self { under_way, look } = self;
        let ended = match under_way.guard(|_| look.end()).await {
            Ok(()) => Ended::Well,
            Err(ended) => ended,
        };
        under_way.row(&ended)
    }
}

/// Shows `list` to all `members`, and returns their rows.
pub(super) async fn pass(list: Shared, members: Vec<Member>, context: &Context) -> Vec<(usize, Row)> {
    let mut begun: FuturesUnordered<_> =
        members.into_iter().map(|member| Reader::begin(member, context)).collect();
    let (mut ready, mut rows) = (Vec::new(), Vec::new());
    let joined = Instant::now() + JOINING;
    loop {
        tokio::select! {
            biased;
            next = begun.next() => match next {
                Some(Ok(reader)) => ready.push(reader),
                Some(Err(row)) => rows.push(row),
                None => break,
            },
            () = sleep_until(joined), if !ready.is_empty() => break,
        }
    }
    // Late gatherers do not wait for each other.
    let late = begun.map(async |next| match next {
        Ok(reader) => show(list, vec![reader], context).await,
        Err(row) => vec![row],
    });
    let late = late.buffer_unordered(usize::MAX).collect::<Vec<_>>();
    let (first, others) = tokio::join!(show(list, ready, context), late);
    rows.into_iter().chain(first).chain(others.into_iter().flatten()).collect()
}

/// Reads `list` once, as long as any gatherer remains.
async fn show(list: Shared, mut readers: Vec<Reader>, context: &Context) -> Vec<(usize, Row)> {
    // They were started together.
    let deadline = readers.iter().map(|reader| reader.under_way.deadline()).min();
    let deadline = deadline.unwrap_or_else(|| Instant::now() + GATHERER_TIMEOUT);
    let mut rows = Vec::new();
    let mut listing = gatherers::listing(list, context);
    let over = loop {
        if readers.is_empty() {
            return rows;
        }
        match guard(deadline, listing.next()).await {
            Ok(Some(object)) => show_one(&object, &mut readers, &mut rows).await,
            Ok(None) => break None,
            Err(ended) => break Some(ended),
        }
    };
    if let Some(ended) = over {
        rows.extend(readers.into_iter().map(|reader| reader.under_way.row(&ended)));
        return rows;
    }
    for warning in listing.warnings() {
        readers.iter().for_each(|reader| reader.under_way.warn(warning.clone()));
    }
    rows.extend(join_all(readers.into_iter().map(Reader::end)).await);
    rows
}

/// Shows `object` to each gatherer; those that fail or stall leave.
async fn show_one(object: &Value, readers: &mut Vec<Reader>, rows: &mut Vec<(usize, Row)>) {
    let mut next = 0;
    while let Some(reader) = readers.get_mut(next) {
        let looked = guard(Instant::now() + LOOKING, reader.look.at(object)).await;
        let ended = match looked {
            Ok(()) => {
                next += 1;
                continue;
            }
            Err(Ended::Late) => Ended::Failed(Arc::new(Failure::Timeout(LOOKING))),
            Err(ended) => ended,
        };
        rows.push(readers.swap_remove(next).under_way.row(&ended));
    }
}
