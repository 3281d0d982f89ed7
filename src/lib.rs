//! **admit** decides which objects are admitted to a Kubernetes cluster, with the decisions and messages of kube-apiserver, and
//! runs the controllers whose objects it validates.
//!
//! ```text
//!                       policies/  (CRDs with x-kubernetes-validations, ValidatingAdmissionPolicy + Binding, params)
//!                           |
//!                           v   compiled once, swapped whole
//!    kubectl ──► API server ──HTTPS AdmissionReview──► admission ──► admit_policy ──► admit_cel
//!                   ▲   ▲
//!    (a cluster's, or   └── watch / status ── controllers ── gather
//!     the embedded one: admit_apiserver)
//! ```
//!
//! | part | decides | may use |
//! |---|---|---|
//! | package `admit-apimachinery` (`src/apimachinery`) | the formats and messages of Go and of Kubernetes, in one place | nothing of ours |
//! | package `admit-cel` (`src/cel`) | the value, error and cost of a CEL expression | admit-apimachinery |
//! | package `admit-policy` (`src/policy`) | documents → `PolicySet`, request → `Decision`; no I/O | admit-cel, admit-apimachinery |
//! | package `admit-analysis` (`src/analysis`) | properties of policies and definitions for all objects; no I/O | admit-cel, admit-policy |
//! | package `admit-language` (`src/language`) | the answers for editors of expressions; no I/O, no protocol | admit-analysis, admit-apimachinery, admit-cel, admit-policy |
//! | package `admit-serving` (`src/serving`) | which connections to a port are open, and for how long | nothing of ours |
//! | package `admit-apiserver` (`src/apiserver`) | the Kubernetes API over a versioned store | admit-cel, admit-policy, admit-serving, admit-apimachinery |
//! | package `admit-testing` (`src/testing`) | test clusters in the process of a test | admit-apiserver, admit-apimachinery |
//! | [`admission`] | the HTTPS webhook server: AdmissionReview in and out | outside, private, telemetry, admit-policy, admit-serving, admit-apimachinery |
//! | `outside` | how files of other programs are read | nothing of ours |
//! | [`gather`] | the contents of an archive and where it is stored | outside, telemetry, admit-apimachinery, admit-serving, a kube client (handed in) |
//! | [`controllers`] | the reconciliation of our own kinds | gather, outside, telemetry, admit-policy, admit-apimachinery |
//! | [`localnode`] | Jobs and Pods as processes of this machine | private, telemetry, a kube client (handed in) |
//! | `private` | files and folders that only their owner can read | nothing of ours |
//! | [`telemetry`] | logs, metrics, traces and readiness | admit-serving |
//! | [`cli`] | the composition root: only it knows all parts | everything |
//!
//! `admission`, `apiserver` and `controllers` never import one another. Every package and every controller has such a
//! table for its modules; `tests/product/architecture` checks the tables against the sources, and refuses cycles.
//! Within a folder no two files import each other, except those that the test names; a `mod.rs` and its folder count as one.
//!
//! Who imports whom, drawn from the sources by `tests/product/architecture`:
//!
//! ```text
//! cli                ─► admission admit-analysis admit-apimachinery admit-apiserver admit-cel
//!                       admit-language admit-policy controllers gather localnode outside private
//!                       telemetry
//!
//! admit-language     ─► admit-analysis admit-apimachinery admit-cel admit-policy
//! admit-testing      ─► admit-apimachinery admit-apiserver
//!
//! admission          ─► admit-apimachinery admit-policy admit-serving outside private telemetry
//! admit-analysis     ─► admit-cel admit-policy
//! admit-apiserver    ─► admit-apimachinery admit-cel admit-policy admit-serving
//! controllers        ─► admit-apimachinery admit-policy gather outside telemetry
//!
//! admit-policy       ─► admit-apimachinery admit-cel
//! gather             ─► admit-apimachinery admit-serving outside telemetry
//! localnode          ─► private telemetry
//!
//! admit-cel          ─► admit-apimachinery
//! telemetry          ─► admit-serving
//!
//! admit-apimachinery
//! admit-serving
//! outside
//! private
//! ```
//!
//! The name of an error says what kind of failure it is, and whose fault it is:
//!
//! | name | means | whose fault |
//! |---|---|---|
//! | `…Error` | an operation did not succeed; implements `std::error::Error`, and the message says what to do | its variants say |
//! | `…ErrorKind` | the variants of an `…Error` that also says where | as that error's |
//! | `FieldError`, `LoadError`, `Diagnostic`, `Mistake` | an error in a text that a person wrote | the author's |
//! | `Finding` | a check reports something; nothing failed | the author's, if anybody's |
//! | `Refusal` | the `Status` with which our API server refuses a request | the caller's; ours from code 500 on |
//! | `Denial` | a policy decided against a request: a result, not an error | the caller's |
//! | `Failure` | one of many pieces of work failed, and the others go on | its variants say |
//! | `Fault` | why a command ends, with its exit code | by its constructor: `usage`, `not_compiled`, `internal` |
//! | variant `Invalid…`, `Malformed`, `TooLarge`, `TooMany` | the input is wrong | the sender's |
//! | variant `Missing…`, `NotFound` | something that is needed does not exist | whoever should provide it |
//! | variant `Refused…`, `Unauthorized` | the other side understood the request and refused it | ours: what we sent, or our rights there |
//! | variant `Forbidden` | our own rules do not allow it | whoever configured or asked for it |
//! | variant `Timeout`, `TimedOut`, `TooSlow`, `Silent`, `Unreachable` | the other side did not answer; another attempt may help | the other side's |
//! | type or variant `Interrupted`, `Stopped`, `Closed` | the work was cancelled from outside | nobody's |
//! | variant `Internal` | this program or its machine failed | ours |
//!
//! Errors have types, with the fields that their messages need. `tests/product/architecture` lists the few results whose error
//! is a string, and why. An outcome that is reported in a status is not an error: it is an enum with a variant for each failure.
//!
//! The error of a module's main operation may be called `Error` if it is used with the module's name: `cyndi::Error`.

pub mod admission;
pub mod cli;
pub mod controllers;
pub mod gather;
pub mod localnode;
mod outside;
mod private;
pub mod telemetry;
