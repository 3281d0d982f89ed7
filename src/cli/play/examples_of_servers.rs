//! Contains the examples of API server configuration files and of devices.

use super::examples::Example;

const ISSUER: &str = "\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: https://issuer.example.com, audiences: [clusters]}
  claimValidationRules:
  - expression: claims.?email_verified.orValue(true) == true
    message: the address must be verified
  claimMappings:
    username: {expression: \"'sso:' + claims.email\"}
    groups: {expression: \"claims.?roles.orValue([])\"}
    extra:
    - {key: example.com/team, valueExpression: claims.?team.orValue('none')}
  userValidationRules:
  - expression: \"!user.groups.exists(g, g.startsWith('system:'))\"
    message: groups of the system are not given by issuers
anonymous:
  enabled: true
  conditions: [{path: /livez}, {path: /readyz}]
";

pub(super) const AUTHENTICATION: &[Example] = &[
    Example::new(
        "A user with two roles and a team",
        "allow",
        &[
            ("configuration", ISSUER),
            (
                "claims",
                "\
iss: https://issuer.example.com
aud: clusters
email: ann@example.com
email_verified: true
roles: [admins, readers]
team: storage
",
            ),
        ],
    ),
    Example::new(
        "An address that is not verified",
        "deny",
        &[
            ("configuration", ISSUER),
            (
                "claims",
                "\
iss: https://issuer.example.com
aud: clusters
email: ann@example.com
email_verified: false
",
            ),
        ],
    ),
    Example::new(
        "A token for somebody else",
        "deny",
        &[
            ("configuration", ISSUER),
            (
                "claims",
                "{iss: https://issuer.example.com, aud: payroll, email: ann@example.com, email_verified: true}\n",
            ),
        ],
    ),
    Example::new("A probe without a token", "allow", &[("configuration", ISSUER), ("path", "/livez\n")]),
];

const AUTHORIZERS: &str = "\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Node
  name: node
- type: RBAC
  name: rbac
- type: Webhook
  name: tenants
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: InClusterConfig}
    matchConditions:
    - expression: has(request.resourceAttributes)
    - expression: request.resourceAttributes.namespace.startsWith('tenant-')
    - expression: \"!('system:serviceaccounts:kube-system' in request.groups)\"
";

pub(super) const AUTHORIZATION: &[Example] = &[
    Example::new(
        "A tenant's namespace: the webhook is asked",
        "called",
        &[
            ("configuration", AUTHORIZERS),
            (
                "review",
                "\
user: ann
groups: [system:authenticated]
resourceAttributes: {verb: create, group: insights.openshift.io, resource: datagathers, namespace: tenant-a}
",
            ),
        ],
    ),
    Example::new(
        "A path: the webhook is passed over",
        "called",
        &[
            ("configuration", AUTHORIZERS),
            (
                "review",
                "{user: ann, groups: [system:authenticated], nonResourceAttributes: {verb: get, path: /metrics}}\n",
            ),
        ],
    ),
    Example::new(
        "A condition that fails denies",
        "deny",
        &[
            (
                "configuration",
                "\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: tenants
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: InClusterConfig}
    matchConditions:
    - expression: request.resourceAttributes.namespace.startsWith('tenant-')
- type: RBAC
  name: rbac
",
            ),
            ("review", "{user: ann, nonResourceAttributes: {verb: get, path: /metrics}}\n"),
        ],
    ),
];

const GPUS: &str = "\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {model: {string: a100}, driverVersion: {version: 2.1.0}}
    capacity: {memory: {value: 40Gi}}
  - name: gpu-1
    attributes: {model: {string: h100}, driverVersion: {version: 2.1.0}}
    capacity: {memory: {value: 80Gi}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  selectors:
  - cel: {expression: device.driver == 'gpu.example.com'}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: big, namespace: default}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu
        selectors:
        - cel:
            expression: >-
              device.capacity['gpu.example.com'].memory.compareTo(quantity('64Gi')) >= 0 &&
              device.attributes['gpu.example.com'].driverVersion.isGreaterThan(semver('2.0.0'))
";

pub(super) const DEVICES: &[Example] = &[
    Example::new("A claim for much memory", "value", &[("devices", GPUS), ("by", "claim: default/big\n")]),
    Example::new(
        "A model, by an expression",
        "value",
        &[
            ("devices", GPUS),
            ("by", "class: gpu\nselectors: [\"device.attributes['gpu.example.com'].model == 'a100'\"]\n"),
        ],
    ),
    Example::new(
        "An attribute that no device has",
        "error",
        &[("devices", GPUS), ("by", "selectors: [\"device.attributes['gpu.example.com'].cores > 3\"]\n")],
    ),
];
