//! Lists what differs between releases beside functions: kinds, fields, formats, ratcheting, costs. Each fact is a row with the source
//! file of that release from which it was read. Functions have their rows in admit-cel.

use admit_cel::Version;

use super::{Release, Releases};

/// What a fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A kind of an API version: `admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy`.
    Kind,
    /// A field of a custom resource definition, which servers without it drop: `selectableFields`.
    Field,
    /// A format of strings in schemas, which servers without it do not check.
    Format,
    /// How expressions are parsed, charged or applied.
    Behaviour,
}

/// A difference between releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What it is about.
    pub subject: Subject,
    /// The kind, field or format as written in documents; for a behaviour, a description.
    pub name: &'static str,
    /// The first release in which it holds for servers as installed.
    pub from: Release,
    /// A remark; may be empty.
    pub note: &'static str,
    /// The source file.
    pub source: &'static str,
}

/// The first release in which reserved words name fields.
pub(super) const KEYWORD_FIELDS: Release = Release(Version(1, 32));

const fn fact(
    subject: Subject,
    name: &'static str,
    minor: u16,
    note: &'static str,
    source: &'static str,
) -> Fact {
    Fact { subject, name, from: Release(Version(1, minor)), note, source }
}

/// Every fact, in the order of the page.
pub const FACTS: &[Fact] = &[
    fact(
        Subject::Kind,
        "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy",
        30,
        "before, v1beta1 alone, which is off unless it is turned on",
        "kubernetes/api v0.29.15, v0.30.14 admissionregistration/v1/types.go; kubernetes/apiserver v0.29.15 pkg/features/kube_features.go",
    ),
    fact(
        Subject::Kind,
        "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding",
        30,
        "before, v1beta1 alone, which is off unless it is turned on",
        "kubernetes/api v0.29.15, v0.30.14 admissionregistration/v1/types.go; kubernetes/apiserver v0.29.15 pkg/features/kube_features.go",
    ),
    fact(
        Subject::Kind,
        "admissionregistration.k8s.io/v1beta1 MutatingAdmissionPolicy",
        34,
        "off unless it is turned on",
        "kubernetes/api v0.34.10 admissionregistration/v1beta1/types.go; kubernetes/apiserver v0.36.3 pkg/features/kube_features.go",
    ),
    fact(
        Subject::Kind,
        "admissionregistration.k8s.io/v1beta1 MutatingAdmissionPolicyBinding",
        34,
        "off unless it is turned on",
        "kubernetes/api v0.34.10 admissionregistration/v1beta1/types.go; kubernetes/apiserver v0.36.3 pkg/features/kube_features.go",
    ),
    fact(
        Subject::Kind,
        "admissionregistration.k8s.io/v1 MutatingAdmissionPolicy",
        36,
        "",
        "kubernetes/api v0.36.3 admissionregistration/v1/types.go; kubernetes/apiserver v0.36.3 pkg/features/kube_features.go",
    ),
    fact(
        Subject::Kind,
        "admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding",
        36,
        "",
        "kubernetes/api v0.36.3 admissionregistration/v1/types.go; kubernetes/apiserver v0.36.3 pkg/features/kube_features.go",
    ),
    fact(
        Subject::Kind,
        "apiserver.config.k8s.io/v1beta1 AuthenticationConfiguration",
        30,
        "a file that a server reads when it starts",
        "kubernetes/apiserver release-1.29, release-1.30 pkg/apis/apiserver/v1beta1/types.go",
    ),
    fact(
        Subject::Kind,
        "apiserver.config.k8s.io/v1beta1 AuthorizationConfiguration",
        30,
        "a file that a server reads when it starts",
        "kubernetes/apiserver release-1.29, release-1.30 pkg/apis/apiserver/v1beta1/types.go",
    ),
    fact(
        Subject::Kind,
        "apiserver.config.k8s.io/v1 AuthorizationConfiguration",
        32,
        "a file that a server reads when it starts",
        "kubernetes/apiserver release-1.31, release-1.32 pkg/apis/apiserver/v1/types.go",
    ),
    fact(
        Subject::Kind,
        "apiserver.config.k8s.io/v1 AuthenticationConfiguration",
        34,
        "a file that a server reads when it starts",
        "kubernetes/apiserver release-1.33, release-1.34 pkg/apis/apiserver/v1/types.go",
    ),
    fact(
        Subject::Field,
        "optionalOldSelf",
        30,
        "`oldSelf` is then no optional value",
        "apiextensions-apiserver v0.29.15, v0.30.14 pkg/registry/customresourcedefinition/strategy.go, pkg/features/kube_features.go",
    ),
    fact(
        Subject::Field,
        "selectableFields",
        31,
        "",
        "apiextensions-apiserver v0.30.14 pkg/registry/customresourcedefinition/strategy.go, v0.30.14, v0.31.14 pkg/features/kube_features.go",
    ),
    fact(
        Subject::Format,
        "k8s-short-name",
        35,
        "",
        "apiextensions-apiserver v0.34.10 pkg/apiserver/validation/formats.go (compatibility version 1.34)",
    ),
    fact(
        Subject::Format,
        "k8s-long-name",
        35,
        "",
        "apiextensions-apiserver v0.34.10 pkg/apiserver/validation/formats.go (compatibility version 1.34)",
    ),
    fact(
        Subject::Behaviour,
        "updates leave invalid values of custom resources as they were (ratcheting)",
        30,
        "",
        "apiextensions-apiserver v0.29.15, v0.30.14 pkg/features/kube_features.go (CRDValidationRatcheting)",
    ),
    fact(
        Subject::Behaviour,
        "constant durations, timestamps and patterns of expressions are checked when they are written",
        30,
        "",
        "kubernetes/apiserver v0.29.15 pkg/cel/environment/base.go (compatibility version 1.29)",
    ),
    fact(
        Subject::Behaviour,
        "estimates know that a comprehension's result is as large as its range",
        30,
        "",
        "cel-go v0.17.7, v0.17.8 checker/cost.go; kubernetes/apiserver v0.29.15, v0.30.14 go.mod",
    ),
    fact(
        Subject::Behaviour,
        "reserved words name fields as they are: `self.namespace`",
        KEYWORD_FIELDS.0.1,
        "before, `self.__namespace__` alone",
        "kubernetes/apiserver v0.31.14 pkg/cel/environment/environment.go (compatibility version 1.31)",
    ),
    fact(
        Subject::Behaviour,
        "policies and match conditions count what Kubernetes' own functions cost when they run",
        32,
        "before, each call costs 1",
        "kubernetes/apiserver v0.31.14, v0.32.13 pkg/features/kube_features.go (StrictCostEnforcementForVAP, StrictCostEnforcementForWebhooks)",
    ),
    fact(
        Subject::Behaviour,
        "comparing quantities, addresses, networks, URLs and versions costs 1",
        32,
        "before, their size was taken for unbounded",
        "kubernetes/apiserver v0.31.14, v0.32.13 pkg/cel/library/cost.go",
    ),
    fact(
        Subject::Behaviour,
        "estimates know the sizes of the items of literals, of variables and of `dyn`",
        33,
        "",
        "cel-go v0.22.0, v0.23.2 checker/cost.go; kubernetes/apiserver v0.32.13, v0.33.13 go.mod",
    ),
    fact(
        Subject::Behaviour,
        "estimates know that a name has at most 253 characters",
        37,
        "",
        "apiextensions-apiserver v0.37.0-beta.0 pkg/apiserver/schema/cel/model/schemas.go",
    ),
];

