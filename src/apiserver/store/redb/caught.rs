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

/// Runs `work` on the database and turns a panic of redb into an error with the panic's message.
///
/// After such an error the caller only drops the database, which writes nothing after a panic.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, BackendError>) -> Result<T, BackendError> {
    hush();
    let before = EXPECTED.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    EXPECTED.set(before);
    outcome.unwrap_or_else(|panic| Err(BackendError(format!("it is damaged: {}", words(&*panic)))))
}

/// Silences expected panics of this thread; all others are reported as before.
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
    // An assertion prints its two values on further lines.
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
