//! Contains the examples for the five systems: the shipped definitions and policies, each with objects to try.

use serde::Serialize;

/// An example: the contents of all panes of a mode.
#[derive(Debug, Serialize)]
pub(super) struct Example {
    /// What the example shows, in a few words.
    title: &'static str,
    /// The outcome that it leads to.
    outcome: &'static str,
    /// Names of panes with their contents; panes that are not listed are empty.
    fields: &'static [(&'static str, &'static str)],
}

impl Example {
    pub(super) const fn new(
        title: &'static str,
        outcome: &'static str,
        fields: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { title, outcome, fields }
    }
}

/// Includes a file of the folder `policies` or `deploy/crds`.
macro_rules! shipped {
    ($path:literal) => {
        include_str!(concat!("../../../", $path))
    };
}

const DATAGATHERS: &str = shipped!("deploy/crds/datagathers.yaml");
const MUSTGATHERS: &str = shipped!("deploy/crds/mustgathers.yaml");
const CLUSTEROPERATORS: &str = shipped!("deploy/crds/clusteroperators.yaml");
const CYNDIPIPELINES: &str = shipped!("deploy/crds/cyndipipelines.yaml");
const OBSERVABILITYADDONS: &str = shipped!("deploy/crds/observabilityaddons.yaml");

const RUNNING: &str = "\
apiVersion: insights.openshift.io/v1alpha1
kind: DataGather
metadata: {name: sample}
spec: {}
status: {dataGatherState: Running, startTime: '2026-03-01T10:00:00Z'}
";
const COMPLETED: &str = "\
apiVersion: insights.openshift.io/v1alpha1
kind: DataGather
metadata: {name: sample}
spec: {}
status: {dataGatherState: Completed, startTime: '2026-03-01T10:00:00Z'}
";
const OF_STATUS: &str = "subresource: status\n";

pub(super) const CRD: &[Example] = &[
    Example {
        title: "DataGather: a completed run cannot run again",
        outcome: "deny",
        fields: &[("crd", DATAGATHERS), ("new", RUNNING), ("old", COMPLETED), ("request", OF_STATUS)],
    },
    Example {
        title: "DataGather: a running run completes",
        outcome: "allow",
        fields: &[("crd", DATAGATHERS), ("new", COMPLETED), ("old", RUNNING), ("request", OF_STATUS)],
    },
    Example {
        title: "MustGather: two ways to say since when",
        outcome: "deny",
        fields: &[
            ("crd", MUSTGATHERS),
            (
                "new",
                "\
apiVersion: operator.openshift.io/v1alpha1
kind: MustGather
metadata: {name: sample, namespace: support}
spec:
  serviceAccountName: must-gather
  gatherSpec: {since: 2h, sinceTime: '2026-03-01T10:00:00Z'}
",
            ),
        ],
    },
    Example {
        title: "ObservabilityAddon: collected more often than may be",
        outcome: "deny",
        fields: &[
            ("crd", OBSERVABILITYADDONS),
            (
                "new",
                "\
apiVersion: observability.open-cluster-management.io/v1beta1
kind: ObservabilityAddon
metadata: {name: observability-addon, namespace: cluster1}
spec: {interval: 5}
",
            ),
        ],
    },
    Example {
        title: "CyndiPipeline: an application without a name",
        outcome: "deny",
        fields: &[
            ("crd", CYNDIPIPELINES),
            (
                "new",
                "\
apiVersion: cyndi.cloud.redhat.com/v1alpha1
kind: CyndiPipeline
metadata: {name: sample, namespace: pipelines}
spec: {appName: ''}
",
            ),
        ],
    },
    Example {
        title: "ClusterOperator: made without a status",
        outcome: "allow",
        fields: &[
            ("crd", CLUSTEROPERATORS),
            (
                "new",
                "\
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: sample}
spec: {}
",
            ),
        ],
    },
];

pub(super) const POLICY: &[Example] = &[
    Example {
        title: "DataGather: completed and failed are final",
        outcome: "deny",
        fields: &[
            ("policy", shipped!("policies/datagather/final-state.yaml")),
            ("new", RUNNING),
            ("old", COMPLETED),
            ("request", OF_STATUS),
        ],
    },
    Example {
        title: "MustGather: longer than a week",
        outcome: "deny",
        fields: &[
            ("policy", shipped!("policies/mustgather/timeout.yaml")),
            (
                "new",
                "\
apiVersion: operator.openshift.io/v1alpha1
kind: MustGather
metadata: {name: sample, namespace: support}
spec: {mustGatherTimeout: 169h}
",
            ),
        ],
    },
    Example {
        title: "CyndiPipeline: within bounds",
        outcome: "allow",
        fields: &[
            ("policy", shipped!("policies/cyndi/bounds.yaml")),
            (
                "new",
                "\
apiVersion: cyndi.cloud.redhat.com/v1alpha1
kind: CyndiPipeline
metadata: {name: sample, namespace: pipelines}
spec: {appName: advisor, maxAge: 45, validationThreshold: 100}
",
            ),
        ],
    },
    Example {
        title: "ObservabilityAddon: two conditions at once",
        outcome: "deny",
        fields: &[
            ("policy", shipped!("policies/observability/one-standard-condition.yaml")),
            ("new", ADD_ON_OF_TWO_MINDS),
            ("old", ADD_ON),
            ("request", OF_STATUS),
        ],
    },
    Example {
        title: "ClusterOperator: conditions are missing, which warns",
        outcome: "warn",
        fields: &[
            ("policy", shipped!("policies/clusteroperator/required-conditions.yaml")),
            ("new", OPERATOR_AVAILABLE),
            ("old", OPERATOR),
            ("request", OF_STATUS),
        ],
    },
    Example {
        title: "DataGather: a reserved name, by params",
        outcome: "deny",
        fields: &[
            ("policy", shipped!("policies/datagather/reserved-names.yaml")),
            ("params", shipped!("policies/datagather/params.yaml")),
            (
                "new",
                "\
apiVersion: insights.openshift.io/v1alpha1
kind: DataGather
metadata: {name: periodic-gathering-abcde}
spec: {}
",
            ),
            ("request", "user: dev\n"),
        ],
    },
];

