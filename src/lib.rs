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
//! | package `admit-apimachinery` (`src/apimachinery`) | the words of Go and of Kubernetes, once; whoever says them may use it | nothing of ours |
//! | package `admit-cel` (`src/cel`) | the value, error and cost of an expression | admit-apimachinery |
//! | package `admit-policy` (`src/policy`) | documents → `PolicySet`, request → `Decision`; no I/O | admit-cel |
//! | package `admit-serving` (`src/serving`) | who is connected to a port, and for how long | nothing of ours |
//! | package `admit-apiserver` (`src/apiserver`) | the Kubernetes API over a versioned store | admit-policy, admit-serving |
//! | [`admission`] | the HTTPS edge: AdmissionReview in and out | policy, serving, private, telemetry |
//! | `outside` | how files are read that others write | nothing of ours |
//! | [`gather`] | what an archive holds and where it goes | telemetry, a kube client handed in |
//! | [`controllers`] | what our own objects do | kit, gather, policy, telemetry |
//! | [`localnode`] | Jobs and Pods as processes of this machine | private, telemetry, a kube client handed in |
//! | `private` | files and folders for their owner alone | nothing of ours |
//! | [`cli`] | composition root: nothing else knows all parts | everything |
//!
//! `admission`, `apiserver` and `controllers` never import one another; `tests/product/architecture.rs` holds the
//! table against the sources.

pub mod admission;
pub mod cli;
pub mod controllers;
pub mod gather;
pub mod localnode;
mod outside;
mod private;
pub mod telemetry;
