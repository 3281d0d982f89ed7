//! Definitions that broke clusters, each in the least form that has the fault, judged as the clusters judged them. The threads
//! are named; what the servers said there is what is asked for here.

use admit_analysis::releases::{Cause, Releases, Report, judge};
use admit_policy::manifest;

fn judged(file: &str, schema: &str) -> Report {
    let text = format!(
        "apiVersion: apiextensions.k8s.io/v1\n\
         kind: CustomResourceDefinition\n\
         metadata: {{name: things.example.com}}\n\
         spec:\n  group: example.com\n  scope: Namespaced\n  names: {{plural: things, kind: Thing}}\n  versions:\n  \
         - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema: {schema}\n"
    );
    let documents = manifest::read(file, &text).expect("a definition");
    judge(&documents, &Releases::all(), &|| false)
}

/// The first release that takes the file, and what the ones before say.
fn told(report: &Report) -> (String, Vec<(String, Cause, String, String)>) {
    let file = report.files.first().expect("a file");
    let first = file.first.map_or_else(|| "none".to_owned(), |first| first.to_string());
    let found = file.documents.iter().flat_map(|document| &document.found).map(|found| {
        let releases: Vec<String> = found.releases.iter().map(ToString::to_string).collect();
        (releases.join(" "), found.cause, found.error.message.clone(), found.because.clone())
    });
    (first, found.collect())
}

fn spec(properties: &str, rules: &str) -> String {
    format!(
        "{{type: object, properties: {{spec: {{type: object, properties: {properties}, x-kubernetes-validations: {rules}}}}}}}"
    )
}

/// netbird kubernetes-operator #378: `isIP` undeclared before 1.31. k-orc openstack-resource-controller #196, #336: `isCIDR` and
/// `cidr` in the same way. envoy gateway #4549, kamaji #811: why they cannot use them while they support releases before 1.31.
#[test]
fn addresses_and_networks_are_known_from_1_31_on() {
    for (name, rule) in [
        ("netbird-378.yaml", "isIP(self.at)"),
        ("k-orc-196.yaml", "isCIDR(self.at) && cidr(self.at).ip().family() == 4"),
        ("k-orc-336.yaml", "cidr(self.at).containsIP(ip(''10.0.0.1''))"),
        ("envoy-gateway-4549.yaml", "ip.isCanonical(self.at)"),
        ("kamaji-811.yaml", "isCIDR(self.at) && cidr(self.at).prefixLength() <= 24"),
    ] {
        let report =
            judged(name, &spec("{at: {type: string, maxLength: 43}}", &format!("[{{rule: '{rule}'}}]")));
        let (first, found) = told(&report);
        assert_eq!(first, "1.31", "{name}: {found:?}");
        let [(releases, cause, message, because)] = found.as_slice() else { panic!("{name}: {found:?}") };
        assert_eq!((releases.as_str(), *cause), ("1.29 1.30", Cause::Refused), "{name}");
        assert!(message.contains("undeclared reference to '"), "{name}: {message}");
        assert!(because.ends_with("is offered from 1.31 on"), "{name}: {because}");
    }
}

/// tigera operator #5231, #5269: rules that compare networks are too costly in 1.31; the estimate was mended in 1.32. calico #10197
/// took such rules back for platforms that have no rules at all, which are older than what is known here.
#[test]
fn comparing_networks_is_too_costly_until_1_32() {
    let schema = spec(
        "{cidr: {type: string, maxLength: 48}}",
        "[{rule: cidr(self.cidr) == cidr(self.cidr).masked(), message: not the network}]",
    );
    let (first, found) = told(&judged("tigera-5231.yaml", &schema));
    assert_eq!(first, "1.32");
    let costly: Vec<&str> =
        found.iter().filter(|found| found.1 == Cause::TooCostly).map(|found| found.0.as_str()).collect();
    assert_eq!(costly, ["1.31", "1.31", "1.31"], "the rule, its part of the sum, and the sum: {found:?}");
}

