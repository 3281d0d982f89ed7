//! Finds stack traces of Go programs in logs, and cuts a log to the lines around the first one.

use regex_automata::meta::Regex;

use super::super::super::failure::Failure;

/// Lines kept before a stack trace, which usually say what went wrong.
const BEFORE: usize = 20;
/// The longest stack trace that is kept whole, in lines.
const MAX_TRACE: usize = 40;
/// Lines of a longer one that are kept at its beginning (from the first line kept) and at its end.
const BEGINNING: usize = 35;
const END: usize = 5;

/// Finds lines such as `/src/main.go:12 +0x1d`.
pub(super) struct Traces(Regex);

impl Traces {
    pub(super) fn new() -> Result<Self, Failure> {
        let pattern = Regex::new(r"\.go:[0-9]+\s\+0x");
        let failure = |why: String| Failure::Unreadable { what: "logs".to_owned(), why };
        pattern.map(Self).map_err(|error| failure(error.to_string()))
    }

    pub(super) fn are_in(&self, log: &str) -> bool {
        self.0.is_match(log)
    }

    /// Returns the log from shortly before its first stack trace on; the middle of long traces is replaced by a note.
    pub(super) fn around_first(&self, log: &str) -> String {
        let lines: Vec<&str> = log.lines().collect();
        let mut hits = lines.iter().enumerate().filter(|(_, line)| self.are_in(line)).map(|(at, _)| at);
        let Some(first) = hits.next() else { return log.to_owned() };
        let last = hits.next_back().unwrap_or(first);
        let from = first.saturating_sub(BEFORE);
        if last - first <= MAX_TRACE {
            return lines[from..].join("\n");
        }
        let (to, resumed) = (from + BEGINNING, last - END);
        let suppressed = resumed - to;
        let (beginning, end) = (lines[from..to].join("\n"), lines[resumed..].join("\n"));
        format!("{beginning}\n... ({suppressed} stacktrace lines suppressed) ...\n{end}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(before: usize, trace: usize, after: usize) -> String {
        let lines = (0..before).map(|n| format!("before {n}"));
        let lines = lines.chain((0..trace).map(|n| format!("\t/src/main.go:{n} +0x1d")));
        lines.chain((0..after).map(|n| format!("after {n}"))).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_short_trace_stays_whole_with_what_stands_before_and_after() {
        let traces = Traces::new().unwrap();
        let cut = traces.around_first(&log(50, 30, 7));
        let lines: Vec<_> = cut.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[56]), (57, "before 30", "after 6"));
        assert_eq!(traces.around_first(&log(3, 1, 0)), log(3, 1, 0));
    }

    #[test]
    fn of_a_long_trace_beginning_and_end_stay() {
        let cut = Traces::new().unwrap().around_first(&log(100, 200, 3));
        let lines: Vec<_> = cut.lines().collect();
        assert_eq!((lines[0], lines[20]), ("before 80", "\t/src/main.go:0 +0x1d"));
        assert_eq!(lines[34], "\t/src/main.go:14 +0x1d");
        assert_eq!(lines[35], "... (179 stacktrace lines suppressed) ...");
        assert_eq!((lines[36], lines[41]), ("\t/src/main.go:194 +0x1d", "\t/src/main.go:199 +0x1d"));
        assert_eq!((lines.len(), lines[44]), (45, "after 2"));
    }

    #[test]
    fn text_without_a_trace_stays() {
        let traces = Traces::new().unwrap();
        assert!(!traces.are_in("main.go:12 started +0x"));
        assert_eq!(traces.around_first("a\nb"), "a\nb");
    }
}
