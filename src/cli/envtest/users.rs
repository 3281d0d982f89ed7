//! Parses the users of `--token-auth-file`: one per line, with the token, the name, the uid and, in quotes, the groups.

use admit_apiserver::Identity;
use thiserror::Error;

/// Why a line is invalid.
#[derive(Debug, Error)]
pub(super) enum UserError {
    #[error(
        "line {line}: token file must have at least 3 columns (token, user name, user uid), found {found}"
    )]
    Columns { line: usize, found: usize },
    #[error("line {0}: empty token")]
    NoToken(usize),
}

/// # Errors
/// The first line that is invalid.
pub(super) fn read(text: &str) -> Result<Vec<(String, Identity)>, UserError> {
    let mut users = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields = fields(line);
        let [token, name, uid, rest @ ..] = fields.as_slice() else {
            return Err(UserError::Columns { line: number, found: fields.len() });
        };
        if token.is_empty() {
            return Err(UserError::NoToken(number));
        }
        let groups = rest.first().map(String::as_str).unwrap_or_default().split(',').map(str::trim);
        let groups = groups.filter(|group| !group.is_empty()).map(ToOwned::to_owned);
        let mut identity = Identity::new(name.as_str(), groups);
        identity.uid.clone_from(uid);
        users.push((token.clone(), identity));
    }
    Ok(users)
}

/// Splits a line into fields: commas within quotes are part of a field, and a quote there is written twice.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let (mut quoted, mut characters) = (false, line.chars().peekable());
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                fields.last_mut().into_iter().for_each(|field| field.push('"'));
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut().into_iter().for_each(|field| field.push(other)),
        }
    }
    fields.into_iter().map(|field| field.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_read_as_kube_apiserver_reads_them() {
        let text = "# who\nsecret,jane,7,\"system:masters,dev\"\n\nother, joe ,8\n";
        let users = read(text).unwrap();
        let shown: Vec<_> = users
            .iter()
            .map(|(token, one)| (token.as_str(), one.username.as_str(), one.uid.as_str(), one.groups.len()))
            .collect();
        assert_eq!(shown, [("secret", "jane", "7", 3), ("other", "joe", "8", 1)]);
        let told = |text: &str| read(text).unwrap_err().to_string();
        assert!(told("only,two").starts_with("line 1: token file must have at least 3 columns"));
        assert_eq!(told("a,b,c\n,b,c"), "line 2: empty token");
    }
}
