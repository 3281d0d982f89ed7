//! The section of the README about suites of operators, line by line.

use std::path::Path;
use std::process::Command;

use crate::tour;

#[test]
fn the_readme_prints_what_it_says() {
    let place = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_admit")).parent().unwrap();
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect::<Vec<_>>();
    let path = std::env::join_paths(std::iter::once(program.to_owned()).chain(found)).unwrap();
    let steps = tour::marked("envtest");
    assert!(steps.len() > 3, "the README has only {} commands", steps.len());
    let mut exports = String::new();
    for step in steps {
        if step.command.starts_with("export ") {
            exports.push_str(&step.command);
            exports.push('\n');
            continue;
        }
        let output = Command::new("bash")
            .args(["-c", &format!("{exports}{}", step.command)])
            .current_dir(place.path())
            .env("PATH", &path)
            .env("HOME", place.path())
            .env_remove("XDG_CACHE_HOME")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success(),
            "$ {}\n{text}{}",
            step.command,
            String::from_utf8_lossy(&output.stderr)
        );
        for expected in &step.prints {
            let printed = text.lines().any(|line| tour::matches(expected, line));
            assert!(printed, "$ {}\nshould print: {expected}\nprinted:\n{text}", step.command);
        }
    }
}
