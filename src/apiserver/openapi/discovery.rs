//! Builds the documents of the discovery endpoints: groups, versions and resources, the server's program version, and the issuer
//! of service account tokens. Each document has one path, which is the document's name.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::operations::{META, PROTOBUF, TEXT, capital, content, group, reference, tag};
use super::schemas::Schemas;
use crate::resources::ResourceInfo;

/// The operation on a path.
struct Page {
    description: &'static str,
    id: String,
    tag: String,
    /// Name of the response's schema; None for a string.
    answer: Option<String>,
    types: Vec<&'static str>,
}

/// Returns the names of the documents, some more than once. Groups of custom kinds have none.
pub(super) fn names(rows: &[Arc<ResourceInfo>]) -> impl Iterator<Item = String> {
    let fixed = [".well-known/openid-configuration", "api", "apis", "openid/v1/jwks", "version"];
    let groups = rows.iter().filter(|row| row.builtin && !row.group.is_empty());
    fixed.map(str::to_owned).into_iter().chain(groups.map(|row| format!("apis/{}", row.group)))
}

/// Returns the paths and the schemas of a document.
pub(super) fn document(name: &str) -> (Map<String, Value>, Map<String, Value>) {
    let page = page(name);
    let schemas = page.answer.iter().cloned().collect::<Vec<_>>();
    (Map::from_iter([(format!("/{name}/"), page.render())]), Schemas::of_names(&schemas))
}

/// Returns the path that lists the resources of a version; it belongs to the document of the version.
pub(super) fn resources(row: &ResourceInfo, schemas: &mut Schemas) -> (String, Value) {
    let root = if row.group.is_empty() { "api".to_owned() } else { format!("apis/{}", row.group) };
    let answer = format!("{META}.APIResourceList");
    schemas.need(&answer);
    let page = Page {
        description: "get available resources",
        id: format!("get{}{}APIResources", capital(&group(&row.group)), capital(&row.version)),
        tag: tag(&row.group, &row.version),
        answer: Some(answer),
        types: objects(),
    };
    (format!("/{root}/{}/", row.version), page.render())
}

fn objects() -> Vec<&'static str> {
    let mut types = [TEXT.as_slice(), &[PROTOBUF]].concat();
    types.sort_unstable();
    types
}

fn page(name: &str) -> Page {
    let meta = |kind: &str| Some(format!("{META}.{kind}"));
    let (description, id, tag, answer, types) = match name {
        "api" => ("get available API versions", "getCoreAPIVersions", "core", meta("APIVersions"), objects()),
        "apis" => ("get available API versions", "getAPIVersions", "apis", meta("APIGroupList"), objects()),
        "version" => {
            let info = Some("io.k8s.apimachinery.pkg.version.Info".to_owned());
            let id = "getCodeVersion";
            ("get the version information for this server", id, "version", info, vec!["application/json"])
        }
        ".well-known/openid-configuration" => {
            let id = "getServiceAccountIssuerOpenIDConfiguration";
            let description =
                "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'";
            (description, id, "WellKnown", None, vec!["application/json"])
        }
        "openid/v1/jwks" => {
            let id = "getServiceAccountIssuerOpenIDKeyset";
            let description = "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)";
            (description, id, "openid", None, vec!["application/jwk-set+json"])
        }
        of_group => {
            let word = group(of_group.trim_start_matches("apis/"));
            let id = format!("get{}APIGroup", capital(&word));
            let description = "get information of a group";
            return Page { description, id, tag: word, answer: meta("APIGroup"), types: objects() };
        }
    };
    Page { description, id: id.to_owned(), tag: tag.to_owned(), answer, types }
}

impl Page {
    fn render(&self) -> Value {
        let schema = match &self.answer {
            Some(schema) => reference(schema),
            None => json!({"type": "string"}),
        };
        json!({"get": {
            "tags": [self.tag],
            "description": self.description,
            "operationId": self.id,
            "responses": {
                "200": {"description": "OK", "content": content(&self.types, &schema)},
                "401": {"description": "Unauthorized"},
            },
        }})
    }
}