/// redpanda-operator #1677, perses-operator #401 (on 1.31): `undefined field 'namespace'`. grafana-operator #2552: `continue`.
#[test]
fn reserved_words_name_fields_from_1_32_on() {
    for (name, field) in [("redpanda-1677.yaml", "namespace"), ("grafana-2552.yaml", "continue")] {
        let schema =
            spec(&format!("{{{field}: {{type: string}}}}"), &format!("[{{rule: '!has(self.{field})'}}]"));
        let (first, found) = told(&judged(name, &schema));
        assert_eq!(first, "1.32", "{name}: {found:?}");
        let [(releases, Cause::Refused, message, because)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(releases, "1.29 1.30 1.31");
        assert!(message.contains(&format!("undefined field '{field}'")), "{message}");
        assert!(because.contains(&format!("`__{field}__`")), "{because}");
        let escaped = schema.replace(&format!("self.{field}"), &format!("self.__{field}__"));
        assert_eq!(told(&judged(name, &escaped)), ("1.29".to_owned(), vec![]), "what the advice says works");
    }
}

/// redpanda-operator #1677: texts without bounds in a list without one are too costly, whatever the release; a bound of each mends it.
#[test]
fn unbounded_texts_in_lists_are_too_costly_in_every_release() {
    let schema = |bounds: &str| {
        let item = format!(
            "{{type: object, properties: {{source: {{type: string{bounds}}}}}, x-kubernetes-validations: [{{rule: \"self.source.contains('a') || self.source.contains('b')\"}}]}}"
        );
        format!(
            "{{type: object, properties: {{spec: {{type: object, properties: {{sources: {{type: array, maxItems: 1000, items: {item}}}}}}}}}}}"
        )
    };
    let (first, found) = told(&judged("unbounded.yaml", &schema("")));
    assert_eq!(first, "none");
    assert!(
        found.iter().any(|found| found.1 == Cause::TooCostly && found.0.split(' ').count() == 9),
        "{found:?}"
    );
    assert_eq!(told(&judged("bounded.yaml", &schema(", maxLength: 63"))), ("1.29".to_owned(), vec![]));
}

/// coralogix-operator #502, grafana-operator #1729, kubeblocks #7138: lists without a bound whose items have rules were too costly
/// up to 1.28, which is older than what is known here; from 1.29 on both forms are taken.
#[test]
fn rules_of_items_without_bound_are_taken_from_1_29_on() {
    let schema = |bounds: &str| {
        let item = "{type: object, properties: {cloud: {type: object}, local: {type: object}}, x-kubernetes-validations: [{rule: \"has(self.cloud) != has(self.local)\"}]}";
        format!(
            "{{type: object, properties: {{spec: {{type: object, properties: {{enrichments: {{type: array{bounds}, items: {item}}}}}}}}}}}"
        )
    };
    for bounds in ["", ", maxItems: 100"] {
        assert_eq!(
            told(&judged("coralogix-502.yaml", &schema(bounds))),
            ("1.29".to_owned(), vec![]),
            "{bounds}"
        );
    }
}

/// What there was no time for is counted, and nothing is said of it.
#[test]
fn documents_that_come_after_the_time_is_over_are_not_judged() {
    let text = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.example.com}\n\
                ---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: b.example.com}\n";
    let documents = manifest::read("two.yaml", text).expect("two definitions");
    let asked = std::cell::Cell::new(0);
    let report = judge(&documents, &Releases::all(), &|| asked.replace(asked.get() + 1) > 0);
    let file = report.files.first().expect("a file");
    assert_eq!((file.documents.len(), file.late), (1, 1), "{file:?}");
}

/// NVIDIA aicr #2587 (agentgateway): `matches(self, …)` of texts without bounds, which 1.36 took for a cost of 1, is too costly in 1.37.
#[test]
fn the_global_form_of_matches_is_counted_from_1_37_on() {
    let schema = |bounds: &str| {
        format!(
            "{{type: object, properties: {{spec: {{type: object, properties: {{waits: {{type: array, maxItems: 16, items: {{type: string{bounds}, x-kubernetes-validations: [{{rule: \"matches(self, '^([0-9]{{1,5}}(h|m|s|ms)){{1,4}}$')\"}}]}}}}}}}}}}}}"
        )
    };
    let (first, found) = told(&judged("agentgateway.yaml", &schema("")));
    assert_eq!(first, "none");
    assert!(
        !found.is_empty() && found.iter().all(|found| found.0 == "1.37" && found.1 == Cause::TooCostly),
        "{found:?}"
    );
    assert_eq!(told(&judged("agentgateway.yaml", &schema(", maxLength: 32"))), ("1.29".to_owned(), vec![]));
}

