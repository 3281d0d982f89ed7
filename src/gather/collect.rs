//! Runs gatherers concurrently with a limit. They are isolated from each other: an error, a panic or a stall of one is
//! reported in its own row.

use std::num::NonZeroUsize;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};

use super::failure::Failure;
use super::gatherer::{Context, Gatherer, Run, Shared};
use super::shared_list::{self, Member};
use super::under_way::{Ended, UnderWay};

pub use super::under_way::{GATHERER_TIMEOUT, Row, Verdict};

/// Returns the default limit, four gatherers per CPU: they mostly wait for the API server, where more would only queue.
pub fn default_bound() -> NonZeroUsize {
    let cpus = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    cpus.saturating_mul(NonZeroUsize::new(4).unwrap_or(NonZeroUsize::MIN))
}

/// Runs `gatherers`, at most `bound` at a time; those that read the same list count as one. Rows are in the order of the table,
/// independent of the order in which gatherers end.
pub async fn collect(gatherers: Vec<&'static Gatherer>, context: &Context, bound: NonZeroUsize) -> Vec<Row> {
    let mut runs: Vec<BoxFuture<'_, Vec<(usize, Row)>>> = Vec::new();
    let mut lists: Vec<(Shared, Vec<Member>)> = Vec::new();
    for (at, gatherer) in gatherers.into_iter().enumerate() {
        match gatherer.run {
            Run::Alone(run) => {
                runs.push(alone(UnderWay::new(at, gatherer.id, context), run).map(|row| vec![row]).boxed());
            }
            Run::Each(list, begin) => match lists.iter_mut().find(|(known, _)| *known == list) {
                Some((_, members)) => members.push((at, gatherer.id, begin)),
                None => lists.push((list, vec![(at, gatherer.id, begin)])),
            },
        }
    }
    runs.extend(lists.into_iter().map(|(list, members)| shared_list::pass(list, members, context).boxed()));
    let rows: Vec<_> = stream::iter(runs).buffer_unordered(bound.get()).collect().await;
    let mut rows: Vec<_> = rows.into_iter().flatten().collect();
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

async fn alone(
    under_way: UnderWay,
    run: fn(Context) -> BoxFuture<'static, Result<(), Failure>>,
) -> (usize, Row) {
    let ended = match under_way.guard(|context| run(context)).await {
        Ok(()) => Ended::Well,
        Err(ended) => ended,
    };
    under_way.row(&ended)
}
