//! A view of documents for one request, in which the request's namespace exists, as it would in a cluster.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::Documents;
use crate::request::host::{Access, AccessAttributes, Host, HostError, Scope};
use crate::request::{GroupVersionKind, GroupVersionResource, UserInfo};

/// [`Documents`] with an additional Namespace. Costs nothing per document: each request has its own.
#[derive(Debug)]
pub(crate) struct InNamespace<'d> {
    documents: &'d Documents,
    made: Option<(String, Arc<Value>)>,
}

impl Documents {
    /// Returns a view with a plain Namespace of that name, if there is none. The empty name means cluster-scoped objects.
    pub(crate) fn in_namespace(&self, name: &str, labels: &[(String, String)]) -> InNamespace<'_> {
        let is_there = name.is_empty() || matches!(self.namespace(name), Ok(Some(_)));
        let made = (!is_there).then(|| (name.to_owned(), Arc::new(plain(name, labels))));
        InNamespace { documents: self, made }
    }
}

/// A Namespace as a cluster makes it, with further labels.
pub(super) fn plain(name: &str, labels: &[(String, String)]) -> Value {
    let mut all: Map<String, Value> = labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    all.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": all},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    })
}

impl Host for InNamespace<'_> {
    fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError> {
        match &self.made {
            Some((made, object)) if made == name => Ok(Some(Arc::clone(object))),
            _ => self.documents.namespace(name),
        }
    }

    fn param_scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        self.documents.param_scope(kind)
    }

    fn params(&self, kind: &GroupVersionKind, namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        let mut params = self.documents.params(kind, namespace)?;
        let are_namespaces = namespace.is_empty() && *kind == GroupVersionKind::new("", "v1", "Namespace");
        if let Some((made, object)) = self.made.as_ref().filter(|_| are_namespaces) {
            let name =
                |param: &Arc<Value>| param.pointer("/metadata/name").and_then(Value::as_str) < Some(made);
            let place = params.partition_point(name);
            params.insert(place, Arc::clone(object));
        }
        Ok(params)
    }

    fn params_named(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Vec<Arc<Value>>, HostError> {
        let is_made = namespace.is_empty() && *kind == GroupVersionKind::new("", "v1", "Namespace");
        match &self.made {
            Some((made, object)) if is_made && made == name => Ok(vec![Arc::clone(object)]),
            _ => self.documents.params_named(kind, namespace, name),
        }
    }

    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        self.documents.equivalents(resource, subresource)
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, HostError> {
        self.documents.convert(object, kind)
    }

    fn authorize(&self, user: &UserInfo, attributes: &AccessAttributes) -> Result<Access, HostError> {
        self.documents.authorize(user, attributes)
    }

    fn now(&self) -> Option<SystemTime> {
        self.documents.now()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn namespace(name: &str) -> Arc<Value> {
        Arc::new(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    }

    #[test]
    fn a_request_sees_the_namespace_that_it_is_in_and_no_other() {
        let mut documents = Documents::default();
        documents.insert(namespace("a"));
        documents.insert(namespace("c"));
        let labels = [("team".to_owned(), "x".to_owned())];
        let host = documents.in_namespace("b", &labels);
        let made = host.namespace("b").unwrap().unwrap();
        assert_eq!(made["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "b", "team": "x"}));
        assert!(host.namespace("a").unwrap().is_some() && host.namespace("d").unwrap().is_none());
        let kind = GroupVersionKind::new("", "v1", "Namespace");
        let names = |host: &dyn Host| -> Vec<_> {
            let params = host.params(&kind, "").unwrap();
            params.iter().map(|param| param["metadata"]["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&host), ["a", "b", "c"]);
        for (name, found) in [("a", 1), ("b", 1), ("d", 0)] {
            let named = host.params_named(&kind, "", name).unwrap();
            assert_eq!(named.len(), found, "{name}");
            assert!(named.iter().all(|param| param["metadata"]["name"] == name));
        }
        // A Namespace in the documents is kept as it is; cluster-scoped objects need none.
        assert_eq!(names(&documents.in_namespace("a", &labels)), ["a", "c"]);
        assert!(
            documents.in_namespace("a", &labels).namespace("a").unwrap().unwrap()["metadata"]
                .get("labels")
                .is_none()
        );
        assert_eq!(names(&documents.in_namespace("", &labels)), ["a", "c"]);
    }
}
