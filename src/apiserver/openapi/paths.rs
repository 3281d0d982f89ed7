//! Describes the paths of one resource.

use serde_json::{Map, Value, json};

use super::operations::{Action, Body, Operation, path_parameter, pretty};
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
        scope_parameters.push(path_parameter("namespace", "the namespace that the object lives in"));
    }
    let mut paths = Map::new();
    let operation =
        |action, answer: &str| Operation { row, action, answer: answer.to_owned(), sent: object.clone() };
    let operations = [
        ("list", "get", operation(Action::List, &list)),
        ("create", "post", operation(Action::Create, &object)),
        ("deletecollection", "delete", operation(Action::DeleteCollection, schemas.status())),
    ];
    insert(&mut paths, &collection, row, &operations, &scope_parameters);
    if namespaced {
        let everywhere = [("list", "get", operation(Action::List, &list))];
        insert(&mut paths, &format!("{root}/{}", row.plural), row, &everywhere, &[]);
    }

    scope_parameters.push(path_parameter("name", &format!("name of the {}", row.kind)));
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
        let operation = |action| Operation { row, action, answer: answer.clone(), sent: answer.clone() };
        let operations = [
            ("get", "get", operation(Action::Get)),
            ("update", "put", operation(Action::Replace)),
            ("patch", "patch", operation(Action::Patch)),
        ];
        let path = format!("{item}/{}", subresource.name());
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
    parameters: &[Value],
) {
    let mut item = Map::new();
    for (_, method, operation) in operations {
        item.insert((*method).to_owned(), operation.render(Body::of(operation.action)));
    }
    let mut parameters = parameters.to_vec();
    parameters.push(pretty());
    item.insert("parameters".to_owned(), json!(parameters));
    paths.insert(path, Value::Object(item));
}
