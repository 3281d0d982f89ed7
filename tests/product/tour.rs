//! The README's tour, line by line, with the real kubectl: what a line prints is what the README says it prints.
//!
//! In the tour's block a line `#> text` says what the command above it prints; `…` stands for anything. A command whose
//! text tells of an error must fail, every other must succeed.

use std::fs;
use std::process::{Command, Stdio};

use crate::repository::root;
use crate::running::Workplace;

pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) prints: Vec<String>,
}

impl Step {
    fn fails(&self) -> bool {
        let fails = |line: &String| {
            ["Error from server", "error: "].iter().any(|error| line.starts_with(error))
                || line.contains("is invalid:")
        };
        self.prints.iter().any(fails)
    }
}

/// The fenced block of the README that follows a mark: `<!-- MARK:`.
pub(crate) fn fenced(mark: &str, language: &str) -> String {
    fenced_in("README.md", mark, language)
}

/// The same of any document of the repository.
pub(crate) fn fenced_in(document: &str, mark: &str, language: &str) -> String {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let (_, after) = text.split_once(&format!("<!-- {mark}:")).unwrap();
    let (_, block) = after.split_once(&format!("```{language}\n")).unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

/// The commands of the fenced block of the README that follows a mark: `<!-- MARK:`.
pub(crate) fn marked(mark: &str) -> Vec<Step> {
    steps(&fenced(mark, "sh"))
}

/// The commands of a transcript, each with what it prints.
pub(crate) fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        if let Some(text) = line.strip_prefix("#> ") {
            steps.last_mut().unwrap().prints.push(text.to_owned());
        } else if !line.is_empty() && !line.starts_with('#') {
            steps.push(Step { command: line.to_owned(), prints: Vec::new() });
        }
    }
    steps
}

/// Whether the real kubectl is at hand; says so when it is not.
pub(crate) fn has_kubectl() -> bool {
    let found = Command::new("kubectl").arg("version").arg("--client").stdout(Stdio::null()).status().is_ok();
    if !found {
        testing::skip(testing::Need::Kubectl, "there is no kubectl on the PATH");
    }
    found
}

/// Runs the commands one after the other; answers what was not as it should be.
pub(crate) fn played(place: &Workplace, steps: &[Step]) -> Vec<String> {
    let mut exports = format!("export KUBECONFIG={}\n", place.kubeconfig().display());
    let mut wrong = Vec::new();
    for step in steps {
        if step.command.starts_with("export ") {
            exports.push_str(&step.command);
            exports.push('\n');
            continue;
        }
        let output = Command::new("bash")
            .arg("-c")
            .arg(format!("{exports}{}", step.command))
            .current_dir(place.path())
            .env("HOME", place.path())
            .output()
            .unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        if output.status.success() == step.fails() {
            wrong.push(format!("$ {}\nended with {}:\n{text}", step.command, output.status));
        }
        for expected in &step.prints {
            if !text.lines().any(|line| matches(expected, line)) {
                wrong.push(format!("$ {}\nshould print: {expected}\nprinted:\n{text}", step.command));
            }
        }
    }
    wrong
}

#[test]
fn the_tour_prints_what_the_readme_says() {
    // Without it, `the_tours_requests_succeed` replays its requests.
    if !has_kubectl() {
        return;
    }
    let place = Workplace::new();
    let running = place.start();
    let mut steps = marked("tour");
    steps.extend(marked("jobs"));
    steps.extend(marked("systems"));
    assert!(steps.len() > 10, "the tour has only {} commands", steps.len());
    let wrong = played(&place, &steps);
    assert!(wrong.is_empty(), "{}\n\nlog of admit up:\n{}", wrong.join("\n\n"), place.log());
    assert!(running.terminate().success(), "SIGTERM must end `admit up` with 0:\n{}", place.log());
}

/// Whether `line` reads as `pattern`, runs of blanks counting as one and `…` standing for anything.
pub(crate) fn matches(pattern: &str, line: &str) -> bool {
    let fold = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (pattern, line) = (fold(pattern), fold(line));
    let parts: Vec<&str> = pattern.split('…').collect();
    let [first, middle @ .., last] = parts.as_slice() else { return pattern == line };
    let Some(rest) = line.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else { return false };
    let found = middle.iter().try_fold(rest, |rest, part| rest.split_once(part).map(|(_, after)| after));
    found.is_some()
}

#[test]
fn a_line_is_told_from_another() {
    assert!(matches("a … c", "a   b  c"));
    assert!(matches("a … c …", "a c c c"));
    assert!(matches("first …", "first Completed 3s"));
    assert!(!matches("a … c", "a b c d"));
    assert!(!matches("first Failed …", "first Completed 3s"));
}
