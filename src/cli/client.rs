//! Error messages for clients that cannot be created, without the contents of the kubeconfig: YAML parsers quote the
//! lines around a mistake, and the line above may be the token.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use crate::telemetry::{Outside, Secrets};

/// Fields of a kubeconfig whose values are secrets.
const SECRET: [&str; 3] = ["token", "password", "client-key-data"];

/// The error about the kubeconfig at `path`: its first line, since the rest is a quotation.
pub(super) fn unusable(path: &Path, error: &dyn Display) -> Outside {
    // What is no file has nothing to hide, and may never end.
    let text = if path.is_file() { fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    first_line(error, &Secrets::of(secrets(&text)))
}

/// The error of a client that was looked for in several places.
pub(super) fn none(error: &dyn Display) -> Outside {
    first_line(error, &Secrets::default())
}

fn first_line(error: &dyn Display, secrets: &Secrets) -> Outside {
    Outside::of(error.to_string().lines().next().unwrap_or_default(), secrets)
}

/// Line by line, as the file need not be YAML.
fn secrets(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| SECRET.iter().filter_map(move |key| after(line, key)))
}

/// What stands behind `key:` in a line, without what YAML puts around a value.
fn after<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let (_, rest) = line.split_once(key)?;
    let value = rest.trim_start_matches(['"', '\'', ' ']).strip_prefix(':')?;
    Some(value.trim_matches(|c: char| c.is_whitespace() || "\"'{},".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_quotes_nothing_of_a_kubeconfig() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let text = "users:\n- user: {password: 'CANARY-4711'}\n- user:\n    token: \"CANARYTOKEN\"\n";
        fs::write(&path, text).unwrap();
        let error =
            "line 4: invalid type: string \"CANARYTOKEN\", expected CANARY-4711\n  |\n4 | token: CANARYTOKEN";
        let told = unusable(&path, &error).into_string();
        assert_eq!(told, "line 4: invalid type: string \"[redacted]\", expected [redacted]");
        assert_eq!(none(&"one\ntwo").as_str(), "one");
    }
}
