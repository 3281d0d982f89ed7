//! Whether privileged containers are refused: by a server as a whole, so that nothing of an object tells.

use std::cell::Cell;

thread_local! {
    /// Whether the server refuses them for which this thread validates at this moment.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Validates with `judge`, for a server that refuses privileged containers or does not.
pub(crate) fn refused_if<T>(refused: bool, judge: impl FnOnce() -> T) -> T {
    /// Work may be unwound from.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            REFUSED.set(self.0);
        }
    }
    let _before = Before(REFUSED.replace(refused));
    judge()
}

pub(super) fn are_refused() -> bool {
    REFUSED.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_refuses_is_not_refused_by_the_next() {
        refused_if(true, || {
            assert!(are_refused());
            refused_if(false, || assert!(!are_refused()));
            assert!(are_refused());
        });
        assert!(!are_refused());
    }
}
