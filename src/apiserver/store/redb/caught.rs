//! Turns panics of redb over damaged files into errors, without a backtrace.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use super::BackendError;

thread_local! {
    /// Whether a panic of this thread is expected.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Does `work` on the database; a panic of redb is an error that names what it found.
///
/// Whoever sees such an error uses the database no more: it is only dropped, which writes nothing after a panic.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, BackendError>) -> Result<T, BackendError> {
    hush();
    let before = EXPECTED.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    EXPECTED.set(before);
    outcome.unwrap_or_else(|panic| Err(BackendError(format!("it is damaged: {}", words(&*panic)))))
}

/// Panics of other threads, and of this one at other times, are told as before.
fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !EXPECTED.get() {
                before(info);
            }
        }));
    });
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it makes no sense");
    // An assertion tells the two values on lines of their own.
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_of_one_line() {
        let outcome: Result<(), _> = caught(|| panic!("page {} is not there\n  left: 1", 7));
        assert_eq!(outcome.unwrap_err().to_string(), "it is damaged: page 7 is not there");
        assert!(!EXPECTED.get());
        assert!(caught(|| Ok(1)).is_ok());
    }
}
