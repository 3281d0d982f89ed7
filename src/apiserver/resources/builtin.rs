//! Lists the built-in kinds as Kubernetes 1.36 serves them: names, scope, verbs and subresources, read from `rows.txt`.
//! Table columns and OpenAPI schemas are declared elsewhere.

use std::sync::Arc;

use super::{ResourceInfo, Scope, Subresource};

const ROWS: &str = include_str!("rows.txt");
const VERBS: &str = "create,delete,deletecollection,get,list,patch,update,watch";

/// Returns the rows of all built-in kinds, grouped by API group.
#[must_use]
pub fn builtin_rows() -> Vec<Arc<ResourceInfo>> {
    read(ROWS).0
}

/// Returns the rows, and the lines that are invalid (none, as a test checks).
fn read(text: &str) -> (Vec<Arc<ResourceInfo>>, Vec<&str>) {
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    let mut heading = None;
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let read = match (line.strip_prefix("  "), heading) {
            (Some(row), Some((group, version))) => {
                row_of(row, group, version).map(|row| rows.push(Arc::new(row)))
            }
            (Some(_), None) => None,
            (None, _) => {
                heading = line.split_once(' ').map(|(group, version)| (group.trim_matches('-'), version));
                heading.map(|_| ())
            }
        };
        if read.is_none() {
            problems.push(line);
        }
    }
    (rows, problems)
}

/// Formats a deprecation warning from `SINCE`, or from `SINCE,APIVERSION,KIND` with the replacement.
fn deprecation(row: &ResourceInfo, value: &str) -> String {
    let text = |since: &str| format!("{} {} is deprecated in v{since}+", row.api_version(), row.kind);
    match value.split_once(',') {
        Some((since, now)) => format!("{}; use {}", text(since), now.replace(',', " ")),
        None => text(value),
    }
}

fn row_of(line: &str, group: &str, version: &str) -> Option<ResourceInfo> {
    let mut words = line.split(' ');
    let (kind, plural, scope) = (words.next()?, words.next()?, words.next()?);
    let mut row = ResourceInfo {
        group: group.to_owned(),
        version: version.to_owned(),
        storage_version: version.to_owned(),
        first_stored: String::new(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        plural: plural.to_owned(),
        singular: kind.to_ascii_lowercase(),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: match scope {
            "ns" => Scope::Namespaced,
            "cluster" => Scope::Cluster,
            _ => return None,
        },
        verbs: list(VERBS),
        subresources: Vec::new(),
        status_keeps: Vec::new(),
        columns: Vec::new(),
        schema: None,
        storage_key: plural.to_owned(),
        selectable_fields: Vec::new(),
        deprecation: None,
        builtin: true,
    };
    for word in words {
        let (name, value) = word.split_once('=')?;
        match name {
            "short" => row.short_names = list(value),
            "in" => row.categories = list(value),
            "sub" => row.subresources = value.split(',').map(Subresource::named).collect::<Option<_>>()?,
            "keeps" => row.status_keeps = list(value),
            "verbs" => row.verbs = list(value),
            "key" => value.clone_into(&mut row.storage_key),
            "stored" => value.clone_into(&mut row.storage_version),
            "first" => value.clone_into(&mut row.first_stored),
            "fields" => row.selectable_fields = list(value),
            "deprecated" => row.deprecation = Some(deprecation(&row, value)),
            _ => return None,
        }
    }
    if row.first_stored.is_empty() {
        row.first_stored = format!("{group}/{}", row.storage_version);
    }
    Some(row)
}

fn list(names: &str) -> Vec<String> {
    names.split(',').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::tables;

    #[test]
    fn every_line_is_understood_and_every_kind_has_fields() {
        let (rows, problems) = read(ROWS);
        assert_eq!(problems, Vec::<&str>::new());
        for row in rows {
            let fields = tables().kind(&row.group, &row.version, &row.kind);
            assert!(fields.is_some(), "{} has no field table", row.group_resource());
        }
    }

    #[test]
    fn a_line_that_is_none_is_told() {
        let text = "  Early earlies ns\n- v1\n  Odd odds nowhere\n  Sub subs ns sub=none\n  Good goods ns";
        let (rows, problems) = read(text);
        assert_eq!(problems, ["  Early earlies ns", "  Odd odds nowhere", "  Sub subs ns sub=none"]);
        assert_eq!(rows.iter().map(|row| row.plural.as_str()).collect::<Vec<_>>(), ["goods"]);
    }
}
