//! What the schemas of OpenAPI documents say beside the fields: unions, owners, values, defaults, and the versions of shared kinds.

use admit_apiserver::internals::{OpenApi, builtin_rows};
use http::{HeaderMap, HeaderValue, header};
use serde_json::{Value, json};

use crate::openapi::get;

/// Unions, owned maps, and the versions in which everything can be deleted, as recorded.
#[test]
fn schemas_say_what_appliers_and_generators_look_for() {
    let openapi = OpenApi::default();
    let schemas =
        |document: &str| get(&openapi, &format!("/openapi/v3/{document}"))["components"]["schemas"].clone();
    let core = schemas("api/v1");
    let union = json!([{"discriminator": "type", "fields-to-discriminateBy": {"localhostProfile": "LocalhostProfile"}}]);
    assert_eq!(core["io.k8s.api.core.v1.SeccompProfile"]["x-kubernetes-unions"], union);
    let claim = &core["io.k8s.api.core.v1.PersistentVolumeSpec"]["properties"]["claimRef"];
    assert_eq!(claim["x-kubernetes-map-type"], "granular");
    let policies = schemas("apis/admissionregistration.k8s.io/v1");
    let binding = &policies["io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec"];
    assert_eq!(binding["required"], json!(["policyName", "validationActions"]));
}

/// Version 2 tells all versions, version 3 those of the core group and of the document; reviews have neither.
#[test]
fn options_and_events_are_kinds_of_each_version() {
    const OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
    let openapi = OpenApi::default();
    let kinds = |schema: &Value| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array().expect("kinds");
        kinds.iter().map(|kind| format!("{}/{}", kind["group"], kind["version"]).replace('"', "")).collect()
    };
    let schemas = |document: &str| get(&openapi, document)["components"]["schemas"].clone();
    let of: fn(&str) -> Vec<String> = |text| text.split(' ').map(str::to_owned).collect();
    let [core, apps, reviews] = ["api/v1", "apis/apps/v1", "apis/authorization.k8s.io/v1"]
        .map(|name| schemas(&format!("/openapi/v3/{name}")));
    let [in_core, in_apps]: [Vec<String>; 2] = [&core, &apps].map(|schemas| kinds(&schemas[OPTIONS]));
    assert_eq!((in_core, in_apps), (of("/v1"), of("/v1 apps/v1")));
    let events: Vec<String> = kinds(&apps["io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"]);
    assert_eq!(events, of("/v1 apps/v1"));
    let shared = reviews.as_object().expect("schemas").keys().filter(|name| name.contains("apimachinery"));
    let shared: Vec<&str> = shared.filter_map(|name| name.rsplit('.').next()).collect();
    assert!(!shared.contains(&"DeleteOptions") && !shared.contains(&"Status"), "{shared:?}");

    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let second = openapi.handle(&builtin_rows(), "/openapi/v2", "", &headers).expect("the document");
    let second: Value = serde_json::from_slice(second.body()).expect("JSON");
    let everywhere: Vec<String> = kinds(&second["definitions"][OPTIONS]);
    assert_eq!((everywhere.len(), everywhere[0].as_str()), (60, "/v1"));
}

/// Values and defaults, as Kubernetes 1.36 publishes them.
#[test]
fn values_and_defaults_are_published_where_kubernetes_publishes_them() {
    let openapi = OpenApi::default();
    let property = |document: &str, schema: &str, property: &str| {
        let schemas = &get(&openapi, &format!("/openapi/v3/{document}"))["components"]["schemas"];
        let mut shown = schemas[schema]["properties"][property].clone();
        shown.as_object_mut().expect("a property").remove("description");
        shown
    };
    let core = |kind: &str, field: &str| property("api/v1", &format!("io.k8s.api.core.v1.{kind}"), field);
    let text = |values: Value| json!({"type": "string", "enum": values});
    assert_eq!(core("PersistentVolumeClaimStatus", "phase"), text(json!(["Bound", "Lost", "Pending"])));
    assert_eq!(
        core("HostPathVolumeSource", "type")["enum"],
        json!([
            "",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket"
        ])
    );
    assert_eq!(core("ServiceSpec", "ipFamilies")["items"], text(json!(["", "IPv4", "IPv6"])));
    assert_eq!(core("AzureDiskVolumeSource", "kind")["default"], "Shared");
    // Required, but left out when empty.
    assert_eq!(core("ContainerRestartRule", "action"), json!({"type": "string"}));
    let csr = "io.k8s.api.certificates.v1.CertificateSigningRequestSpec";
    let usages = property("apis/certificates.k8s.io/v1", csr, "usages");
    assert_eq!(usages["items"]["enum"].as_array().map(Vec::len), Some(23));
    assert_eq!(usages["items"]["enum"][1], "cert sign");
}
