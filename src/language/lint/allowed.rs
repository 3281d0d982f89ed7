//! Suppresses findings: by their code on the command line, or by a comment in the file.
//!
//! ```yaml
//! # admit:allow-file no-binding
//! validations:
//! # admit:allow type-check
//! - expression: object.spec.containers.all(c, has(c.resources.limits))
//!   message: '{{ }}' # admit:allow cel-in-message
//! ```

use std::collections::{HashMap, HashSet};

use admit_apimachinery::suggest::{self, did_you_mean};
use admit_policy::lint::{CODES, Finding, Severity};
use admit_policy::manifest::{LoadError, Position};

use super::codes;

/// The beginning of a suppression comment.
const MARK: &str = "# admit:allow";
/// The suffix of a comment that applies to the whole file.
const WHOLE_FILE: &str = "-file";

/// The findings that comments and the command line suppress.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    everywhere: HashSet<String>,
    /// By file.
    files: HashMap<String, HashSet<String>>,
    /// By file and line.
    lines: HashMap<(String, usize), HashSet<String>>,
    /// Findings about suppression comments that name no known code.
    pub(super) wrong: Vec<Finding>,
}

impl Allowed {
    pub(super) fn of(codes: &[String]) -> Self {
        Self { everywhere: codes.iter().cloned().collect(), ..Self::default() }
    }

    /// Adds the comments of a file.
    pub(super) fn read(&mut self, file: &str, text: &str) {
        if !text.contains(MARK) {
            return;
        }
        // The codes of comments on lines of their own, which apply to the next line with content.
        let mut waiting: HashSet<String> = HashSet::new();
        for (index, line) in text.lines().enumerate() {
            let number = index.saturating_add(1);
            let comment = comment(line);
            let mut codes = HashSet::new();
            for (column, code) in comment.iter().flat_map(|comment| &comment.codes) {
                match known(code) {
                    Ok(()) => {
                        codes.insert((*code).to_owned());
                    }
                    Err(problem) => {
                        let at = Position { line: number, column: *column };
                        self.wrong.push(wrong(file, at, problem));
                    }
                }
            }
            if comment.is_some_and(|comment| comment.whole_file) {
                self.files.entry(file.to_owned()).or_default().extend(codes);
                continue;
            }
            waiting.extend(codes);
            let says = line.trim_start();
            if !says.is_empty() && !says.starts_with('#') && !waiting.is_empty() {
                self.lines.insert((file.to_owned(), number), std::mem::take(&mut waiting));
            }
        }
    }

    /// Removes suppressed findings and returns their number.
    pub(super) fn take(&self, findings: &mut Vec<Finding>) -> usize {
        let all = findings.len();
        findings.retain(|finding| finding.severity == Severity::Error || !self.has(finding));
        all.saturating_sub(findings.len())
    }

    fn has(&self, finding: &Finding) -> bool {
        let file = finding.mistake.file.to_string();
        let of_file = self.files.get(&file);
        let of_line = self.lines.get(&(file, finding.mistake.position.line));
        [Some(&self.everywhere), of_file, of_line]
            .into_iter()
            .flatten()
            .any(|codes| codes.contains(finding.code))
    }
}

struct Comment<'l> {
    whole_file: bool,
    /// The codes, each with its column.
    codes: Vec<(usize, &'l str)>,
}

/// Parses the suppression comment of a line.
fn comment(line: &str) -> Option<Comment<'_>> {
    let (before, behind) = line.split_once(MARK)?;
    if !before.is_empty() && !before.ends_with(char::is_whitespace) {
        return None;
    }
    let (whole_file, list) = match behind.strip_prefix(WHOLE_FILE) {
        Some(list) => (true, list),
        None => (false, behind),
    };
    if !list.is_empty() && !list.starts_with(char::is_whitespace) {
        return None;
    }
    let mut column = line.chars().count().saturating_sub(list.chars().count()).saturating_add(1);
    let mut codes = Vec::new();
    for word in list.split([',', ' ', '\t']) {
        if !word.is_empty() {
            codes.push((column, word));
        }
        column = column.saturating_add(word.chars().count()).saturating_add(1);
    }
    Some(Comment { whole_file, codes })
}

/// Checks that the code can be suppressed; else returns why not and what to do.
fn known(code: &str) -> Result<(), (String, String)> {
    if codes::codes().any(|known| known == code) {
        return Ok(());
    }
    if codes::ERRORS.contains(&code) || codes::REFUSED.iter().any(|(known, _)| *known == code) {
        return Err((format!("`{code}` is an error, which cannot be silenced"), String::new()));
    }
    let meant = suggest::nearest(code, CODES.iter().map(|(known, _)| *known));
    Err((format!("`{code}` is no code of a finding"), did_you_mean(meant)))
}

fn wrong(file: &str, position: Position, (message, help): (String, String)) -> Finding {
    let mistake = LoadError { file: file.into(), position, field: String::new(), message };
    Finding { code: "unknown-code", severity: Severity::Warning, mistake, help }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(code: &'static str, line: usize) -> Finding {
        let position = Position { line, column: 1 };
        let mistake =
            LoadError { file: "a.yaml".into(), position, field: String::new(), message: String::new() };
        Finding { code, severity: Severity::Warning, mistake, help: String::new() }
    }

    #[test]
    fn comments_silence_their_line_or_their_file() {
        let text = "# admit:allow-file no-binding\n\
                    a: 1 # admit:allow type-check\n\
                    b: 1\n\
                    # admit:allow unused-params, constant-rule\n\
                    # why\n\
                    \n\
                    c: 1\n\
                    d: x# admit:allow type-check\n\
                    e: 1 # admit:allowed type-check\n";
        let mut allowed = Allowed::of(&["cel-in-message".to_owned()]);
        allowed.read("a.yaml", text);
        assert_eq!(allowed.wrong, []);
        for (code, line, silenced) in [
            ("no-binding", 3, true),
            ("type-check", 2, true),
            ("type-check", 3, false),
            ("unused-params", 7, true),
            ("constant-rule", 7, true),
            ("constant-rule", 4, false),
            ("type-check", 8, false),
            ("type-check", 9, false),
            ("cel-in-message", 1, true),
        ] {
            let mut findings = vec![finding(code, line)];
            assert_eq!(allowed.take(&mut findings) == 1, silenced, "{code} in line {line}");
        }
        let mut errors = vec![Finding { severity: Severity::Error, ..finding("no-binding", 1) }];
        assert_eq!(allowed.take(&mut errors), 0, "what a server refuses is no matter of taste");
    }

    #[test]
    fn comments_that_name_nothing_are_told() {
        let mut allowed = Allowed::default();
        allowed.read("a.yaml", "a: 1 # admit:allow type-check, typ-check refused\n");
        let told: Vec<_> = allowed
            .wrong
            .iter()
            .map(|found| (found.mistake.position.column, found.mistake.message.as_str(), found.help.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (32, "`typ-check` is no code of a finding", "did you mean `type-check`?"),
                (42, "`refused` is an error, which cannot be silenced", ""),
            ]
        );
    }
}
