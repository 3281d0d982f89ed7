//! Finds unknown fields in manifests of policies and CRDs. The API server decodes its manifests strictly, and kubectl
//! asks for the same: a misplaced field has no effect, and a policy without it allows what it should not.

use admit_apimachinery::suggest;
use serde_json::{Map as Object, Value};

use crate::exception;
use crate::read::path::Path;
use crate::schema::metadata;
use admit_apimachinery::bounded::{MAX_PATH, MAX_PATHS, shorten};

/// Fields by their names.
type Fields = &'static [(&'static str, Shape)];

/// What stands at a place of a document, as far as its fields' names go.
enum Shape {
    /// Scalars, and what is checked elsewhere.
    Any,
    Struct(Fields),
    /// A structure with fields of its own beside those that it shares.
    Both(Fields, Fields),
    /// One that a structure shares with others.
    One(&'static Self),
    List(&'static Self),
    Map(&'static Self),
    /// A structure, a list of it, or something else. The API server reads these by a hand-written decoder that passes over
    /// what it does not know.
    Lenient(&'static Self),
    Metadata,
}

use Shape::{Any, Both, Lenient, List, Map, Metadata, One, Struct};

/// A field that its kind does not have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownField {
    /// `spec.validations[0].expresion`
    pub(crate) path: String,
    /// Whether a strict server refuses it; otherwise the server drops it silently.
    pub(crate) refused: bool,
    /// The field that may be meant.
    pub(crate) nearest: Option<&'static str>,
}

/// The fields of `document` that its kind does not have, in the order of the document; of very many the first.
pub(crate) fn unknown_fields(group: &str, kind: &str, document: &Value) -> Vec<UnknownField> {
    let shape = match (group, kind) {
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => &POLICY,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => &BINDING,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => &MUTATING_POLICY,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding") => &MUTATING_BINDING,
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => &VALIDATING_WEBHOOKS,
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => &MUTATING_WEBHOOKS,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => &DEFINITION,
        (exception::GROUP, exception::KIND) => &EXCEPTION,
        _ => return Vec::new(),
    };
    let mut walk = Walk { refused: true, unknown: Vec::new() };
    walk.value(document, shape, &Path::Nil);
    walk.unknown
}

struct Walk {
    /// Whether what is found here is refused.
    refused: bool,
    unknown: Vec<UnknownField>,
}

impl Walk {
    fn value(&mut self, value: &Value, shape: &Shape, path: &Path<'_>) {
        match (shape, value) {
            (Struct(known), Value::Object(fields)) => self.fields(fields, (known, &[]), path),
            (Both(own, shared), Value::Object(fields)) => self.fields(fields, (own, shared), path),
            (Map(entry), Value::Object(fields)) => {
                for (key, value) in fields {
                    self.value(value, entry, &path.key(key));
                }
            }
            (One(shape), value) => self.value(value, shape, path),
            (List(item), Value::Array(items)) => self.items(items, item, path),
            (Metadata, value) => {
                metadata::unknown_fields(value, path).into_iter().for_each(|path| self.push(None, || path));
            }
            (Lenient(one), value) => {
                let refused = std::mem::replace(&mut self.refused, false);
                match value {
                    Value::Array(items) => self.items(items, one, path),
                    value => self.value(value, one, path),
                }
                self.refused = refused;
            }
            // A value of another type is told by those who read it.
            (Any | Struct(_) | Both(..) | Map(_) | List(_), _) => {}
        }
    }

    fn fields(&mut self, fields: &Object<String, Value>, (own, shared): (Fields, Fields), path: &Path<'_>) {
        for (name, value) in fields {
            let at = path.child(name);
            match own.iter().chain(shared).find(|(known, _)| known == name) {
                Some((_, shape)) => self.value(value, shape, &at),
                None => {
                    let known = own.iter().chain(shared).map(|(known, _)| *known);
                    self.push(suggest::nearest(name, known), || at.to_string());
                }
            }
        }
    }

    fn items(&mut self, items: &[Value], shape: &Shape, path: &Path<'_>) {
        for (at, value) in items.iter().enumerate() {
            self.value(value, shape, &path.index(at));
        }
    }

    fn push(&mut self, nearest: Option<&'static str>, path: impl FnOnce() -> String) {
        if self.unknown.len() < MAX_PATHS {
            let mut path = path();
            shorten(&mut path, MAX_PATH);
            self.unknown.push(UnknownField { path, refused: self.refused, nearest });
        }
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
    ("spec", Both(BOUND, &[("validationActions", Any)])),
]);

static EXCEPTION: Shape = Struct(&[
    ("apiVersion", Any),
    ("kind", Any),
    ("metadata", Metadata),
    (
        "spec",
        Struct(&[
            ("policies", Any),
            ("namespaces", Any),
            ("names", Any),
            ("users", Any),
            ("operations", Any),
            ("until", Any),
            ("reason", Any),
        ]),
    ),
]);

static MUTATING_POLICY: Shape = Struct(&[
    ("apiVersion", Any),
    ("kind", Any),
    ("metadata", Metadata),
    (
        "spec",
        Struct(&[
            ("failurePolicy", Any),
            ("reinvocationPolicy", Any),
            ("paramKind", Struct(&[("apiVersion", Any), ("kind", Any)])),
            ("matchConstraints", MATCH_RESOURCES),
            ("matchConditions", List(&Struct(&[("name", Any), ("expression", Any)]))),
            ("variables", List(&Struct(&[("name", Any), ("expression", Any)]))),
            (
                "mutations",
                List(&Struct(&[
                    ("patchType", Any),
                    ("applyConfiguration", Struct(&[("expression", Any)])),
                    ("jsonPatch", Struct(&[("expression", Any)])),
                ])),
            ),
        ]),
    ),
]);

static MUTATING_BINDING: Shape =
    Struct(&[("apiVersion", Any), ("kind", Any), ("metadata", Metadata), ("spec", Struct(BOUND))]);

/// What bindings of both kinds of policies say.
const BOUND: &[(&str, Shape)] = &[
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
];

static VALIDATING_WEBHOOKS: Shape = Struct(&[
    ("apiVersion", Any),
    ("kind", Any),
    ("metadata", Metadata),
    ("webhooks", List(&Both(WEBHOOK, &[]))),
]);

static MUTATING_WEBHOOKS: Shape = Struct(&[
    ("apiVersion", Any),
    ("kind", Any),
    ("metadata", Metadata),
    ("webhooks", List(&Both(WEBHOOK, &[("reinvocationPolicy", Any)]))),
]);

const WEBHOOK: &[(&str, Shape)] = &[
    ("name", Any),
    ("clientConfig", CLIENT_CONFIG),
    ("rules", RULES_OF_WEBHOOKS),
    ("failurePolicy", Any),
    ("matchPolicy", Any),
    ("namespaceSelector", SELECTOR),
    ("objectSelector", SELECTOR),
    ("sideEffects", Any),
    ("timeoutSeconds", Any),
    ("admissionReviewVersions", Any),
    ("matchConditions", List(&Struct(&[("name", Any), ("expression", Any)]))),
];

const CLIENT_CONFIG: Shape = Struct(&[
    ("url", Any),
    ("caBundle", Any),
    ("service", Struct(&[("namespace", Any), ("name", Any), ("path", Any), ("port", Any)])),
]);

const RULES_OF_WEBHOOKS: Shape = List(&Struct(&[
    ("operations", Any),
    ("apiGroups", Any),
    ("apiVersions", Any),
    ("resources", Any),
    ("scope", Any),
]));

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
    ("webhook", Struct(&[("clientConfig", CLIENT_CONFIG), ("conversionReviewVersions", Any)])),
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
    ("items", Lenient(&A_SCHEMA)),
    ("allOf", List(&A_SCHEMA)),
    ("oneOf", List(&A_SCHEMA)),
    ("anyOf", List(&A_SCHEMA)),
    ("not", One(&A_SCHEMA)),
    ("properties", Map(&A_SCHEMA)),
    ("additionalProperties", Lenient(&A_SCHEMA)),
    ("patternProperties", Map(&A_SCHEMA)),
    ("dependencies", Any),
    ("additionalItems", Lenient(&A_SCHEMA)),
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
