//! Controls whether privileged containers are refused: a setting of the server, which validation gets by thread.

use std::cell::Cell;

thread_local! {
    /// Whether the server for which this thread validates refuses them.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Runs the validation `judge` with privileged containers refused or allowed.
pub(crate) fn refused_if<T>(refused: bool, judge: impl FnOnce() -> T) -> T {
    /// Restores the former setting, even after a panic.
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
