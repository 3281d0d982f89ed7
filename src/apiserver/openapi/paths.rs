//! Describes the paths of one resource: its collections, its objects, their subresources, and the deprecated watches below `/watch`,
//! which precede `watch=true`.

use serde_json::{Map, Value, json};

use super::operations::{Action, Answer, METHODS, Operation, gvk};
use super::parameters;
use super::schemas::Schemas;
use crate::kinds::{Habit, has};
use crate::resources::{ResourceInfo, Scope, Subresource};

/// Returns the path items of a resource and its subresources; schemas that they refer to are added to `schemas`.
pub(super) fn of_resource(row: &ResourceInfo, schemas: &mut Schemas) -> Map<String, Value> {
    let mut paths = Paths::of(row, schemas);
    paths.collections(schemas);
    paths.objects(schemas);
    for subresource in &row.subresources {
        paths.part(*subresource, schemas);
    }
    paths.written
}

struct Paths<'r> {
    row: &'r ResourceInfo,
    /// Name of the object's schema.
    object: String,
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    root: String,
    /// The collection's path below the root: `pods`, after the namespace if namespaced.
    collection: String,
    /// Parameters of the collection's path.
    namespace: Vec<Value>,
    written: Map<String, Value>,
}

impl<'r> Paths<'r> {
    fn of(row: &'r ResourceInfo, schemas: &mut Schemas) -> Self {
        let root = if row.group.is_empty() {
            format!("/api/{}", row.version)
        } else {
            format!("/apis/{}/{}", row.group, row.version)
        };
        let (collection, namespace) = if row.scope == Scope::Namespaced {
            (format!("namespaces/{{namespace}}/{}", row.plural), parameters::namespace())
        } else {
            (row.plural.clone(), None)
        };
        let namespace = namespace.into_iter().collect();
        Self { row, object: schemas.object(row), root, collection, namespace, written: Map::new() }
    }