const ADD_ON: &str = "\
apiVersion: observability.open-cluster-management.io/v1beta1
kind: ObservabilityAddon
metadata: {name: observability-addon, namespace: cluster1}
";
const ADD_ON_OF_TWO_MINDS: &str = "\
apiVersion: observability.open-cluster-management.io/v1beta1
kind: ObservabilityAddon
metadata: {name: observability-addon, namespace: cluster1}
status:
  conditions:
  - {type: Available, status: 'True', reason: Deployed, message: '', lastTransitionTime: '2026-03-01T10:00:00Z'}
  - {type: Degraded, status: 'True', reason: Degraded, message: '', lastTransitionTime: '2026-03-01T10:00:00Z'}
";
const OPERATOR: &str = "\
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: sample}
";
const OPERATOR_AVAILABLE: &str = "\
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: sample}
status:
  conditions:
  - {type: Available, status: 'True', reason: AsExpected, lastTransitionTime: '2026-03-01T10:00:00Z'}
";

pub(super) const MUTATING: &[Example] = &[
    Example {
        title: "MustGather: a time limit where none is set",
        outcome: "allow",
        fields: &[
            (
                "policy",
                "\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: mustgather-time-limit}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [operator.openshift.io], apiVersions: [v1alpha1], operations: [CREATE], resources: [mustgathers]}
  matchConditions:
  - name: no-limit
    expression: '!has(object.spec.mustGatherTimeout)'
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: 'add', path: '/spec/mustGatherTimeout', value: '30m'}]
",
            ),
            ("binding", "\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: mustgather-time-limit}
spec: {policyName: mustgather-time-limit}
"),
            (
                "new",
                "\
apiVersion: operator.openshift.io/v1alpha1
kind: MustGather
metadata: {name: sample, namespace: support}
spec: {serviceAccountName: must-gather}
",
            ),
            ("crd", MUSTGATHERS),
        ],
    },
    Example {
        title: "Every ConfigMap: a label with its team",
        outcome: "allow",
        fields: &[
            (
                "policy",
                "\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: team}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  variables:
  - name: team
    expression: object.metadata.name.split('-')[0]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{metadata: Object.metadata{labels: {'team': variables.team}}}
",
            ),
            ("binding", "\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: team}
spec: {policyName: team}
"),
            ("new", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: red-settings}\ndata: {colour: red}\n"),
        ],
    },
];

const HOOK: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gathers}
webhooks:
- name: gathers.example.com
  clientConfig: {service: {name: gathers, namespace: admit-system}}
  admissionReviewVersions: [v1]
  sideEffects: None
  rules:
  - {apiGroups: [insights.openshift.io], apiVersions: [v1alpha1], operations: [CREATE, UPDATE], resources: [datagathers]}
  matchConditions:
  - name: by-people
    expression: '!request.userInfo.username.startsWith(\"system:\")'
  - name: no-sample
    expression: object.metadata.name != 'sample'
";

pub(super) const WEBHOOK: &[Example] = &[
    Example {
        title: "DataGather: a condition does not hold",
        outcome: "unmatched",
        fields: &[("webhook", HOOK), ("new", GATHER)],
    },
    Example {
        title: "DataGather: the webhook is called",
        outcome: "called",
        fields: &[
            ("webhook", HOOK),
            (
                "new",
                "\
apiVersion: insights.openshift.io/v1alpha1
kind: DataGather
metadata: {name: other}
spec: {}
",
            ),
            ("request", "user: dev\n"),
        ],
    },
];

const GATHER: &str = "\
apiVersion: insights.openshift.io/v1alpha1
kind: DataGather
metadata: {name: sample}
spec: {}
";

pub(super) const EXPRESSION: &[Example] = &[
    Example {
        title: "ClusterOperator: are all three conditions there",
        outcome: "value",
        fields: &[
            (
                "expression",
                "\
['Available', 'Progressing', 'Degraded'].all(t,
  self.status.conditions.exists_one(c, c.type == t))
",
            ),
            (
                "variables",
                "\
self:
  status:
    conditions:
    - {type: Available, status: 'True'}
    - {type: Degraded, status: 'False'}
",
            ),
        ],
    },
    Example {
        title: "MustGather: is the time limit a duration",
        outcome: "value",
        fields: &[
            ("expression", "duration(self.mustGatherTimeout) <= duration('168h')\n"),
            ("variables", "self: {mustGatherTimeout: 1h30m}\n"),
        ],
    },
    Example {
        title: "CyndiPipeline: a field that is not there",
        outcome: "error",
        fields: &[
            ("expression", "self.spec.maxAge >= 0 || self.spec.appName == 'advisor'\n"),
            ("variables", "self:\n  spec: {appName: adviser}\n"),
        ],
    },
];
