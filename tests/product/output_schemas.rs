//! The published JSON Schemas against what commands print: every JSON document of the transcripts in
//! `tests/product/offline/` follows the schema of its command.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::repository::root;
use crate::support::json_schema::complaints;

/// What `admit schema OF` prints.
pub(crate) fn schema(of: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_admit")).args(["schema", of]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The documents that `admit COMMAND … -o json` prints whole in the transcripts, each with its command line.
fn printed(command: &str) -> Vec<(String, Value)> {
    printed_in(command, command)
}

/// The same of another transcript than that of the command.
fn printed_in(transcript: &str, command: &str) -> Vec<(String, Value)> {
    let transcript = root().join("tests/product/offline").join(transcript).with_extension("txt");
    let transcript = fs::read_to_string(transcript).unwrap();
    let runs = transcript.split("\n$ ").filter_map(|run| run.split_once('\n'));
    runs.filter(|(line, _)| line.starts_with(&format!("admit {command} ")) && line.ends_with("-o json"))
        .map(|(line, output)| {
            let mut documents = serde_json::Deserializer::from_str(output).into_iter();
            (line.to_owned(), documents.next().unwrap().unwrap())
        })
        .collect()
}

#[test]
fn transcripts_follow_the_schemas() {
    let of_commands =
        [("attack", 1), ("check", 1), ("explain", 1), ("lint", 1), ("eval", 5), ("replay", 1), ("prove", 1)];
    let of_commands = of_commands.map(|(command, least)| (command, printed(command), least));
    let by_release = [("by-release", printed_in("releases", "check"), 1)];
    for (command, printed, least) in of_commands.into_iter().chain(by_release) {
        let schema = schema(command);
        assert!(printed.len() >= least, "only {} documents of {command}", printed.len());
        for (line, document) in printed {
            assert_eq!(complaints(&schema, &document), Vec::<String>::new(), "$ {line}");
        }
    }
}

/// What of the first document `change` makes, no schema allows.
#[test]
fn what_no_command_prints_does_not() {
    let changes: [(&str, &str, Value); 6] = [
        ("check", "/objects/0/outcome", json!("error")),
        ("check", "/objects/0/status/code", json!(200)),
        ("check", "/summary", json!({"objects": 1})),
        ("explain", "/explained/0/expressions/0/evaluations/0/tree/0", json!({"expression": "self"})),
        ("lint", "/costs/0/causes/0/bound", json!("maximum")),
        ("eval", "/type", json!("")),
    ];
    for (command, place, wrong) in changes {
        let (line, mut document) = printed(command).swap_remove(0);
        *document.pointer_mut(place).unwrap_or_else(|| panic!("$ {line}: no {place}")) = wrong;
        assert_ne!(complaints(&schema(command), &document), Vec::<String>::new(), "{command}: {place}");
    }
}
