//! Fields that the kinds of policies and definitions do not have. The API server reads its manifests strictly, and
//! kubectl asks for the same: a field in the wrong place says nothing, and a policy without it allows what it should not.

use serde_json::Value;

use crate::path::Path;
use crate::schema::metadata;

/// What stands at a place of a document, as far as its fields' names go.
enum Shape {
    /// Scalars, and what is checked elsewhere.
    Any,
    Struct(&'static [(&'static str, Self)]),
    List(&'static Self),
    Map(&'static Self),
    /// A structure, or a list of it.
    OneOrMany(&'static Self),
    Metadata,
}

use Shape::{Any, List, Map, Metadata, OneOrMany, Struct};

/// The fields of `document` that its kind does not have, in the order of the document: `spec.validations[0].expresion`.
pub(crate) fn unknown_fields(group: &str, kind: &str, document: &Value) -> Vec<String> {
    let shape = match (group, kind) {
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => &POLICY,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => &BINDING,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => &DEFINITION,
        _ => return Vec::new(),
    };
    let mut unknown = Vec::new();
    walk(document, shape, &Path::Nil, &mut unknown);
    unknown
}

fn walk(value: &Value, shape: &Shape, path: &Path<'_>, unknown: &mut Vec<String>) {
    match (shape, value) {
        (Struct(known), Value::Object(fields)) => {
            for (name, value) in fields {
                let at = path.child(name);
                match known.iter().find(|(known, _)| known == name) {
                    Some((_, shape)) => walk(value, shape, &at, unknown),
                    None => unknown.push(at.to_string()),
                }
            }
        }
        (Map(entry), Value::Object(fields)) => {
            for (key, value) in fields {
                walk(value, entry, &path.key(key), unknown);
            }
        }
        (List(item) | OneOrMany(item), Value::Array(items)) => {
            for (at, value) in items.iter().enumerate() {
                walk(value, item, &path.index(at), unknown);
            }
        }
        (Metadata, value) => unknown.extend(metadata::unknown_fields(value, path)),
        (OneOrMany(one), Value::Object(_)) => walk(value, one, path, unknown),
        // A value of another type is told by those who read it.
        (Any | Struct(_) | Map(_) | List(_) | OneOrMany(_), _) => {}
    }
}

static POLICY: Shape = Struct(&[
    ("apiVersion", Any),
    ("kind", Any),
    ("metadata", Metadata),
    (
        "spec",
        Struct(&[
            ("failurePolicy", Any),
            ("paramKind", Struct(&[("apiVersion", Any), ("kind", Any)])),
            ("matchConstraints", MATCH_RESOURCES),
            ("matchConditions", List(&Struct(&[("name", Any), ("expression", Any)]))),
            ("variables", List(&Struct(&[("name", Any), ("expression", Any)]))),
            (
                "validations",
                List(&Struct(&[
                    ("expression", Any),
                    ("message", Any),
                    ("messageExpression", Any),
                    ("reason", Any),
                ])),
            ),
            ("auditAnnotations", List(&Struct(&[("key", Any), ("valueExpression", Any)]))),
        ]),
    ),
    ("status", Any),
]);

static BINDING: Shape = Struct(&[
    ("apiVersion", Any),
    ("kind", Any),
    ("metadata", Metadata),
    (
        "spec",
        Struct(&[
            ("policyName", Any),
            (
                "paramRef",
                Struct(&[
                    ("name", Any),
                    ("namespace", Any),
                    ("selector", SELECTOR),
                    ("parameterNotFoundAction", Any),
                ]),
            ),
            ("matchResources", MATCH_RESOURCES),
            ("validationActions", Any),
        ]),
    ),
]);

static DEFINITION: Shape = Struct(&[
    ("apiVersion", Any),
    ("kind", Any),
    ("metadata", Metadata),
    (
        "spec",
        Struct(&[
            ("group", Any),
            (
                "names",
                Struct(&[
                    ("plural", Any),
                    ("singular", Any),
                    ("shortNames", Any),
                    ("kind", Any),
                    ("listKind", Any),
                    ("categories", Any),
                ]),
            ),
            ("scope", Any),
            ("versions", List(&VERSION)),
            ("conversion", CONVERSION),
            ("preserveUnknownFields", Any),
        ]),
    ),
    ("status", Any),
]);

const SELECTOR: Shape = Struct(&[
    ("matchLabels", Any),
    ("matchExpressions", List(&Struct(&[("key", Any), ("operator", Any), ("values", Any)]))),
]);

const MATCH_RESOURCES: Shape = Struct(&[
    ("namespaceSelector", SELECTOR),
    ("objectSelector", SELECTOR),
    ("resourceRules", RULES),
    ("excludeResourceRules", RULES),
    ("matchPolicy", Any),
]);

const RULES: Shape = List(&Struct(&[
    ("resourceNames", Any),
    ("operations", Any),
    ("apiGroups", Any),
    ("apiVersions", Any),
    ("resources", Any),
    ("scope", Any),
]));

static VERSION: Shape = Struct(&[
    ("name", Any),
    ("served", Any),
    ("storage", Any),
    ("deprecated", Any),
    ("deprecationWarning", Any),
    ("schema", Struct(&[("openAPIV3Schema", Struct(SCHEMA))])),
    (
        "subresources",
        Struct(&[
            ("status", Struct(&[])),
            (
                "scale",
                Struct(&[("specReplicasPath", Any), ("statusReplicasPath", Any), ("labelSelectorPath", Any)]),
            ),
        ]),
    ),
    (
        "additionalPrinterColumns",
        List(&Struct(&[
            ("name", Any),
            ("type", Any),
            ("format", Any),
            ("description", Any),
            ("priority", Any),
            ("jsonPath", Any),
        ])),
    ),
    ("selectableFields", List(&Struct(&[("jsonPath", Any)]))),
]);

const CONVERSION: Shape = Struct(&[
    ("strategy", Any),
    (
        "webhook",
        Struct(&[
            (
                "clientConfig",
                Struct(&[
                    ("url", Any),
                    ("caBundle", Any),
                    ("service", Struct(&[("namespace", Any), ("name", Any), ("path", Any), ("port", Any)])),
                ]),
            ),
            ("conversionReviewVersions", Any),
        ]),
    ),
]);

static A_SCHEMA: Shape = Struct(SCHEMA);

static SCHEMA: &[(&str, Shape)] = &[
    ("id", Any),
    ("$schema", Any),
    ("$ref", Any),
    ("description", Any),
    ("type", Any),
    ("format", Any),
    ("title", Any),
    ("default", Any),
    ("maximum", Any),
    ("exclusiveMaximum", Any),
    ("minimum", Any),
    ("exclusiveMinimum", Any),
    ("maxLength", Any),
    ("minLength", Any),
    ("pattern", Any),
    ("maxItems", Any),
    ("minItems", Any),
    ("uniqueItems", Any),
    ("multipleOf", Any),
    ("enum", Any),
    ("maxProperties", Any),
    ("minProperties", Any),
    ("required", Any),
    ("items", OneOrMany(&A_SCHEMA)),
    ("allOf", List(&A_SCHEMA)),
    ("oneOf", List(&A_SCHEMA)),
    ("anyOf", List(&A_SCHEMA)),
    ("not", OneOrMany(&A_SCHEMA)),
    ("properties", Map(&A_SCHEMA)),
    ("additionalProperties", OneOrMany(&A_SCHEMA)),
    ("patternProperties", Map(&A_SCHEMA)),
    ("dependencies", Any),
    ("additionalItems", OneOrMany(&A_SCHEMA)),
    ("definitions", Map(&A_SCHEMA)),
    ("externalDocs", Struct(&[("description", Any), ("url", Any)])),
    ("example", Any),
    ("nullable", Any),
    ("x-kubernetes-preserve-unknown-fields", Any),
    ("x-kubernetes-embedded-resource", Any),
    ("x-kubernetes-int-or-string", Any),
    ("x-kubernetes-list-map-keys", Any),
    ("x-kubernetes-list-type", Any),
    ("x-kubernetes-map-type", Any),
    (
        "x-kubernetes-validations",
        List(&Struct(&[
            ("rule", Any),
            ("message", Any),
            ("messageExpression", Any),
            ("reason", Any),
            ("fieldPath", Any),
            ("optionalOldSelf", Any),
        ])),
    ),
];
