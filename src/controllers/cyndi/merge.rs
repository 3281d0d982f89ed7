//! Compares two sorted streams of ids as they arrive, in batches, in constant memory. Pure, but for the streams.
//!
//! INVARIANT: a stream that breaks or is out of order is an error. It is never mistaken for a stream that ends.

use std::cmp::Ordering;
use std::vec;

use futures::{Stream, StreamExt};
use uuid::Uuid;

/// The most differing ids of each side that are kept, for the log.
const MAX_SHOWN: usize = 51;

/// The differences between two sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    pub left: Side,
    pub right: Side,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    pub count: u64,
    /// How many ids the other side does not have.
    pub only: u64,
    /// The first of them, at most 51.
    pub shown: Vec<Uuid>,
}

impl Side {
    fn alone(&mut self, id: Uuid) {
        self.only += 1;
        if self.shown.len() < MAX_SHOWN {
            self.shown.push(id);
        }
    }
}

/// Two consecutive ids of a side that are equal or not in order.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq)]
#[error("ids came out of order: {1} after {0}")]
pub struct OutOfOrder(pub Uuid, pub Uuid);

/// Compares the streams to their ends.
///
/// # Errors
/// The first error of either stream.
pub async fn compare<E: From<OutOfOrder>>(
    left: impl Stream<Item = Result<Vec<Uuid>, E>>,
    right: impl Stream<Item = Result<Vec<Uuid>, E>>,
) -> Result<Difference, E> {
    let (left, right) = (std::pin::pin!(left), std::pin::pin!(right));
    let (mut left, mut right) = (Head::of(left), Head::of(right));
    let mut found = Difference::default();
    // Both are polled together at the start, so that neither database waits for the other.
    let (first, second) = futures::join!(left.next(&mut found.left), right.next(&mut found.right));
    let (mut l, mut r) = (first?, second?);
    loop {
        match (l, r) {
            (None, None) => return Ok(found),
            (Some(id), None) => {
                found.left.alone(id);
                l = left.next(&mut found.left).await?;
            }
            (None, Some(id)) => {
                found.right.alone(id);
                r = right.next(&mut found.right).await?;
            }
            (Some(one), Some(other)) => {
                let order = one.cmp(&other);
                match order {
                    Ordering::Less => found.left.alone(one),
                    Ordering::Greater => found.right.alone(other),
                    Ordering::Equal => {}
                }
                if order != Ordering::Greater {
                    l = left.next(&mut found.left).await?;
                }
                if order != Ordering::Less {
                    r = right.next(&mut found.right).await?;
                }
            }
        }
    }
}

struct Head<S> {
    stream: S,
    /// The rest of the last batch.
    ids: vec::IntoIter<Uuid>,
    last: Option<Uuid>,
}

impl<S: Stream<Item = Result<Vec<Uuid>, E>> + Unpin, E: From<OutOfOrder>> Head<S> {
    fn of(stream: S) -> Self {
        Self { stream, ids: vec::IntoIter::default(), last: None }
    }

    async fn next(&mut self, side: &mut Side) -> Result<Option<Uuid>, E> {
        let id = loop {
            if let Some(id) = self.ids.next() {
                break id;
            }
            match self.stream.next().await.transpose()? {
                Some(ids) => self.ids = ids.into_iter(),
                None => return Ok(None),
            }
        };
        if let Some(last) = self.last.replace(id).filter(|last| *last >= id) {
            return Err(OutOfOrder(last, id).into());
        }
        side.count += 1;
        Ok(Some(id))
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, stream};
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, PartialEq)]
    enum Error {
        Order(OutOfOrder),
        Broken,
    }

    impl From<OutOfOrder> for Error {
        fn from(order: OutOfOrder) -> Self {
            Self::Order(order)
        }
    }

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    /// Compares in batches of none, one, two and three ids.
    fn run(left: Vec<Result<Uuid, Error>>, right: Vec<Result<Uuid, Error>>) -> Result<Difference, Error> {
        compare(stream::iter(batches(left)), stream::iter(batches(right))).now_or_never().unwrap()
    }

    fn batches(ids: Vec<Result<Uuid, Error>>) -> Vec<Result<Vec<Uuid>, Error>> {
        let (mut batches, mut batch) = (vec![Ok(Vec::new())], Vec::new());
        for id in ids {
            match id {
                Ok(id) => batch.push(id),
                Err(error) => batches.extend([Ok(std::mem::take(&mut batch)), Err(error)]),
            }
            if batch.len() > batches.len() % 3 {
                batches.push(Ok(std::mem::take(&mut batch)));
            }
        }
        batches.push(Ok(batch));
        batches
    }

    fn ids(numbers: impl IntoIterator<Item = u128>) -> Vec<Result<Uuid, Error>> {
        numbers.into_iter().map(|number| Ok(id(number))).collect()
    }

    proptest! {
        #[test]
        fn it_says_what_sets_say(left in btree_set(0_u128..200, 0..120), right in btree_set(0_u128..200, 0..120)) {
            let found = run(ids(left.iter().copied()), ids(right.iter().copied())).unwrap();
            let only = |one: &std::collections::BTreeSet<u128>, other| one.difference(other).map(|n| id(*n)).collect::<Vec<_>>();
            let side = |one: &std::collections::BTreeSet<u128>, other| {
                let only = only(one, other);
                Side { count: one.len() as u64, only: only.len() as u64, shown: only.into_iter().take(51).collect() }
            };
            prop_assert_eq!(found, Difference { left: side(&left, &right), right: side(&right, &left) });
        }
    }

    #[test]
    fn cy_09_04_a_stream_that_breaks_never_looks_like_fewer_ids() {
        let mut broken = ids(0..3);
        broken.push(Err(Error::Broken));
        assert_eq!(run(broken, ids(0..5)), Err(Error::Broken));
        assert_eq!(run(ids(0..5), vec![Err(Error::Broken)]), Err(Error::Broken));
    }

    #[test]
    fn what_is_out_of_order_or_there_twice_is_an_error() {
        for wrong in [[1, 3, 2], [1, 2, 2]] {
            assert!(matches!(run(ids(wrong), ids(0..9)), Err(Error::Order(_))), "{wrong:?}");
            assert!(matches!(run(ids(0..9), ids(wrong)), Err(Error::Order(_))), "{wrong:?}");
        }
    }

    #[test]
    fn only_the_first_are_remembered() {
        let found = run(ids(0..1000), ids([])).unwrap();
        assert_eq!((found.left.only, found.left.shown.len(), found.right), (1000, 51, Side::default()));
    }
}
