//! A play that is repeated until a process has died at each of its writes.

use super::testcluster::Moment;

/// More writes than any play has: one that goes on for ever fails.
const TOO_MANY: usize = 80;

/// Plays with a death at each write, by its number, in both moments; how many writes there are. `dies_at` answers the name of the
/// write, or none when the play was over before it.
pub(crate) async fn everywhere(mut dies_at: impl AsyncFnMut(usize, Moment) -> Option<String>) -> usize {
    for number in 0..TOO_MANY {
        let mut reached = false;
        for moment in [Moment::Before, Moment::After] {
            reached |= dies_at(number, moment).await.is_some();
        }
        if !reached {
            return number;
        }
    }
    panic!("more than {TOO_MANY} writes")
}
