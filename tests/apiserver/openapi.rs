//! OpenAPI documents hold together: every reference leads somewhere, clients find what they probe for.

use admit_apiserver::Server;
use admit_apiserver::internals::{OpenApi, ResourceInfo, builtin_rows};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use crate::harness;
use crate::kinds::accepting;

pub(crate) fn get(openapi: &OpenApi, path: &str) -> Value {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let response = openapi.handle(&builtin_rows(), path, query, &HeaderMap::new()).expect(path);
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    serde_json::from_slice(response.body()).expect("JSON")
}

fn documents(openapi: &OpenApi) -> Vec<(String, Value)> {
    let rows = builtin_rows();
    let response = openapi.handle(&rows, "/openapi/v3", "", &HeaderMap::new()).expect("the index");
    let index: Value = serde_json::from_slice(response.body()).expect("JSON");
    let paths = index["paths"].as_object().expect("paths");
    paths.iter().map(|(name, _)| (name.clone(), get(openapi, &format!("/openapi/v3/{name}")))).collect()
}

fn references<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_to_a_schema() {
    for (name, document) in documents(&OpenApi::default()) {
        let mut found = Vec::new();
        references(&document, &mut found);
        // What tokens are verified by is published as a text.
        assert_eq!(found.is_empty(), name.contains("openid"), "{name}");
        for reference in found {
            let pointer = reference.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{name}: {reference}");
        }
    }
}

#[test]
fn every_patch_offers_validation_of_fields() {
    for (name, document) in documents(&OpenApi::default()) {
        for (path, item) in document["paths"].as_object().expect("paths") {
            let Some(patch) = item.get("patch") else { continue };
            if patch["x-kubernetes-action"] == "connect" {
                continue;
            }
            let parameters = patch["parameters"].as_array().expect("parameters");
            assert!(
                parameters.iter().any(|parameter| parameter["name"] == "fieldValidation"),
                "{name} {path}"
            );
            assert!(patch["x-kubernetes-group-version-kind"]["kind"].is_string(), "{name} {path}");
        }
    }
}

#[test]
fn a_document_under_its_hash_may_be_kept() {
    let openapi = OpenApi::default();
    let index = get(&openapi, "/openapi/v3");
    let address = index["paths"]["api/v1"]["serverRelativeURL"].as_str().expect("an address");
    let (path, query) = address.split_once('?').expect("a hash");
    let rows = builtin_rows();
    let response = openapi.handle(&rows, path, query, &HeaderMap::new()).expect("a document");
    assert_eq!(response.headers()[header::CACHE_CONTROL], "public, immutable");
    let etag: HeaderValue = response.headers()[header::ETAG].clone();
    let again = HeaderMap::from_iter([(header::IF_NONE_MATCH, etag)]);
    let response = openapi.handle(&rows, path, query, &again).expect("a document");
    assert_eq!((response.status(), response.body().len()), (StatusCode::NOT_MODIFIED, 0));
    let stale = openapi.handle(&rows, path, "hash=0", &HeaderMap::new()).expect("a redirect");
    assert_eq!(stale.headers()[header::LOCATION], address);
}

/// What `kubectl explain` walks: from a kind along its properties, through references and lists.
fn explained<'d>(document: &'d Value, kind: &str, path: &str) -> &'d Value {
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object).expect("schemas");
    let is_kind = |schema: &&Value| schema["x-kubernetes-group-version-kind"][0]["kind"] == kind;
    let mut schema = schemas.values().find(is_kind).unwrap_or_else(|| panic!("no {kind}"));
    for step in path.split('.') {
        let mut property = &schema["properties"][step];
        if property["type"] == "array" {
            property = &property["items"];
        }
        let reference = property.get("$ref").or_else(|| property["allOf"][0].get("$ref"));
        schema = match reference.and_then(Value::as_str) {
            Some(reference) => document.pointer(reference.trim_start_matches('#')).expect("a schema"),
            None => property,
        };
        assert!(schema.is_object(), "{kind}: nothing at {step} of {path}");
    }
    schema
}