    /// Builds an operation on whole objects.
    fn operation(&self, action: Action, answer: &str) -> Operation<'r> {
        Operation {
            row: self.row,
            action,
            part: "",
            everywhere: false,
            onwards: false,
            about: gvk(&self.row.group, &self.row.version, &self.row.kind),
            answer: Answer::Object(answer.to_owned()),
            sent: self.object.clone(),
        }
    }

    fn collections(&mut self, schemas: &mut Schemas) {
        let serves = |verb: &str| self.row.verbs.iter().any(|served| served == verb);
        let lists = if serves("list") { schemas.list(self.row) } else { String::new() };
        let deleted = if serves("deletecollection") { schemas.status() } else { "" };
        let path = format!("{}/{}", self.root, self.collection);
        let operations = [
            ("list", "get", self.operation(Action::List, &lists)),
            ("create", "post", self.operation(Action::Create, &self.object)),
            ("deletecollection", "delete", self.operation(Action::DeleteCollection, deleted)),
        ];
        let of_path = self.namespace.clone();
        self.insert_served(path, &operations, &of_path);
        if self.row.scope == Scope::Namespaced {
            let listed = Operation { everywhere: true, ..self.operation(Action::List, &lists) };
            self.insert_served(format!("{}/{}", self.root, self.row.plural), &[("list", "get", listed)], &[]);
        }
        if !self.is_watched() {
            return;
        }
        let watch = self.operation(Action::WatchList, schemas.watch_event());
        let path = format!("{}/watch/{}", self.root, self.collection);
        self.insert(path, &[("get", watch.clone())], &of_path);
        if self.row.scope == Scope::Namespaced {
            let path = format!("{}/watch/{}", self.root, self.row.plural);
            self.insert(path, &[("get", Operation { everywhere: true, ..watch })], &[]);
        }
    }

    fn objects(&mut self, schemas: &mut Schemas) {
        let is_answered = has(self.row, Habit::AnswersDeleted) && !has(self.row, Habit::PublishedAsTold);
        let deleted = match self.row.verbs.iter().any(|verb| verb == "delete") {
            true if !is_answered => schemas.status().to_owned(),
            _ => self.object.clone(),
        };
        let operations = [
            ("get", "get", self.operation(Action::Get, &self.object)),
            ("update", "put", self.operation(Action::Replace, &self.object)),
            ("delete", "delete", self.operation(Action::Delete, &deleted)),
            ("patch", "patch", self.operation(Action::Patch, &self.object)),
        ];
        let of_path = self.of_object(&self.row.kind);
        self.insert_served(format!("{}/{}/{{name}}", self.root, self.collection), &operations, &of_path);
        if self.is_watched() {
            let watch = self.operation(Action::Watch, schemas.watch_event());
            let path = format!("{}/watch/{}/{{name}}", self.root, self.collection);
            self.insert(path, &[("get", watch)], &of_path);
        }
    }

    /// Whether there are `/watch` paths; only built-in kinds have them.
    fn is_watched(&self) -> bool {
        self.row.builtin && self.row.verbs.iter().any(|verb| verb == "watch")
    }

    /// Returns the parameters of an object's path.
    fn of_object(&self, kind: &str) -> Vec<Value> {
        self.namespace.iter().cloned().chain([parameters::name_of(kind)]).collect()
    }

    fn part(&mut self, subresource: Subresource, schemas: &mut Schemas) {
        let part = subresource.name();
        // Custom objects are published as if subresources received their own kind.
        let own = subresource.own_kind(self.row).filter(|_| self.row.builtin);
        let (group, version, kind) = match own {
            // Kinds of the core group have empty group and version here.
            Some(("", "", kind)) => ("", "v1", kind),
            Some(own) => own,
            None => (self.row.group.as_str(), self.row.version.as_str(), self.row.kind.as_str()),
        };
        let path = format!("{}/{}/{{name}}/{part}", self.root, self.collection);
        let mut of_path = self.of_object(kind);
        let about = gvk(group, version, kind);
        let operation = |action, answer: Answer, sent: String| {
            let (row, about) = (self.row, about.clone());
            Operation { row, action, part, everywhere: false, onwards: false, about, answer, sent }
        };
        let connections = |methods: &'static [&'static str], onwards| {
            let connection = |method: &&'static str| {
                let connection = operation(Action::Connect(method), Answer::Text, String::new());
                (*method, Operation { onwards, ..connection })
            };
            methods.iter().map(connection).collect::<Vec<_>>()
        };
        match subresource {
            Subresource::Exec | Subresource::Attach | Subresource::PortForward => {
                let operations = connections(&["get", "post"], false);
                self.insert(path, &operations, &of_path);
            }
            Subresource::Proxy => {
                let (here, onwards) = (connections(&METHODS, false), connections(&METHODS, true));
                self.insert(path.clone(), &here, &of_path);
                of_path.extend(parameters::onwards());
                self.insert(format!("{path}/{{path}}"), &onwards, &of_path);
            }
            Subresource::Log => {
                let read = operation(Action::Get, Answer::Text, String::new());
                self.insert(path, &[("get", read)], &of_path);
            }
            _ => {
                let schema = match subresource.own_kind(self.row) {
                    Some((group, version, kind)) => schemas.of_kind(group, version, kind),
                    None => self.object.clone(),
                };
                let methods = subresource.verbs().iter().filter_map(|verb| match *verb {
                    "get" => Some(("get", Action::Get)),
                    "update" => Some(("put", Action::Replace)),
                    "patch" => Some(("patch", Action::Patch)),
                    "create" => Some(("post", Action::Create)),
                    _ => None,
                });
                let operations: Vec<_> = methods
                    .map(|(method, action)| {
                        (method, operation(action, Answer::Object(schema.clone()), schema.clone()))
                    })
                    .collect();
                self.insert(path, &operations, &of_path);
            }
        }
    }

    /// Adds a path with those operations whose verbs the resource serves.
    fn insert_served(
        &mut self,
        path: String,
        operations: &[(&str, &'static str, Operation<'_>)],
        of_path: &[Value],
    ) {
        let is_served = |verb: &str| self.row.verbs.iter().any(|served| served == verb);
        let served: Vec<_> = operations
            .iter()
            .filter(|(verb, _, _)| is_served(verb))
            .map(|(_, method, operation)| (*method, operation.clone()))
            .collect();
        if !served.is_empty() {
            self.insert(path, &served, of_path);
        }
    }

    fn insert(&mut self, path: String, operations: &[(&'static str, Operation<'_>)], of_path: &[Value]) {
        let mut own: Vec<Vec<Value>> =
            operations.iter().map(|(_, operation)| parameters::of_operation(operation)).collect();
        let connects = |action| matches!(action, Action::Connect(_));
        let is_indented = !operations.iter().any(|(_, operation)| connects(operation.action));
        let shared = parameters::shared(of_path, is_indented, &mut own);
        let mut item = Map::new();
        for ((method, operation), parameters) in operations.iter().zip(own) {
            item.insert((*method).to_owned(), operation.render(parameters));
        }
        item.insert("parameters".to_owned(), json!(shared));
        self.written.insert(path, Value::Object(item));
    }
}