/// gateway-api #3206: five trailing releases in one run.
#[test]
fn trailing_releases_are_judged_in_one_run() {
    let text = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: named}\n\
                spec:\n  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}\n  \
                validations: [{expression: \"format.dns1123Label().validate(object.metadata.name).hasValue()\"}]\n";
    let documents = manifest::read("policy.yaml", text).expect("a policy");
    let releases: Releases = "1.29..1.33".parse().expect("a range");
    let report = judge(&documents, &releases, &|| false);
    let (first, found) = told(&report);
    assert_eq!(first, "1.32");
    let causes: Vec<_> = found.iter().map(|found| (found.0.as_str(), found.1)).collect();
    assert_eq!(causes, [("1.30 1.31", Cause::Refused), ("1.29", Cause::NotServed)]);
    assert!(report.runs <= 3, "{}", report.runs);
}

/// A field that a server drops, and what follows from it.
#[test]
fn dropped_fields_and_unchecked_formats_are_told() {
    let schema = spec(
        "{kind: {type: string, format: k8s-short-name}}",
        "[{rule: '!oldSelf.hasValue()', optionalOldSelf: true}]",
    );
    let (first, found) = told(&judged("optional.yaml", &schema));
    assert_eq!(first, "1.30");
    let told: Vec<_> = found.iter().map(|found| (found.0.as_str(), found.1)).collect();
    assert_eq!(
        told,
        [
            ("1.29", Cause::Refused),
            ("1.29", Cause::Dropped),
            ("1.29 1.30 1.31 1.32 1.33 1.34", Cause::Unchecked)
        ],
        "{found:?}"
    );
}

/// One name for two things: the libraries of named formats, and the function of strings.
#[test]
fn what_is_missing_is_told_by_the_releases_that_miss_it() {
    for (rule, first, releases) in [
        ("!format.dns1123Label().validate(self.at).hasValue()", "1.32", "1.29 1.30 1.31"),
        ("[self.at].all(x, sets.contains([x], [x]))", "1.30", "1.29"),
        ("[self.at].first().hasValue()", "1.33", "1.29 1.30 1.31 1.32"),
    ] {
        let schema = spec("{at: {type: string, maxLength: 63}}", &format!("[{{rule: \"{rule}\"}}]"));
        let (found_first, found) = told(&judged("missing.yaml", &schema));
        let [(of, Cause::Refused, _, because)] = found.as_slice() else { panic!("{rule}: {found:?}") };
        assert_eq!((found_first.as_str(), of.as_str()), (first, releases), "{rule}");
        assert!(because.ends_with(&format!("is offered from {first} on")), "{rule}: {because}");
    }
}

/// A file that a server reads when it starts has a version of its own.
#[test]
fn configuration_of_servers_is_judged_by_its_version() {
    for (kind, body, version, first) in [
        ("AuthenticationConfiguration", "jwt: []", "v1", "1.34"),
        ("AuthenticationConfiguration", "jwt: []", "v1beta1", "1.30"),
        ("AuthorizationConfiguration", "authorizers: [{type: RBAC, name: rbac}]", "v1", "1.32"),
        ("AuthorizationConfiguration", "authorizers: [{type: RBAC, name: rbac}]", "v1alpha1", "1.29"),
    ] {
        let text = format!("apiVersion: apiserver.config.k8s.io/{version}\nkind: {kind}\n{body}\n");
        let documents = manifest::read("config.yaml", &text).expect("a configuration");
        let (taken_from, found) = told(&judge(&documents, &Releases::all(), &|| false));
        assert_eq!(taken_from, first, "{kind} {version}: {found:?}");
    }
    let rule = "jwt: [{issuer: {url: 'https://a', audiences: [b]}, claimMappings: {username: {expression: 'claims.a'}}, \
                userValidationRules: [{expression: \"user.username != '' && !isSemver(user.username)\"}]}]";
    let text =
        format!("apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\n{rule}\n");
    let documents = manifest::read("config.yaml", &text).expect("a configuration");
    let (first, found) = told(&judge(&documents, &Releases::all(), &|| false));
    assert_eq!(first, "1.33", "a server takes all that it knows, as of what is stored: {found:?}");
}
