//! **admit** decides what may enter a Kubernetes cluster, with the verdicts and the words of kube-apiserver, and runs
//! the controllers whose objects it guards.
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
//! | package `admit-apimachinery` (`src/apimachinery`) | the words of Go and of Kubernetes, once | nothing of ours |
//! | package `admit-cel` (`src/cel`) | the value, error and cost of an expression | admit-apimachinery |
//! | package `admit-policy` (`src/policy`) | documents → `PolicySet`, request → `Decision`; no I/O | admit-cel, admit-apimachinery |
//! | package `admit-analysis` (`src/analysis`) | what policies and definitions mean beyond one object; no I/O | admit-cel, admit-policy |
//! | package `admit-language` (`src/language`) | what an editor asks about expressions; no I/O, no protocol | admit-analysis, admit-apimachinery, admit-cel, admit-policy |
//! | package `admit-serving` (`src/serving`) | who is connected to a port, and for how long | nothing of ours |
//! | package `admit-apiserver` (`src/apiserver`) | the Kubernetes API over a versioned store | admit-cel, admit-policy, admit-serving, admit-apimachinery |
//! | package `admit-testing` (`src/testing`) | clusters in the process of a test | admit-apiserver, admit-apimachinery |
//! | [`admission`] | the HTTPS edge: AdmissionReview in and out | outside, private, telemetry, admit-policy, admit-serving, admit-apimachinery |
//! | `outside` | how files are read that others write | nothing of ours |
//! | [`gather`] | what an archive holds and where it goes | outside, telemetry, admit-apimachinery, a kube client (handed in) |
//! | [`controllers`] | what our own objects do | gather, outside, telemetry, admit-policy, admit-apimachinery |
//! | [`localnode`] | Jobs and Pods as processes of this machine | private, telemetry, a kube client (handed in) |
//! | `private` | files and folders for their owner alone | nothing of ours |
//! | [`telemetry`] | logs, metrics, traces and readiness | nothing of ours |
//! | [`cli`] | composition root: nothing else knows all parts | everything |
//!
//! `admission`, `apiserver` and `controllers` never import one another. Every package and every controller has such a
//! table for its modules; `tests/product/architecture` holds the tables against the sources, and lets none allow a circle.
//! Within a folder no two files import each other, but for those that the test names; a head and its folder are one.
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
//!
//! admit-cel          ─► admit-apimachinery
//! gather             ─► admit-apimachinery outside telemetry
//! localnode          ─► private telemetry
//!
//! admit-apimachinery
//! admit-serving
//! outside
//! private
//! telemetry
//! ```
//!
//! Names of errors say what kind of failure they are, and whose fault it is:
//!
//! | name | means | whose fault |
//! |---|---|---|
//! | `…Error` | an operation did not succeed; implements `std::error::Error`, and the message says what to do | its variants say |
//! | `…ErrorKind` | the variants of an `…Error` that also says where | as that error's |
//! | `FieldError`, `LoadError`, `Diagnostic`, `Mistake` | something is wrong in a text that a person wrote | the author's |
//! | `Finding` | a check reports something; nothing failed | the author's, if anybody's |
//! | `Refusal` | the `Status` with which our API server answers instead of doing what was asked | the caller's; ours from code 500 on |
//! | `Denial` | a policy decided against a request: a result, not an error | the caller's |
//! | `Failure` | one of many pieces of work failed, and the others go on | its variants say |
//! | `Fault` | why a command ends, with its exit code | by its constructor: `usage`, `not_compiled`, `internal` |
//! | variant `Invalid…`, `Malformed`, `TooLarge`, `TooMany` | input is there, and wrong | the sender's |
//! | variant `Missing…`, `NotFound` | something that is needed is not there | whoever should provide it |
//! | variant `Refused…`, `Unauthorized` | the other side understood, and said no | ours: what we sent, or our rights there |
//! | variant `Forbidden` | our own rules do not allow it | whoever configured or asked for it |
//! | variant `Timeout`, `TimedOut`, `TooSlow`, `Silent`, `Unreachable` | the other side did not answer; another attempt may help | the other side's |
//! | type or variant `Interrupted`, `Stopped`, `Closed` | the work was ended from outside | nobody's |
//! | variant `Internal` | this program or its machine failed | ours |
//!
//! Errors have types, with the fields that their words need. `tests/product/architecture` names the few results whose error
//! is a text, and why. An outcome that is told in a status is no error: it is an enum with a variant for what failed.
//!
//! The error of a module's main operation may be called `Error`, where the module gives it its name: `cyndi::Error`.

pub mod admission;
pub mod cli;
pub mod controllers;
pub mod gather;
pub mod localnode;
mod outside;
mod private;
pub mod telemetry;
