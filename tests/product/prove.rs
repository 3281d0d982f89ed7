//! `admit prove` beside solvers that are wrong, silent or endless.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

const DEFINITION: &str = "deploy/crds/datagathers.yaml";

/// A solver that answers each question so, and says when an answer ends.
fn answering(answer: &str) -> String {
    format!(
        "echo started >> \"$0.starts\"
while read -r word rest; do
  case \"$word\" in
    '(check-sat)') echo asked >> \"$0.asked\"; echo {answer};;
    '(echo') echo \"$rest\" | tr -d '\")';;
  esac
done"
    )
}

/// The exit code and what is printed, where the PATH begins with solvers of these names that are these scripts.
fn proved(solvers: &[(&str, &str)], args: &[&str]) -> (i32, String) {
    proved_in(&tempfile::tempdir().unwrap(), solvers, args)
}

fn proved_in(dir: &tempfile::TempDir, solvers: &[(&str, &str)], args: &[&str]) -> (i32, String) {
    for (name, script) in solvers {
        let file = dir.path().join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["prove", "never-denies", DEFINITION]).args(args);
    command.env("PATH", format!("{}:/bin:/usr/bin", dir.path().display()));
    let done = command.output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap();
    (done.status.code().unwrap(), text)
}

#[test]
fn two_solvers_that_contradict_each_other_prove_nothing() {
    let (code, text) = proved(&[("z3", &*answering("unsat")), ("cvc5", &*answering("sat"))], &[]);
    assert_eq!(code, 5, "{text}");
    assert!(text.contains("z3 refutes what cvc5 satisfies: one of both is wrong"), "{text}");
}

#[test]
fn a_solver_that_prints_without_end_is_ended() {
    let (code, text) = proved(&[("z3", "yes"), ("cvc5", "yes")], &["--timeout", "600s"]);
    assert_eq!(code, 5, "{text}");
    assert!(text.contains("z3: it printed more than 16777216 bytes"), "{text}");
}

#[test]
fn a_silent_solver_is_waited_for_no_longer_than_asked() {
    let (code, text) = proved(&[("z3", "exec sleep 600"), ("cvc5", "exec sleep 600")], &["--timeout", "1s"]);
    assert_eq!(code, 5, "{text}");
    assert!(text.contains("in time"), "{text}");
}

#[test]
fn one_process_is_asked_about_all_claims() {
    let dir = tempfile::tempdir().unwrap();
    let solvers = [("z3", &*answering("unsat")), ("cvc5", &*answering("unsat"))];
    let (_, text) = proved_in(&dir, &solvers, &[]);
    let lines = |file: &str| fs::read_to_string(dir.path().join(file)).unwrap().lines().count();
    assert_eq!(lines("z3.starts"), 1, "{text}");
    assert!(lines("z3.asked") > 1, "{text}");
}
