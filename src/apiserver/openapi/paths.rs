//! Describes the paths of one resource.

use serde_json::{Map, Value, json};

use super::operations::{Action, Operation};
use super::parameters;
use super::schemas::Schemas;
use crate::resources::{ResourceInfo, Scope, Subresource};

/// The path items of a resource and its subresources; what they refer to is added to `schemas`.
pub(super) fn of_resource(row: &ResourceInfo, schemas: &mut Schemas) -> Map<String, Value> {
    let object = schemas.object(row);
    let list = schemas.list(row);
    let root = if row.group.is_empty() {
        format!("/api/{}", row.version)
    } else {
        format!("/apis/{}/{}", row.group, row.version)
    };
    let namespaced = row.scope == Scope::Namespaced;
    let collection = if namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", row.plural)
    } else {
        format!("{root}/{}", row.plural)
    };
    let mut scope_parameters = Vec::new();
    if namespaced {
        scope_parameters.extend(parameters::namespace());
    }
    let mut paths = Map::new();
    let operation = |action, answer: &str| {
        let (answer, sent) = (answer.to_owned(), object.clone());
        Operation { row, action, part: "", everywhere: false, answer, sent }
    };
    let operations = [
        ("list", "get", operation(Action::List, &list)),
        ("create", "post", operation(Action::Create, &object)),
        ("deletecollection", "delete", operation(Action::DeleteCollection, schemas.status())),
    ];
    insert(&mut paths, &collection, row, &operations, &scope_parameters);
    if namespaced {
        let listed = Operation { everywhere: true, ..operation(Action::List, &list) };
        let everywhere = [("list", "get", listed)];
        insert(&mut paths, &format!("{root}/{}", row.plural), row, &everywhere, &[]);
    }

    scope_parameters.push(parameters::name_of(&row.kind));
    let item = format!("{collection}/{{name}}");
    let operations = [
        ("get", "get", operation(Action::Get, &object)),
        ("update", "put", operation(Action::Replace, &object)),
        ("delete", "delete", operation(Action::Delete, schemas.status())),
        ("patch", "patch", operation(Action::Patch, &object)),
    ];
    insert(&mut paths, &item, row, &operations, &scope_parameters);
    for subresource in &row.subresources {
        if !subresource.is_stored() {
            continue;
        }
        let answer = if *subresource == Subresource::Scale { schemas.scale() } else { object.clone() };
        let part = subresource.name();
        let operation = |action| {
            let (answer, sent) = (answer.clone(), answer.clone());
            Operation { row, action, part, everywhere: false, answer, sent }
        };
        let operations = [
            ("get", "get", operation(Action::Get)),
            ("update", "put", operation(Action::Replace)),
            ("patch", "patch", operation(Action::Patch)),
        ];
        let path = format!("{item}/{part}");
        insert_always(&mut paths, path, &operations, &scope_parameters);
    }
    paths
}

/// Adds a path with those operations whose verb the resource serves.
fn insert(
    paths: &mut Map<String, Value>,
    path: &str,
    row: &ResourceInfo,
    operations: &[(&str, &str, Operation<'_>)],
    parameters: &[Value],
) {
    let served: Vec<_> = operations
        .iter()
        .filter(|(verb, _, _)| row.verbs.iter().any(|served| served == verb))
        .cloned()
        .collect();
    if !served.is_empty() {
        insert_always(paths, path.to_owned(), &served, parameters);
    }
}

fn insert_always(
    paths: &mut Map<String, Value>,
    path: String,
    operations: &[(&str, &str, Operation<'_>)],
    of_path: &[Value],
) {
    let mut own: Vec<Vec<Value>> = operations
        .iter()
        .map(|(_, _, operation)| parameters::of_action(operation.action, operation.row.builtin))
        .collect();
    let shared = parameters::shared(of_path, &mut own);
    let mut item = Map::new();
    for ((_, method, operation), parameters) in operations.iter().zip(own) {
        item.insert((*method).to_owned(), operation.render(parameters));
    }
    item.insert("parameters".to_owned(), json!(shared));
    paths.insert(path, Value::Object(item));
}
