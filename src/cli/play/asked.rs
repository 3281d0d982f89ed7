//! Parses the pane that describes the request: user, operation, subresource, namespace and authorizer.

use std::sync::Arc;

use admit_policy::apply::{FieldValidation, Options, Subresource};
use admit_policy::manifest::{self, Document};
use admit_policy::{AccessAnswers, Operation, UserInfo};
use serde_json::Value;

use super::answer::Mistake;

/// The name of the pane.
pub(super) const PANE: &str = "request";

/// The fields that the pane may have.
const FIELDS: [&str; 7] =
    ["user", "groups", "operation", "subresource", "namespace", "namespaceLabels", "authorizer"];

/// The request that the pane describes.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) options: Options,
    /// The namespace of objects that name none.
    pub(super) namespace: String,
    document: Option<Document>,
}

impl Asked {
    /// Parses the pane. An empty one stands for a request of an administrator in the namespace `default`.
    pub(super) fn read(text: &str) -> Result<Self, Vec<Mistake>> {
        let documents = manifest::read(PANE, text)
            .map_err(|mistakes| mistakes.into_iter().map(Mistake::from).collect::<Vec<_>>())?;
        let mut documents = documents.into_iter();
        let (first, second) = (documents.next(), documents.next());
        if let Some(second) = second {
            return Err(vec![Mistake::of_field(&second, "", "only one request is decided at a time")]);
        }
        let Some(document) = first else {
            return Ok(Self { options: options(), namespace: "default".to_owned(), document: None });
        };
        let mut reader = Reader { document: &document, mistakes: Vec::new() };
        let (options, namespace) = reader.request();
        let mistakes = reader.mistakes;
        if mistakes.is_empty() {
            Ok(Self { options, namespace, document: Some(document) })
        } else {
            Err(mistakes)
        }
    }

    /// Creates a mistake at a field of the pane, or at its beginning if it is empty.
    pub(super) fn mistake(&self, field: &str, message: &str) -> Mistake {
        match &self.document {
            Some(document) => Mistake::of_field(document, field, message),
            None => Mistake::of_pane(PANE, message),
        }
    }
}

/// Returns the options of an administrator's request, with warnings about unknown fields as kubectl gets them.
fn options() -> Options {
    Options {
        user: UserInfo { username: "admin".to_owned(), ..UserInfo::default() },
        field_validation: FieldValidation::Strict,
        ..Options::default()
    }
}

/// Reads the fields, and collects the mistakes of each.
struct Reader<'d> {
    document: &'d Document,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    fn request(&mut self) -> (Options, String) {
        let Some(fields) = self.document.value.as_object() else {
            self.wrong("", "must be a map, such as `user: dev`");
            return (options(), String::new());
        };
        for name in fields.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
            self.wrong(name, &format!("there is no such field; there are {}", FIELDS.join(", ")));
        }
        let mut options = options();
        if let Some(user) = self.text("user") {
            options.user.username = user;
        }
        options.user.groups = self.texts("groups");
        options.operation = self.text("operation").and_then(|name| self.operation(&name));
        options.subresource = self.text("subresource").and_then(|name| self.subresource(&name));
        options.namespace_labels = self.labels();
        if let Some(list) = self.document.value.get("authorizer") {
            match AccessAnswers::read(list) {
                Ok(answers) => options.access = Some(Arc::new(answers)),
                Err(error) => self.wrong(error.path(), &error.to_string()),
            }
        }
        let namespace = self.text("namespace").unwrap_or_else(|| "default".to_owned());
        (options, namespace)
    }

    fn wrong(&mut self, field: &str, message: &str) {
        self.mistakes.push(Mistake::of_field(self.document, field, message));
    }

    fn text(&mut self, field: &str) -> Option<String> {
        match self.document.value.get(field)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                self.wrong(field, "must be a text");
                None
            }
        }
    }

    fn texts(&mut self, field: &str) -> Vec<String> {
        let Some(list) = self.document.value.get(field).filter(|list| !list.is_null()) else {
            return Vec::new();
        };
        let texts = list.as_array().and_then(|items| {
            items.iter().map(|item| item.as_str().map(ToOwned::to_owned)).collect::<Option<Vec<_>>>()
        });
        texts.unwrap_or_else(|| {
            self.wrong(field, "must be a list of texts");
            Vec::new()
        })
    }

    fn labels(&mut self) -> Vec<(String, String)> {
        let field = "namespaceLabels";
        let Some(map) = self.document.value.get(field).filter(|map| !map.is_null()) else {
            return Vec::new();
        };
        let labels = map.as_object().and_then(|map| {
            let one = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
            map.iter().map(one).collect::<Option<Vec<_>>>()
        });
        labels.unwrap_or_else(|| {
            self.wrong(field, "must be a map of texts");
            Vec::new()
        })
    }

    fn operation(&mut self, name: &str) -> Option<Operation> {
        let known = [Operation::Create, Operation::Update, Operation::Delete];
        let found = known.into_iter().find(|operation| operation.as_str() == name);
        if found.is_none() {
            self.wrong("operation", &format!("`{name}` is none of CREATE, UPDATE and DELETE"));
        }
        found
    }

    fn subresource(&mut self, name: &str) -> Option<Subresource> {
        const KNOWN: [Subresource; 6] = [
            Subresource::Status,
            Subresource::Scale,
            Subresource::Eviction,
            Subresource::Exec,
            Subresource::Attach,
            Subresource::PortForward,
        ];
        if name.is_empty() {
            return None;
        }
        let found = KNOWN.into_iter().find(|known| known.as_str() == name);
        if found.is_none() {
            let names = KNOWN.map(Subresource::as_str).join(", ");
            self.wrong("subresource", &format!("`{name}` is none of {names}"));
        }
        found
    }
}
