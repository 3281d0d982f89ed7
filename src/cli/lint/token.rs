//! Locates in the manifest the token that the CEL compiler complains about: the compiler knows line and column within
//! the expression, and the manifest has that expression somewhere behind its key.

use admit_policy::manifest::Position;

use super::texts::Text;

/// What compilers call the text that they were given.
const INPUT: &str = "<input>:";
/// Before each line of the expression, and of the caret below it, in a compiler's text.
const QUOTE: &str = " | ";

/// Where the token stands that `message` complains about first, in `text` whose expression begins at the key at `key`. None where
/// the expression is written otherwise than it is read, as with folded lines and escapes.
pub(super) fn position(text: &Text, key: Position, message: &str) -> Option<Position> {
    let (line, column, quoted) = complaint(message)?;
    let rest: String = quoted.chars().skip(column.checked_sub(1)?).collect();
    let own = text.line(key.line)?;
    let value_at = value(own, key.column.checked_sub(1)?)?;
    let value: String = own.chars().skip(value_at).collect();
    if value.starts_with('|') {
        let body = text.from(key.line.checked_add(1)?)?.lines();
        let indent = body.clone().find(|line| !line.trim().is_empty()).map(indent_of)?;
        let there = body.clone().nth(line.checked_sub(1)?)?;
        let column = indent.checked_add(column)?;
        is_at(there, column, &rest).then_some(Position { line: key.line.checked_add(line)?, column })
    } else {
        let quotes = usize::from(value.starts_with(['\'', '"']));
        let column = value_at.checked_add(quotes)?.checked_add(column)?;
        (line == 1 && is_at(own, column, &rest)).then_some(Position { line: key.line, column })
    }
}

/// Line and column of the expression that are told first, from one, and that line of the expression.
fn complaint(message: &str) -> Option<(usize, usize, &str)> {
    let (_, behind) = message.split_once(INPUT)?;
    let mut parts = behind.splitn(3, ':');
    let (line, column) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let quoted = behind.lines().find_map(|line| line.strip_prefix(QUOTE))?;
    Some((line, column, quoted))
}

/// Where the value begins whose key stands in that column of the line, from zero.
fn value(line: &str, key: usize) -> Option<usize> {
    let behind: String = line.chars().skip(key).collect();
    let colon = behind.find(": ")?;
    let gap = behind.get(colon.checked_add(1)?..)?;
    let spaces = gap.chars().take_while(|c| *c == ' ').count();
    let name = behind.get(..colon)?.chars().count();
    key.checked_add(name)?.checked_add(1)?.checked_add(spaces)
}

fn indent_of(line: &str) -> usize {
    line.chars().take_while(|c| *c == ' ').count()
}

/// Whether the line goes on as the expression does from a column on, from one.
fn is_at(line: &str, column: usize, rest: &str) -> bool {
    let there: String = line.chars().skip(column.saturating_sub(1)).collect();
    there.starts_with(rest.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, (line, column): (usize, usize), message: &str) -> Option<(usize, usize)> {
        position(&Text::new(text.to_owned()), Position { line, column }, message)
            .map(|at| (at.line, at.column))
    }

    #[test]
    fn tokens_are_found_however_the_expression_is_written() {
        let message =
            "compilation failed: ERROR: <input>:1:8: undeclared reference to 'b'\n | self + b\n | .......^";
        for (text, expected) in [
            ("- rule: self + b\n", Some((1, 16))),
            ("- rule: 'self + b'\n", Some((1, 17))),
            ("- rule: \"self + b\"  # why\n", Some((1, 17))),
            ("- rule: |-\n    self + b\n  message: x\n", Some((2, 12))),
            ("- rule: |\n\n    self + b\n", None),
            ("- rule: >-\n    self\n    + b\n", None),
            ("- rule: \"self\\x20+ b\"\n", None),
            ("- rule:\n    self + b\n", None),
        ] {
            assert_eq!(found(text, (1, 3), message), expected, "{text:?}");
        }
        let second = "ERROR: <input>:2:3: undeclared reference to 'b'\n | + b\n | ..^";
        assert_eq!(found("a:\n- rule: |\n    self\n    + b\n", (2, 3), second), Some((4, 7)));
        let flow = "<input>:1:1: undeclared reference to 'b'\n | b\n | ^";
        assert_eq!(found("- {name: a, expression: b}\n", (1, 13), flow), Some((1, 25)));
        for none in
            ["spec: Required value", "<input>:x:1: no\n | a", "<input>:1:0: no\n | a", "<input>:1:1: no"]
        {
            assert_eq!(found("- rule: a\n", (1, 3), none), None, "{none}");
        }
    }
}
