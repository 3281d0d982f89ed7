//! Shows progress on a terminal. Nothing is written to pipes and files, or for work that finishes within a second.

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The delay before progress is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// A progress display for work of many pieces, on one or several threads. The display is cleared when this is
/// dropped.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    begun: Instant,
    patience: Duration,
    /// Whether standard error is a terminal.
    on_terminal: bool,
    drawn: AtomicBool,
}

impl Progress {
    /// Starts a display for `pieces` pieces, if their number is known; `what` is the verb shown.
    pub(super) fn of(pieces: Option<usize>, what: &'static str) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self::patient(pieces, what, PATIENCE, io::stderr().is_terminal() && !dumb)
    }

    fn patient(pieces: Option<usize>, what: &'static str, patience: Duration, on_terminal: bool) -> Self {
        let length = pieces.and_then(|pieces| u64::try_from(pieces).ok());
        let template = match length {
            Some(_) => "{msg} [{bar:30}] {pos}/{len}",
            None => "{msg} {pos}",
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden());
        bar.set_style(style.progress_chars("=> "));
        bar.set_message(what);
        Self { bar, begun: Instant::now(), patience, on_terminal, drawn: AtomicBool::new(false) }
    }

    /// Counts one more piece as done.
    pub(super) fn step(&self) {
        if !self.on_terminal {
            return;
        }
        if !self.drawn.load(Ordering::Relaxed) && self.begun.elapsed() >= self.patience {
            self.draw_to(ProgressDrawTarget::stderr());
        }
        self.bar.inc(1);
    }

    fn draw_to(&self, target: ProgressDrawTarget) {
        if !self.drawn.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(target);
        }
    }

    /// Clears the display while `write` writes to the terminal.
    pub(super) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        if self.drawn.load(Ordering::Relaxed) { self.bar.suspend(write) } else { write() }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// Records what is written.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl Screen {
        fn add(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.add(text).and_then(|()| self.add("\n"))
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.add(text)
        }

        fn clear_line(&self) -> io::Result<()> {
            self.add("<cleared>")
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn long_work_is_drawn_and_leaves_nothing() {
        let screen = Screen::default();
        let progress = Progress::patient(Some(4), "checking", Duration::ZERO, true);
        progress.draw_to(ProgressDrawTarget::term_like(Box::new(screen.clone())));
        progress.step();
        progress.step();
        progress.bar.force_draw();
        let drawn = screen.0.lock().unwrap().clone();
        assert!(drawn.contains("checking [===============>"), "{drawn}");
        assert!(drawn.contains("] 2/4"), "{drawn}");
        progress.aside(|| screen.add("a line\n").unwrap());
        let after = screen.0.lock().unwrap().split_off(drawn.len());
        assert!(after.starts_with("<cleared>") && after.contains("a line\n"), "{after}");
        drop(progress);
        assert!(screen.0.lock().unwrap().trim_end().ends_with("<cleared>"), "{:?}", screen.0.lock());
    }

    #[test]
    fn short_work_and_work_without_a_terminal_are_not_drawn() {
        for (patience, on_terminal) in [(Duration::from_secs(3_600), true), (Duration::ZERO, false)] {
            let progress = Progress::patient(None, "reading", patience, on_terminal);
            (0..100).for_each(|_| progress.step());
            assert!(!progress.drawn.load(Ordering::Relaxed), "{patience:?} {on_terminal}");
        }
    }
}