#[test]
fn explanations_reach_into_built_in_kinds() {
    let openapi = OpenApi::default();
    for (document, kind, path, kept) in [
        ("api/v1", "Pod", "spec.containers.image", "type"),
        ("api/v1", "Service", "spec.selector", "x-kubernetes-map-type"),
        ("apis/batch/v1", "Job", "spec.template.spec.volumes.configMap.items", "properties"),
        (
            "apis/apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "spec.versions.schema.openAPIV3Schema.properties",
            "additionalProperties",
        ),
    ] {
        let document = get(&openapi, &format!("/openapi/v3/{document}"));
        assert!(explained(&document, kind, path).get(kept).is_some(), "{kind} {path}: no {kept}");
    }
}

/// Beside the schemas of objects and of lists, in both documents; a version that offers none says nothing.
#[tokio::test]
async fn fields_that_selectors_may_name_are_published() {
    let server = Server::builder().build().await.unwrap();
    // Where schemas do not differ, each version must have the same fields.
    let version = |name: &str, sizes: &str, fields: Value| {
        let spec =
            json!({"type": "object", "properties": {"color": {"type": "string"}, "size": {"type": sizes}}});
        json!({
            "name": name, "served": true, "storage": name == "v1", "selectableFields": fields,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        })
    };
    let both = json!([{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}]);
    let definition = json!({
        "metadata": {"name": "cats.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "cats", "kind": "Cat"},
            "versions": [version("v1", "integer", both), version("v2", "string", json!([]))],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = harness::post(&server, definitions, &definition).await;
    assert_eq!(made.status, 201, "{made:?}");
    let published = json!([{"fieldPath": "spec.color"}, {"fieldPath": "spec.size"}]);
    for (version, expected) in [("v1", Some(&published)), ("v2", None)] {
        let document = harness::get(&server, &format!("/openapi/v3/apis/example.com/{version}")).await.body;
        for kind in ["Cat", "CatList"] {
            let schema = &document["components"]["schemas"][format!("com.example.{version}.{kind}")];
            assert!(schema["x-kubernetes-group-version-kind"].is_array(), "{version} {kind}: {document}");
            assert_eq!(schema.get("x-kubernetes-selectable-fields"), expected, "{version} {kind}");
        }
    }
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let second = accepting(&server, "/openapi/v2", protobuf).await.body;
    let told = second.as_str().unwrap().matches("x-kubernetes-selectable-fields").count();
    assert_eq!(told, 2);
}

/// kubectl takes properties and items for all that there may be, and cannot read what may be null.
#[tokio::test]
async fn the_older_document_says_less_of_custom_kinds() {
    let server = Server::builder().build().await.unwrap();
    let text = json!({"type": "string"});
    let fields = json!({"a": text});
    let spec = json!({"type": "object", "required": ["open", "none"], "properties": {
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": fields},
        "openEmbedded": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
        "none": {"type": "object", "nullable": true, "description": "d", "properties": fields},
        "list": {"type": "array", "items": {"type": "object", "nullable": true, "properties": fields}},
        "noList": {"type": "array", "nullable": true, "items": text},
        "map": {"type": "object", "additionalProperties": {"type": "integer", "nullable": true}},
        "either": {"x-kubernetes-int-or-string": true},
        "checked": {"type": "string", "default": "a", "pattern": "a|b", "anyOf": [{"pattern": "a"}], "not": {"pattern": "c"}},
    }});
    let closed = json!({"type": "object", "description": "c", "properties": {"spec": spec}});
    let open = json!({"type": "object", "description": "c", "x-kubernetes-preserve-unknown-fields": true, "properties": {"spec": spec}});
    for (plural, kind, schema) in [("cats", "Cat", closed), ("dogs", "Dog", open)] {
        let version =
            json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        let definition = json!({
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": plural, "kind": kind}, "versions": [version]},
        });
        let made =
            harness::post(&server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition)
                .await;
        assert_eq!(made.status, 201, "{made:?}");
    }
    let older = harness::get(&server, "/openapi/v2").await.body;
    let gvk = json!([{"group": "example.com", "kind": "Dog", "version": "v1"}]);
    assert_eq!(
        older["definitions"]["com.example.v1.Dog"],
        json!({"type": "object", "x-kubernetes-group-version-kind": gvk})
    );
    let cat = &older["definitions"]["com.example.v1.Cat"];
    assert_eq!((&cat["type"], &cat["description"]), (&json!("object"), &json!("c")));
    let meta = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(cat["properties"]["metadata"]["$ref"], meta);
    assert_eq!(cat["properties"]["kind"]["type"], "string");
    let spec = &cat["properties"]["spec"];
    assert_eq!(spec["required"], json!(["open"]));
    let embedded = &spec["properties"]["embedded"];
    assert_eq!(embedded["required"], json!(["kind", "apiVersion"]));
    assert_eq!(embedded["properties"]["metadata"]["$ref"], meta);
    assert_eq!(embedded["properties"]["spec"], json!({"type": "object"}));
    for (field, told) in [
        ("open", json!({"x-kubernetes-preserve-unknown-fields": true})),
        (
            "openEmbedded",
            json!({"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true}),
        ),
        ("none", json!({"description": "d"})),
        ("list", json!({"type": "array", "items": {}})),
        ("noList", json!({})),
        ("map", json!({"type": "object", "additionalProperties": {}})),
        ("either", json!({"x-kubernetes-int-or-string": true})),
        ("checked", json!({"type": "string", "pattern": "a|b"})),
    ] {
        assert_eq!(spec["properties"][field], told, "{field}");
    }
    let newer = harness::get(&server, "/openapi/v3/apis/example.com/v1").await.body;
    let spec = &newer["components"]["schemas"]["com.example.v1.Dog"]["properties"]["spec"];
    assert_eq!(spec["properties"]["none"]["properties"], fields);
    assert_eq!(spec["properties"]["open"]["properties"], fields);
    // The form that kubectl asks for: of the two kinds one has a spec.
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let older = accepting(&server, "/openapi/v2", protobuf).await.body;
    assert_eq!(older.as_str().unwrap().matches("openEmbedded").count(), 1);
}

fn names(parameters: &Value) -> String {
    let parameters = parameters.as_array().into_iter().flatten();
    parameters.filter_map(|parameter| parameter["name"].as_str()).collect::<Vec<_>>().join(" ")
}

/// What the operations of a path have in common stands beside them, and only there.
#[tokio::test]
async fn parameters_stand_where_kubernetes_publishes_them() {
    let server = Server::builder().build().await.unwrap();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}}});
    let definition = json!({
        "metadata": {"name": "cats.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "cats", "kind": "Cat"}, "versions": [version]},
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(harness::post(&server, definitions, &definition).await.status, 201);
    let list = "allowWatchBookmarks continue fieldSelector labelSelector limit resourceVersion \
        resourceVersionMatch sendInitialEvents shardSelector timeoutSeconds watch";
    let alone = list.replace("limit ", "limit pretty ");
    let deletion = "dryRun gracePeriodSeconds ignoreStoreReadErrorWithClusterBreakingPotential \
        orphanDependents propagationPolicy";
    let collection = "continue dryRun fieldSelector gracePeriodSeconds \
        ignoreStoreReadErrorWithClusterBreakingPotential labelSelector limit orphanDependents propagationPolicy \
        resourceVersion resourceVersionMatch sendInitialEvents shardSelector timeoutSeconds";
    let write = "dryRun fieldManager fieldValidation";
    let forced = format!("{write} force");
    for (root, plural, read, collection) in
        [("/api/v1", "configmaps", "", collection), ("/apis/example.com/v1", "cats", "resourceVersion", list)]
    {
        let document = harness::get(&server, &format!("/openapi/v3{root}")).await.body;
        let told = |path: &str, pointer: &str| {
            let item = &document["paths"][format!("{root}{path}{plural}")];
            names(item.pointer(pointer).unwrap_or(&Value::Null))
        };
        let here = |pointer: &str| told("/namespaces/{namespace}/", pointer);
        assert_eq!(told("/", "/parameters"), alone, "{root}");
        assert_eq!(told("/", "/get/parameters"), "", "{root}");
        assert_eq!(here("/parameters"), "namespace pretty", "{root}");
        assert_eq!(here("/get/parameters"), list, "{root}");
        assert_eq!(here("/post/parameters"), write, "{root}");
        assert_eq!(here("/delete/parameters"), collection, "{root}");
        let item = &document["paths"][format!("{root}/namespaces/{{namespace}}/{plural}/{{name}}")];
        assert_eq!(names(&item["parameters"]), "name namespace pretty", "{root}");
        for (method, expected) in
            [("get", read), ("put", write), ("patch", forced.as_str()), ("delete", deletion)]
        {
            assert_eq!(names(&item[method]["parameters"]), expected, "{root} {method}");
        }
    }
    let document = harness::get(&server, "/openapi/v3/apis/example.com/v1").await.body;
    let path = "/apis/example.com/v1/namespaces/{namespace}/cats/{name}/status";
    let patch = &document["paths"][path]["patch"];
    assert_eq!(patch["description"], "partially update status of the specified Cat");
    assert_eq!(patch["operationId"], "patchExampleComV1NamespacedCatStatus");
    let everywhere = &document["paths"]["/apis/example.com/v1/cats"]["get"];
    assert_eq!(everywhere["operationId"], "listExampleComV1CatForAllNamespaces");
}

/// Generators of clients name a function after each operation, and write its parameters' texts beside them.
#[test]
fn operations_have_names_of_their_own_and_parameters_have_texts() {
    let openapi = OpenApi::default();
    let mut known = std::collections::HashSet::new();
    for (name, document) in documents(&openapi) {
        for (path, item) in document["paths"].as_object().expect("paths") {
            let operations = item.as_object().into_iter().flatten().filter(|(name, _)| *name != "parameters");
            let mut parameters: Vec<&Value> = item["parameters"].as_array().into_iter().flatten().collect();
            // Nothing can be asked for of discovery.
            assert_eq!(parameters.is_empty(), path.ends_with('/'), "{path}");
            let shared = parameters.clone();
            for (method, operation) in operations {
                let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
                assert!(!id.is_empty() && known.insert(id.clone()), "{name} {path} {method}: {id}");
                let own: Vec<_> = operation["parameters"].as_array().into_iter().flatten().collect();
                assert!(own.iter().all(|own| !shared.contains(own)), "{path} {method}");
                parameters.extend(own);
            }
            for parameter in parameters {
                assert!(
                    parameter["description"].as_str().is_some_and(|text| text.len() > 8),
                    "{path} {parameter}"
                );
                assert!(parameter["schema"]["type"].is_string(), "{path} {parameter}");
            }
        }
    }
    let rows = builtin_rows();
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    for accepted in ["application/json", protobuf] {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accepted))]);
        let response = openapi.handle(&rows, "/openapi/v2", "", &headers).expect("a document");
        let text = String::from_utf8_lossy(response.body()).into_owned();
        for told in
            ["Watch for changes to the described resources", "list of returned objects", "List of services"]
        {
            assert!(text.contains(told), "{accepted}: {told}");
        }
    }
}

