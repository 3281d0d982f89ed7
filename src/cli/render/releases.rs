//! Renders the verdicts of several Kubernetes releases.

use std::fmt::Write as _;

use admit_analysis::releases::facts::Unknown;
use admit_analysis::releases::{FileReport, Release};
use serde_json::{Value, json};

use super::counted;
use crate::cli::Exit;
use crate::cli::process::Fault;

/// The verdicts of releases about files.
#[derive(Debug)]
pub(in crate::cli) struct Asked {
    pub(in crate::cli) files: Vec<FileReport>,
    pub(in crate::cli) unknown: Vec<&'static Unknown>,
    /// The message about documents that were not judged.
    pub(in crate::cli) late: String,
}

impl Asked {
    /// Whether some documents were not judged.
    pub(in crate::cli) fn is_late(&self) -> bool {
        self.files.iter().any(|file| file.late > 0)
    }
}

/// The result of a command in releases that agree.
#[derive(Debug)]
pub(in crate::cli) struct Run {
    pub(in crate::cli) releases: Vec<Release>,
    pub(in crate::cli) exit: Exit,
    /// The output of the command, or why it cannot run there.
    pub(in crate::cli) outcome: Result<String, Fault>,
}

/// Lists ascending releases: `1.29`, `1.29 and 1.30`, `1.29 to 1.33`, `1.29 and 1.31 to 1.37`.
pub(in crate::cli) fn told(releases: &[Release]) -> String {
    let mut runs: Vec<(Release, Release)> = Vec::new();
    for release in releases {
        match runs.last_mut() {
            Some((_, last)) if last.0.1.checked_add(1) == Some(release.0.1) => *last = *release,
            _ => runs.push((*release, *release)),
        }
    }
    let runs: Vec<String> = runs
        .into_iter()
        .map(|(first, last)| match last.0.1.saturating_sub(first.0.1) {
            0 => first.to_string(),
            1 => format!("{first} and {last}"),
            _ => format!("{first} to {last}"),
        })
        .collect();
    runs.join(" and ")
}

/// Renders a line per file with the releases that accept it; then what is unknown about the releases.
pub(in crate::cli) fn text(asked: &Asked, verbose: bool) -> String {
    let mut out = String::new();
    for file in &asked.files {
        if file.late > 0 {
            let documents = counted(file.late, "document");
            let _ = writeln!(out, "{}: undecided: {documents} {}", file.file, asked.late);
            continue;
        }
        let _ = match (file.first, file.taken.as_slice()) {
            (_, []) => writeln!(out, "{}: taken by none of the releases", file.file),
            (Some(first), taken) => {
                writeln!(out, "{}: taken by {}; from {first} on", file.file, told(taken))
            }
            (None, taken) => writeln!(out, "{}: taken by {}; not by later ones", file.file, told(taken)),
        };
    }
    out.push_str(&unknown_text(&asked.unknown, verbose));
    out
}

/// Renders what is unknown about the releases: the number, or if `verbose` each item.
pub(in crate::cli) fn unknown_text(unknown: &[&Unknown], verbose: bool) -> String {
    let mut out = String::new();
    if verbose {
        for Unknown { from, to, what } in unknown {
            let _ = writeln!(out, "not known, or not followed, {from} to {to}: {what}");
        }
    } else {
        let count = counted(unknown.len(), "thing");
        let _ = writeln!(
            out,
            "{count} not known, or not followed, of these releases: admit lint -v --kube-versions tells"
        );
    }
    out
}

/// Returns `[{"from", "to", "what"}]`.
pub(in crate::cli) fn unknown(unknown: &[&Unknown]) -> Vec<Value> {
    let row =
        |row: &&Unknown| json!({"from": row.from.to_string(), "to": row.to.to_string(), "what": row.what});
    unknown.iter().map(row).collect()
}

/// Returns `[{"file", "taken", "first", "undecided"}]`; for an undecided file, `taken` is empty and `first` is null.
pub(in crate::cli) fn json(files: &[FileReport]) -> Vec<Value> {
    let file = |file: &FileReport| {
        let known = file.late == 0;
        let taken: Vec<String> = file.taken.iter().filter(|_| known).map(ToString::to_string).collect();
        let first = file.first.filter(|_| known).map(|first| first.to_string());
        json!({"file": &*file.file, "taken": taken, "first": first, "undecided": file.late})
    };
    files.iter().map(file).collect()
}

/// Renders a block for each group of releases.
pub(in crate::cli) fn runs_text(runs: &[Run], not_known: &[&Unknown]) -> String {
    let mut out = String::new();
    for run in runs {
        let _ = writeln!(out, "in {}:", told(&run.releases));
        let text = run.outcome.as_ref().map_or_else(|fault| fault.message.as_str(), String::as_str);
        out.push_str(text);
        if !text.ends_with('\n') {
            out.push('\n');
        }
    }
    out.push_str(&unknown_text(not_known, false));
    out
}

/// Renders `{"releases": [{"releases", "exit", "result", "fault"}], "unknown": […]}`; the result is the output for one release.
pub(in crate::cli) fn runs_json(runs: &[Run], not_known: &[&Unknown]) -> String {
    let run = |run: &Run| {
        let releases: Vec<String> = run.releases.iter().map(ToString::to_string).collect();
        let result = run.outcome.as_ref().ok().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let fault = run.outcome.as_ref().err().map(|fault| &fault.message);
        json!({"releases": releases, "exit": run.exit.code(), "result": result, "fault": fault})
    };
    let runs: Vec<Value> = runs.iter().map(run).collect();
    super::json(&json!({"releases": runs, "unknown": unknown(not_known)}))
}

#[cfg(test)]
mod tests {
    use admit_analysis::releases::Releases;

    use super::told;

    #[test]
    fn releases_in_a_row_are_told_together() {
        let all: Vec<_> = Releases::all().iter().collect();
        assert_eq!(told(&all), "1.29 to 1.37");
        assert_eq!(told(&[all[0], all[1]]), "1.29 and 1.30");
        assert_eq!(told(&[all[0], all[2], all[3], all[4]]), "1.29 and 1.31 to 1.33");
    }
}
