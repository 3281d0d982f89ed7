//! Rewrites OpenMetrics, which is what the library writes, as the Prometheus text format 0.0.4 that kube-apiserver sends: there the
//! declared name of a counter is that of its samples, and not all counters end in `_total`.

use std::fmt::Write as _;

/// Counters that kube-apiserver names without suffix.
const UNSUFFIXED: [&str; 4] = [
    "apiserver_admission_webhook_fail_open_count",
    "apiserver_admission_webhook_rejection_count",
    "authenticated_user_requests",
    "authentication_attempts",
];

/// Returns the same metrics in the Prometheus text format.
pub(super) fn plain(open: &str) -> String {
    let mut text = String::with_capacity(open.len());
    let mut help = "";
    for line in open.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let suffix = if kind == "counter" && !UNSUFFIXED.contains(&name) { "_total" } else { "" };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with('#') {
            let kept = UNSUFFIXED.into_iter().find_map(|name| {
                let rest = line.strip_prefix(name)?.strip_prefix("_total")?;
                Some((name, rest))
            });
            let (name, rest) = kept.unwrap_or(("", line));
            let _ = writeln!(text, "{name}{rest}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_declared_by_the_names_of_their_samples() {
        let open = "# HELP asked Requests.\n# TYPE asked counter\nasked_total{verb=\"GET\"} 1\n\
                    # HELP authentication_attempts Requests.\n# TYPE authentication_attempts counter\n\
                    authentication_attempts_total{result=\"success\"} 2\n\
                    # HELP open Streams.\n# TYPE open gauge\nopen 3\n# EOF\n";
        assert_eq!(
            plain(open),
            "# HELP asked_total Requests.\n# TYPE asked_total counter\nasked_total{verb=\"GET\"} 1\n\
             # HELP authentication_attempts Requests.\n# TYPE authentication_attempts counter\n\
             authentication_attempts{result=\"success\"} 2\n\
             # HELP open Streams.\n# TYPE open gauge\nopen 3\n"
        );
    }
}
