//! Lists the fields of the configuration kinds, for [`super::strict`].

use crate::exception;
use crate::server_config;

/// Fields by their names.
pub(super) type Fields = &'static [(&'static str, Shape)];

/// The names of fields at a place of a document.
pub(super) enum Shape {
    /// Scalars, and what is checked elsewhere.
    Any,
    Struct(Fields),
    /// A structure with fields of its own beside those that it shares.
    Both(Fields, Fields),
    /// A structure that others share.
    One(&'static Self),
    List(&'static Self),
    Map(&'static Self),
    /// A structure, a list of it, or something else. The API server decodes these with hand-written code that ignores unknown fields.
    Lenient(&'static Self),
    Metadata,
}

use Shape::{Any, Both, Lenient, List, Map, Metadata, One, Struct};

/// Returns the fields of documents of a kind; None if unknown here.
pub(super) fn of(group: &str, kind: &str) -> Option<&'static Shape> {
    Some(match (group, kind) {
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => &POLICY,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => &BINDING,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => &MUTATING_POLICY,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding") => &MUTATING_BINDING,
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => &VALIDATING_WEBHOOKS,
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => &MUTATING_WEBHOOKS,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => &DEFINITION,
        (exception::GROUP, exception::KIND) | (exception::STORED_GROUP, exception::CLUSTER_KIND) => {
            &EXCEPTION
        }
        (exception::STORED_GROUP, exception::KIND) => &EXCEPTION_IN_NAMESPACE,
        (server_config::GROUP, server_config::AUTHENTICATION) => &AUTHENTICATION,
        (server_config::GROUP, server_config::AUTHORIZATION) => &AUTHORIZATION,
        _ => return None,
    })
}

const NAMED_EXPRESSIONS: Shape = List(&Struct(&[("name", Any), ("expression", Any)]));

const TYPE: Shape = Struct(&[("apiVersion", Any), ("kind", Any)]);

static POLICY: Shape = Struct(&[
    ("apiVersion", Any),
    ("kind", Any),
    ("metadata", Metadata),
    (
        "spec",
        Struct(&[
            ("failurePolicy", Any),
            ("paramKind", TYPE),
            ("matchConstraints", MATCH_RESOURCES),
            ("matchConditions", NAMED_EXPRESSIONS),
            ("variables", NAMED_EXPRESSIONS),
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
    ("spec", Both(EXCEPTED, &[("namespaces", Any)])),
]);

static EXCEPTION_IN_NAMESPACE: Shape =
    Struct(&[("apiVersion", Any), ("kind", Any), ("metadata", Metadata), ("spec", Struct(EXCEPTED))]);

const EXCEPTED: Fields = &[
    ("policies", Any),
    ("names", Any),
    ("users", Any),
    ("operations", Any),
    ("until", Any),
    ("reason", Any),
];

static MUTATING_POLICY: Shape = Struct(&[
    ("apiVersion", Any),
    ("kind", Any),
    ("metadata", Metadata),
    (
        "spec",
        Struct(&[
            ("failurePolicy", Any),
            ("reinvocationPolicy", Any),
            ("paramKind", TYPE),
            ("matchConstraints", MATCH_RESOURCES),
            ("matchConditions", NAMED_EXPRESSIONS),
            ("variables", NAMED_EXPRESSIONS),
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

/// The fields that bindings of both kinds of policies have.
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
    ("matchConditions", NAMED_EXPRESSIONS),
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

static AUTHENTICATION: Shape = Struct(&[
    ("apiVersion", Any),
    ("kind", Any),
    ("jwt", List(&JWT)),
    ("anonymous", Struct(&[("enabled", Any), ("conditions", List(&Struct(&[("path", Any)])))])),
]);

static JWT: Shape = Struct(&[
    (
        "issuer",
        Struct(&[
            ("url", Any),
            ("discoveryURL", Any),
            ("certificateAuthority", Any),
            ("audiences", Any),
            ("audienceMatchPolicy", Any),
            ("egressSelectorType", Any),
        ]),
    ),
    (
        "claimValidationRules",
        List(&Struct(&[("claim", Any), ("requiredValue", Any), ("expression", Any), ("message", Any)])),
    ),
    (
        "claimMappings",
        Struct(&[
            ("username", PREFIXED),
            ("groups", PREFIXED),
            ("uid", Struct(&[("claim", Any), ("expression", Any)])),
            ("extra", List(&Struct(&[("key", Any), ("valueExpression", Any)]))),
        ]),
    ),
    ("userValidationRules", List(&Struct(&[("expression", Any), ("message", Any)]))),
]);

const PREFIXED: Shape = Struct(&[("claim", Any), ("prefix", Any), ("expression", Any)]);

static AUTHORIZATION: Shape =
    Struct(&[("apiVersion", Any), ("kind", Any), ("authorizers", List(&AUTHORIZER))]);

static AUTHORIZER: Shape = Struct(&[
    ("type", Any),
    ("name", Any),
    (
        "webhook",
        Struct(&[
            ("authorizedTTL", Any),
            ("cacheAuthorizedRequests", Any),
            ("unauthorizedTTL", Any),
            ("cacheUnauthorizedRequests", Any),
            ("timeout", Any),
            ("subjectAccessReviewVersion", Any),
            ("matchConditionSubjectAccessReviewVersion", Any),
            ("failurePolicy", Any),
            ("connectionInfo", Struct(&[("type", Any), ("kubeConfigFile", Any)])),
            ("matchConditions", List(&Struct(&[("expression", Any)]))),
        ]),
    ),
]);