/// The names are those of a recorded index of Kubernetes 1.36 (`verbs-paths/45`), where custom groups have no document.
#[test]
fn discovery_has_documents_of_its_own() {
    let openapi = OpenApi::default();
    let index = get(&openapi, "/openapi/v3");
    let listed = |name: &str| index["paths"].get(name).is_some();
    for name in [".well-known/openid-configuration", "api", "api/v1", "apis", "openid/v1/jwks", "version"] {
        assert!(listed(name), "{name}");
    }
    for row in builtin_rows().iter().filter(|row| !row.group.is_empty()) {
        assert!(listed(&format!("apis/{}", row.group)), "{}", row.group);
    }
    for (document, path, id, answer) in [
        ("api", "/api/", "getCoreAPIVersions", "meta.v1.APIVersions"),
        ("apis", "/apis/", "getAPIVersions", "meta.v1.APIGroupList"),
        ("apis/apps", "/apis/apps/", "getAppsAPIGroup", "meta.v1.APIGroup"),
        ("apis/apps/v1", "/apis/apps/v1/", "getAppsV1APIResources", "meta.v1.APIResourceList"),
        ("version", "/version/", "getCodeVersion", "version.Info"),
    ] {
        let document = get(&openapi, &format!("/openapi/v3/{document}"));
        let operation = &document["paths"][path]["get"];
        assert_eq!(operation["operationId"], id);
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"];
        assert!(schema.as_str().is_some_and(|schema| schema.ends_with(answer)), "{path}: {schema}");
    }
    let resources = get(&openapi, "/openapi/v3/api/v1");
    let resource = &resources["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.APIResource"];
    assert_eq!(resource["properties"]["verbs"]["items"], json!({"type": "string"}));
}