/// Something that is unknown for some releases, or known to differ there and not imitated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The first of the releases.
    pub from: Release,
    /// The last.
    pub to: Release,
    /// What it is, and where that was read.
    pub what: &'static str,
}

const fn unknown(from: u16, to: u16, what: &'static str) -> Unknown {
    Unknown { from: Release(Version(1, from)), to: Release(Version(1, to)), what }
}

/// All of it.
pub const UNKNOWN: &[Unknown] = &[
    unknown(29, 37, "whether beta APIs, which are off unless they are turned on, are served"),
    unknown(29, 35, "in which words a release refuses: they are those of 1.36 here"),
    unknown(
        29,
        32,
        "an optional value counts 1 when it is run (cel-go v0.22.0 interpreter/runtimecost.go); here what it holds counts",
    ),
    unknown(
        30,
        31,
        "comparing IPv6 addresses costs 2 when it is run (kubernetes/apiserver v0.31.14 pkg/cel/library/cost.go); here 1",
    ),
    unknown(
        37,
        37,
        "what was changed last: the release was read before it was made, at kubernetes/apiserver 24a394e51 of 2026-07-23 with \
         cel-go v0.29.2 and apiextensions-apiserver v0.37.0-beta.0",
    ),
    unknown(
        37,
        37,
        "`lists.range` of a negative number is an error (cel-go v0.29.2 ext/lists.go); here it is empty",
    ),
];

/// Returns what is unknown for any of the releases.
pub fn unknown_of(releases: &Releases) -> impl Iterator<Item = &'static Unknown> {
    UNKNOWN.iter().filter(|row| releases.iter().any(|release| row.from <= release && release <= row.to))
}

/// Returns the fact about a name in a document.
pub(super) fn about(subject: Subject, name: &str) -> Option<&'static Fact> {
    FACTS.iter().find(|fact| fact.subject == subject && fact.name == name)
}
