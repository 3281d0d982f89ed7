//! Finds the original notation of a number in the request body: error messages print its digits, which parsing loses.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Returns the literal at a path such as `spec.containers[0].ports`; None if the path does not exist.
pub(super) fn at<'b>(body: &'b [u8], path: &str) -> Option<&'b str> {
    let mut rest = std::str::from_utf8(body).ok()?;
    for step in path.split('.') {
        let mut parts = step.split('[');
        rest = member(rest, parts.next()?)?;
        for index in parts {
            rest = item(rest, index.trim_end_matches(']').parse().ok()?)?;
        }
    }
    Some(rest)
}

fn member<'b>(object: &'b str, name: &str) -> Option<&'b str> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(object).ok()?;
    members.get(name).map(|value| value.get())
}

fn item(list: &str, index: usize) -> Option<&str> {
    let items: Vec<&RawValue> = serde_json::from_str(list).ok()?;
    items.get(index).map(|value| value.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_found_as_they_were_written() {
        let body = br#"{"metadata":{"generation":99999999999999999999},"list":[{"a":1},{"a":1.50}]}"#;
        assert_eq!(at(body, "metadata.generation"), Some("99999999999999999999"));
        assert_eq!(at(body, "list[1].a"), Some("1.50"));
        assert_eq!(at(body, "list[2].a"), None);
        assert_eq!(at(body, "none"), None);
    }
}