/// Generated clients have functions for these, beside those that read and write objects.
#[test]
fn watches_connections_and_parts_are_published() {
    let core = get(&OpenApi::default(), "/openapi/v3/api/v1");
    let pod = "/api/v1/namespaces/{namespace}/pods/{name}";
    let cases = [
        ("/api/v1/watch/pods", "get", "watchCoreV1PodListForAllNamespaces", "watchlist", "Pod"),
        ("/api/v1/watch/nodes", "get", "watchCoreV1NodeList", "watchlist", "Node"),
        (
            "/api/v1/watch/namespaces/{namespace}/pods/{name}",
            "get",
            "watchCoreV1NamespacedPod",
            "watch",
            "Pod",
        ),
        (&format!("{pod}/exec"), "post", "connectCoreV1PostNamespacedPodExec", "connect", "PodExecOptions"),
        (
            &format!("{pod}/proxy/{{path}}"),
            "head",
            "connectCoreV1HeadNamespacedPodProxyWithPath",
            "connect",
            "PodProxyOptions",
        ),
        (&format!("{pod}/log"), "get", "readCoreV1NamespacedPodLog", "get", "Pod"),
        (&format!("{pod}/eviction"), "post", "createCoreV1NamespacedPodEviction", "post", "Eviction"),
        (
            "/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            "post",
            "createCoreV1NamespacedServiceAccountToken",
            "post",
            "TokenRequest",
        ),
        ("/api/v1/namespaces/{name}/finalize", "put", "replaceCoreV1NamespaceFinalize", "put", "Namespace"),
    ];
    for (path, method, id, action, kind) in cases {
        let operation = &core["paths"][path][method];
        assert_eq!(operation["operationId"], id, "{path}");
        assert_eq!(operation["x-kubernetes-action"], action, "{path}");
        assert_eq!(operation["x-kubernetes-group-version-kind"]["kind"], kind, "{path}");
    }
    let named = |path: &str| {
        let parameters = core["paths"][path]["parameters"].as_array().expect("parameters");
        parameters.iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    let exec = ["command", "container", "name", "namespace", "stderr", "stdin", "stdout", "tty"];
    assert_eq!(named(&format!("{pod}/exec")), exec);
    assert_eq!(named(&format!("{pod}/proxy/{{path}}")), ["name", "namespace", "path", "path"]);
    let watches = core["paths"].as_object().expect("paths").keys().filter(|path| path.contains("/watch/"));
    assert_eq!(watches.count(), 42);
}

/// Whoever makes definitions of ever new groups and takes them away has no documents stay.
#[test]
fn documents_of_groups_that_are_gone_are_dropped() {
    let openapi = OpenApi::default();
    let template = builtin_rows().into_iter().find(|row| row.kind == "ConfigMap").expect("a row");
    for count in 0..500 {
        let row = ResourceInfo {
            group: format!("g{count}.example.com"),
            builtin: false,
            ..ResourceInfo::clone(&template)
        };
        let path = format!("/openapi/v3/apis/{}/v1", row.group);
        let response = openapi.handle(&[row.into()], &path, "", &HeaderMap::new()).expect("a document");
        assert_eq!(response.status(), StatusCode::OK);
    }
    let held = format!("{openapi:?}").matches("Document {").count();
    assert!((1..20).contains(&held), "{held}");
}
